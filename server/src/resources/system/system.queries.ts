import { lease_seconds } from '../../engine/maintenance/leases.ts'
import type { Sql } from '../../platform/postgres/database.ts'

/** A process of the service, and whether its lease has not run out. */
export interface WorkerRow {
  id: string
  slots: number
  running_tasks: number
  started_at: string
  seen_at: string
  is_alive: boolean
}

/** Processes that are listed at most: rows of processes that are gone are removed by the upkeep. */
const workersMax = 100

export async function listWorkers(sql: Sql): Promise<WorkerRow[]> {
  return sql<WorkerRow>`
    select w.id, w.slots, w.started_at, w.seen_at,
      w.seen_at > now() - make_interval(secs => ${lease_seconds}) as is_alive,
      (select count(*)::int from task t where t.worker_id = w.id and t.status = 'running') as running_tasks
    from worker w order by w.started_at desc, w.id limit ${workersMax}`
}

/** The version of PostgreSQL, and what the database takes on disk. */
export async function readDatabase(sql: Sql): Promise<{ version: string; bytes: number }> {
  const [row] = await sql<{ version: string; bytes: number }>`
    select split_part(current_setting('server_version'), ' ', 1) as version, pg_database_size(current_database())::bigint as bytes`
  return row!
}

/** Whether one organization alone uses the service: then what is of the installation is of it. */
export async function hasOneOrganization(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ is_alone: boolean }>`
    select count(*) = 1 as is_alone from (select from organization limit 2) two`
  return row!.is_alone
}
