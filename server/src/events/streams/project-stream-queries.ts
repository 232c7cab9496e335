import { openStates, type TaskEventType, type TaskState } from '#contract/tasks/task-lifecycle.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { isNew, readSnapshot, type Cursor, type Snapshot } from './project-stream-cursor.ts'

/** An event of a task in the project's stream: type, task and time, without its data. */
export interface ThinEvent {
  sequence: number
  task_id: string
  agent_id: string
  type: TaskEventType
  /** The task's state when the event was read, which may be newer than the event. */
  status: TaskState
  created_at: string
}

export interface ProjectEvent extends ThinEvent {
  project_id: number
  xid: number
}

/** Maximum number of events that one look reads, over all projects. */
export const lookEvents = 5000
/** Maximum number of events of one transaction: the deletion of an agent with all its tasks. */
const transactionEvents = 50_000
/** Maximum count of open tasks per state. */
export const countMax = 10_000
/** Older events are not replayed: a reader that reconnects later starts over. */
export const replay_seconds = 3600

/** Reads the current snapshot. */
export async function readNow(sql: Sql): Promise<Snapshot> {
  const [row] = await sql<{ snapshot: string; at: number }>`
    select pg_current_snapshot()::text as snapshot, extract(epoch from now())::float8 as at`
  return readSnapshot(row!.snapshot, row!.at)
}

/**
 * The time, in Unix seconds, from which this database counts its transactions. Older cursors belong to another
 * database, whose data was restored into this one.
 */
export async function readBeginning(sql: Sql): Promise<number> {
  const [row] = await sql<{ at: number }>`
    select floor(extract(epoch from min(applied_at)))::float8 as at from schema_migration`
  return row?.at ?? 0
}

/**
 * Events of projects after a cursor, in the order of their tasks and sequences, with the reader's new position. With
 * more than `limit` events, the position is before the rest. Undefined if the cursor cannot be continued: one
 * transaction made more events than a batch holds, or the database was restored to an earlier state. The stream then
 * starts over with a snapshot.
 */
export async function readNews(
  sql: Sql,
  cursor: Cursor,
  project_ids: readonly number[],
  limit = lookEvents,
): Promise<{ events: ProjectEvent[]; next: Snapshot; isWhole: boolean } | undefined> {
  const { xmax } = cursor.behind
  const rows = await lookForNews(sql, cursor.behind, project_ids, limit)
  const { snapshot, at, laters, lates, last } = rows[0]!
  const now = readSnapshot(snapshot, at)
  // A restored database counts its transactions again from an earlier number.
  if (now.xmax < xmax) return undefined
  // A single transaction fills the whole batch.
  if (lates >= limit || (laters >= limit && last !== null && last <= xmax))
    return limit < transactionEvents ? readNews(sql, cursor, project_ids, transactionEvents) : undefined
  // The last transaction may be incomplete, so it is left for the next look, with everything after it.
  const isWhole = laters < limit || last === null
  const next = isWhole ? now : { ...now, xmax: last, xip: now.xip.filter((xid) => xid < last) }
  const events = rows.filter((row) => row.task_id !== null && row.xid < next.xmax && isNew(cursor, row))
  return { events, next, isWhole }
}

interface NewsRow extends ProjectEvent {
  snapshot: string
  at: number
  laters: number
  lates: number
  last: number | null
}

/** Returns at least one row; without news, a row without an event. */
async function lookForNews(
  sql: Sql,
  { xmax, xip }: Snapshot,
  project_ids: readonly number[],
  limit: number,
): Promise<NewsRow[]> {
  // The limits make the planner use the index, whatever it estimates about the number of new events.
  return sql<NewsRow>`
    with later as (
      select task_id, sequence, type, created_at, xid from task_event
      where xid >= ${String(xmax)}::xid8 and xid < pg_snapshot_xmax(pg_current_snapshot()) order by xid limit ${limit}
    ), late as (
      select task_id, sequence, type, created_at, xid from task_event
      where xid = any(${xip.map(String)}::xid8[]) order by xid limit ${limit}
    ), news as (
      select * from later union all select * from late
    )
    select s.*, n.* from (
      select pg_current_snapshot()::text as snapshot, extract(epoch from now())::float8 as at,
        (select count(*) from later) as laters, (select count(*) from late) as lates,
        (select max(xid::text::bigint) from later) as last
    ) s left join (
      select e.sequence, e.task_id, t.agent_id, e.type, t.status, e.created_at, t.project_id, e.xid::text::bigint as xid
      from news e join task t on t.id = e.task_id
      where t.project_id = any(${[...project_ids]}) and e.created_at > now() - make_interval(secs => ${replay_seconds})
    ) n on true
    order by n.task_id, n.sequence`
}

/** The counts of a project: open tasks by state, each up to `countMax`, and agents by state. */
export async function countProject(
  sql: Sql,
  project_id: number,
): Promise<{ tasks: Record<string, number>; agents: Record<string, number> }> {
  const tasks = await sql<{ status: string; count: number }>`
    select s.status, (select count(*) from (
      select 1 from task t where t.project_id = ${project_id} and t.status = s.status
        and not exists (select from removed_agent r where r.agent_id = t.agent_id) limit ${countMax}) bounded) as count
    from unnest(${[...openStates]}::text[]) s(status)`
  const agents = await sql<{ status: string; count: number }>`
    select status, count(*) from agent where project_id = ${project_id} group by status order by status`
  return { tasks: byStatus(tasks), agents: byStatus(agents) }
}

/** The states of those of the agents that belong to one of the projects. */
export async function listAgentStates(
  sql: Sql,
  agent_ids: readonly string[],
  project_ids: readonly number[],
): Promise<{ agent_id: string; project_id: number; status: string; updated_at: string }[]> {
  return sql`
    select id as agent_id, project_id, status, updated_at from agent
    where id = any(${[...agent_ids]}) and project_id = any(${[...project_ids]})`
}

function byStatus(rows: readonly { status: string; count: number }[]): Record<string, number> {
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]))
}
