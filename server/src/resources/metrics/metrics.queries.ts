import type { Sql } from '../../platform/database.ts'

/** A period cut into buckets: both ends as ISO 8601, the end exclusive. */
export interface Period {
  start_time: string
  end_time: string
  /** Length of a bucket. */
  bucket_seconds: number
}

export interface TaskNumbers {
  total: number
  completed: number
  failed: number
  in_progress: number
  success_rate: number
  avg_response_time: number
  p95_response_time: number
  p99_response_time: number
}

/** Bytes that one agent may fill before its `disk_usage` is 1. */
export const storageShare_bytes = 1024 ** 3

/**
 * Tasks of an agent in a period (decision D49): those that ended in it, and those that had not ended at its end. Times
 * are wall-clock seconds from the start of a task to its end, of tasks that completed, failed or expired.
 */
export async function findTaskNumbers(
  sql: Sql,
  agent_id: string,
  { start_time, end_time }: Period,
): Promise<TaskNumbers> {
  const [row] = await sql<TaskNumbers>`
    with finished as (
      select status, case when status <> 'canceled' then extract(epoch from finished_at - started_at)::float8 end as seconds
      from task where agent_id = ${agent_id} and finished_at >= ${start_time}::timestamptz and finished_at < ${end_time}::timestamptz
    ), numbers as (
      select count(*) as ended, count(*) filter (where status = 'completed') as completed,
        count(*) filter (where status in ('failed', 'expired')) as failed, coalesce(avg(seconds), 0) as avg_response_time,
        coalesce(percentile_cont(array[0.95, 0.99]) within group (order by seconds), array[0, 0]::float8[]) as percentiles
      from finished
    ), unfinished as (
      select (select count(*) from task where agent_id = ${agent_id} and status = any('{queued,running,waiting}') and created_at < ${end_time}::timestamptz)
        + (select count(*) from task where agent_id = ${agent_id} and finished_at >= ${end_time}::timestamptz and created_at < ${end_time}::timestamptz) as in_progress
    )
    select ended + in_progress as total, completed, failed, in_progress,
      coalesce(completed::float8 / nullif(completed + failed, 0), 0) as success_rate, avg_response_time,
      coalesce(percentiles[1], 0) as p95_response_time, coalesce(percentiles[2], 0) as p99_response_time
    from numbers, unfinished`
  return row!
}

export interface UsageNumbers {
  tokens: number
  requests: number
  cpu_usage: number
  memory_usage: number
  disk_usage: number
  network_in: number
  network_out: number
}

/** What an agent consumed in a period; by the rule of docs/guides/metrics.md. Whole minutes count where they begin. */
export async function findUsageNumbers(
  sql: Sql,
  agent_id: string,
  { start_time, end_time }: Period,
): Promise<UsageNumbers> {
  const [row] = await sql<UsageNumbers>`
    select coalesce(sum(input_tokens + output_tokens), 0) as tokens, coalesce(sum(model_calls), 0) as requests,
      ${fractions(sql)}, coalesce(sum(network_in), 0) as network_in, coalesce(sum(network_out), 0) as network_out,
      least(1, coalesce((select sum(stored_bytes) from agent_usage where agent_id = ${agent_id} and minute < ${end_time}::timestamptz), 0)::float8
        / ${storageShare_bytes}) as disk_usage
    from agent_usage
    where agent_id = ${agent_id} and minute >= date_trunc('minute', ${start_time}::timestamptz, 'UTC') and minute < ${end_time}::timestamptz`
  return row!
}

export interface SeriesPoint {
  timestamp: string
  tasks_completed: number
  avg_response_time: number
  cpu_usage: number
  memory_usage: number
}

/** The period in buckets aligned to UTC, each of them there, zero where nothing happened. */
export async function listSeries(
  sql: Sql,
  agent_id: string,
  { start_time, end_time, bucket_seconds }: Period,
): Promise<SeriesPoint[]> {
  const bucket = (column: 'finished_at' | 'minute') => {
    const at = column === 'minute' ? sql.fragment`minute` : sql.fragment`finished_at`
    return sql.fragment`date_bin(make_interval(secs => ${bucket_seconds}), ${at}, 'epoch')`
  }
  return sql.run<SeriesPoint>(sql.fragment`
    with buckets as (
      select generate_series(date_bin(make_interval(secs => ${bucket_seconds}), ${start_time}::timestamptz, 'epoch'),
        ${end_time}::timestamptz - interval '1 microsecond', make_interval(secs => ${bucket_seconds})) as timestamp
    ), finished as (
      select ${bucket('finished_at')} as timestamp, count(*) filter (where status = 'completed') as tasks_completed,
        avg(extract(epoch from finished_at - started_at)) filter (where status <> 'canceled') as avg_response_time
      from task where agent_id = ${agent_id} and finished_at >= ${start_time}::timestamptz and finished_at < ${end_time}::timestamptz
      group by 1
    ), used as (
      select ${bucket('minute')} as timestamp, ${fractions(sql)} from agent_usage
      where agent_id = ${agent_id} and minute >= date_trunc('minute', ${start_time}::timestamptz, 'UTC') and minute < ${end_time}::timestamptz
      group by 1
    )
    select b.timestamp, coalesce(f.tasks_completed, 0) as tasks_completed, coalesce(f.avg_response_time, 0)::float8 as avg_response_time,
      coalesce(u.cpu_usage, 0) as cpu_usage, coalesce(u.memory_usage, 0) as memory_usage
    from buckets b left join finished f using (timestamp) left join used u using (timestamp) order by b.timestamp`)
}

function fractions({ fragment }: Sql) {
  return fragment`
    least(1, coalesce(sum(cpu_seconds) / nullif(sum(cpu_seconds_available), 0), 0)) as cpu_usage,
    least(1, coalesce(sum(memory_byte_seconds) / nullif(sum(memory_byte_seconds_available), 0), 0)) as memory_usage`
}
