import { notFound } from '#contract/core/problems.ts'
import type { Sql } from '../../platform/postgres/database.ts'

/** A stored version of an agent. Environment variables are encrypted with the agent's id as associated data. */
export interface AgentVersionRow {
  agent_id: string
  version: number
  /** Whether it is the current version, in the same snapshot. */
  current: boolean
  name: string
  description: string
  config: Record<string, unknown>
  environment: Buffer | null
  created_by: string
  created_at: string
}

/** A version of an agent; throws 404 if it does not exist. */
export async function requireVersion(sql: Sql, agent_id: string, version: string | number): Promise<AgentVersionRow> {
  const [row] = /^\d{1,9}$/.test(String(version))
    ? await sql<AgentVersionRow>`
        select v.agent_id, v.version, v.version = a.version as current, v.name, v.description, v.config, v.environment, v.created_by,
          v.created_at
        from agent_version v join agent a on a.id = v.agent_id where v.agent_id = ${agent_id} and v.version = ${Number(version)}`
    : []
  if (!row) throw notFound('agent_version_not_found', 'agent_version', String(version).slice(0, 100))
  return row
}

/** A page of an agent's versions, newest first, without prompts and environment variables (decision D41). */
export async function listVersions(
  sql: Sql,
  agent_id: string,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ versions: AgentVersionRow[]; total: number }> {
  const [count] = await sql<{ total: number }>`
    select count(*) as total from agent_version where agent_id = ${agent_id}`
  const versions = await sql<AgentVersionRow>`
    select v.agent_id, v.version, v.version = a.version as current, v.name, v.description, v.config - 'system_prompt' as config,
      null::bytea as environment, v.created_by, v.created_at
    from agent_version v join agent a on a.id = v.agent_id
    where v.agent_id = ${agent_id} order by v.version desc limit ${limit} offset ${offset}`
  return { versions, total: count?.total ?? 0 }
}
