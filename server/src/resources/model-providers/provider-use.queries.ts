import { providerUse } from '#contract/models/model-providers.ts'
import type { Fragment, Sql } from '../../platform/postgres/database.ts'

/** Usage of one provider by an organization. */
export interface ProviderUse {
  /** The id of a provider of the organization, or the name of one of the service. */
  provider: string
  agents: { id: string; project_id: string; name: string }[]
  agents_total: number
  last_failure: { at: string; project_id: string; task_id: string; code: string; message: string } | null
}

/**
 * Usage of each provider by an organization, without unused providers. `default_provider` is the provider of model
 * names without one.
 */
export async function listProviderUse(
  sql: Sql,
  org_id: string,
  { default_model, default_provider }: { default_model: string; default_provider: string | undefined },
): Promise<ProviderUse[]> {
  const { fragment } = sql
  const nameOf = (model: Fragment): Fragment =>
    fragment`case when position('/' in ${model}) > 0 then split_part(${model}, '/', 1) else ${default_provider ?? ''} end`
  const providerOf = (model: Fragment, project_id: Fragment): Fragment => fragment`coalesce(
    (select m.id from model_provider m where m.org_id = ${org_id} and m.name = ${nameOf(model)}
      and (m.projects is null or ${project_id} = any(m.projects))), ${nameOf(model)})`
  return sql.run<ProviderUse>(fragment`
    with projects as materialized (
      select id from project where org_id = ${org_id}
    ), users as (
      select a.id, a.project_id, a.name, ${providerOf(fragment`coalesce(a.config ->> 'model', ${default_model})`, fragment`a.project_id`)} as provider
      from agent a where a.project_id in (select id from projects)
    ), agents as (
      select provider, count(*) as total, json_agg(json_build_object('id', id, 'project_id', 'proj_' || project_id, 'name', name)
        order by name, id) filter (where place <= ${providerUse.agents}) as named
      from (select *, row_number() over (partition by provider order by name, id) as place from users) u group by provider
    ), failures as (
      select distinct on (provider) provider, t.finished_at, t.project_id, t.id, s.error
      from projects p
        cross join lateral (
          select id, project_id, finished_at from task
          where project_id = p.id and status = 'failed' order by id desc limit ${providerUse.failed_tasks}
        ) t
        cross join lateral (
          select name, status, error from task_step where task_id = t.id and type = 'model_call' order by index desc limit 1
        ) s
        cross join lateral (select ${providerOf(fragment`s.name`, fragment`t.project_id`)} as provider) of
      where s.status = 'failed'
      order by provider, t.finished_at desc
    )
    select coalesce(a.provider, f.provider) as provider, coalesce(a.named, '[]') as agents, coalesce(a.total, 0) as agents_total,
      case when f.provider is not null then json_build_object(
        'at', to_char(f.finished_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'project_id', 'proj_' || f.project_id,
        'task_id', f.id, 'code', coalesce(f.error ->> 'code', ''), 'message', left(coalesce(f.error ->> 'message', ''), 500))
        end as last_failure
    from agents a full join failures f on f.provider = a.provider`)
}
