import type { Fragment, Sql } from '../../platform/postgres/database.ts'

/** Statistics of an agent's tasks for `getAgent` (spec 2.2, decision D42). */
export interface AgentStats {
  total_tasks: number
  completed_tasks: number
  failed_tasks: number
  success_rate: number
  /** Mean wall-clock seconds of finished tasks. */
  avg_response_time: number
}

/**
 * SQL for the `AgentStats` of an agent, whose id is an SQL expression. An expired task counts as failed. Ended tasks
 * are read from sums of days, hours and minutes, plus the tasks since; so tasks that were removed after their
 * retention still count. For connections that plan by index.
 */
export function agentStats({ fragment }: Sql, agent_id: Fragment) {
  // This form forces the planner to use the whole index condition, independent of its estimates.
  const rollups = (seconds: number, lo: Fragment, hi: Fragment): Fragment => fragment`
    select completed, failed, canceled, all_microseconds / 1000000.0 as took from task_rollup
    where (agent_id, seconds, bucket) >= (${agent_id}, ${seconds}::int, ${lo}) and (agent_id, seconds, bucket) < (${agent_id}, ${seconds}::int, ${hi})`
  const until = fragment`(select until from state)`
  const hour = fragment`(select hour from state)`
  const day = fragment`(select day from state)`
  return fragment`
    with state as materialized (
      select until, bucket_floor(3600, until) as hour, bucket_floor(86400, until) as day
      from (select coalesce((select rolled_until from task_rollup_state), '-infinity') as until offset 0) rolled
    ), ended as materialized (
      select coalesce(sum(completed), 0)::bigint as completed, coalesce(sum(failed), 0)::bigint as failed,
        coalesce(sum(canceled), 0)::bigint as canceled, coalesce(sum(took), 0) as took
      from (
        ${rollups(86_400, fragment`'-infinity'::timestamptz`, day)}
        union all ${rollups(3600, day, hour)}
        union all ${rollups(60, hour, until)}
        union all
        select count(*) filter (where status = 'completed'), count(*) filter (where status in ('failed', 'expired')),
          count(*) filter (where status = 'canceled'), sum(extract(epoch from finished_at - coalesce(started_at, created_at)))
        from task where agent_id = ${agent_id} and finished_at >= ${until}
      ) parts
    )
    select completed + failed + canceled
        + (select count(*) from task where agent_id = ${agent_id} and status = any('{queued,running,waiting}')) as total_tasks,
      completed as completed_tasks, failed as failed_tasks,
      coalesce(completed::float8 / nullif(completed + failed, 0), 0) as success_rate,
      coalesce(took / nullif(completed + failed + canceled, 0), 0)::float8 as avg_response_time
    from ended`
}
