import type { Claim } from './journal.ts'
import type { LockedTask, Step, TaskUsage, TaskWork } from './task-rows.ts'

/**
 * Why a call in flight was aborted. Only the time limit decides by itself; all others are hints to look: what becomes
 * of the task is decided under its lock, when the next write is made.
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

/** One attempt at a task in this process: what was read at the claim, and what has happened since. */
export class Run {
  readonly claim: Claim
  readonly work: TaskWork
  readonly agent_id: string
  readonly project_id: number
  /** The journal as this attempt knows it; only this attempt writes it. */
  readonly steps: Step[]
  usage: TaskUsage
  /** Text of the message that is being written. */
  unfinished = ''
  /** That message, or the last one. */
  message_id: string | undefined
  /** Values that must not appear in logs and errors. */
  readonly secrets: readonly string[]
  readonly claimed_at = performance.now()
  expired = false
  #abort = new AbortController()
  readonly #deadline: NodeJS.Timeout | undefined

  constructor(options: {
    claim: Claim
    task: LockedTask
    work: TaskWork
    steps: Step[]
    expires_at: string | null
    secrets: readonly string[]
  }) {
    const { claim, task, work, steps, expires_at, secrets } = options
    this.claim = claim
    this.work = work
    this.agent_id = task.agent_id
    this.project_id = task.project_id
    this.steps = steps
    this.usage = task.usage
    this.secrets = secrets
    if (expires_at !== null) {
      // By the database's clock: ours only measures how long from now.
      const left_ms = Math.max(0, Date.parse(expires_at) - Date.parse(task.now))
      this.#deadline = setTimeout(() => this.interrupt('timeout'), left_ms)
    }
  }

  /** Aborts the call that is in flight, or the one that is about to begin. */
  interrupt(reason: InterruptReason): void {
    if (reason === 'timeout') this.expired = true
    this.#abort.abort(new Interrupted(reason))
  }

  /**
   * The signal for the next call. Taken before the write of its intent: an interruption that comes while that write is
   * under way is not lost.
   */
  nextSignal(): AbortSignal {
    if (this.#abort.signal.aborted && !this.expired) this.#abort = new AbortController()
    return this.#abort.signal
  }

  get stepsMax(): number {
    return this.work.config.max_steps ?? defaultStepsMax
  }

  end(): void {
    clearTimeout(this.#deadline)
  }
}

/** Steps of one task where its agent's configuration says nothing. */
export const defaultStepsMax = 50
