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

/** Excludes agents that are not served by the OpenAI protocol. */
const isOpen = (sql: Sql): Fragment => sql.fragment`a.config->'doors'->>'openai' is distinct from 'false'`

/** Whether a configuration allows the OpenAI protocol. */
export function opensDoor(config: Record<string, unknown>): boolean {
  return !isObject(config['doors']) || String(config['doors']['openai']) !== 'false'
}

/** The agents of a project as parallel arrays. */
export interface ProjectModels {
  project_id: number
  project: string
  ids: string[]
  names: string[]
  /** Unix times in seconds. */
  created: number[]
}

/**
 * The agents of an organization, ordered by project and name. One row per project, read from an index only, because
 * front ends list thousands of them at every start.
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

/** One interpretation of a model name. */
interface AskedModel {
  org_id: string
  /** The project that the agent must belong to; null for any. */
  within: number | null
  /** `agent_…`, or an agent's name. */
  agent: string
  /** Name of the project, or its number as text; null if the model name has none. */
  project: string | null
}

/** Interpretations of a name, each with its condition on agents `a`, projects `p` and the `asked` name. */
const ways = {
  id: (sql: Sql) => sql.fragment`a.id = asked.agent`,
  project_number: (sql: Sql) => sql.fragment`p.id = asked.project::bigint and a.name = asked.agent`,
  project_name: (sql: Sql) => sql.fragment`lower(p.name) = lower(asked.project) and a.name = asked.agent`,
  name: (sql: Sql) => sql.fragment`a.name = asked.agent`,
}
type Way = keyof typeof ways

/** Maximum number of names per statement, and of concurrent statements. */
const groupMax = 100
const concurrency = 2

/** The model that a name refers to. */
export interface FoundModel extends ModelRow {
  /**
   * Whether the name cannot refer to another agent while this agent and its project keep their names and the protocol
   * serves it.
   */
  isLasting: boolean
}

/** Finds models; concurrent lookups share a statement. */
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
 * The agent that a model name refers to: `agent_…`, `project/agent-name`, `proj_N/agent-name`, or the name of an
 * agent if it is unique. `OpenAI-Project` restricts it to a project. Undefined if there is none.
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
    // Another project may get an agent with the same name, and an earlier interpretation may match later.
    if (found) return { ...found, isLasting: at === 0 && way !== 'name' }
  }
  return undefined
}

/** For each name the agent that matches this interpretation, if exactly one does. */
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
