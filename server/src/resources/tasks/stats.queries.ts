import type { Fragment, Sql } from '../../platform/postgres/database.ts'

/** Statistics of an agent's tasks for get-agent (spec 2.2, decision D42). */
export interface AgentStats {
  total_tasks: number
  completed_tasks: number
  failed_tasks: number
  success_rate: number
  /** Mean wall-clock seconds of finished tasks. */
  avg_response_time: number
}

/**
 * A select of the `AgentStats` of an agent, of which an expression gives the identifier; an expired task counts as failed. Of tasks that have ended it reads the sums
 * of days, hours and minutes, and those that ended since; so a task that was removed after its retention still counts.
 */
export function agentStats({ fragment }: Sql, agent_id: Fragment) {
  return fragment`
    with state as materialized (
      select coalesce((select rolled_until from task_rollup_state), '-infinity') as until
    ), ended as materialized (
      select coalesce(sum(completed), 0)::bigint as completed, coalesce(sum(failed), 0)::bigint as failed,
        coalesce(sum(canceled), 0)::bigint as canceled, coalesce(sum(took), 0) as took
      from (
        select completed, failed, canceled, all_microseconds / 1000000.0 as took
        from state, task_rollups(${agent_id}, '-infinity', until, 86400)
        union all
        select count(*) filter (where status = 'completed'), count(*) filter (where status in ('failed', 'expired')),
          count(*) filter (where status = 'canceled'), sum(extract(epoch from finished_at - coalesce(started_at, created_at)))
        from state, ended_tasks(${agent_id}, until, 'infinity')
      ) parts
    )
    select completed + failed + canceled
        + (select count(*) from task where agent_id = ${agent_id} and status = any('{queued,running,waiting}')) as total_tasks,
      completed as completed_tasks, failed as failed_tasks,
      coalesce(completed::float8 / nullif(completed + failed, 0), 0) as success_rate,
      coalesce(took / nullif(completed + failed + canceled, 0), 0)::float8 as avg_response_time
    from ended`
}
