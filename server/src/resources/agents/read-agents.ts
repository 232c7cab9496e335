import { notFound } from '#contract/core/problems.ts'
import type { Principal } from '../../http/access/principal.ts'
import type { Database } from '../../platform/postgres/database.ts'
import { Batcher } from '../../platform/batcher.ts'
import { isId } from '../../platform/ids.ts'
import { projectNumber, requireProject } from '../projects/projects.queries.ts'
import { findAgentsWithStats, type AgentPath, type AgentWithStats } from './agents.queries.ts'

const groupMax = 100
const concurrency = 2

/**
 * Reads the agent of a path for a caller, with its task statistics. Throws 404 where the project or the agent does not
 * exist.
 */
export type ReadAgent = (
  path: { project_id: string; agent_id: string },
  principal: Pick<Principal, 'org_id'>,
) => Promise<AgentWithStats>

/** Agents that are asked for at the same time are read by one statement, each of them once. */
export function makeReadAgent({ sql, indexed, settings }: Pick<Database, 'sql' | 'indexed' | 'settings'>): ReadAgent {
  const reads = new Batcher<AgentPath, AgentWithStats | undefined>(
    async (paths) => {
      const each = new Map(paths.map((path) => [nameOf(path), path]))
      const found = await findAgentsWithStats(indexed, [...each.values()])
      const byName = new Map([...each.keys()].map((name, i) => [name, found[i]]))
      return paths.map((path) => byName.get(nameOf(path))!)
    },
    { concurrency, groupMax, waitMax_ms: settings.connectionTimeoutMillis! },
  )
  return async ({ project_id, agent_id }, principal) => {
    const number = projectNumber(project_id)
    if (number !== undefined && isId('agent', agent_id)) {
      const agent = await reads.submit({ id: agent_id, project_id: number, org_id: principal.org_id })
      if (agent) return agent
    }
    await requireProject(sql, project_id, principal)
    throw notFound('agent_not_found', 'agent', agent_id.slice(0, 100))
  }
}

function nameOf({ id, project_id, org_id }: AgentPath): string {
  return `${id} ${project_id} ${org_id}`
}
