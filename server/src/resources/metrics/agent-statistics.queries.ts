import { bounds } from '#contract/core/limits.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Period } from './metrics.queries.ts'

/** Statistics of one agent in a period. */
export interface AgentNumbers {
  agent_id: string
  completed: number
  failed: number
  canceled: number
  success_rate: number
  avg_response_time: number
  p95_response_time: number
  /** Hours (UTC) in which tasks ended: Unix time, completed, failed. In order, without empty hours. */
  hours: [number, number, number][]
}

/**
 * Statistics of agents of a project over a period, newest agents first, by the same rules as `findTaskNumbers`: from
 * hourly and minute roll-ups, and from the tasks since the last roll-up. Default: the newest agents.
 */
export async function listAgentNumbers(
  sql: Sql,
  project_id: number,
  agent_ids: readonly string[] | undefined,
  { start_time, end_time }: Omit<Period, 'bucket_seconds'>,
): Promise<AgentNumbers[]> {
  const { fragment } = sql
  const named = agent_ids ? fragment`and id = any(${[...agent_ids]})` : fragment``
  const timed = fragment`case when t.status <> 'canceled' then extract(epoch from t.finished_at - t.started_at)::float8 end as seconds`
  return sql.run<AgentNumbers>(fragment`
    with agents as materialized (
      select id, created_at from agent where project_id = ${project_id} ${named}
      order by created_at desc, id desc limit ${bounds.page_limit}
    ), state as materialized (
      select bucket_ceil(60, ${start_time}::timestamptz) as lo, greatest(bucket_ceil(60, ${start_time}::timestamptz),
        least(bucket_floor(60, ${end_time}::timestamptz), coalesce((select rolled_until from task_rollup_state), '-infinity'))) as hi
    ), rolled as materialized (
      select r.* from agents a, state, task_rollups(a.id, lo, hi, 3600) r
    ), fresh as materialized (
      select a.id as agent_id, t.status, t.finished_at, ${timed}
      from agents a, state, ended_tasks(a.id, ${start_time}::timestamptz, least(lo, ${end_time}::timestamptz)) t
      union all
      select a.id, t.status, t.finished_at, ${timed} from agents a, state, ended_tasks(a.id, hi, ${end_time}::timestamptz) t
    ), parts as materialized (
      select agent_id, bucket_floor(3600, bucket) as hour, completed, failed, canceled, timed, microseconds / 1000000.0 as took from rolled
      union all
      select agent_id, bucket_floor(3600, finished_at), (status = 'completed')::int, (status in ('failed', 'expired'))::int,
        (status = 'canceled')::int, (seconds is not null)::int, coalesce(seconds, 0)::numeric from fresh
    ), numbers as (
      select agent_id, sum(completed)::bigint as completed, sum(failed)::bigint as failed, sum(canceled)::bigint as canceled,
        sum(timed)::bigint as timed, sum(took) as took
      from parts group by agent_id
    ), hours as (
      select agent_id, json_agg(json_build_array(extract(epoch from hour)::bigint, completed, failed) order by hour) as hours from (
        select agent_id, hour, sum(completed)::bigint as completed, sum(failed)::bigint as failed from parts group by agent_id, hour
      ) h group by agent_id
    ), times as materialized (
      select agent_id, seconds, sum(sum(n)) over (partition by agent_id order by seconds) as up_to from (
        select agent_id, duration_of(key) as seconds, n from rolled, unnest(keys, counts) as u(key, n)
        union all select agent_id, seconds, 1 from fresh where seconds is not null
      ) all_of_them group by agent_id, seconds
    ), places as (
      select agent_id, 0.95 * (timed - 1) as place from numbers where timed > 0
    ), percentiles as (
      select p.agent_id, (min(seconds) filter (where up_to > floor(place)) * (1 - (place - floor(place)))
        + min(seconds) filter (where up_to > ceil(place)) * (place - floor(place)))::float8 as p95
      from places p join times t using (agent_id) group by p.agent_id, place
    )
    select a.id as agent_id, coalesce(completed, 0) as completed, coalesce(failed, 0) as failed, coalesce(canceled, 0) as canceled,
      coalesce(completed::float8 / nullif(completed + failed, 0), 0) as success_rate,
      coalesce(took / nullif(timed, 0), 0)::float8 as avg_response_time, coalesce(p95, 0) as p95_response_time,
      coalesce(hours, '[]'::json) as hours
    from agents a left join numbers n on n.agent_id = a.id left join hours h on h.agent_id = a.id
      left join percentiles p on p.agent_id = a.id
    order by a.created_at desc, a.id desc`)
}
