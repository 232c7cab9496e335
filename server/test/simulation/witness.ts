import { windowStart } from '#contract/resources/budget-window.ts'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import type { BudgetCounters } from '../../src/engine/budgets/budgets.ts'
import type { Claim } from '../../src/engine/journal/journal.ts'
import type { VirtualTime } from './virtual-time.ts'
import type { Step, TaskChange } from '../../src/engine/task.ts'
import type { StoredTask } from './stored.ts'

/** What is known of the tries of one call of a model. */
interface Tries {
  asked: number
  failed: number
  /** What the provider asked for with each refusal, by the attempt that heard it. */
  retryAfter: Map<number, number | undefined>
  /** Not before this time it may be retried, by that attempt, or by any where the task was deferred. */
  notBefore?: { timestamp: number; attempt: number; isDeferred: boolean }
}

/** Where an agent's configuration says nothing about retries. */
/** The longest that a model is left alone that does not answer (decision 0019). */
const leftAlone_seconds = 10
/** And one that has asked another call for patience: what the simulated provider asks for at most, and a second. */
const patience_seconds = 41
const byDefault = { max_attempts: 5, initial_delay_seconds: 0.5, max_delay_seconds: 30 }
const day_seconds = 86_400
const traceMax = 400

/**
 * Watches the simulated world and says what must never be: by the promises of the documents, not by the code that is
 * watched.
 */
export class Witness {
  /** The first broken promise. */
  broken: string | undefined
  /** Writes, by their kind. */
  readonly counts = { writes: 0, tries: 0, refusals: 0, lost: 0, waits: 0 }
  readonly #time: VirtualTime
  readonly #trace: string[] = []
  readonly #tries = new Map<string, Tries>()
  /** What calls used beyond what was reserved for them: input is only estimated. */
  #excess = { window: '', tokens: 0 }

  constructor(time: VirtualTime) {
    this.#time = time
  }

  note(line: string): void {
    this.#trace.push(`${new Date(this.#time.now).toISOString()} ${line}`)
    if (this.#trace.length > traceMax) this.#trace.shift()
  }

  /** What happened last. */
  get trace(): string {
    return this.#trace.join('\n')
  }

  must(holds: boolean, promise: string): void {
    if (holds || this.broken !== undefined) return
    this.note(`BROKEN: ${promise}`)
    this.broken = promise
  }

  /** A write of a claim was let through, and sees the row under lock. */
  writes(claim: Claim, position: number, row: StoredTask | undefined): void {
    const { task_id, attempt, worker_id } = claim
    const isHolder = row?.status === 'running' && row.attempt === attempt && row.worker_id === worker_id
    this.must(
      isHolder,
      `only the claim that holds a task writes: attempt ${attempt} of ${task_id} wrote while attempt ${row?.attempt} is ${row?.status}`,
    )
    this.must(row?.writes === position - 1, `a write happens once: ${task_id} write ${position} after ${row?.writes}`)
  }

  /** A change is committed; `row` is as it was. */
  changes(change: TaskChange, row: StoredTask): void {
    const { task, steps = [], events = [], status = task.status } = change
    this.counts.writes += 1
    this.note(
      `${task.id} ${row.attempt}.${row.writes} ${row.status} → ${status} ${events.map(({ type }) => type).join(' ')}`,
    )
    this.must(!isFinished(row.status), `a finished task changes no more: ${task.id}`)
    this.must(task.last_sequence === row.last_sequence, `events have dense numbers: ${task.id}`)
    for (const step of steps) this.#step(step, row)
    for (const { type, data } of events) if (type === 'step.failed') this.#failed(change, row, data)
    for (const { type, data } of events)
      if (type === 'model.fallback')
        this.must(
          steps.some(({ id, name }) => id === data['step_id'] && name === data['to']),
          `the model that takes over is the one that is asked next: ${task.id}`,
        )
    const crashes = change.crashes ?? row.crashes
    this.must(crashes <= row.max_attempts, `no more than max_attempts workers die of a task: ${task.id} ${crashes}`)
    if (status === 'failed') this.#ended(change, row)
    const used = (change.calls ?? []).reduce((sum, call) => sum + call.input_tokens + call.output_tokens, 0)
    if (used > 0) this.#exceeds(used - (row.hold?.tokens ?? 0))
  }

  /** A model is asked by an attempt at a task. */
  asked(row: StoredTask, attempt: number): void {
    const step = row.steps.at(-1)
    if (!step || row.attempt !== attempt) return
    const tries = this.#triesOf(step)
    tries.asked += 1
    // A call that hangs is ended by the engine, without an answer.
    tries.retryAfter.delete(attempt)
    this.counts.tries += 1
    const { notBefore } = tries
    if (notBefore && (notBefore.isDeferred || notBefore.attempt === attempt))
      this.must(
        this.#time.now >= notBefore.timestamp - 1,
        `a failed call is tried again after its wait: ${row.id} came ${notBefore.timestamp - this.#time.now} ms too early`,
      )
    delete tries.notBefore
    // Each attempt at the task may have asked once without having been able to write what came of it.
    this.must(
      tries.asked <= tries.failed + row.attempt,
      `a call is made as often as its tries: ${row.id} asked ${tries.asked}, failed ${tries.failed}, attempt ${row.attempt}`,
    )
  }

  /** The model refused, and may have said when to come again. */
  refused(row: StoredTask, attempt: number, retry_after: number | undefined): void {
    const step = row.steps.at(-1)
    this.counts.refusals += 1
    if (step) this.#triesOf(step).retryAfter.set(attempt, retry_after)
  }

  spends({ period, spent_tokens, held_tokens, max_tokens }: BudgetCounters): void {
    const window = windowStart(period, new Date(this.#time.now).toISOString())
    const excess = this.#excess.window === window ? this.#excess.tokens : 0
    this.must(
      spent_tokens + held_tokens <= (max_tokens ?? Infinity) + excess,
      `a budget is kept: ${spent_tokens} spent, ${held_tokens} held, ${excess} beyond the estimates, of ${max_tokens}`,
    )
    this.must(held_tokens >= 0, 'nothing less than nothing is held')
  }

  #exceeds(tokens: number): void {
    // All budgets of the simulated world last an hour.
    const window = windowStart('hour', new Date(this.#time.now).toISOString())
    if (this.#excess.window !== window) this.#excess = { window, tokens: 0 }
    this.#excess.tokens += Math.max(0, tokens)
  }

  #triesOf({ task_id, index, name }: Step): Tries {
    const key = `${task_id} ${index} ${name}`
    const tries = this.#tries.get(key) ?? { asked: 0, failed: 0, retryAfter: new Map() }
    this.#tries.set(key, tries)
    return tries
  }

  #step(step: Step, row: StoredTask): void {
    const before = row.steps[step.index]
    this.must(step.index <= row.steps.length, `the journal has no gaps: ${row.id} step ${step.index}`)
    if (before) this.must(before.id === step.id, `a step keeps its identity: ${row.id} step ${step.index}`)
    if (before?.status !== 'completed') return
    const isSame = step.status === 'completed' && JSON.stringify(step.output) === JSON.stringify(before.output)
    this.must(isSame, `a step has one result: ${row.id} step ${step.index} had one already`)
  }

  #failed({ task, steps = [], wait, status }: TaskChange, row: StoredTask, data: Record<string, unknown>): void {
    const step = steps.find(({ id }) => id === data['step_id'])
    if (step?.type !== 'model_call' || data['reason'] !== undefined) return
    // Where another model takes over in the same write, its step is already that model's.
    if (data['will_retry'] !== true) return
    const rule = { ...byDefault, ...row.config.retry }
    const tries = this.#triesOf(step)
    tries.failed += 1
    this.must(tries.failed < rule.max_attempts, `a call is begun max_attempts times at most: ${row.id} ${tries.failed}`)
    const whole = Math.min(rule.max_delay_seconds, rule.initial_delay_seconds * 2 ** (tries.failed - 1))
    const isSpared = /was not called: it asked for a pause/.test(step.error?.message ?? '')
    const asked = isSpared ? undefined : tries.retryAfter.get(row.attempt)
    const min = asked === undefined ? whole / 2 : Math.min(asked, day_seconds)
    // A model that does not answer is left alone for longer than that.
    const max = asked === undefined ? Math.max(whole, isSpared ? patience_seconds : leftAlone_seconds) : min
    const received = Number(data['retry_after_seconds'])
    this.must(
      received >= min && received <= max,
      `waits follow the retry of the agent: ${received} s, not ${min} to ${max}`,
    )
    const isDeferred = status === 'waiting' && wait?.reason === 'provider'
    tries.notBefore = { timestamp: this.#time.now + min * 1000, attempt: row.attempt, isDeferred }
    if (!isDeferred) return
    this.counts.waits += 1
    const wait_ms = Date.parse(wait?.until ?? '') - Date.parse(task.now)
    this.must(wait_ms >= min * 1000 - 1 && wait_ms <= max * 1100 + 1, `a task is put aside for its wait: ${wait_ms} ms`)
  }

  #ended({ error, steps = [] }: TaskChange, row: StoredTask): void {
    const code = error?.code ?? ''
    const last = steps.at(-1) ?? row.steps.at(-1)
    const { max_attempts } = { ...byDefault, ...row.config.retry }
    const isExhausted = code === 'attempts_exhausted' && row.crashes + 1 >= row.max_attempts
    const isRefused =
      code.startsWith('provider_') && (last?.failures === max_attempts || last?.error?.retryable === false)
    this.must(isExhausted || isRefused, `a task fails when nothing is left to try: ${row.id} ${code} ${last?.failures}`)
  }
}
