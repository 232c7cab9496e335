import { failureGroupsMax, failuresGrouped } from '#contract/resources/metrics.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Period } from './metrics.queries.ts'

/** A project or one agent of it, and a period. `start_time` is the start of a bucket. */
export interface Measured extends Period {
  project_id: number
  agent_id: string | undefined
}

export interface EndedNumbers {
  /** Start of the bucket as Unix time; null for the whole period. */
  at: number | null
  completed: number
  failed: number
  canceled: number
  avg_response_time: number
  p50_response_time: number
  p95_response_time: number
  p99_response_time: number
}

/**
 * Tasks that ended in a period, as total and by bucket, without empty buckets. Follows the rules of
 * `findTaskNumbers`: from hourly or minute roll-ups, and from the tasks since the last roll-up.
 */
export async function listEndedNumbers(
  sql: Sql,
  { project_id, agent_id, start_time, end_time, bucket_seconds }: Measured,
): Promise<EndedNumbers[]> {
  const { fragment } = sql
  const unit = bucket_seconds >= 3600 ? 3600 : 60
  const one = agent_id === undefined ? fragment`` : fragment`and a.id = ${agent_id}`
  const oneTask = agent_id === undefined ? fragment`` : fragment`and t.agent_id = ${agent_id}`
  const rollups = (seconds: number, from: 'lo' | 'mid') =>
    from === 'lo'
      ? fragment`select r.* from state, agent a join task_rollup r on r.agent_id = a.id
          where a.project_id = ${project_id} ${one} and r.seconds = ${seconds}::int and r.bucket >= lo and r.bucket < mid`
      : fragment`select r.* from state, agent a join task_rollup r on r.agent_id = a.id
          where a.project_id = ${project_id} ${one} and r.seconds = ${seconds}::int and r.bucket >= mid and r.bucket < hi`
  return sql.run<EndedNumbers>(fragment`
    with bounds as materialized (
      select ${start_time}::timestamptz as lo, ${end_time}::timestamptz as until,
        coalesce((select rolled_until from task_rollup_state), '-infinity') as rolled
    ), middle as materialized (
      select lo, until, rolled, greatest(lo, bucket_floor(${unit}::int, least(until, greatest(rolled, lo)))) as mid from bounds
    ), state as materialized (
      select lo, until, mid, greatest(mid, bucket_floor(60, least(until, greatest(rolled, lo)))) as hi from middle
    ), rolled as materialized (
      ${rollups(unit, 'lo')} union all ${rollups(60, 'mid')}
    ), fresh as materialized (
      select t.status, t.finished_at, case when t.status <> 'canceled' then extract(epoch from t.finished_at - t.started_at)::float8 end as seconds
      from state, task t
      where t.project_id = ${project_id} ${oneTask} and t.finished_at >= hi and t.finished_at < until
    ), parts as materialized (
      select bucket_floor(${bucket_seconds}::int, bucket) as at, completed, failed, canceled, timed, microseconds / 1000000.0 as took from rolled
      union all
      select bucket_floor(${bucket_seconds}::int, finished_at), (status = 'completed')::int, (status in ('failed', 'expired'))::int,
        (status = 'canceled')::int, (seconds is not null)::int, coalesce(seconds, 0)::numeric from fresh
    ), numbers as (
      select at, sum(completed)::bigint as completed, sum(failed)::bigint as failed, sum(canceled)::bigint as canceled,
        sum(timed)::bigint as timed, sum(took) as took
      from parts group by grouping sets ((at), ())
    ), durations as materialized (
      select bucket_floor(${bucket_seconds}::int, bucket) as at, duration_of(key) as seconds, n from rolled, unnest(keys, counts) as u(key, n)
      union all
      select bucket_floor(${bucket_seconds}::int, finished_at), seconds, 1 from fresh where seconds is not null
    ), times as materialized (
      select at, seconds, sum(sum(n)) over (partition by at order by seconds) as up_to from durations group by at, seconds
      union all
      select null, seconds, sum(sum(n)) over (order by seconds) from durations group by seconds
    ), places as (
      select at, share, share * (timed - 1) as place from numbers, unnest(array[0.5, 0.95, 0.99]) share where timed > 0
    ), percentiles as (
      select p.at, share, (min(seconds) filter (where up_to > floor(place)) * (1 - (place - floor(place)))
        + min(seconds) filter (where up_to > ceil(place)) * (place - floor(place)))::float8 as seconds
      from places p join times t on coalesce(t.at, 'infinity') = coalesce(p.at, 'infinity') group by p.at, share, place
    ), of_moments as (
      select at, max(seconds) filter (where share = 0.5) as p50, max(seconds) filter (where share = 0.95) as p95,
        max(seconds) filter (where share = 0.99) as p99
      from percentiles group by at
    )
    select extract(epoch from n.at)::float8 as at, coalesce(completed, 0) as completed, coalesce(failed, 0) as failed,
      coalesce(canceled, 0) as canceled, coalesce(took / nullif(timed, 0), 0)::float8 as avg_response_time,
      coalesce(p50, 0) as p50_response_time, coalesce(p95, 0) as p95_response_time,
      coalesce(p99, 0) as p99_response_time
    from numbers n left join of_moments b on coalesce(b.at, 'infinity') = coalesce(n.at, 'infinity')`)
}

export interface UsedNumbers {
  /** As in `EndedNumbers`. */
  at: number | null
  calls: number
  tokens: number
  cost_usd: number
  unpriced_calls: number
}

/** Usage in a period, as total and by bucket, from hourly sums. An hour counts in the bucket of its start. */
export async function listUsedNumbers(
  sql: Sql,
  { project_id, agent_id, start_time, end_time, bucket_seconds }: Measured,
): Promise<UsedNumbers[]> {
  const { fragment } = sql
  return sql.run<UsedNumbers>(fragment`
    select extract(epoch from at)::float8 as at, coalesce(sum(calls), 0)::bigint as calls,
      coalesce(sum(input_tokens + output_tokens), 0)::bigint as tokens, coalesce(sum(cost_usd), 0)::float8 as cost_usd,
      coalesce(sum(unpriced_calls), 0)::bigint as unpriced_calls
    from (
      select bucket_floor(${bucket_seconds}::int, hour) as at, * from usage_hour
      where project_id = ${project_id} and hour >= ${start_time}::timestamptz and hour < ${end_time}::timestamptz
        ${agent_id === undefined ? fragment`` : fragment`and agent_id = ${agent_id}`}
    ) hours group by grouping sets ((at), ())`)
}

export interface FailureGroup {
  agent_id: string
  agent_name: string
  code: string
  message: string
  count: number
  last_task_id: string
  last_at: string
}

/** Failed and expired tasks of a period, grouped by agent and error, most frequent first. */
export async function listFailureGroups(
  sql: Sql,
  { project_id, agent_id, start_time, end_time }: Measured,
): Promise<FailureGroup[]> {
  const { fragment } = sql
  const newest = (status: 'failed' | 'expired') => fragment`
    (select id, agent_id, status, error, finished_at from task where project_id = ${project_id} and status = ${status}
      order by id desc limit ${failuresGrouped})`
  return sql.run<FailureGroup>(fragment`
    select g.agent_id, a.name as agent_name, code, (array_agg(message order by g.id desc))[1] as message, count(*) as count,
      max(g.id) as last_task_id, max(finished_at) as last_at
    from (
      select id, agent_id, finished_at, coalesce(error ->> 'code', status) as code, coalesce(error ->> 'message', 'The task expired.') as message
      from (${newest('failed')} union all ${newest('expired')}) t
      where finished_at >= ${start_time}::timestamptz and finished_at < ${end_time}::timestamptz
        ${agent_id === undefined ? fragment`` : fragment`and agent_id = ${agent_id}`}
    ) g join agent a on a.id = g.agent_id
    group by g.agent_id, a.name, code order by count(*) desc, max(g.id) desc limit ${failureGroupsMax}`)
}
