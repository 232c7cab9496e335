import { notFound } from '#contract/problems.ts'
import type { Sql } from '../platform/database.ts'
import { Groups } from '../platform/groups.ts'
import { isPassing } from './journal.ts'
import { taskColumns, type TaskRow } from './kept-task.ts'
import { insertOrdinary, insertTask, isOrdinary, type NewTask } from './new-task.ts'
import type { Queue } from './queue.ts'

const groupMax = 64
const lanes = 2
/** A task with more to store than this, in characters, makes no other one wait. */
const groupedMax_chars = 16_384

export interface CreationOptions {
  sql: Sql
  queue: Queue
  /** Whether a project has many jobs in the queue already: see `insertTask`. */
  isFull: (project_id: number) => boolean
  /** Told after commits with something to fetch. */
  onSent: () => void
}

/** Stores new tasks, each by itself or with others, and gives their rows. */
export type Create = (task: NewTask) => Promise<TaskRow>

/**
 * Creation of tasks in transactions of their own. Ordinary ones that are asked for at the same time share one; all others
 * have to look at what their gates, threads and agents allow.
 */
export function makeCreation({ sql, queue, isFull, onSent }: CreationOptions): Create {
  const together = async (tasks: readonly NewTask[]): Promise<(TaskRow | Error)[]> => {
    const rows = await sql.begin((tx) => insertOrdinary(tx, queue, tasks), 'byKeys')
    onSent()
    return tasks.map(({ id, agent }) => rows.get(id) ?? notFound('agent_not_found', 'agent', agent.id))
  }
  const commits = new Groups<NewTask, TaskRow>(
    async (tasks) => {
      try {
        return await together(tasks)
      } catch (error) {
        // What of it was stored is not known where the connection was lost, so it is not for us to try again.
        if (tasks.length === 1 || isPassing(error)) throw error
        return eachAlone(tasks, together)
      }
    },
    { lanes, groupMax },
  )

  return (task) => {
    const full = isFull(task.agent.project_id)
    return isOrdinary(task, full) && isSmall(task)
      ? commits.submit(task)
      : sql.begin(async (tx) => {
          if (await insertTask(tx, queue, task, full)) tx.afterCommit(onSent)
          return requireRow(tx, task)
        })
  }
}

/** One that cannot be stored must not take the others of its group with it. */
async function eachAlone(
  tasks: readonly NewTask[],
  store: (tasks: readonly NewTask[]) => Promise<(TaskRow | Error)[]>,
): Promise<(TaskRow | Error)[]> {
  const results: (TaskRow | Error)[] = []
  for (const task of tasks) results.push(...(await store([task]).catch((error: Error) => [error])))
  return results
}

function isSmall({ input, metadata }: NewTask): boolean {
  return JSON.stringify([input, metadata]).length <= groupedMax_chars
}

async function requireRow(tx: Sql, { id, agent }: NewTask): Promise<TaskRow> {
  const [row] = await tx.run<TaskRow>(tx.fragment`
    select ${taskColumns(tx)} from task t where id = ${id}
      and not exists (select from removed_agent r where r.agent_id = t.agent_id)`)
  if (!row) throw notFound('agent_not_found', 'agent', agent.id)
  return row
}
