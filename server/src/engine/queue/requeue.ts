import { randomUUID } from 'node:crypto'
import { openStates } from '#contract/tasks/task-lifecycle.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { NewJob, Queue } from './queue.ts'

const batch = 1000

/**
 * Creates a new job for every open task that names one, in an empty queue, and returns their number. The tasks are then
 * as after a crash of all workers: queued tasks are fetched, running ones are requeued when their worker is found dead,
 * and none is lost.
 *
 * The caller's table `delayed_task` has `task_id` and `start_after` of delayed jobs. No other client may use the
 * database meanwhile.
 */
export async function requeueTasks(tx: Sql, queue: Queue): Promise<number> {
  let total = 0
  for (let after = ''; ;) {
    // Oldest first, so that the queue keeps the tasks' order.
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
    // The attempts of a new job start at 0.
    await tx`
      update task t set job_id = j.id, job_attempt = -1
      from unnest(${jobs.map(({ task_id }) => task_id)}::text[], ${jobs.map(({ id }) => id)}::uuid[]) j(task_id, id)
      where t.id = any(${jobs.map(({ task_id }) => task_id)}) and t.id = j.task_id`
    total += jobs.length
    if (jobs.length < batch) return total
    after = jobs.at(-1)!.task_id
  }
}
