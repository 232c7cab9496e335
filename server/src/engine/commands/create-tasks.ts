import { notFound, type Problem } from '#contract/core/problems.ts'
import { isTransient, planByIndex, type Sql } from '../../platform/postgres/database.ts'
import { Batcher, batchOrEach } from '../../platform/batcher.ts'
import { taskColumns, type TaskRow } from '../journal/stored-task.ts'
import {
  claimable,
  insertClaimed,
  insertOrdinary,
  insertTask,
  isOrdinary,
  type CreatedRow,
  type NewTask,
} from './new-task.ts'
import type { Worker } from '../run/worker.ts'
import { filesIn } from '../files/input-files.ts'
import type { NewJob, Queue } from '../queue/queue.ts'

const groupMax = 64
const concurrency = 2
/**
 * While a batch is stored, new tasks collect for the next one, because one large batch costs less than two. After this
 * time a second batch starts in parallel.
 */
const apart_ms = 100
/** Tasks with more content than this, in characters, are not batched, so they delay no others. */
const groupedMax_chars = 16_384

export interface CreationOptions {
  sql: Sql
  /** Runs single statements with index plans, for lookups by a few keys. */
  indexed: Sql
  queue: Queue
  /** Whether a project already has many jobs in the queue: see `insertTask`. */
  isFull: (project_id: number) => boolean
  /** Called after a commit that leaves jobs to fetch. */
  onSent: () => void
  /**
   * Claims new tasks for the worker of this process, in the transaction that creates them (decision 0028). Returns the
   * ids of the claimed tasks. So a single task starts without another commit and fetch.
   */
  claim: (tx: Sql, jobs: readonly NewJob[]) => Promise<ReadonlySet<string>>
  /** Claims new tasks that the given function then stores together with their claims: see `Worker.claimUnstored`. */
  claimUnstored: Worker['claimUnstored']
}

/** Stores a new task, in a separate or a shared transaction, and returns its row. */
export type Create = (task: NewTask) => Promise<CreatedRow>

/** Creates tasks, batched or one at a time. */
export interface Creation {
  create: Create
  /** Whether a task may share a transaction with others. */
  mayShare: (task: NewTask) => boolean
  /**
   * Stores tasks that may share a transaction in the caller's. Returns for each its row, or `agent_not_found` if its
   * agent was deleted meanwhile.
   */
  createAll: (tx: Sql, tasks: readonly NewTask[]) => Promise<(CreatedRow | Problem)[]>
}

/**
 * Creates tasks. Ordinary tasks that arrive at the same time share a transaction. Any other task has a separate one,
 * because it must check the limits of its concurrency key, thread or agent under locks.
 */
export function makeCreation({ sql, indexed, queue, isFull, onSent, claim, claimUnstored }: CreationOptions): Creation {
  /** Stores and claims in one statement the tasks that `claimable` accepts. Returns their rows. */
  const storeClaimed = async (on: Sql, tasks: readonly NewTask[]): Promise<Map<string, CreatedRow>> => {
    const of = new Map<string, NewTask>()
    const ready = tasks.flatMap((task) => {
      const seen = claimable(task)
      if (seen) of.set(task.id, task)
      return seen ?? []
    })
    let rows = new Map<string, CreatedRow>()
    if (ready.length === 0) return rows
    const store: Parameters<Worker['claimUnstored']>[2] = async (changes) => {
      const claimed = changes.map((change) => ({ task: of.get(change.task.id)!, change }))
      const stored = await insertClaimed(on, queue, claimed)
      rows = new Map([...stored].map(([id, { row }]) => [id, row]))
      return new Map([...stored].map(([id, { row, row_version }]) => [id, { at: row.created_at, row_version }]))
    }
    await claimUnstored(on, ready, store, { opensTools: !on.isTransaction })
    return rows
  }
  const store = async (
    tx: Sql,
    tasks: readonly NewTask[],
    claiming: typeof claim,
  ): Promise<(CreatedRow | Problem)[]> => {
    const { rows, jobs } = await insertOrdinary(tx, queue, tasks)
    const claimed = await claiming(
      tx,
      jobs.filter(({ start_after }) => !start_after),
    )
    if (claimed.size < jobs.length) tx.afterCommit(onSent)
    return tasks.map(({ id, agent }) => rows.get(id) ?? notFound('agent_not_found', 'agent', agent.id))
  }
  const createAll: Creation['createAll'] = async (tx, tasks) => {
    await planByIndex(tx)
    const claimed = tasks.some(claimable)
      ? await tx
          .begin((inner) => storeClaimed(inner, tasks))
          .catch(unlessTransient(() => new Map<string, CreatedRow>()))
      : new Map<string, CreatedRow>()
    return withOthers(tasks, claimed, (others) =>
      store(tx, others, (part, jobs) =>
        part.begin((inner) => claim(inner, jobs)).catch(unlessTransient(() => new Set<string>())),
      ),
    )
  }
  const inTransaction = (tasks: readonly NewTask[], claiming: typeof claim) =>
    sql.begin((tx) => store(tx, tasks, claiming), 'forceIndexPlan')
  const queued = (tasks: readonly NewTask[]) =>
    batchOrEach(tasks, (some) =>
      inTransaction(some, claim).catch(unlessTransient(() => inTransaction(some, async () => new Set()))),
    )
  const groups = new Batcher<NewTask, CreatedRow>(
    async (tasks) => {
      const claimed = await storeClaimed(indexed, tasks).catch(unlessTransient(() => new Map<string, CreatedRow>()))
      // Only the tasks that are not stored yet may fail here.
      return withOthers(tasks, claimed, (others) => queued(others).catch((error: Error) => others.map(() => error)))
    },
    { concurrency, groupMax, apart_ms },
  )
  const mayShare = (task: NewTask): boolean =>
    isOrdinary(task, isFull(task.agent.project_id)) && isSmall(task) && filesIn(task.input).length === 0
  const alone: Create = (task) =>
    sql.begin(async (tx) => {
      if (await insertTask(tx, queue, task, isFull(task.agent.project_id))) tx.afterCommit(onSent)
      return requireRow(tx, task)
    })
  return { createAll, mayShare, create: (task) => (mayShare(task) ? groups.submit(task) : alone(task)) }
}

/** Stores the tasks that are not in `stored` by `store`, and returns the results of all, in the order of the tasks. */
async function withOthers<Failure>(
  tasks: readonly NewTask[],
  stored: ReadonlyMap<string, CreatedRow>,
  store: (others: readonly NewTask[]) => Promise<readonly (CreatedRow | Failure)[]>,
): Promise<(CreatedRow | Failure)[]> {
  const others = tasks.filter(({ id }) => !stored.has(id))
  const rows = others.length > 0 ? await store(others) : []
  const each = new Map(others.map(({ id }, i) => [id, rows[i]!]))
  return tasks.map(({ id }) => stored.get(id) ?? each.get(id)!)
}

/**
 * If a claim fails, the task is stored without it, so that its creation succeeds; a worker fetches it later. Transient
 * database errors are thrown.
 */
function unlessTransient<T>(instead: () => T | Promise<T>): (error: unknown) => T | Promise<T> {
  return (error) => {
    if (isTransient(error)) throw error
    return instead()
  }
}

function isSmall({ input, metadata, output_schema, caller, segment }: NewTask): boolean {
  return JSON.stringify([input, metadata, output_schema, caller, segment?.input]).length <= groupedMax_chars
}

async function requireRow(tx: Sql, { id, agent }: NewTask): Promise<TaskRow> {
  const [row] = await tx.run<TaskRow>(tx.fragment`
    select ${taskColumns(tx)} from task t where id = ${id}
      and not exists (select from removed_agent r where r.agent_id = t.agent_id)`)
  if (!row) throw notFound('agent_not_found', 'agent', agent.id)
  return row
}
