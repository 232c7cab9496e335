import { randomUUID } from 'node:crypto'
import { openStates } from '#contract/tasks/task-lifecycle.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { NewJob, Queue } from './queue.ts'

const batch = 1000

/**
 * Gives every open task that names a job a new one, in a queue that has none of them, and gives how many those are. After it
 * the tasks are as after a crash of everything that worked on them: those that wait in the queue are fetched, those that ran
 * are given back when it is found that their worker is not there, and none is forgotten.
 *
 * Jobs that are for later are so by the table `delayed_task` of the caller: `task_id`, `start_after`. Nobody else uses the
 * database meanwhile.
 */
export async function requeueTasks(tx: Sql, queue: Queue): Promise<number> {
  let total = 0
  for (let after = ''; ;) {
    // By their age, so that the queue has them in their order.
    const tasks = await tx<Omit<NewJob, 'id' | 'start_after'> & { start_after: string | null }>`
      select t.id as task_id, t.project_id, t.priority, d.start_after
      from task t left join delayed_task d on d.task_id = t.id
      where t.id > ${after} and t.job_id is not null and t.status = any(${openStates})
      order by t.id limit ${batch}`
    const jobs = tasks.map(({ start_after, ...task }) => ({
      ...task,
      id: randomUUID(),
      start_after: start_after === null ? undefined : new Date(start_after),
    }))
    await queue.send(tx, jobs)
    // The attempts of a new job are counted from the beginning.
    await tx`
      update task t set job_id = j.id, job_attempt = -1
      from unnest(${jobs.map(({ task_id }) => task_id)}::text[], ${jobs.map(({ id }) => id)}::uuid[]) j(task_id, id)
      where t.id = any(${jobs.map(({ task_id }) => task_id)}) and t.id = j.task_id`
    total += jobs.length
    if (jobs.length < batch) return total
    after = jobs.at(-1)!.task_id
  }
}
