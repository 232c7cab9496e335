import { noSpan, type Span } from '../../platform/tracing/tracing.ts'
import type { Spender } from '../budgets/budget-rows.ts'
import type { Claim } from '../journal/journal.ts'
import type { StoredMessage } from '../conversation/turns.ts'
import type { CredentialUnavailable } from '../credentials/credential-unavailable.ts'
import type { ModelAsk, ModelSource, ProviderTurn } from '../models/model.ts'
import type { ModelScope } from '../models/organization/organization-models.ts'
import { noTools, type Toolset } from '../tools/tool.ts'
import type { LockedTask, TaskWork, TaskUsage, Step, ReadMessage, CallWarning, TaskError } from '../task.ts'
import type { Party } from '../../platform/fair-turns.ts'

/** How long a tool call in flight may continue after its agent or the process stops. */
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

/** A model call whose intent is committed, and that must be made. */
export interface StartedCall {
  step: Step
  /** `provider/model`; undefined for an unknown name. */
  model: string | undefined
  /** Taken before its intent was written: see `nextSignals`. */
  signal: AbortSignal
}

/** One attempt at a task in this process: what was read at the claim, and what has happened since. */
export class Run {
  readonly claim: Claim
  readonly work: TaskWork
  readonly agent_id: string
  /** Its agent, as spans name it. */
  readonly agent: { name: string; version: number }
  readonly project_id: number
  /** Determines the budgets that it spends. */
  readonly spender: Spender
  /** Determines its model providers, with the version of them that was read last. */
  modelScope: ModelScope
  /** The models of its project, with its organization's providers; undefined for those of the service. */
  models: ModelSource | undefined
  /** The organization and project that its turns and its schema checks belong to. */
  readonly party: Party & { project_id: number }
  /** The root of the task's tree: all tasks of a tree are in one trace. */
  readonly root_task_id: string
  /** The creator of the task, who owns the files that its tools make. */
  readonly created_by: string
  /** The span of this attempt. */
  span: Span = noSpan
  /** Whether there may be steps already, which must be read first: the task was started before, or it is a retry. */
  readonly hasJournal: boolean
  /**
   * The journal as this attempt knows it. Others write to it when people answer; then the task's `unseen` is raised.
   */
  steps: Step[]
  /** Messages to the task that it has read. */
  messages: readonly ReadMessage[]
  /** Messages of earlier tasks of its thread. */
  history: readonly StoredMessage[] = []
  /** Turns that this attempt has received or decrypted, because each model call needs all earlier ones. */
  readonly known_turns = new Map<string, ProviderTurn>()
  /** The tools that its agent may call. */
  toolset: Toolset = noTools
  usage: TaskUsage
  /** Maximum output of the next call, as far as budgets limit it. */
  max_output_tokens: number | undefined
  /** Settings that the next model call cannot fulfil: see `takeWarnings`. */
  warnings: CallWarning[] = []
  /** Calls that were not made for lack of a token, by the index of their step; the task waits for the credential. */
  readonly lacking = new Map<number, CredentialUnavailable>()
  /** The text of the unfinished message. */
  unfinished = ''
  /** The id of the unfinished or the last message. */
  message_id: string | undefined
  /** The agent's environment variables; empty if they cannot be decrypted. */
  readonly environment: Readonly<Record<string, string>>
  /** Secrets that the task needs and that cannot be decrypted: the task fails. */
  readonly unreadable: string[]
  readonly claimed_at = performance.now()
  expired = false
  /** Whether its tools and its history are loaded. */
  isPrepared = false
  /** The model request of a remote worker; else the request is made from the journal. */
  asked: ModelAsk | undefined
  /** The first model call, if the claim wrote its intent. */
  started: StartedCall | undefined
  /** While the claim is being stored: resolves once it is stored, and rejects if it is not. */
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
    /** Undefined if they cannot be decrypted. */
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
      // `expires_at` is by the database's clock; this process only measures the time left.
      const left_ms = Math.max(0, Date.parse(expires_at) - Date.parse(task.now))
      this.#deadline = setTimeout(() => this.interrupt('timeout'), left_ms)
    }
  }

  /**
   * Aborts the call in flight, or the next one. After a stop of the agent or the process, tool calls get some time to
   * end, because they have effects; model calls have none.
   */
  interrupt(reason: InterruptReason): void {
    if (reason === 'timeout') this.expired = true
    const why = new Interrupted(reason)
    this.#abort.abort(why)
    const grace_ms = toolGrace_ms[reason]
    if (grace_ms === undefined) this.#toolAbort.abort(why)
    else this.#abortToolsAfter(grace_ms, why)
  }

  /** Of two interruptions, the one with the earlier deadline counts. */
  #abortToolsAfter(grace_ms: number, why: Interrupted): void {
    const at = performance.now() + grace_ms
    if (this.#toolGrace && this.#toolGrace.at <= at) return
    clearTimeout(this.#toolGrace?.timer)
    this.#toolGrace = { at, timer: setTimeout(() => this.#toolAbort.abort(why), grace_ms) }
  }

  /**
   * The signals for the next calls, of a model and of tools. They are taken before the write of the intents, so that an
   * interruption during that write is not lost.
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

  /** Returns the warnings to log with the model call, and clears them. */
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

/** Maximum number of steps of a task if its agent's configuration has none. */
export const defaultStepsMax = 50

/** The error of a task that would exceed its maximum number of steps. */
export function stepsExceeded({ stepsMax }: Run, steps: readonly Step[]): TaskError {
  return {
    code: 'max_steps_reached',
    message: `The task reached its limit of ${stepsMax} steps. Raise max_steps of the agent, or give it a smaller task.`,
    retryable: false,
    step_id: steps.at(-1)?.id ?? null,
  }
}
