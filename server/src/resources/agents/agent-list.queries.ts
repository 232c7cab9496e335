import type { AgentState } from '#contract/resources/agent-lifecycle.ts'
import { bounds } from '#contract/core/limits.ts'
import { jsonb, raw, type Sql } from '../../platform/postgres/database.ts'
import { likePattern } from '../projects/projects.queries.ts'
import type { AgentRow } from './agents.queries.ts'

/** What of an agent a list shows: neither prompts nor environment variables, which stay in the database (decision D41). */
const listedColumns = (sql: Sql) => sql.fragment`
  id, project_id, name, description, status, settles_to, launch_trigger, revision, version,
  config - 'system_prompt' as config, null::bytea as environment, metadata, created_by, created_at, updated_at, last_activity`

/** Which agents a list is of, in which order, and which part of them. */
export interface AgentFilter {
  /** The caller's organization: a project of another one has no agents to list. */
  org_id: string
  project_id: number
  status?: AgentState | undefined
  /** Part of the name or the description, without regard to case. */
  search?: string | undefined
  model?: string | undefined
  /** A word of `metadata.tags`. */
  tag?: string | undefined
  sort: 'created_at' | '-created_at' | 'name' | '-name'
  limit: number
  offset: number
}

export interface AgentPage {
  agents: readonly AgentRow[]
  /** How many match, on all pages. */
  total: number
}

/** Whether an index has the page in its order, so that it is read by a plan that is kept. */
export function isFirstPage({ search, model, tag, limit, offset }: AgentFilter): boolean {
  return offset === 0 && limit === bounds.page_limit_default && (search ?? model ?? tag) === undefined
}

/**
 * A page of a project's agents, and how many match: both of one moment; undefined where the project does not exist or is another
 * organization's. The number is kept as agents come, move and go (`agent_count`), so that it is exact without reading them; of a
 * text, a model or a tag the agents are counted that have it, found by an index. A text is found by its groups of three letters, where
 * PostgreSQL has the extension (`agent_text_parts`); a shorter one has none, and reads all agents of the project. A page far down
 * reads no more than an index up to there.
 */
export async function listAgents(sql: Sql, filter: AgentFilter): Promise<AgentPage | undefined> {
  const { fragment } = sql
  // A name is there once in a project.
  const order = {
    created_at: fragment`created_at, id`,
    '-created_at': fragment`created_at desc, id desc`,
    name: fragment`name`,
    '-name': fragment`name desc`,
  }[filter.sort]
  const { search, model, tag } = filter
  const stored = filter.status
    ? fragment`project_id = ${filter.project_id} and status = ${filter.status}`
    : fragment`project_id = ${filter.project_id}`
  const text = search && likePattern(search)
  const where = fragment`${stored}
    ${text ? fragment`and (name ilike ${text} escape '\\' or description ilike ${text} escape '\\')` : fragment``}
    ${model === undefined ? fragment`` : fragment`and config ->> 'model' = ${model}`}
    ${tag === undefined ? fragment`` : fragment`and metadata -> 'tags' @> ${jsonb([tag])}::jsonb`}`
  const total =
    text || model !== undefined || tag !== undefined
      ? fragment`select count(*) as total from agent where ${where}`
      : fragment`select coalesce(sum(agents), 0)::bigint as total from agent_count where ${stored}`
  // Where PostgreSQL sees how few are asked for it keeps its plan; otherwise it makes one each time.
  const few = filter.offset === 0 && filter.limit === bounds.page_limit_default
  const place = few
    ? fragment`order by ${order} limit ${raw(String(bounds.page_limit_default))}`
    : fragment`order by ${order} limit ${filter.limit} offset ${filter.offset}`
  const page =
    filter.offset === 0
      ? fragment`select ${listedColumns(sql)} from agent where ${where} ${place}`
      : fragment`
        select shown.* from (select id from agent where ${where} ${place}) far
        cross join lateral (select ${listedColumns(sql)} from agent where id = far.id limit 1) shown`
  const statement = fragment`
    select heading.*, page.* from (
      select exists (select from project where id = ${filter.project_id} and org_id = ${filter.org_id}) as is_there,
        (${total}) as total
    ) heading left join (${page}) page on true order by ${order}`
  // A word that every agent has is best looked for in their order, one that few have by the index.
  const rows = await sql.run<AgentRow & { is_there: boolean; total: number }>(statement, text ? 'anew' : undefined)
  const { is_there, total: matching } = rows[0]!
  return is_there ? { agents: rows.filter(({ id }) => id !== null), total: matching } : undefined
}
