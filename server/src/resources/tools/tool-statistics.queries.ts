import { bounds } from '#contract/core/limits.ts'
import { toolStatisticsBounds as limits } from '#contract/tools/tool-statistics.ts'
import type { Sql } from '../../platform/postgres/database.ts'

export interface ToolNumbers {
  tool_id: string
  agents: { id: string; name: string }[]
  agents_total: number
  calls: number
  failures: number
  last_used_at: string | null
  last_failure: { at: string; task_id: string; message: string } | null
}

/**
 * How the tools of a project are used, newest tools first. Without `tool_ids` it reports on the newest tools. It reads
 * only the steps of agents that list one of the tools, by the index of an agent's steps. A call of a client tool is a
 * step of type `wait`.
 */
export async function listToolStatistics(
  sql: Sql,
  project_id: number,
  tool_ids: readonly string[] | undefined,
): Promise<ToolNumbers[]> {
  const { fragment } = sql
  const named = tool_ids ? fragment`and id = any(${[...tool_ids]})` : fragment``
  const isCall = fragment`(s.type = 'tool_call' or s.type = 'wait' and s.input ->> 'is_callers' = 'true')`
  const counted = fragment`now() - make_interval(hours => ${limits.counted_hours}::int)`
  const looked = fragment`now() - make_interval(days => ${limits.last_use_days}::int)`
  return sql.run<ToolNumbers>(fragment`
    with tools as materialized (
      select id, name from tool where project_id = ${project_id} ${named} order by id desc limit ${bounds.page_limit}
    ), users as materialized (
      select distinct a.id as agent_id, a.name as agent, t.id as tool_id, t.name as tool
      from agent a
        cross join jsonb_array_elements_text(case jsonb_typeof(a.config -> 'tools') when 'array' then a.config -> 'tools' else '[]' end) n
        join tools t on t.name = split_part(n, '/', 1)
      where a.project_id = ${project_id}
    ), recent as materialized (
      select u.tool_id, s.status, s.started_at, s.task_id, s.error
      from (select distinct agent_id from users) g
        join task_step s on s.agent_id = g.agent_id and s.started_at > ${counted} and ${isCall}
        join users u on u.agent_id = g.agent_id and u.tool = split_part(s.name, '/', 1)
    ), numbers as (
      select tool_id, count(*) as calls, count(*) filter (where status in ('failed', 'unknown')) as failures,
        max(started_at) as last_used_at
      from recent group by tool_id
    ), failures as (
      select distinct on (tool_id) tool_id, started_at, task_id, error from recent
      where status in ('failed', 'unknown') order by tool_id, started_at desc
    ), earlier as (
      select u.tool_id, max(s.started_at) as last_used_at
      from (select distinct agent_id from users where tool_id not in (select tool_id from numbers)) g
        cross join lateral (
          select r.name, r.type, r.input, r.started_at from task_step r
          where r.agent_id = g.agent_id and r.started_at > ${looked} and r.started_at <= ${counted}
          order by r.started_at desc limit ${limits.last_use_steps}
        ) s
        join users u on u.agent_id = g.agent_id and u.tool = split_part(s.name, '/', 1)
      where ${isCall} group by u.tool_id
    ), agents as (
      select tool_id, count(*) as total, json_agg(json_build_object('id', agent_id, 'name', agent) order by agent, agent_id)
        filter (where place <= ${limits.agents}) as named
      from (select *, row_number() over (partition by tool_id order by agent, agent_id) as place from users) p group by tool_id
    )
    select t.id as tool_id, coalesce(a.named, '[]') as agents, coalesce(a.total, 0) as agents_total,
      coalesce(n.calls, 0) as calls, coalesce(n.failures, 0) as failures,
      coalesce(n.last_used_at, e.last_used_at) as last_used_at,
      case when f.tool_id is not null then json_build_object(
        'at', to_char(f.started_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'task_id', f.task_id,
        'message', left(coalesce(f.error ->> 'message', 'The outcome of the call is unknown.'), 500)) end as last_failure
    from tools t left join agents a on a.tool_id = t.id left join numbers n on n.tool_id = t.id
      left join failures f on f.tool_id = t.id left join earlier e on e.tool_id = t.id
    order by t.id desc`)
}
