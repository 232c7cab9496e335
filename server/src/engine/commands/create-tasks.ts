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
/** What comes while a group is stored makes one larger group, which costs less than two; unless that one is held up so long. */
const apart_ms = 100
/** A task with more to store than this, in characters, makes no other one wait. */
const groupedMax_chars = 16_384

export interface CreationOptions {
  sql: Sql
  /** For single statements that find their rows by a few keys. */
  indexed: Sql
  queue: Queue
  /** Whether a project has many jobs in the queue already: see `insertTask`. */
  isFull: (project_id: number) => boolean
  /** Told after commits with something to fetch. */
  onSent: () => void
  /**
   * Claims new tasks for the worker of this process in the transaction that creates them, and returns the ids of those that it
   * claims. A lone task is so begun without a further commit and fetch.
   */
  claim: (tx: Sql, jobs: readonly NewJob[]) => Promise<ReadonlySet<string>>
  /** Claims new tasks that `store` then stores with their claims: see `Worker.claimUnstored`. */
  claimUnstored: Worker['claimUnstored']
}

/** Stores new tasks, each in its own transaction or in a shared one, and returns their rows. */
export type Create = (task: NewTask) => Promise<CreatedRow>

/** Creates tasks, batched or one at a time. */
export interface Creation {
  create: Create
  /** Whether a task may share a transaction with others. */
  mayShare: (task: NewTask) => boolean
  /** Stores such tasks in the caller's transaction; `agent_not_found` where one's agent was deleted meanwhile. */
  createAll: (tx: Sql, tasks: readonly NewTask[]) => Promise<(CreatedRow | Problem)[]>
}

/**
 * Creates tasks in their own transactions. Ordinary tasks that arrive at the same time share a transaction. All others
 * must first check the limits of concurrency keys, threads and agents.
 */
export function makeCreation({ sql, indexed, queue, isFull, onSent, claim, claimUnstored }: CreationOptions): Creation {
  /** Stores and claims in one statement those tasks of which all is known; gives their rows. */
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
      // What fails of the others is theirs alone: some are stored already.
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

/** What became of tasks of which some are `stored`: the others are stored by `store`. In the order of the tasks. */
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

/** A task that cannot be begun is fetched later and fails alone: its creation does not fail. */
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
