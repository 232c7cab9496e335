import type { AgentLogEntry, LogLevel } from '../../events/agent-log.ts'
import type { Fragment, Sql } from '../../platform/postgres/database.ts'

/** An entry (spec 2.7) with its sort key. */
export interface LogRow extends Pick<AgentLogEntry, 'level' | 'message'> {
  id: string
  timestamp: string
  /** The timestamp in microseconds since 1970, the precision of the sort order. */
  moment: number
  context: Record<string, unknown>
}

/** Sort key of an entry: time and id. */
export type LogKey = readonly [moment: number, id: string]

export interface LogFilter {
  agent_id: string
  level?: LogLevel | undefined
  /** Text that the message contains, case-insensitive. */
  search?: string | undefined
  task_id?: string | undefined
  /** Inclusive. */
  start_time?: string | undefined
  /** Exclusive. */
  end_time?: string | undefined
  /** Only entries after this one in the sort order; `total` still counts all matches. */
  after?: LogKey | undefined
  limit: number
  offset: number
}

/** SQL timestamp of a time in microseconds since 1970. */
export const momentOf = ({ fragment }: Sql, micros: number): Fragment =>
  fragment`('epoch'::timestamptz + ${micros}::bigint * interval '1 microsecond')`

/** Columns of an entry. */
export const logColumns = ({ fragment }: Sql): Fragment =>
  fragment`id, timestamp, (extract(epoch from timestamp) * 1000000)::bigint as moment, level, message, context`

/** SQL condition for entries after another one in the sort order; starts with `and`. */
export const isOlder = (sql: Sql, after: LogKey | undefined): Fragment => {
  if (!after) return sql.fragment``
  const moment = momentOf(sql, after[0])
  // Only the first condition excludes partitions.
  return sql.fragment`and timestamp <= ${moment} and (timestamp, id) < (${moment}, ${after[1]}::text)`
}

/**
 * Entries may be in the future only if the clock of the database was set back. Partitions of further future days are
 * excluded, because planning and reading all of them would take most of the time.
 */
const ahead_days = 2

/**
 * A page of an agent's log, newest first, and the number of matches, from one snapshot (decision D48). For filters by
 * level and time the number comes from maintained sums (`count_log` in SQL); for a text or a task, matching entries
 * are counted.
 */
export async function listLogs(sql: Sql, filter: LogFilter): Promise<{ logs: LogRow[]; total: number }> {
  const { fragment } = sql
  const { agent_id, level = null, search, task_id } = filter
  const since = filter.start_time ?? '-infinity'
  const [end] = await sql<{ until: string }>`
    select least(${filter.end_time ?? 'infinity'}::timestamptz, now() + make_interval(days => ${ahead_days}))::text as until`
  const { until } = end!
  const conditions = [
    fragment`agent_id = ${agent_id}`,
    fragment`timestamp >= ${since}::timestamptz`,
    fragment`timestamp < ${until}::timestamptz`,
  ]
  if (level) conditions.push(fragment`level = ${level}`)
  if (search !== undefined) conditions.push(fragment`position(lower(${search}::text) in lower(message)) > 0`)
  if (task_id !== undefined) conditions.push(fragment`task_id = ${task_id}`)
  const where = conditions.reduce((all, one) => fragment`${all} and ${one}`)
  const total =
    search === undefined && task_id === undefined
      ? fragment`select count_log(${agent_id}, ${level}, ${since}::timestamptz, ${until}::timestamptz) as total`
      : fragment`select count(*) as total from agent_log where ${where}`
  // An unnamed statement, so that it is planned each time: the partitions and indexes depend on the filter.
  // Materialized, because PostgreSQL would count again for every row of the page.
  const page = fragment`
    with counted as materialized (${total})
    select counted.total, page.* from counted left join (
      select ${logColumns(sql)} from agent_log where ${where} ${isOlder(sql, filter.after)}
      order by timestamp desc, id desc limit ${filter.limit} offset ${filter.offset}
    ) page on true order by page.timestamp desc, page.id desc`
  const { rows }: { rows: (LogRow & { total: number })[] } = await sql.query(page.text, page.values)
  return withTotal(rows)
}

/** Splits rows into entries and total. Every row has the total; an empty page has one row with only the total. */
export function withTotal<Row extends LogRow & { total: number }>(
  rows: readonly Row[],
): { logs: Omit<Row, 'total'>[]; total: number } {
  const logs = rows.flatMap(({ total: _, ...entry }) => ((entry.id as string | null) === null ? [] : entry))
  return { logs, total: rows[0]!.total }
}
