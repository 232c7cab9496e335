import type { AgentState } from '#contract/resources/agent-lifecycle.ts'
import { bounds } from '#contract/core/limits.ts'
import { jsonb, raw, type Sql } from '../../platform/postgres/database.ts'
import { likePattern } from '../projects/projects.queries.ts'
import type { AgentRow } from './agents.queries.ts'

/** Columns of a listed agent, without prompts and environment variables (decision D41). */
const listedColumns = (sql: Sql) => sql.fragment`
  id, project_id, name, description, status, settles_to, launch_trigger, revision, version,
  config - 'system_prompt' as config, null::bytea as environment, metadata, created_by, created_at, updated_at, last_activity`

/** Filters, order and page of a list of agents. */
export interface AgentFilter {
  /** The caller's organization, which must own the project. */
  org_id: string
  project_id: number
  status?: AgentState | undefined
  /** Part of the name or the description, case-insensitive. */
  search?: string | undefined
  model?: string | undefined
  /** An element of `metadata.tags`. */
  tag?: string | undefined
  sort: 'created_at' | '-created_at' | 'name' | '-name'
  limit: number
  offset: number
}

export interface AgentPage {
  agents: readonly AgentRow[]
  /** Number of matches on all pages. */
  total: number
}

/** Whether an index has the order of the page, so that a cached plan is used. */
export function isFirstPage({ search, model, tag, limit, offset }: AgentFilter): boolean {
  return offset === 0 && limit === bounds.page_limit_default && (search ?? model ?? tag) === undefined
}

/**
 * A page of a project's agents and the number of matches, from one snapshot; undefined if the organization does not
 * have the project. Totals per status are maintained in `agent_count`; matches of a text, model or tag are counted by
 * an index. A text search uses trigrams if PostgreSQL has the extension (`agent_text_parts`); a text of fewer than
 * three letters scans all agents of the project. A late page reads the index up to its position.
 */
export async function listAgents(sql: Sql, filter: AgentFilter): Promise<AgentPage | undefined> {
  const { fragment } = sql
  // Names are unique in a project.
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
  // With a constant limit PostgreSQL caches the plan; otherwise it plans each time.
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
  // Planned each time: for a frequent text the order index is best, for a rare one the trigram index.
  const rows = await sql.run<AgentRow & { is_there: boolean; total: number }>(statement, text ? 'anew' : undefined)
  const { is_there, total: matching } = rows[0]!
  return is_there ? { agents: rows.filter(({ id }) => id !== null), total: matching } : undefined
}
