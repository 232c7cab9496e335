import { dollarsOf } from '#contract/models/model-prices.ts'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import { hasRoom } from '../../src/engine/dispatch/budget-waits.ts'
import { stateOf, type BudgetCounters } from '../../src/engine/budgets/budgets.ts'
import type { Workable } from '../../src/engine/run/claim.ts'
import type { Claim, LockedTasks, TaskStore } from '../../src/engine/journal/journal.ts'
import type { Job } from '../../src/engine/queue/queue.ts'
import { settled } from '../../src/engine/budgets/ledger.ts'
import { newJob, nextRow, type PublishedEvents } from '../../src/engine/journal/task-changes.ts'
import { noUsage } from '../../src/engine/journal/task-rows.ts'
import type { Rng } from '../rng.ts'
import type { Faults } from './faults.ts'
import { Transactions } from './transactions.ts'
import type { SimulatedProcess, VirtualTime } from './virtual-time.ts'
import type { Witness } from './witness.ts'
import type { AgentConfig, TaskChange, BudgetState } from '../../src/engine/task.ts'
import type { StoredTask } from './stored.ts'

interface StoredJob extends Job {
  start_after: number
  isActive: boolean
}

/** What a transaction of the simulated store can do beside what the journal needs. */
export interface StoreTransaction extends LockedTasks {
  lock(ids: readonly string[]): Promise<Map<string, Workable>>
  /** Marks waiting jobs as fetched. */
  fetch(count: number): Job[]
  discard(job_id: string): void
  /** Does something with the commit. */
  also(act: () => void): void
}

const agent = {
  name: 'agent',
  status: 'running' as const,
  settles_to: null,
  token_subject: 'sim',
  max_concurrent_tasks: null,
  is_fresh: true,
}

/**
 * What PostgreSQL is to the engine, in memory: rows under lock, one transaction after the other, atomic. It may refuse,
 * fail before a commit, fail after it with an unknown outcome, or not answer.
 */
export class SimulatedStore {
  readonly tasks = new Map<string, StoredTask>()
  readonly jobs = new Map<string, StoredJob>()
  readonly workers = new Map<string, { instance: string; seen_at: number }>()
  /** Whether a process holds the lock of its presence. */
  readonly locks = new Map<string, () => boolean>()
  budget: BudgetCounters
  /** A planted fault: where false, a row is shown to a writer as the writer believes it to be. */
  fences = true
  readonly #time: VirtualTime
  readonly #transactions: Transactions
  readonly #witness: Witness

  constructor(options: { time: VirtualTime; rng: Rng; faults: Faults; witness: Witness; budget: BudgetCounters }) {
    this.#time = options.time
    this.#transactions = new Transactions(options)
    this.#witness = options.witness
    this.budget = options.budget
  }

  /** The store as one process reaches it; `believed` are its claims. */
  connect(process: SimulatedProcess, believed: ReadonlyMap<string, Claim>): TaskStore {
    return { begin: (work) => this.begin(process, work, believed) }
  }

  /** One transaction of a process. */
  begin<T>(
    process: SimulatedProcess | undefined,
    work: (tx: StoreTransaction) => Promise<T>,
    believed: ReadonlyMap<string, Claim> = new Map(),
  ): Promise<T> {
    return this.#transactions.run(process, (commits) => work(this.#transaction(commits, believed)))
  }

  get away_until(): number {
    return this.#transactions.away_until
  }

  set away_until(timestamp: number) {
    this.#transactions.away_until = timestamp
  }

  get isAway(): boolean {
    return this.#transactions.isAway
  }

  hasJobs(): boolean {
    for (const { isActive, start_after } of this.jobs.values())
      if (!isActive && start_after <= this.#time.now) return true
    return false
  }

  /** Tasks that a worker holds by their rows. */
  heldBy(worker_id: string): StoredTask[] {
    return [...this.tasks.values()].filter((task) => task.worker_id === worker_id && task.status === 'running')
  }

  /** What is seen of workers, as `listDeadWorkers` sees them. */
  seenWorkers(): { id: string; instance?: string; unseen_seconds: number | undefined; holds_lock: boolean }[] {
    const holders = [...this.tasks.values()].flatMap(({ status, worker_id }) =>
      status === 'running' && worker_id !== null && !this.workers.has(worker_id) ? worker_id : [],
    )
    const holds_lock = (id: string): boolean => this.locks.get(id)?.() ?? false
    return [
      ...[...this.workers].map(([id, { instance, seen_at }]) => ({
        id,
        instance,
        unseen_seconds: (this.#time.now - seen_at) / 1000,
        holds_lock: holds_lock(id),
      })),
      ...[...new Set(holders)].map((id) => ({ id, unseen_seconds: undefined, holds_lock: holds_lock(id) })),
    ]
  }

  /** Tasks that wait for a budget and could go on together. */
  roomy(): string[] {
    const budget = this.#budgetNow()
    return [...this.tasks.values()]
      .filter(({ status, job_id, wait }) => status === 'waiting' && job_id === null && wait?.reason === 'budget')
      .filter((task) => hasRoom(task, [budget]))
      .map(({ id }) => id)
  }

  /** A new task, and its job. */
  insert(id: string, options: { config: AgentConfig; max_attempts: number }): void {
    const job_id = `${id}/job`
    this.tasks.set(id, { ...newTask(id, new Date(this.#time.now).toISOString()), ...options, job_id })
    this.jobs.set(job_id, { id: job_id, task_id: id, attempt: -1, start_after: 0, isActive: false })
  }

  #budgetNow(): BudgetState {
    return stateOf(this.budget, new Date(this.#time.now).toISOString())
  }

  #transaction(commits: (() => void)[], believed: ReadonlyMap<string, Claim>): StoreTransaction {
    const budgets = [this.#budgetNow()]
    const lock = (id: string): [string, Workable][] => {
      const row = this.tasks.get(id)
      if (!row) return []
      const claim = this.fences ? undefined : believed.get(id)
      const task = claim ? { ...row, ...claim, status: 'running' as const } : row
      return [[id, locked(task, new Date(this.#time.now).toISOString(), budgets)]]
    }
    return {
      lock: async (ids) => new Map(ids.toSorted().flatMap(lock)),
      apply: async (wanted) => {
        const changes = settled(wanted)
        const sends = changes.map(newJob)
        commits.push(() => {
          changes.forEach((change, i) => this.#write(change, sends[i]))
          this.#writeBudget(budgets[0]!)
        })
        const published = changes.map(({ task, events = [] }): PublishedEvents => ({
          task_id: task.id,
          events: events.map(({ type, data }, i) => ({
            sequence: task.last_sequence + i + 1,
            task_id: task.id,
            type,
            created_at: task.event_at,
            data,
          })),
          freed: [],
        }))
        return { published, changes, written: Promise.resolve(undefined) }
      },
      fetch: (count) => {
        const found = [...this.jobs.values()].filter(
          ({ isActive, start_after }) => !isActive && start_after <= this.#time.now,
        )
        return found.slice(0, count).map((job) => {
          const attempt = job.attempt + 1
          commits.push(() => void Object.assign(job, { attempt, isActive: true }))
          return { id: job.id, task_id: job.task_id, attempt }
        })
      },
      discard: (job_id) => void commits.push(() => this.jobs.delete(job_id)),
      also: (act) => void commits.push(act),
    }
  }

  #write(change: TaskChange, send: ReturnType<typeof newJob>): void {
    const { task, job, steps = [], error } = change
    const row = this.tasks.get(task.id)!
    this.#witness.changes(change, row)
    const {
      finished: _finished,
      started,
      events,
      output: _output,
      error: _error,
      cancel_requested,
      ...next
    } = nextRow(change, send?.id)
    const now = new Date(this.#time.now).toISOString()
    Object.assign(row, next, {
      last_sequence: row.last_sequence + events,
      started_at: started ? (row.started_at ?? now) : row.started_at,
      cancel_requested_at: cancel_requested ? now : row.cancel_requested_at,
      error: error ?? row.error,
    })
    for (const step of steps) row.steps[step.index] = step
    const held = task.job_id === null ? undefined : this.jobs.get(task.job_id)
    if (send)
      this.jobs.set(send.id, {
        id: send.id,
        task_id: task.id,
        attempt: -1,
        start_after: this.#time.waits ? (send.start_after?.getTime() ?? 0) : 0,
        isActive: false,
      })
    if (held && (job?.kind === 'end' || job?.kind === 'again') && held.attempt === task.job_attempt)
      this.jobs.delete(held.id)
    if (held && job?.kind === 'back') held.isActive = false
  }

  #writeBudget(state: BudgetState): void {
    if (!state.changed) return
    const { window_start, spent_tokens, held_tokens, spent_cost, held_cost, warned } = state
    const costs = { spent_cost_usd: dollarsOf(spent_cost), held_cost_usd: dollarsOf(held_cost) }
    this.budget = { ...this.budget, window_start, spent_tokens, held_tokens, warned, ...costs }
    this.#witness.spends(this.budget)
  }
}

function locked(row: StoredTask, now: string, budgets: BudgetState[]): Workable {
  const { config, steps: _steps, error: _error, ...task } = row
  return {
    ...task,
    agent,
    now,
    event_at: now,
    tokens_used: 0,
    providers_version: 0,
    has_budget: true,
    ledger: { budgets, settled: false, near: [] },
    work: {
      id: row.id,
      input: row.id,
      output_schema: null,
      timeout_seconds: null,
      thread_id: null,

      config,
      environment: null,
      metadata: {},
      traceparent: null,
      caller: null,
    },
  }
}

/** Whether a task of the simulated world is over. */
export function isOver({ status }: StoredTask): boolean {
  return isFinished(status)
}

function newTask(id: string, created_at: string): Omit<StoredTask, 'config' | 'max_attempts' | 'job_id'> {
  return {
    id,
    project_id: 1,
    agent_id: 'agent_1',
    agent_version: 1,
    status: 'queued',
    wait: null,
    usage: noUsage,
    priority: 0,
    attempt: 0,
    writes: 0,
    crashes: 0,
    unseen: 0,
    parent_task_id: null,
    root_task_id: null,
    depth: 0,
    thread_id: null,
    retried_from: null,
    concurrency_key: null,
    credential_id: null,
    worker_id: null,
    job_attempt: -1,
    slot: null,
    cancel: null,
    cancel_requested_at: null,
    last_sequence: 0,
    timeout_seconds: null,
    expires_at: null,
    created_by: 'user_1',
    request_id: null,
    created_at,
    started_at: null,
    org_id: null,
    subscriptions: null,
    budget: {},
    hold: null,
    error: null,
    steps: [],
  }
}
