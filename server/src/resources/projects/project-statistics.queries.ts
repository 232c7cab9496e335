import { bounds } from '#contract/core/limits.ts'
import { activeTasks } from '#contract/resources/project-statistics.ts'
import type { Sql } from '../../platform/postgres/database.ts'

/** Size and last activity of a project. */
export interface ProjectNumbers {
  project_id: number
  agents: number
  agents_running: number
  last_activity: string
}

/**
 * Statistics of projects of an organization, newest projects first. Default: the newest projects. Numbers of agents
 * come from maintained totals, and only the newest tasks and agents are read by index, so the cost does not depend on
 * the size of the project.
 */
export async function listProjectNumbers(
  sql: Sql,
  org_id: string,
  project_ids: readonly number[] | undefined,
): Promise<ProjectNumbers[]> {
  const { fragment } = sql
  const named = project_ids ? fragment`and id = any(${[...project_ids]}::bigint[])` : fragment``
  return sql.run<ProjectNumbers>(fragment`
    with projects as materialized (
      select id, created_at, updated_at from project where org_id = ${org_id} ${named}
      order by created_at desc, id desc limit ${bounds.page_limit}
    )
    select p.id as project_id, coalesce(c.agents, 0) as agents, coalesce(c.running, 0) as agents_running,
      greatest(p.updated_at, a.created_at, t.updated_at) as last_activity
    from projects p
    left join lateral (
      select sum(agents)::bigint as agents, (sum(agents) filter (where status = 'running'))::bigint as running
      from agent_count where project_id = p.id
    ) c on true
    left join lateral (
      select created_at from agent where project_id = p.id order by created_at desc, id desc limit 1
    ) a on true
    left join lateral (
      select max(updated_at) as updated_at from (
        select updated_at from task where project_id = p.id order by id desc limit ${activeTasks}
      ) newest
    ) t on true
    order by p.created_at desc, p.id desc`)
}
