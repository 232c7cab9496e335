import { raw, type Sql } from '../../platform/postgres/database.ts'

/** A period with buckets. Start and end are ISO 8601; the end is exclusive. */
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

const daySeconds = 86_400

/** Bytes of an agent's data at which its `disk_usage` is 1. */
export const storageShare_bytes = 1024 ** 3

/**
 * SQL for an agent's ended tasks of a period: `rolled` are roll-ups of full minutes, not longer than
 * `largest_seconds`, from the function `rolled`; `fresh` are the tasks at the edges and since the last roll-up, with
 * `seconds` for those that count for durations.
 */
function endedIn(
  { fragment }: Sql,
  agent_id: string,
  { start_time, end_time }: Period,
  largest_seconds: number,
  rolled = 'task_rollups',
) {
  return fragment`
    state as materialized (
      select bucket_ceil(60, ${start_time}::timestamptz) as lo, greatest(bucket_ceil(60, ${start_time}::timestamptz),
        least(bucket_floor(60, ${end_time}::timestamptz), coalesce((select rolled_until from task_rollup_state), '-infinity'))) as hi
    ), rolled as materialized (
      select r.* from state, ${raw(rolled)}(${agent_id}, lo, hi, ${largest_seconds}::int) r
    ), fresh as materialized (
      select status, finished_at, case when status <> 'canceled' then extract(epoch from finished_at - started_at)::float8 end as seconds
      from (
        select e.* from state, ended_tasks(${agent_id}, ${start_time}::timestamptz, least(lo, ${end_time}::timestamptz)) e
        union all
        select e.* from state, ended_tasks(${agent_id}, hi, ${end_time}::timestamptz) e
      ) edges
    )`
}

/**
 * Tasks of an agent in a period (decision D49): those that ended in it, and those that had not ended at its end.
 * Durations are wall-clock seconds from start to end of tasks that completed, failed or expired. All figures are
 * exact except percentiles from roll-ups, which are exact to 1 %.
 */
export async function findTaskNumbers(sql: Sql, agent_id: string, period: Period): Promise<TaskNumbers> {
  const { end_time } = period
  const [row] = await sql.run<TaskNumbers>(sql.fragment`
    with ${endedIn(sql, agent_id, period, daySeconds)}, numbers as (
      select coalesce(sum(completed), 0)::bigint as completed, coalesce(sum(failed), 0)::bigint as failed,
        coalesce(sum(canceled), 0)::bigint as canceled, coalesce(sum(timed), 0) as timed, coalesce(sum(took), 0) as took
      from (
        select completed, failed, canceled, timed, microseconds / 1000000.0 as took from rolled
        union all
        select count(*) filter (where status = 'completed'), count(*) filter (where status in ('failed', 'expired')),
          count(*) filter (where status = 'canceled'), count(seconds), sum(seconds)::numeric from fresh
      ) parts
    ), times as (
      select seconds, sum(sum(n)) over (order by seconds) as up_to from (
        select duration_of(key) as seconds, n from rolled, unnest(keys, counts) as u(key, n)
        union all select seconds, 1 from fresh where seconds is not null
      ) all_of_them group by seconds
    ), percentiles as (
      select share, ((select seconds from times where up_to > floor(place) order by up_to limit 1) * (1 - (place - floor(place)))
        + (select seconds from times where up_to > ceil(place) order by up_to limit 1) * (place - floor(place)))::float8 as seconds
      from (select share, share * (timed - 1) as place from numbers, unnest(array[0.95, 0.99]) share where timed > 0) p
    )
    select completed + failed + canceled + in_progress as total, completed, failed, in_progress,
      coalesce(completed::float8 / nullif(completed + failed, 0), 0) as success_rate,
      coalesce(took / nullif(timed, 0), 0)::float8 as avg_response_time,
      coalesce((select seconds from percentiles where share = 0.95), 0) as p95_response_time,
      coalesce((select seconds from percentiles where share = 0.99), 0) as p99_response_time
    from numbers, (${unfinishedAt(sql, agent_id, end_time)}) unfinished`)
  return row!
}

/**
 * SQL for the number of an agent's tasks that existed at a time and had not ended. Among later ended tasks, only
 * minutes are read in which an older task ended.
 */
function unfinishedAt({ fragment }: Sql, agent_id: string, at: string) {
  const before = fragment`created_at < ${at}::timestamptz`
  const older = fragment`agent_id = ${agent_id} and first_created_at < ${at}::timestamptz`
  return fragment`
    with state as materialized (
      select bucket_ceil(60, ${at}::timestamptz) as lo,
        greatest(bucket_ceil(60, ${at}::timestamptz), coalesce((select rolled_until from task_rollup_state), '-infinity')) as hi
    ), parts as materialized (
      select r.seconds, r.bucket from state, task_rollups(${agent_id}, lo, hi, ${daySeconds}::int) r where first_created_at < ${at}::timestamptz
    ), hours as materialized (
      select bucket from parts where seconds = 3600
      union all select r.bucket from parts p, task_rollup r where p.seconds = 86400 and r.seconds = 3600 and ${older}
        and r.bucket >= p.bucket and r.bucket < p.bucket + interval '1 day'
    ), minutes as materialized (
      select bucket from parts where seconds = 60
      union all select r.bucket from hours h, task_rollup r where r.seconds = 60 and ${older}
        and r.bucket >= h.bucket and r.bucket < h.bucket + interval '1 hour'
    )
    select (select count(*) from task where agent_id = ${agent_id} and status = any('{queued,running,waiting}') and ${before})
      + (select count(*) from state, ended_tasks(${agent_id}, ${at}::timestamptz, lo) where ${before})
      + (select count(*) from minutes m, ended_tasks(${agent_id}, m.bucket, m.bucket + interval '1 minute') where ${before})
      + (select count(*) from state, ended_tasks(${agent_id}, hi, 'infinity') where ${before}) as in_progress`
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

/**
 * Usage of an agent in a period, by the rule of docs/guides/metrics.md. A minute counts if its start is in the
 * period.
 */
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
  tasks_failed: number
  avg_response_time: number
  cpu_usage: number
  memory_usage: number
  tokens: number
  requests: number
  network_in: number
  network_out: number
}

/** All buckets of the period, aligned to UTC, with zeros for empty ones. */
export async function listSeries(sql: Sql, agent_id: string, period: Period): Promise<SeriesPoint[]> {
  const { start_time, end_time, bucket_seconds } = period
  const binned = (at: 'minute' | 'finished_at' | 'bucket') =>
    sql.fragment`date_bin(make_interval(secs => ${bucket_seconds}), ${raw(at)}, 'epoch')`
  return sql.run<SeriesPoint>(sql.fragment`
    with buckets as (
      select generate_series(date_bin(make_interval(secs => ${bucket_seconds}), ${start_time}::timestamptz, 'epoch'),
        ${end_time}::timestamptz - interval '1 microsecond', make_interval(secs => ${bucket_seconds})) as timestamp
    ), ${endedIn(sql, agent_id, period, bucket_seconds, 'task_series')}, finished as (
      select timestamp, sum(completed)::bigint as tasks_completed, sum(failed)::bigint as tasks_failed, sum(took) / nullif(sum(timed), 0) as avg_response_time from (
        select ${binned('bucket')} as timestamp, completed, failed, timed, microseconds / 1000000.0 as took from rolled
        union all
        select ${binned('finished_at')}, (status = 'completed')::int, (status in ('failed', 'expired'))::int, (seconds is not null)::int, coalesce(seconds, 0)::numeric from fresh
      ) parts group by timestamp
    ), used as (
      select ${binned('minute')} as timestamp, ${fractions(sql)}, sum(input_tokens + output_tokens)::bigint as tokens,
        sum(model_calls)::bigint as requests, sum(network_in)::bigint as network_in, sum(network_out)::bigint as network_out
      from agent_usage
      where agent_id = ${agent_id} and minute >= date_trunc('minute', ${start_time}::timestamptz, 'UTC') and minute < ${end_time}::timestamptz
      group by 1
    )
    select b.timestamp, coalesce(f.tasks_completed, 0) as tasks_completed, coalesce(f.tasks_failed, 0) as tasks_failed,
      coalesce(f.avg_response_time, 0)::float8 as avg_response_time,
      coalesce(u.cpu_usage, 0) as cpu_usage, coalesce(u.memory_usage, 0) as memory_usage, coalesce(u.tokens, 0) as tokens,
      coalesce(u.requests, 0) as requests, coalesce(u.network_in, 0) as network_in, coalesce(u.network_out, 0) as network_out
    from buckets b left join finished f using (timestamp) left join used u using (timestamp) order by b.timestamp`)
}

function fractions({ fragment }: Sql) {
  return fragment`
    least(1, coalesce(sum(cpu_seconds) / nullif(sum(cpu_seconds_available), 0), 0)) as cpu_usage,
    least(1, coalesce(sum(memory_byte_seconds) / nullif(sum(memory_byte_seconds_available), 0), 0)) as memory_usage`
}
