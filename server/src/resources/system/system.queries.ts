import { lease_seconds } from '../../engine/maintenance/leases.ts'
import type { Fragment, Sql } from '../../platform/postgres/database.ts'

/** A process of the service, and whether its lease is valid. */
export interface WorkerRow {
  id: string
  slots: number
  running_tasks: number
  started_at: string
  seen_at: string
  is_alive: boolean
  draining_since: string | null
  drained_at: string | null
}

/** Maximum number of listed processes. Maintenance removes rows of ended processes. */
const workersMax = 100

/** Columns of the table `worker w`. */
const columns = ({ fragment }: Sql): Fragment => fragment`
  w.id, w.slots, w.started_at, w.seen_at, w.draining_since, w.drained_at,
  w.seen_at > now() - make_interval(secs => ${lease_seconds}) as is_alive,
  (select count(*)::int from task t where t.worker_id = w.id and t.status = 'running') as running_tasks`

export async function listWorkers(sql: Sql): Promise<WorkerRow[]> {
  return sql.run<WorkerRow>(
    sql.fragment`select ${columns(sql)} from worker w order by w.started_at desc, w.id limit ${workersMax}`,
  )
}

/** Locks a worker's row, so that each change has one entry in the audit log. */
export async function lockWorker(tx: Sql, id: string): Promise<WorkerRow | undefined> {
  const [row] = await tx.run<WorkerRow>(
    tx.fragment`select ${columns(tx)} from worker w where w.id = ${id} for update of w`,
  )
  return row
}

export async function hasWorker(sql: Sql, id: string): Promise<boolean> {
  const rows = await sql`select from worker where id = ${id}`
  return rows.length > 0
}

/** Requests a worker to drain or to resume. Undefined if it does not exist. */
export async function updateDrain(tx: Sql, id: string, drains: boolean): Promise<WorkerRow | undefined> {
  const [row] = await tx.run<WorkerRow>(tx.fragment`
    update worker w set
      draining_since = case when ${drains}::boolean then coalesce(w.draining_since, now()) end,
      drained_at = case when ${drains}::boolean then w.drained_at end
    where w.id = ${id} returning ${columns(tx)}`)
  return row
}

/** The version of PostgreSQL, and the size of the database on disk. */
export async function readDatabase(sql: Sql): Promise<{ version: string; bytes: number }> {
  const [row] = await sql<{ version: string; bytes: number }>`
    select split_part(current_setting('server_version'), ' ', 1) as version, pg_database_size(current_database())::bigint as bytes`
  return row!
}

/** Whether the service has only one organization, whose administrators may then see the whole installation. */
export async function hasOneOrganization(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ is_alone: boolean }>`
    select count(*) = 1 as is_alone from (select from organization limit 2) two`
  return row!.is_alone
}
