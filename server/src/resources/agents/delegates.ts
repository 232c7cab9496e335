import { invalid, type Issue } from '#contract/core/problems.ts'
import type { AgentConfig } from '../../engine/task.ts'
import { delegateName } from '../../engine/tools/delegate/delegates.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'

/**
 * Throws `validation_error` if `config.delegates` has an agent that is not in the project, an unknown version, or two
 * delegates with the same tool name.
 */
export async function requireDelegates(
  sql: Sql,
  { project_id, content: { config } }: { project_id: number; content: { config: Record<string, unknown> } },
): Promise<void> {
  const { delegates = [] } = config as Pick<AgentConfig, 'delegates'>
  if (delegates.length === 0) return
  const rows = await sql<{ id: string; name: string }>`
    select id, name from agent where project_id = ${project_id} and id = any(${delegates.map(({ agent_id }) => agent_id)})`
  const names = new Map(rows.map(({ id, name }) => [id, name]))
  const versions = await sql<{ agent_id: string; version: number }>`
    select v.agent_id, v.version from agent_version v
    join jsonb_to_recordset(${jsonb(delegates.filter(({ version }) => version !== undefined))}::jsonb) as d(agent_id text, version bigint)
      on d.agent_id = v.agent_id and d.version = v.version`
  const known = new Set(versions.map(({ agent_id, version }) => `${agent_id} ${version}`))
  const taken = new Set<string>()
  const issues = delegates.flatMap(({ agent_id, version, name }, at): Issue[] => {
    const agent = names.get(agent_id)
    const field = `config.delegates[${at}]`
    if (agent === undefined)
      return [
        {
          field: `${field}.agent_id`,
          message: 'is not an agent of this project',
          code: 'invalid_choice',
          provided: agent_id,
        },
      ]
    if (version !== undefined && !known.has(`${agent_id} ${version}`))
      return [
        {
          field: `${field}.version`,
          message: 'is not a version of this agent',
          code: 'invalid_choice',
          provided: version,
        },
      ]
    const tool = delegateName(name ?? agent)
    if (taken.has(tool))
      return [
        {
          field: `${field}.name`,
          message: `is a duplicate: another delegate has the tool name ${tool}`,
          code: 'invalid_choice',
          provided: name,
        },
      ]
    taken.add(tool)
    return []
  })
  const [first, ...others] = issues
  if (first) throw invalid(first, ...others)
}
