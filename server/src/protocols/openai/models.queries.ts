import { openaiBounds } from '#contract/doors/openai.ts'
import type { Principal } from '../../http/access/principal.ts'
import type { Fragment, Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'
import { projectNumber } from '../../resources/projects/projects.queries.ts'

/** An agent as a model of the OpenAI protocol. */
export interface ModelRow {
  id: string
  project_id: number
  name: string
  project: string
  created_at: string
}

const columns = (sql: Sql) => sql.fragment`a.id, a.project_id, a.name, p.name as project, a.created_at`

/** Agents that closed this door to themselves are not there. */
const isOpen = (sql: Sql): Fragment => sql.fragment`a.config->'doors'->>'openai' is distinct from 'false'`

/** The agents of a project, as models: what is at one place of the lists belongs together. */
export interface ProjectModels {
  project_id: number
  project: string
  ids: string[]
  names: string[]
  /** Seconds since 1970. */
  created: number[]
}

/**
 * The agents of an organization in the order of their projects and names. A row for each project, and from an index alone: a front end
 * asks for thousands of them whenever it starts.
 */
export async function listModels(sql: Sql, { org_id }: Principal): Promise<ProjectModels[]> {
  return sql.run<ProjectModels>(sql.fragment`
    select p.id as project_id, p.name as project, of.ids, of.names, of.created
    from project p cross join lateral (
      select array_to_json(array_agg(id)) as ids, array_to_json(array_agg(name)) as names, array_to_json(array_agg(created)) as created
      from (
        select a.id, a.name, floor(extract(epoch from a.created_at))::bigint as created from agent a
        where a.project_id = p.id and ${isOpen(sql)} order by a.name limit ${openaiBounds.models}) sorted) of
    where p.org_id = ${org_id} and of.ids is not null order by p.name`)
}

/**
 * The agent that a model's name stands for: `agent_…`, `project/agent-name`, `proj_N/agent-name`, or an agent's name where
 * it is the only one of that name, in the project that `OpenAI-Project` names where it names one. Undefined where there is
 * none.
 */
export async function findModel(
  sql: Sql,
  { org_id }: Principal,
  name: string,
  project: string | undefined,
): Promise<ModelRow | undefined> {
  const { fragment } = sql
  const within = project === undefined ? undefined : projectNumber(project)
  if (project !== undefined && within === undefined) return undefined
  const inProject = within === undefined ? fragment`` : fragment`and p.id = ${within}`
  const slash = name.indexOf('/')
  const ways: Fragment[] = []
  if (isId('agent', name)) ways.push(fragment`a.id = ${name}`)
  if (slash > 0) {
    const [of, agent] = [name.slice(0, slash), name.slice(slash + 1)]
    const number = of.startsWith('proj_') ? projectNumber(of) : undefined
    ways.push(
      number === undefined
        ? fragment`lower(p.name) = lower(${of}) and a.name = ${agent}`
        : fragment`p.id = ${number} and a.name = ${agent}`,
    )
  }
  ways.push(fragment`a.name = ${name}`)
  for (const way of ways) {
    const found = await sql.run<ModelRow>(fragment`
      select ${columns(sql)} from project p join agent a on a.project_id = p.id
      where p.org_id = ${org_id} and ${way} ${inProject} and ${isOpen(sql)} limit 2`)
    if (found.length === 1) return found[0]
  }
  return undefined
}
