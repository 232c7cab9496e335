import { setTimeout as delay } from 'node:timers/promises'
import type { Hub } from '../../events/streams/streams-hub.ts'
import { isTransient, type Sql } from '../../platform/postgres/database.ts'
import type { LimitKey } from '../queue/concurrency-limits.ts'
import { Batcher } from '../../platform/batcher.ts'
import type { Queue } from '../queue/queue.ts'
import { budgetSignals, openLedger } from '../budgets/ledger.ts'
import { applyChanges, agentsWithDeferred, type PublishedEvents } from './task-changes.ts'
import { lockTasks } from './task-rows.ts'
import type { LockedTask, TaskChange } from '../task.ts'
import { backoff } from '../../platform/backoff.ts'

/** A worker's hold on a task: what every one of its writes names, so that one who lost it cannot write. */
export interface Claim {
  readonly task_id: string
  readonly worker_id: string
  /** The fencing number. */
  readonly attempt: number
  /** Writes made so far. */
  writes: number
}

/**
 * The lease is lost: another worker owns the task, or it was canceled by force or removed. This claim must not write
 * anything more.
 */
export class LeaseLost extends Error {
  constructor({ task_id, attempt }: Claim) {
    super(`task ${task_id} is no longer held by attempt ${attempt}`)
    this.name = 'LeaseLost'
  }
}

/** Decides under the lock what a write does, from the task as it is at that moment. */
export type Decide = (task: LockedTask) => Omit<TaskChange, 'task' | 'counted'>

interface Write {
  claim: Claim
  /** Which write of its claim this is, from 1. */
  position: number
  decide: Decide
}

/** How long a write is tried again while the database is away or busy; a model's answer is worth waiting for. */
const retry_ms = 60_000
const backoff_ms = { first: 50, max: 2000 }
const groupMax = 64
const concurrency = 2
/** A group that is held up, by the lock of one of its tasks, does not hold up the others for longer. */
const apart_ms = 100

/** Tasks under lock, within one transaction. */
export interface LockedTasks {
  /** Locks tasks and what they may spend. */
  lock(ids: readonly string[]): Promise<Map<string, LockedTask>>
  apply(changes: readonly TaskChange[]): Promise<PublishedEvents[]>
}

/** Where tasks are kept: all that is done by a function happens at once, or none of it where it throws. */
export interface TaskStore {
  begin<T>(work: (tasks: LockedTasks) => Promise<T>): Promise<T>
}

/** Tasks in PostgreSQL. The rows of finished tasks that `isAwaited` says are awaited come with their events. */
export function taskStore(sql: Sql, queue: Queue, isAwaited?: (task_id: string) => boolean): TaskStore {
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
            apply: (changes) => applyChanges(tx, queue, changes, isAwaited),
          }),
        'locksFirst',
      ),
  }
}

export interface JournalOptions {
  store: TaskStore
  hub: Hub
  onDeferred: (agent_ids: readonly string[]) => void
  /** Called with the limits that have room now: see `freedLimits`. */
  onFreed?: (limitKeys: readonly LimitKey[]) => void
  /** Told after writes by which calls gave back what they had reserved, or tasks began to wait for a budget. */
  onBudgets?: (what: { waits: boolean; roomMade: boolean }) => void
}

/** The writes of this process's claims, fenced, grouped, and made exactly once each. */
export class Journal {
  readonly #store: TaskStore
  readonly #hub: Hub
  readonly #onDeferred: (agent_ids: readonly string[]) => void
  readonly #onFreed: (limitKeys: readonly LimitKey[]) => void
  readonly #onBudgets: NonNullable<JournalOptions['onBudgets']>
  readonly #commits: Batcher<Write, boolean>

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
   * Commits one write of a claim and tells whether the claim still holds the task after it. When it resolves, the write
   * is durable and its events are published. Throws `LeaseLost` when the task is no longer this claim's.
   *
   * A commit whose outcome is unknown because the connection was lost is tried again: the count of writes in the task's
   * row tells whether it had happened, so it never happens twice.
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

  /** One write that cannot be made must not take the others of its group with it. */
  async #commitEach(writes: readonly Write[]): Promise<(boolean | Error)[]> {
    const results: (boolean | Error)[] = []
    for (const write of writes) results.push(...(await this.#commit([write])))
    return results
  }

  async #commitOnce(writes: readonly Write[]): Promise<(boolean | Error)[]> {
    const results: (boolean | Error)[] = []
    const { published, deferred, budgets } = await this.#store.begin(async ({ lock, apply }) => {
      results.length = 0
      const tasks = await lock(writes.map(({ claim }) => claim.task_id))
      const changes: TaskChange[] = []
      for (const { claim, position, decide } of writes) {
        const task = tasks.get(claim.task_id)
        const standing = task ? stands(task, claim, position) : 'lost'
        if (task && standing === 'open') changes.push({ ...decide(task), task, counted: true })
        const change = changes.at(-1)
        results.push(
          standing === 'lost'
            ? new LeaseLost(claim)
            : standing === 'open'
              ? holdsAfter(change!)
              : task!.worker_id === claim.worker_id,
        )
      }
      return {
        published: await apply(changes),
        deferred: agentsWithDeferred(changes),
        budgets: budgetSignals(changes),
      }
    })
    const rows = await Promise.all(published.map(async ({ row }) => row))
    for (const [i, { task_id, events, freed }] of published.entries()) {
      this.#hub.publish(task_id, events, rows[i])
      this.#onFreed(freed)
    }
    this.#onDeferred(deferred)
    if (budgets.waits || budgets.roomMade) this.#onBudgets(budgets)
    return results
  }
}

/** Whether a write may be made, was made already by a commit whose answer got lost, or comes too late. */
function stands(task: LockedTask, claim: Claim, position: number): 'open' | 'made' | 'lost' {
  if (task.attempt !== claim.attempt) return 'lost'
  if (task.writes === position) return 'made'
  const held = task.status === 'running' && task.worker_id === claim.worker_id && task.writes === position - 1
  return held && task.agent !== null ? 'open' : 'lost'
}

function holdsAfter({ status, job }: TaskChange): boolean {
  return (status === undefined || status === 'running') && job === undefined
}
