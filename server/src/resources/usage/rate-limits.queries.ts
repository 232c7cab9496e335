import type { RetentionKind } from '#contract/resources/rate-limits.ts'
import type { Sql } from '../../platform/postgres/database.ts'

/** Current windows of one bucket of a subject. */
export interface StandingRow {
  bucket: string
  hour_used: number
  minute_used: number
  this_hour_refused: number
  previous_hour_refused: number
  refused_at: string | null
}

/** When the current windows end, and the model tokens used in the current hour. */
export interface RunningWindows {
  hour_ends_at: string
  minute_ends_at: string
  tokens_used: number
}

/**
 * Used and refused requests of a subject, by primary key. Buckets without a request in the last hours are missing.
 */
export async function readStanding(sql: Sql, subject: string): Promise<StandingRow[]> {
  return sql<StandingRow>`
    with running as (select date_trunc('hour', now(), 'UTC') as hour, date_trunc('minute', now(), 'UTC') as minute)
    select bucket,
      case when hour_start >= hour then hour_used else 0 end as hour_used,
      case when minute_start >= minute then minute_used else 0 end as minute_used,
      case when hour_start >= hour then hour_refused else 0 end as this_hour_refused,
      case when hour_start >= hour then previous_hour_refused
        when hour_start = hour - interval '1 hour' then hour_refused else 0 end as previous_hour_refused,
      refused_at
    from rate_window, running where subject = ${subject}`
}

export async function readWindows(sql: Sql, subject: string): Promise<RunningWindows> {
  const [row] = await sql<RunningWindows>`
    select date_trunc('hour', now(), 'UTC') + interval '1 hour' as hour_ends_at,
      date_trunc('minute', now(), 'UTC') + interval '1 minute' as minute_ends_at,
      coalesce((select tokens from token_usage
        where subject = ${subject} and hour = date_trunc('hour', now(), 'UTC')), 0) as tokens_used`
  return row!
}

/** Tables of each kind of data with its own retention. Their partitions are found by the table. */
const tables: Record<RetentionKind, readonly string[]> = {
  tasks: ['task', 'task_step', 'task_event', 'task_message', 'thread', 'approval'],
  files: ['file', 'file_piece', 'task_file'],
  agent_logs: ['agent_log', 'log_rollup'],
  events: ['event'],
  webhook_deliveries: ['delivery', 'delivery_attempt'],
  trigger_deliveries: ['trigger_delivery', 'trigger_key'],
  usage: ['usage_hour'],
  audit_log: ['audit'],
  refusals: ['refusal_hour'],
}

/**
 * Bytes on disk by kind, with indexes and TOAST. They come from file sizes, so no rows are read. They cover the whole
 * installation, and PostgreSQL cannot tell the part of one organization without reading every row: with several
 * organizations the map is empty.
 */
export async function readStored(sql: Sql): Promise<Map<RetentionKind, number>> {
  const places = Object.entries(tables).flatMap(([kind, names]) => names.map((name) => [kind, name] as const))
  const rows = await sql<{ kind: RetentionKind; bytes: number }>`
    select kind, sum(coalesce(pg_total_relation_size(name::regclass), 0) + coalesce((
      select sum(pg_total_relation_size(inhrelid)) from pg_inherits where inhparent = name::regclass), 0))::bigint as bytes
    from unnest(${places.map(([kind]) => kind)}::text[], ${places.map(([, name]) => name)}::text[]) place (kind, name)
    where (select count(*) from (select from organization limit 2) two) = 1
    group by kind`
  return new Map(rows.map(({ kind, bytes }) => [kind, bytes]))
}

/** Requests of a subject that a limit refused in one hour. */
export interface RefusalRow {
  hour: string
  name: string
  subject: string
  user_id: string
  requests: number
  last_at: string
}

/** A page of the refusals of an organization, or of one of its users, latest hours first, and their total number. */
export async function listRefusals(
  sql: Sql,
  filter: {
    org_id: string
    user_id: string | undefined
    start_time: string | undefined
    end_time: string | undefined
    bucket: string | undefined
    limit: number
    offset: number
  },
): Promise<{ refusals: RefusalRow[]; total: number }> {
  const { fragment } = sql
  const conditions = [fragment`org_id = ${filter.org_id}`]
  if (filter.user_id !== undefined) conditions.push(fragment`user_id = ${filter.user_id}`)
  if (filter.start_time !== undefined)
    conditions.push(fragment`hour >= date_trunc('hour', ${filter.start_time}::timestamptz, 'UTC')`)
  if (filter.end_time !== undefined) conditions.push(fragment`hour < ${filter.end_time}::timestamptz`)
  if (filter.bucket !== undefined) conditions.push(fragment`bucket = ${filter.bucket}`)
  const where = conditions.reduce((all, one) => fragment`${all} and ${one}`)
  const [count] = await sql.run<{ total: number }>(fragment`select count(*) as total from refusal_hour where ${where}`)
  const refusals = await sql.run<RefusalRow>(fragment`
    select hour, bucket as name, subject, user_id, refused as requests, last_at from refusal_hour where ${where}
    order by hour desc, last_at desc, subject, bucket limit ${filter.limit} offset ${filter.offset}`)
  return { refusals, total: count?.total ?? 0 }
}
