import { isObject } from '#contract/core/merge-patch.ts'
import { openaiBounds } from '#contract/doors/openai.ts'
import type { Principal } from '../../http/access/principal.ts'
import { Batcher } from '../../platform/batcher.ts'
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

/** The same of a configuration that was read. */
export function opensDoor(config: Record<string, unknown>): boolean {
  return !isObject(config['doors']) || String(config['doors']['openai']) !== 'false'
}

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

/** A name of a model as one of the ways to understand it. */
interface AskedModel {
  org_id: string
  /** The project that the answer must be of; null where any will do. */
  within: number | null
  /** `agent_…`, or an agent's name. */
  agent: string
  /** The project's name, or its number as text; null where none is named. */
  project: string | null
}

/** Ways to understand a name, each with how it finds agents `a` of projects `p` for what was `asked`. */
const ways = {
  id: (sql: Sql) => sql.fragment`a.id = asked.agent`,
  project_number: (sql: Sql) => sql.fragment`p.id = asked.project::bigint and a.name = asked.agent`,
  project_name: (sql: Sql) => sql.fragment`lower(p.name) = lower(asked.project) and a.name = asked.agent`,
  name: (sql: Sql) => sql.fragment`a.name = asked.agent`,
}
type Way = keyof typeof ways

/** Names that are looked for by one statement at most, and such statements at a time. */
const groupMax = 100
const concurrency = 2

/** A model that a name stands for. */
export interface FoundModel extends ModelRow {
  /** The name means no other agent as long as this agent and its project are called so, and it has not closed this door. */
  isLasting: boolean
}

/** Finds models on connections of the process: names that come at the same time share a statement. */
export type FindModel = (
  principal: Pick<Principal, 'org_id'>,
  name: string,
  project: string | undefined,
) => Promise<FoundModel | undefined>

export function makeFindModel(sql: Sql): FindModel {
  const groups = new Map(
    (Object.keys(ways) as Way[]).map((way) => [
      way,
      new Batcher<AskedModel, ModelRow | undefined>((all) => findByWay(sql, way, all), { concurrency, groupMax }),
    ]),
  )
  return (principal, name, project) =>
    findWith(principal, name, project, (way, asked) => groups.get(way)!.submit(asked))
}

/**
 * The agent that a model's name stands for: `agent_…`, `project/agent-name`, `proj_N/agent-name`, or an agent's name where
 * it is the only one of that name, in the project that `OpenAI-Project` names where it names one. Undefined where there is
 * none.
 */
export async function findModel(
  sql: Sql,
  principal: Pick<Principal, 'org_id'>,
  name: string,
  project: string | undefined,
): Promise<FoundModel | undefined> {
  return findWith(principal, name, project, async (way, asked) => (await findByWay(sql, way, [asked]))[0])
}

async function findWith(
  { org_id }: Pick<Principal, 'org_id'>,
  name: string,
  project: string | undefined,
  find: (way: Way, asked: AskedModel) => Promise<ModelRow | undefined>,
): Promise<FoundModel | undefined> {
  const within = project === undefined ? null : projectNumber(project)
  if (within === undefined) return undefined
  const slash = name.indexOf('/')
  const asked: [Way, Pick<AskedModel, 'agent' | 'project'>][] = []
  if (isId('agent', name)) asked.push(['id', { agent: name, project: null }])
  if (slash > 0) {
    const [of, agent] = [name.slice(0, slash), name.slice(slash + 1)]
    const number = of.startsWith('proj_') ? projectNumber(of) : undefined
    if (number === undefined) asked.push(['project_name', { agent, project: of }])
    else asked.push(['project_number', { agent, project: String(number) }])
  }
  asked.push(['name', { agent: name, project: null }])
  for (const [at, [way, one]] of asked.entries()) {
    const found = await find(way, { org_id, within, ...one })
    // Another project may get an agent of the same name, and a way that comes first may find one.
    if (found) return { ...found, isLasting: at === 0 && way !== 'name' }
  }
  return undefined
}

/** Of each name the agent that it finds by a way, where it finds exactly one. */
async function findByWay(sql: Sql, way: Way, all: readonly AskedModel[]): Promise<(ModelRow | undefined)[]> {
  const { fragment } = sql
  const rows = await sql.run<ModelRow & { nth: number }>(fragment`
    select asked.nth::int, found.*
    from unnest(${all.map(({ org_id }) => org_id)}::text[], ${all.map(({ within }) => within)}::bigint[],
      ${all.map(({ agent }) => agent)}::text[], ${all.map((one) => one.project)}::text[]) with ordinality
      as asked(org_id, within, agent, project, nth)
    cross join lateral (
      select ${columns(sql)} from project p join agent a on a.project_id = p.id
      where p.org_id = asked.org_id and ${ways[way](sql)} and (asked.within is null or p.id = asked.within) and ${isOpen(sql)}
      limit 2) found`)
  return all.map((_, i) => {
    const [first, second] = rows.filter(({ nth }) => nth === i + 1)
    if (!first || second) return undefined
    const { nth: _nth, ...found } = first
    return found
  })
}
