import { setTimeout as delay } from 'node:timers/promises'
import type { Hub } from '../../events/streams/streams-hub.ts'
import { isTransient, type Sql } from '../../platform/postgres/database.ts'
import type { LimitKey } from '../queue/concurrency-limits.ts'
import { Batcher } from '../../platform/batcher.ts'
import type { Queue } from '../queue/queue.ts'
import { budgetSignals, openLedger } from '../budgets/ledger.ts'
import { DatabaseClock } from './database-clock.ts'
import { foreseen, guardOf, isPlain, knownAfter, type KnownTask } from './known-task.ts'
import { agentsWithDeferred, allWritten, applyNoted, publishedBy, type Applied } from './task-changes.ts'
import { writeTasks, type WrittenTasks } from './task-statement.ts'
import { lockTasks } from './task-rows.ts'
import type { LockedTask, TaskChange } from '../task.ts'
import { backoff } from '../../platform/backoff.ts'

/** A worker's hold on a task. Every write names it, so that a worker that lost the task cannot write. */
export interface Claim {
  readonly task_id: string
  readonly worker_id: string
  /** The fencing number. */
  readonly attempt: number
  /** Number of writes so far. */
  writes: number
  /** The task after the last write; undefined if unknown. */
  known?: KnownTask | undefined
}

/**
 * The lease is lost: another worker owns the task, or the task was canceled by force or deleted. This claim must not
 * write anything more.
 */
export class LeaseLost extends Error {
  constructor({ task_id, attempt }: Claim) {
    super(`task ${task_id} is no longer held by attempt ${attempt}`)
    this.name = 'LeaseLost'
  }
}

/** Decides under the lock what a write changes, from the task's state at that moment. */
export type Decide = (task: LockedTask) => Omit<TaskChange, 'task' | 'counted'>

interface Write {
  claim: Claim
  /** The number of this write within its claim, from 1. */
  position: number
  decide: Decide
}

/** How long a write is retried while the database is unavailable. A model's answer is worth the wait. */
const retry_ms = 60_000
const backoff_ms = { first: 50, max: 2000 }
const groupMax = 64
const concurrency = 2
/** A batch that is held up by the lock of one of its tasks delays other writes at most this long. */
const apart_ms = 100

/** Locked tasks within one transaction. */
export interface LockedTasks {
  /** Locks tasks and their budgets. */
  lock(ids: readonly string[]): Promise<Map<string, LockedTask>>
  apply(changes: readonly TaskChange[]): Promise<Applied>
}

/** A change of a task that is expected to be as its claim last saw it (decision 0041). */
export interface ForeseenChange {
  change: TaskChange
  known: KnownTask
}

/** Stores tasks. A function passed to `begin` takes effect as a whole, or not at all if it throws. */
export interface TaskStore {
  begin<T>(work: (tasks: LockedTasks) => Promise<T>): Promise<T>
  /**
   * Writes plain changes of tasks in one statement, if all tasks are as their claims last saw them. The writes are
   * durable when it resolves. Undefined, without any write, if one of the tasks has changed.
   */
  writeForeseen?(changes: readonly ForeseenChange[]): Promise<WrittenTasks | undefined>
}

export interface TaskStoreOptions {
  sql: Sql
  /** Runs single statements with index plans, for lookups by a few keys. */
  indexed: Sql
  queue: Queue
  /** Whether a reader waits for the task's row when it is finished. */
  isAwaited?: (task_id: string) => boolean
  /** Model tokens that a credential may use per hour (decision D90). */
  tokens_per_hour?: number
}

/** Tasks in PostgreSQL. */
export function taskStore({ sql, indexed, queue, isAwaited, tokens_per_hour = Infinity }: TaskStoreOptions): TaskStore {
  return {
    begin: (work) =>
      sql.begin(
        (tx) =>
          work({
            async lock(ids) {
              const tasks = await lockTasks(tx, ids)
              await openLedger(tx, [...tasks.values()])
              return tasks
            },
            apply: (changes) => applyNoted(tx, queue, changes, isAwaited),
          }),
        'locksFirst',
      ),
    async writeForeseen(all) {
      const changes = all.map(({ change }) => change)
      const guard = guardOf(
        indexed,
        all.map(({ change: { task }, known: { row_version } }) => ({ task, row_version })),
        Math.min(tokens_per_hour, Number.MAX_SAFE_INTEGER),
      )
      const written = await writeTasks(indexed, queue, allWritten(changes, { isAwaited, isForeseen: true }), guard)
      return written.tasks.size === 0 ? undefined : written
    },
  }
}

export interface JournalOptions {
  store: TaskStore
  hub: Hub
  onDeferred: (agent_ids: readonly string[]) => void
  /** Called with the limits that have room now: see `freedLimits`. */
  onFreed?: (limitKeys: readonly LimitKey[]) => void
  /**
   * Called after writes that returned reservations to budgets (`roomMade`) or made a task wait for a budget (`waits`).
   */
  onBudgets?: (what: { waits: boolean; roomMade: boolean }) => void
}

/**
 * Journal: writes the changes of this process's claims. Writes are fenced and batched, and each is made exactly once.
 */
export class Journal {
  readonly #store: TaskStore
  readonly #hub: Hub
  readonly #onDeferred: (agent_ids: readonly string[]) => void
  readonly #onFreed: (limitKeys: readonly LimitKey[]) => void
  readonly #onBudgets: NonNullable<JournalOptions['onBudgets']>
  readonly #commits: Batcher<Write, boolean>
  readonly #clock = new DatabaseClock()

  /** `onDeferred` is called with the agents whose tasks were deferred: see `agentsWithDeferred`. */
  constructor({ store, hub, onDeferred, onFreed = () => {}, onBudgets = () => {} }: JournalOptions) {
    this.#store = store
    this.#hub = hub
    this.#onDeferred = onDeferred
    this.#onFreed = onFreed
    this.#onBudgets = onBudgets
    this.#commits = new Batcher((writes) => this.#commit(writes), { concurrency, groupMax, apart_ms })
  }

  /**
   * Commits one write of a claim, and returns whether the claim still holds the task after it. When it resolves, the
   * write is durable and its events are published.
   *
   * A commit of unknown outcome after a lost connection is retried. The number of writes in the task's row shows
   * whether it had succeeded, so it never happens twice.
   * @throws LeaseLost if the claim no longer holds the task.
   */
  async write(claim: Claim, decide: Decide): Promise<boolean> {
    const holds = await this.#commits.submit({ claim, position: claim.writes + 1, decide })
    claim.writes += 1
    return holds
  }

  async #commit(writes: readonly Write[]): Promise<(boolean | Error)[]> {
    const until = performance.now() + retry_ms
    for (let failures = 1; ; failures += 1) {
      try {
        return await this.#commitOnce(writes)
      } catch (error) {
        if (!isTransient(error)) return writes.length === 1 ? [error as Error] : this.#commitEach(writes)
        if (performance.now() > until) throw error
        await delay(backoff(failures, backoff_ms))
      }
    }
  }

  /** Retries the writes of a failed batch one by one, so that one bad write does not fail the others. */
  async #commitEach(writes: readonly Write[]): Promise<(boolean | Error)[]> {
    const results: (boolean | Error)[] = []
    for (const write of writes) results.push(...(await this.#commit([write])))
    return results
  }

  /** Writes foreseen changes by the guarded statement, and all others under the locks of their tasks. */
  async #commitOnce(writes: readonly Write[]): Promise<(boolean | Error)[]> {
    const foreseen = new Map<Write, ForeseenChange>()
    const others: Write[] = []
    for (const write of writes) {
      const change = this.#foresee(write)
      if (change) foreseen.set(write, change)
      else others.push(write)
    }
    const results = new Map<Write, boolean | Error>()
    const parts = [this.#writeForeseen(foreseen, results), this.#writeLocked(others, results)]
    for (const part of await Promise.allSettled(parts)) if (part.status === 'rejected') throw part.reason
    return writes.map((write) => results.get(write)!)
  }

  /**
   * The plain change of a write, computed from the last known state of its task; undefined if the write must lock the
   * task.
   */
  #foresee({ claim, position, decide }: Write): ForeseenChange | undefined {
    const { known } = claim
    // Unknown until this write has succeeded.
    claim.known = undefined
    const now = this.#clock.read()
    if (!known || !this.#store.writeForeseen || now === undefined || known.task.writes !== position - 1)
      return undefined
    const task = foreseen(known, now)
    const change: TaskChange | undefined = task && { ...decide(task), task, counted: true }
    return change && isPlain(change) ? { change, known } : undefined
  }

  async #writeForeseen(all: ReadonlyMap<Write, ForeseenChange>, results: Map<Write, boolean | Error>): Promise<void> {
    if (all.size === 0) return
    const asked_at = performance.now()
    const written = await this.#store.writeForeseen!([...all.values()])
    if (!written) return this.#writeLocked([...all.keys()], results)
    const changes = [...all.values()].map(({ change }) => change)
    for (const [write, { change }] of all) results.set(write, holdsAfter(change))
    const made = [...all].map(([{ claim }, { change, known }]) => ({ claim, change, active_at: known.active_at }))
    this.#made(made, { published: publishedBy(changes), written, asked_at })
  }

  async #writeLocked(writes: readonly Write[], results: Map<Write, boolean | Error>): Promise<void> {
    if (writes.length === 0) return
    const asked_at = performance.now()
    const { applied, made } = await this.#store.begin(async ({ lock, apply }) => {
      const tasks = await lock(writes.map(({ claim }) => claim.task_id))
      const made: { claim: Claim; change: TaskChange }[] = []
      for (const write of writes) {
        const { claim, position, decide } = write
        const task = tasks.get(claim.task_id)
        const standing = task ? stands(task, claim, position) : 'lost'
        if (task && standing === 'open') {
          const change = { ...decide(task), task, counted: true }
          made.push({ claim, change })
          results.set(write, holdsAfter(change))
        } else results.set(write, standing === 'lost' ? new LeaseLost(claim) : task!.worker_id === claim.worker_id)
      }
      return { applied: await apply(made.map(({ change }) => change)), made }
    })
    // Budgets may have added events to the changes.
    const asWritten = new Map(applied.changes.map((change) => [change.task.id, change]))
    this.#made(
      made.map(({ claim }) => ({ claim, change: asWritten.get(claim.task_id)! })),
      { published: applied.published, written: await applied.written, asked_at },
    )
    const changes = made.map(({ change }) => change)
    const budgets = budgetSignals(changes)
    this.#onDeferred(agentsWithDeferred(changes))
    if (budgets.waits || budgets.roomMade) this.#onBudgets(budgets)
  }

  /**
   * Publishes the events of successful writes, and records the new state of tasks for the next writes of their claims.
   */
  #made(
    made: readonly { claim: Claim; change: TaskChange; active_at?: number }[],
    { published, written, asked_at }: Noted,
  ): void {
    for (const { task_id, events, freed } of published) {
      this.#hub.publish(task_id, events, written?.tasks.get(task_id)?.row)
      this.#onFreed(freed)
    }
    if (written?.now !== undefined) this.#clock.note(written.now, asked_at)
    for (const { claim, change, active_at } of made) {
      const row_version = holdsAfter(change) ? written?.tasks.get(claim.task_id)?.row_version : undefined
      claim.known = row_version === undefined ? undefined : knownAfter(change, row_version, active_at)
    }
  }
}

/** The results of writes, and when they were sent, by `performance.now()`. */
interface Noted extends Pick<Applied, 'published'> {
  written: WrittenTasks | undefined
  asked_at: number
}

/**
 * Whether a write may be made (`open`), was made by a commit whose response was lost (`made`), or comes too late
 * (`lost`).
 */
function stands(task: LockedTask, claim: Claim, position: number): 'open' | 'made' | 'lost' {
  if (task.attempt !== claim.attempt) return 'lost'
  if (task.writes === position) return 'made'
  const held = task.status === 'running' && task.worker_id === claim.worker_id && task.writes === position - 1
  return held && task.agent !== null ? 'open' : 'lost'
}

function holdsAfter({ status, job }: TaskChange): boolean {
  return (status === undefined || status === 'running') && job === undefined
}
