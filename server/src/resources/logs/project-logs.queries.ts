import { projectLogSearch } from '#contract/core/limits.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import {
  isOlder,
  listLogs,
  logColumns,
  momentOf,
  withTotal,
  type LogFilter,
  type LogKey,
  type LogRow,
} from './logs.queries.ts'

/** An entry of a project's logs. */
export interface ProjectLogRow extends LogRow {
  agent_id: string
}

export interface ProjectLogFilter extends Omit<LogFilter, 'agent_id'> {
  project_id: number
}

/** With more agents, a window is read by project instead of by agent. */
const writersMax = 1000

/** Bounds as PostgreSQL timestamps, which may be infinite. */
interface Window {
  total: number
  lo: string
  isWide: boolean
  /** Null if the page is empty. */
  hi: string | null
  newer: number
}

/**
 * A page of the logs of all agents of a project, newest first, and the number of matches. A first statement finds the
 * time window of the page (`project_log_page` in SQL), so that only entries near it are read. Entries that arrive
 * between the two statements may be on the page but not in the number. A filter by task uses the log of its agent.
 */
export async function listProjectLogs(
  sql: Sql,
  filter: ProjectLogFilter,
): Promise<{ logs: ProjectLogRow[]; total: number }> {
  const { project_id, task_id, search, limit, offset } = filter
  if (task_id !== undefined) {
    const [task] = await sql<{ agent_id: string }>`
      select agent_id from task where id = ${task_id} and project_id = ${project_id}
        and agent_id in (select id from agent where project_id = ${project_id})`
    if (!task) return { logs: [], total: 0 }
    const { logs, total } = await listLogs(sql, { ...filter, agent_id: task.agent_id })
    return { logs: logs.map((entry) => ({ ...entry, agent_id: task.agent_id })), total }
  }
  const [skip, take] = search === undefined ? [offset, limit] : [0, projectLogSearch.entries]
  const whole = await findWindow(sql, filter, [skip, take])
  const after = search === undefined ? filter.after : undefined
  const { lo, hi, newer, isWide } = after
    ? await findWindow(sql, filter, [0, take + (await countAtOnce(sql, after))], after)
    : whole
  const { total } = whole
  if (hi === null) return { logs: [], total: search === undefined ? total : 0 }
  const writers = isWide ? await writersIn(sql, project_id, lo, hi) : undefined
  const among = sql.fragment`
    ${writers ? sql.fragment`agent_id = any(${writers})` : sql.fragment`agent_id in (select id from agent where project_id = ${project_id})`}
    and timestamp >= ${lo}::timestamptz and timestamp < ${hi}::timestamptz
    ${filter.level ? sql.fragment`and level = ${filter.level}` : sql.fragment``}`
  if (search !== undefined) return searchIn(sql, among, isWide, { search, after: filter.after, limit, offset })
  // An unnamed statement, so that it is planned each time. In a wide window the project has few entries but other
  // projects may have many, // so entries are found by agent instead of by time.
  const inWindow = sql.fragment`select agent_id, ${logColumns(sql)} from agent_log where ${among} ${isOlder(sql, after)}`
  const page = sql.fragment`
    with entries as ${isWide ? sql.fragment`materialized` : sql.fragment`not materialized`} (${inWindow})
    select * from entries
    order by timestamp desc, id desc limit ${limit} offset ${skip - newer}`
  const { rows } = await sql.query(page.text, page.values)
  return { logs: rows as ProjectLogRow[], total }
}

/** The time window of a page that skips the newest `skip` entries, optionally starting at an entry. */
async function findWindow(
  sql: Sql,
  { project_id, level, start_time = '-infinity', end_time = 'infinity' }: ProjectLogFilter,
  [skip, take]: [skip: number, take: number],
  after?: LogKey,
): Promise<Window> {
  const until = after
    ? sql.fragment`least(${end_time}::timestamptz, ${momentOf(sql, after[0])} + interval '1 microsecond')`
    : sql.fragment`${end_time}::timestamptz`
  const [window] = await sql.run<Window>(sql.fragment`
    select total, newer, lo::text, hi::text, coalesce(lo < hi - interval '1 hour', false) as "isWide"
    from project_log_page(${project_id}, ${level ?? null}, ${start_time}::timestamptz, ${until}, ${skip}, ${take})`)
  return window!
}

/** Number of entries with the same time as an entry, which may precede it in the window that starts there. */
async function countAtOnce(sql: Sql, [micros]: LogKey): Promise<number> {
  const [row] = await sql.run<{ entries: number }>(
    sql.fragment`select count(*) as entries from agent_log where timestamp = ${momentOf(sql, micros)}`,
  )
  return row!.entries
}

/**
 * Agents of a project that may have entries in a window; undefined if there are too many. Taken from the sums and
 * from entries that are not summed yet, so that a quiet project does not read entries of others.
 */
async function writersIn(sql: Sql, project_id: number, lo: string, hi: string): Promise<string[] | undefined> {
  const found = sql.fragment`
    with state as materialized (select max(rolled_until) as rolled, max(kept_from) as kept from log_rollup_state)
    select id from agent a where project_id = ${project_id} and exists (select from log_rollup r where r.agent_id = a.id
      and r.seconds = 900 and r.bucket > ${lo}::timestamptz - interval '15 minutes' and r.bucket < ${hi}::timestamptz)
    union select id from agent a where project_id = ${project_id} and exists (select from agent_log l where l.agent_id = a.id
      and l.timestamp >= greatest(${lo}::timestamptz, (select rolled from state)) and l.timestamp < ${hi}::timestamptz)
    union select id from agent a where project_id = ${project_id} and exists (select from agent_log l where l.agent_id = a.id
      and l.timestamp >= ${lo}::timestamptz and l.timestamp < least(${hi}::timestamptz, (select kept from state)))
    limit ${writersMax + 1}`
  const { rows } = await sql.query(found.text, found.values)
  return rows.length > writersMax ? undefined : rows.map(({ id }: { id: string }) => id)
}

/** Searches a text in the messages of the newest entries. */
async function searchIn(
  sql: Sql,
  among: ReturnType<Sql['fragment']>,
  isWide: boolean,
  { search, after, limit, offset }: { search: string; after: LogKey | undefined; limit: number; offset: number },
): Promise<{ logs: ProjectLogRow[]; total: number }> {
  const found = sql.fragment`
    with entries as ${isWide ? sql.fragment`materialized` : sql.fragment`not materialized`} (
      select id, timestamp, message from agent_log where ${among}
    ), found as materialized (
      select id, timestamp from (
        select id, timestamp, message from entries order by timestamp desc, id desc limit ${projectLogSearch.entries}
      ) newest where position(lower(${search}::text) in lower(message)) > 0
    ), page as (select id, timestamp from found where true ${isOlder(sql, after)} order by timestamp desc, id desc limit ${limit} offset ${offset})
    select (select count(*) from found) as total, l.*
    from (select) always left join (page join (select agent_id, ${logColumns(sql)} from agent_log) l using (timestamp, id)) on true
    order by l.timestamp desc, l.id desc`
  const { rows } = await sql.query(found.text, found.values)
  return withTotal(rows as (ProjectLogRow & { total: number })[])
}
