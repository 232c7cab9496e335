import type { Sql } from '../../platform/database.ts'

/** What get-agent tells of all tasks of an agent (spec 2.2, decision D42). */
export interface AgentStats {
  total_tasks: number
  completed_tasks: number
  failed_tasks: number
  success_rate: number
  /** Mean wall-clock seconds of finished tasks. */
  avg_response_time: number
}

/** A select of an agent's `AgentStats`; an expired task counts as failed (tasks 4). */
export function agentStats({ fragment }: Sql, agent_id: string) {
  return fragment`
    select count(*) as total_tasks,
      count(*) filter (where status = 'completed') as completed_tasks,
      count(*) filter (where status in ('failed', 'expired')) as failed_tasks,
      coalesce(count(*) filter (where status = 'completed')::float8
        / nullif(count(*) filter (where status in ('completed', 'failed', 'expired')), 0), 0) as success_rate,
      coalesce(avg(extract(epoch from finished_at - coalesce(started_at, created_at))) filter (where finished_at is not null), 0)::float8 as avg_response_time
    from task where agent_id = ${agent_id}`
}
