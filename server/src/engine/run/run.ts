import { noSpan, type Span } from '../../platform/tracing/tracing.ts'
import type { Spender } from '../budgets/budget-rows.ts'
import type { Claim } from '../journal/journal.ts'
import type { StoredMessage } from '../conversation/turns.ts'
import type { CredentialUnavailable } from '../credentials/credential-unavailable.ts'
import type { ModelAsk, ModelSource, ProviderTurn } from '../models/model.ts'
import type { ModelScope } from '../models/organization/organization-models.ts'
import { noTools, type Toolset } from '../tools/tool.ts'
import type { LockedTask, TaskWork, TaskUsage, Step, ReadMessage, CallWarning } from '../task.ts'
import type { Party } from '../../platform/fair-turns.ts'

/** When its agent is stopped, or the process, a call of a tool in flight may go on for so long. */
const toolGrace_ms: Partial<Record<InterruptReason, number>> = { agent: 30_000, shutdown: 15_000 }

/**
 * Why a call in flight was aborted. Only `timeout` decides the outcome. All others are hints: the outcome of the task
 * is decided under its lock with the next write.
 */
export type InterruptReason = 'agent' | 'cancel' | 'timeout' | 'shutdown' | 'lost' | 'call_timeout' | 'output_too_large'

export class Interrupted extends Error {
  readonly reason: InterruptReason
  constructor(reason: InterruptReason) {
    super(`interrupted: ${reason}`)
    this.name = 'Interrupted'
    this.reason = reason
  }
}

/** A call of a model whose intent is committed, and that is to be made. */
export interface StartedCall {
  step: Step
  /** `provider/model`; undefined where the name has nothing behind it. */
  model: string | undefined
  /** Taken before its intent was written: see `nextSignals`. */
  signal: AbortSignal
}

/** One attempt at a task in this process: what was read at the claim, and what has happened since. */
export class Run {
  readonly claim: Claim
  readonly work: TaskWork
  readonly agent_id: string
  /** Its agent as spans name it. */
  readonly agent: { name: string; version: number }
  readonly project_id: number
  /** Whose budgets it spends. */
  readonly spender: Spender
  /** Whose model providers it may use, and which version of them was read last. */
  modelScope: ModelScope
  /** The models of its project, with its organization's own providers; undefined for those of the service. */
  models: ModelSource | undefined
  /** Whose turns it takes. */
  readonly party: Party & { project_id: number }
  /** The task at the root of its tree: all of a tree are in one trace. */
  readonly root_task_id: string
  /** Whose task it is: files that its tools make are theirs. */
  readonly created_by: string
  /** What is traced of this attempt. */
  span: Span = noSpan
  /** There may be steps of it already, which are read before it goes on: here or elsewhere it was begun, or it is a retry. */
  readonly hasJournal: boolean
  /** The journal as this attempt knows it. Others write it too where people answer: then `unseen` of the task tells. */
  steps: Step[]
  /** Messages that were sent to the task and that it has read. */
  messages: readonly ReadMessage[]
  /** What earlier tasks of its thread said. */
  history: readonly StoredMessage[] = []
  /** Turns of models that this attempt has made or decrypted: every call of a model has all that came before it. */
  readonly known_turns = new Map<string, ProviderTurn>()
  /** What its agent may call. */
  toolset: Toolset = noTools
  usage: TaskUsage
  /** Output that the next call may have at most, where its budgets say so. */
  max_output_tokens: number | undefined
  /** What the next call of a model is known not to get as its agent asks: see `takeWarnings`. */
  warnings: CallWarning[] = []
  /** Calls that this attempt could not make for want of a token, by the index of their step: the task waits for it. */
  readonly lacking = new Map<number, CredentialUnavailable>()
  /** Text of the message that is being written. */
  unfinished = ''
  /** That message, or the last one. */
  message_id: string | undefined
  /** The agent's environment variables; none where they cannot be read. */
  readonly environment: Readonly<Record<string, string>>
  /** Secrets that calls could not be made without and that cannot be read: the task fails. */
  readonly unreadable: string[]
  readonly claimed_at = performance.now()
  expired = false
  /** Its tools and its past are there. */
  isPrepared = false
  /** What the model is asked, where a remote worker says that; else what the journal says. */
  asked: ModelAsk | undefined
  /** The first call of its model, where the claim has written the intent already. */
  started: StartedCall | undefined
  /** While the claim is being stored: resolves once it is, and rejects where it is not. */
  storing: PromiseWithResolvers<void> | undefined
  #abort = new AbortController()
  #toolAbort = new AbortController()
  #toolGrace: { timer: NodeJS.Timeout; at: number } | undefined
  readonly #deadline: NodeJS.Timeout | undefined

  constructor(options: {
    claim: Claim
    task: LockedTask
    work: TaskWork
    steps?: Step[]
    messages?: readonly ReadMessage[]
    expires_at: string | null
    /** Undefined where they cannot be read. */
    environment: Readonly<Record<string, string>> | undefined
  }) {
    const { claim, task, work, steps = [], messages = [], expires_at, environment } = options
    this.claim = claim
    this.work = work
    this.agent_id = task.agent_id
    this.agent = { name: task.agent?.name ?? task.agent_id, version: task.agent_version }
    this.project_id = task.project_id
    const { id, root_task_id, project_id, agent_id, org_id, credential_id } = task
    this.spender = { id, root_task_id, project_id, agent_id, org_id, credential_id }
    this.modelScope = { org_id, project_id, providers_version: task.providers_version }
    this.party = { org_id: org_id ?? '', project_id }
    this.root_task_id = task.root_task_id ?? task.id
    this.created_by = task.created_by
    this.hasJournal = task.attempt > 0 || task.retried_from !== null
    this.steps = steps
    this.usage = task.usage
    this.messages = messages
    this.environment = environment ?? {}
    this.unreadable = environment ? [] : ['environment variables of the agent']
    if (expires_at !== null) {
      // By the database's clock: ours only measures how long from now.
      const left_ms = Math.max(0, Date.parse(expires_at) - Date.parse(task.now))
      this.#deadline = setTimeout(() => this.interrupt('timeout'), left_ms)
    }
  }

  /**
   * Aborts the call that is in flight, or the one that is about to begin. A stopped agent's calls of tools have a while
   * to end: what they began has effects, and a call of a model has none.
   */
  interrupt(reason: InterruptReason): void {
    if (reason === 'timeout') this.expired = true
    const why = new Interrupted(reason)
    this.#abort.abort(why)
    const grace_ms = toolGrace_ms[reason]
    if (grace_ms === undefined) this.#toolAbort.abort(why)
    else this.#abortToolsAfter(grace_ms, why)
  }

  /** Of two interruptions the one that leaves less time counts: a process that stops waits for no agent's. */
  #abortToolsAfter(grace_ms: number, why: Interrupted): void {
    const at = performance.now() + grace_ms
    if (this.#toolGrace && this.#toolGrace.at <= at) return
    clearTimeout(this.#toolGrace?.timer)
    this.#toolGrace = { at, timer: setTimeout(() => this.#toolAbort.abort(why), grace_ms) }
  }

  /**
   * The signals for the next calls: of a model, and of tools. Taken before the write of their intents: an interruption
   * that comes while that write is under way is not lost.
   */
  nextSignals(): { model: AbortSignal; tools: AbortSignal } {
    if (!this.expired) {
      if (this.#abort.signal.aborted) this.#abort = new AbortController()
      if (this.#toolAbort.signal.aborted) this.#toolAbort = new AbortController()
      clearTimeout(this.#toolGrace?.timer)
      this.#toolGrace = undefined
    }
    return { model: this.#abort.signal, tools: this.#toolAbort.signal }
  }

  /** Takes the warnings to be logged with the model call, and clears them. */
  takeWarnings(model: string): CallWarning[] {
    const warnings = this.warnings.filter((warning) => warning.model === model)
    this.warnings = []
    return warnings
  }

  /** Values that must not appear in logs and errors. */
  get secrets(): readonly string[] {
    return [...Object.values(this.environment), ...this.toolset.secrets]
  }

  get stepsMax(): number {
    return this.work.config.max_steps ?? defaultStepsMax
  }

  end(): void {
    this.storing?.reject(new Interrupted('lost'))
    clearTimeout(this.#deadline)
    clearTimeout(this.#toolGrace?.timer)
    void this.toolset.close()
  }
}

/** Steps of one task where its agent's configuration says nothing. */
export const defaultStepsMax = 50
