import type { Sql } from '../../platform/postgres/database.ts'
import { isBacklog } from '../queue/concurrency-limits.ts'
import { dispatchBacklog } from './deferred-tasks.ts'
import type { Queue } from '../queue/queue.ts'

/** Maximum number of projects with a backlog that one refill serves. */
const projectsMax = 500

/**
 * Backlogs: a project that already has many jobs in the queue keeps further tasks in the task table, without a job.
 * They are sent as room appears.
 */
export interface Backlogs {
  /**
   * Whether a new task of the project joins its backlog, as of the last refill, so that it does not overtake older
   * ones.
   */
  isFull(project_id: number): boolean
  /** Sends the tasks that there is room for, and returns their number. Maintenance calls it every second. */
  refill(): Promise<number>
}

export function makeBacklogs({ sql, queue }: { sql: Sql; queue: Queue }): Backlogs {
  const { waitingMax } = queue
  let full: ReadonlySet<number> = new Set()
  return {
    isFull: (project_id) => full.has(project_id),
    async refill() {
      const projects = await listProjectsWithBacklog(sql)
      const waiting = await queue.countWaiting(sql, waitingMax, projects)
      const next = new Set([...waiting].filter(([, n]) => n >= waitingMax).map(([project_id]) => project_id))
      // A project with a backlog counts as full until it is known that nothing of the backlog can be sent.
      full = new Set([...next, ...projects])
      let total = 0
      for (const project_id of projects) {
        const room = waitingMax - (waiting.get(project_id) ?? 0)
        // With little room, each refill would cost a transaction for a few tasks.
        const { sent, more } =
          room >= waitingMax / 4 ? await dispatchBacklog(sql, queue, project_id, room) : { sent: 0, more: true }
        total += sent
        if (more) next.add(project_id)
      }
      full = next
      return total
    },
  }
}

/** Each recursion finds one project, so a large backlog costs no more than a small one. */
async function listProjectsWithBacklog(sql: Sql): Promise<number[]> {
  const waits = isBacklog(sql)
  const rows = await sql.run<{ project_id: number }>(sql.fragment`
    with recursive found as (
      (select t.project_id, 1 as n from task t where ${waits} order by t.project_id limit 1)
      union all
      select (select t.project_id from task t where t.project_id > f.project_id and ${waits} order by t.project_id limit 1), f.n + 1
      from found f where f.project_id is not null and f.n < ${projectsMax}
    )
    select project_id from found where project_id is not null`)
  return rows.map(({ project_id }) => project_id)
}
