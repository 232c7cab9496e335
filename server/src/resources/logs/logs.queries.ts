import type { AgentLogEntry, LogLevel } from '../../events/agent-log.ts'
import type { Fragment, Sql } from '../../platform/postgres/database.ts'

/** An entry as it is answered (spec 2.7), and what it is sorted by. */
export interface LogRow extends Pick<AgentLogEntry, 'level' | 'message'> {
  id: string
  timestamp: string
  /** The same in microseconds since 1970, as finely as entries are sorted. */
  moment: number
  context: Record<string, unknown>
}

/** An entry by what entries are sorted by: its moment and its id. */
export type LogKey = readonly [moment: number, id: string]

export interface LogFilter {
  agent_id: string
  level?: LogLevel | undefined
  /** What the message contains, in any case. */
  search?: string | undefined
  task_id?: string | undefined
  /** Inclusive. */
  start_time?: string | undefined
  /** Exclusive. */
  end_time?: string | undefined
  /** Only those that are sorted after this one; `total` is of them all. */
  after?: LogKey | undefined
  limit: number
  offset: number
}

/** A moment in microseconds since 1970, as PostgreSQL has it. */
export const momentOf = ({ fragment }: Sql, micros: number): Fragment =>
  fragment`('epoch'::timestamptz + ${micros}::bigint * interval '1 microsecond')`

/** What a page has of each entry. */
export const logColumns = ({ fragment }: Sql): Fragment =>
  fragment`id, timestamp, (extract(epoch from timestamp) * 1000000)::bigint as moment, level, message, context`

/** Whether an entry is sorted after another, as a condition to be added to others. */
export const isOlder = (sql: Sql, after: LogKey | undefined): Fragment => {
  if (!after) return sql.fragment``
  const moment = momentOf(sql, after[0])
  // The first condition alone leaves out days.
  return sql.fragment`and timestamp <= ${moment} and (timestamp, id) < (${moment}, ${after[1]}::text)`
}

/**
 * Entries are of the past, but for those of a database whose clock was set back. The days to come have tables already: reading,
 * and planning to read, all of them would take most of the time.
 */
const ahead_days = 2

/**
 * A page of an agent's log, the newest first, and how many entries match (decision D48): both of one moment. By level and time
 * the number comes from sums that are kept (`count_log` in SQL); of a text or a task the entries are counted that have it.
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
  // Without a name, so that it is planned every time: the days that are read, and how, depend on what is asked for.
  // Materialized: else PostgreSQL counts again for every row of the page.
  const page = fragment`
    with counted as materialized (${total})
    select counted.total, page.* from counted left join (
      select ${logColumns(sql)} from agent_log where ${where} ${isOlder(sql, filter.after)}
      order by timestamp desc, id desc limit ${filter.limit} offset ${filter.offset}
    ) page on true order by page.timestamp desc, page.id desc`
  const { rows }: { rows: (LogRow & { total: number })[] } = await sql.query(page.text, page.values)
  return withTotal(rows)
}

/** The entries of a page, of which every row has the number of all. Where no entry is on the page, one row tells of the number. */
export function withTotal<Row extends LogRow & { total: number }>(
  rows: readonly Row[],
): { logs: Omit<Row, 'total'>[]; total: number } {
  const logs = rows.flatMap(({ total: _, ...entry }) => ((entry.id as string | null) === null ? [] : entry))
  return { logs, total: rows[0]!.total }
}
