import { Problem } from '#contract/core/problems.ts'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import type { Bus } from '../../events/streams/streams-bus.ts'
import type { Logger } from 'pino'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Tracing } from '../../platform/tracing/tracing.ts'
import { budgetSignals, openLedger } from '../budgets/ledger.ts'
import type { Decide } from '../journal/journal.ts'
import type { JournalNotice } from '../journal/resume.ts'
import { agentsWithDeferred, applyChanges } from '../journal/task-changes.ts'
import { listReadMessages, listSteps, lockTasksWithWork } from '../journal/task-rows.ts'
import { findWork, isCutShort, isUnderWay, type WorkRow } from '../journal/work.queries.ts'
import type { Queue } from '../queue/queue.ts'
import type { RunContext } from '../run/run-task.ts'
import { Run } from '../run/run.ts'
import type { LockedTask, Step, TaskWork } from '../task.ts'

export type Change = ReturnType<Decide>

/** The right of a remote worker to run one task (decision 0036). */
export interface Lease {
  task_id: string
  project_id: number
  /** The fencing number. */
  attempt: number
}

/** The parts of a process that remote work needs. */
export interface RemoteContext {
  sql: Sql
  queue: Queue
  bus: Bus
  log: Logger
  /** The id of this process for others. */
  worker_id: string
  tracing: Tracing
  run: Omit<RunContext, 'journal' | 'isClosing' | 'reload' | 'onCredentialWait'>
  environmentOf: (agent_id: string, environment: Buffer | null) => Readonly<Record<string, string>> | undefined
  /** Loads what a run needs beyond its task's row: its tools and the history of its thread. */
  prepare: (run: Run) => Promise<void>
  /** Called after a commit with its events and the agents of deferred tasks. `sent`: there is a job to fetch. */
  onJournaled: (notice: Pick<JournalNotice, 'published' | 'deferred'> & { sent?: boolean }) => void
  onBudgets: (what: { waits: boolean; roomMade: boolean }) => void
}

/** A task under its lock, held by a lease. */
export interface Held {
  tx: Sql
  task: LockedTask & { work: TaskWork }
  row: WorkRow
  /** Whether the lease still holds the task. */
  holds: boolean
  /** Whether the task ended while the call was in flight whose result is written now. */
  has_ended?: boolean
  /** The journal, in the order of its steps. */
  steps: Step[]
  /** The task as a run, for the functions of other rooms. */
  run: Run
}

type Found = Pick<Held, 'task' | 'row' | 'holds' | 'has_ended'>

/** A decision under the lock: the change of the task, and the result for the worker. */
export interface Decision<T> {
  change?: Change
  result: T
}

/**
 * Runs `decide` for a task that a lease holds, under the task's lock, in one transaction. `journal` reads the steps,
 * `ledger` locks the budgets.
 * @throws `task_canceled` if the task has ended, `lease_lost` if the lease has ended or another worker has the task
 */
export async function underLease<T>(
  context: RemoteContext,
  lease: Lease,
  { journal = false, ledger = false }: { journal?: boolean; ledger?: boolean },
  decide: (held: Held) => Promise<Decision<T>>,
): Promise<T> {
  return underLock(context, (tx) => requireHeld(tx, lease), { journal, ledger }, decide)
}

/**
 * Writes the result of a call that this process made for a worker. If the lease has ended meanwhile, the result is
 * still written unless the call was started again, because it may have been paid for. With `after_end`, this also
 * applies if the task has ended. After such a write, it throws like `underLease`.
 * @throws `task_canceled`, `lease_lost`
 */
export async function writeCall(
  context: RemoteContext,
  lease: Lease,
  step: Step,
  { ledger = false, after_end = false }: { ledger?: boolean; after_end?: boolean },
  decide: (held: Held) => Promise<Decision<undefined>>,
): Promise<void> {
  let refusal: Problem | undefined
  const find = async (tx: Sql): Promise<Found> => {
    const { task, row } = await findHeld(tx, lease)
    if (task && row && isHeld(task, row, lease)) return { task, row, holds: true }
    refusal = leaseRefused(task, row, lease)
    if (!task?.agent || !row) throw refusal
    const has_ended = isFinished(task.status)
    if (has_ended ? !after_end || !(await isCutShort(tx, step)) : !(await isUnderWay(tx, step))) throw refusal
    return { task, row, holds: false, has_ended }
  }
  await underLock(context, find, { journal: false, ledger }, decide)
  if (refusal) throw refusal
}

async function underLock<T>(
  context: RemoteContext,
  find: (tx: Sql) => Promise<Found>,
  { journal, ledger }: { journal: boolean; ledger: boolean },
  decide: (held: Held) => Promise<Decision<T>>,
): Promise<T> {
  const { sql, queue } = context
  const { result, notice, budgets } = await sql.begin(async (tx) => {
    const found = await find(tx)
    const { task } = found
    if (ledger) await openLedger(tx, [task])
    const steps = journal ? ((await listSteps(tx, [task.id])).get(task.id) ?? []) : []
    const held = { tx, ...found, steps, run: runOf(context, task, steps) }
    const { change, result } = await decide(held)
    const changes = change ? [{ ...change, task }] : []
    const published = await applyChanges(tx, queue, changes)
    const notice = { published, deferred: agentsWithDeferred(changes), sent: change?.job?.kind === 'first' }
    return { result, notice, budgets: budgetSignals(changes) }
  })
  context.onJournaled(notice)
  if (budgets.waits || budgets.roomMade) context.onBudgets(budgets)
  return result
}

/** A held task as a run of this process, for one request. */
export function runOf(context: RemoteContext, task: LockedTask & { work: TaskWork }, steps: Step[]): Run {
  return new Run({
    claim: { task_id: task.id, worker_id: task.worker_id ?? '', attempt: task.attempt, writes: task.writes },
    task,
    work: task.work,
    steps,
    expires_at: null,
    environment: context.environmentOf(task.agent_id, task.work.environment),
  })
}

/** Loads the tools and the messages of a held task, outside of its lock. */
export async function prepareRun(context: RemoteContext, run: Run, { hasMessages = true } = {}): Promise<void> {
  const { steps } = run
  await context.prepare(run)
  run.steps = steps
  if (!hasMessages) return
  run.messages = (await listReadMessages(context.sql, [run.claim.task_id])).get(run.claim.task_id) ?? []
}

async function requireHeld(tx: Sql, lease: Lease): Promise<Found> {
  const { task, row } = await findHeld(tx, lease)
  if (!task || !row || !isHeld(task, row, lease)) throw leaseRefused(task, row, lease)
  return { task, row, holds: true }
}

async function findHeld(tx: Sql, { task_id }: Lease): Promise<{ [K in 'task' | 'row']: Held[K] | undefined }> {
  const task = (await lockTasksWithWork(tx, [task_id])).get(task_id)
  return { task, row: await findWork(tx, task_id) }
}

function isHeld(task: Held['task'] | undefined, row: WorkRow | undefined, { attempt }: Lease): boolean {
  const holds = row?.lease_holds === true && row.attempt === attempt
  const isTheirs = task?.agent && task.status === 'running' && task.attempt === attempt
  return Boolean(holds && isTheirs && task.worker_id === row.lease_id)
}

/** The problem for a token that holds no lease. */
function leaseRefused(task: LockedTask | undefined, row: WorkRow | undefined, lease: Lease): Problem {
  const details = { resource_type: 'task', resource_id: lease.task_id, current_status: task?.status ?? 'canceled' }
  const isOver =
    task === undefined || task.agent === null || (isFinished(task.status) && row?.attempt === lease.attempt)
  return new Problem(isOver ? 'task_canceled' : 'lease_lost', details, {
    message: isOver
      ? 'The task has ended. Stop work on it.'
      : 'The lease has ended, and another worker may have the task. Stop work on it.',
  })
}

/**
 * Refuses further calls and steps of a canceled task.
 * @throws `task_canceled`
 */
export function refuseCanceled({ id, cancel, status }: LockedTask): void {
  if (!cancel) return
  throw new Problem(
    'task_canceled',
    { resource_type: 'task', resource_id: id, current_status: status },
    { message: 'The task is being canceled. Stop work on it, and end it by complete or fail.' },
  )
}
