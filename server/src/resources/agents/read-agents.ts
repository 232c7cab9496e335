import { notFound } from '#contract/core/problems.ts'
import type { Principal } from '../../http/access/principal.ts'
import type { Database } from '../../platform/postgres/database.ts'
import { Batcher, onceEach } from '../../platform/batcher.ts'
import { isId } from '../../platform/ids.ts'
import { projectNumber, requireProject } from '../projects/projects.queries.ts'
import { isFirstPage, listAgents, type AgentFilter, type AgentPage } from './agent-list.queries.ts'
import { findAgentsWithStats, type AgentPath, type AgentWithStats } from './agents.queries.ts'

const groupMax = 100
const concurrency = 2
/** Maximum number of concurrent lists, because each may be a separate statement on its own connection. */
const listsMax = 16

/** Reads the agent of a path with its task statistics. Throws 404 if the project or the agent does not exist. */
export type ReadAgent = (
  path: { project_id: string; agent_id: string },
  principal: Pick<Principal, 'org_id'>,
) => Promise<AgentWithStats>

/** Concurrent reads share one statement, which reads each agent once. */
export function makeReadAgent({ sql, indexed, settings }: Pick<Database, 'sql' | 'indexed' | 'settings'>): ReadAgent {
  const reads = new Batcher<AgentPath, AgentWithStats | undefined>(
    (paths) => onceEach(paths, nameOf, (some) => findAgentsWithStats(indexed, some)),
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

/** A page of agents: see `listAgents`. */
export type ListAgents = (filter: AgentFilter) => Promise<AgentPage | undefined>

/** Concurrent requests for equal first pages share one statement. */
export function makeListAgents({ sql, indexed, settings }: Pick<Database, 'sql' | 'indexed' | 'settings'>): ListAgents {
  const lists = new Batcher<AgentFilter, AgentPage | undefined>(
    (filters) =>
      onceEach(filters, JSON.stringify, (some) =>
        Promise.all(some.map((filter) => listAgents(indexed, filter).catch((error: Error) => error))),
      ),
    { concurrency, groupMax: listsMax, waitMax_ms: settings.connectionTimeoutMillis! },
  )
  return (filter) => (isFirstPage(filter) ? lists.submit(filter) : listAgents(sql, filter))
}

function nameOf({ id, project_id, org_id }: AgentPath): string {
  return `${id} ${project_id} ${org_id}`
}
