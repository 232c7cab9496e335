import type { Sql } from '../../platform/postgres/database.ts'
import { isBacklog } from '../queue/concurrency-limits.ts'
import { dispatchBacklog } from './deferred-tasks.ts'
import type { Queue } from '../queue/queue.ts'

/** Projects with a backlog that one look serves. */
const projectsMax = 500

/** Tasks of projects that have many jobs in the queue already wait in the task table, and are sent as there is room. */
export interface Backlogs {
  /** Whether a new task of the project joins its backlog, as of the last look: an older one must not be overtaken by it. */
  isFull(project_id: number): boolean
  /** Looks at the queue and sends what there is room for; gives how many tasks. Called every second by the upkeep. */
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
      // Until it is known that nothing is left of a backlog that could be sent.
      full = new Set([...next, ...projects])
      let total = 0
      for (const project_id of projects) {
        const room = waitingMax - (waiting.get(project_id) ?? 0)
        // A few at a time would cost a transaction each.
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

/** A project a step, so that one with a large backlog costs no more than one with a small one. */
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
