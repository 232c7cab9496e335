import { notFound, type Problem } from '#contract/core/problems.ts'
import { isTransient, planByIndex, type Sql } from '../../platform/postgres/database.ts'
import { Batcher, batchOrEach } from '../../platform/batcher.ts'
import { taskColumns, type TaskRow } from './stored-task.ts'
import { insertOrdinary, insertTask, isOrdinary, type NewTask } from './new-task.ts'
import { filesIn } from '../files/input-files.ts'
import type { NewJob, Queue } from '../queue/queue.ts'

const groupMax = 64
const concurrency = 2
/** A task with more to store than this, in characters, makes no other one wait. */
const groupedMax_chars = 16_384

export interface CreationOptions {
  sql: Sql
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
}

/** Stores new tasks, each in its own transaction or in a shared one, and returns their rows. */
export type Create = (task: NewTask) => Promise<TaskRow>

/** Creates tasks, batched or one at a time. */
export interface Creation {
  create: Create
  /** Whether a task may share a transaction with others. */
  mayShare: (task: NewTask) => boolean
  /** Stores such tasks in the caller's transaction; `agent_not_found` where one's agent was deleted meanwhile. */
  createAll: (tx: Sql, tasks: readonly NewTask[]) => Promise<(TaskRow | Problem)[]>
}

/**
 * Creates tasks in their own transactions. Ordinary tasks that arrive at the same time share a transaction. All others
 * must first check the limits of concurrency keys, threads and agents.
 */
export function makeCreation({ sql, queue, isFull, onSent, claim }: CreationOptions): Creation {
  const store = async (tx: Sql, tasks: readonly NewTask[], claiming: typeof claim): Promise<(TaskRow | Problem)[]> => {
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
    return store(tx, tasks, (part, jobs) =>
      part.begin((inner) => claim(inner, jobs)).catch(unlessTransient(() => new Set<string>())),
    )
  }
  const inTransaction = (tasks: readonly NewTask[], claiming: typeof claim) =>
    sql.begin((tx) => store(tx, tasks, claiming), 'forceIndexPlan')
  const groups = new Batcher<NewTask, TaskRow>(
    (tasks) =>
      batchOrEach(tasks, (some) =>
        inTransaction(some, claim).catch(unlessTransient(() => inTransaction(some, async () => new Set()))),
      ),
    { concurrency, groupMax },
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

/** A task that cannot be begun is fetched later and fails alone: its creation does not fail. */
function unlessTransient<T>(instead: () => T | Promise<T>): (error: unknown) => T | Promise<T> {
  return (error) => {
    if (isTransient(error)) throw error
    return instead()
  }
}

function isSmall({ input, metadata, output_schema, caller }: NewTask): boolean {
  return JSON.stringify([input, metadata, output_schema, caller]).length <= groupedMax_chars
}

async function requireRow(tx: Sql, { id, agent }: NewTask): Promise<TaskRow> {
  const [row] = await tx.run<TaskRow>(tx.fragment`
    select ${taskColumns(tx)} from task t where id = ${id}
      and not exists (select from removed_agent r where r.agent_id = t.agent_id)`)
  if (!row) throw notFound('agent_not_found', 'agent', agent.id)
  return row
}
