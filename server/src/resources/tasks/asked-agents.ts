import { bounds } from '#contract/core/limits.ts'
import { notFound } from '#contract/core/problems.ts'
import { findBudgets } from '../../engine/budgets/budget-rows.ts'
import type { Loading } from '../../http/handle.ts'
import type { Database, Sql } from '../../platform/postgres/database.ts'
import { Batcher, onceEach } from '../../platform/batcher.ts'
import { isId } from '../../platform/ids.ts'
import { findAgentsAndRoom, type AgentAndRoom, type AskedPath } from '../agents/agents.queries.ts'
import type { AskedRequest } from '../../engine/commands/repeated-requests.queries.ts'
import { projectNumber, requireProject } from '../projects/projects.queries.ts'
import type { AgentStanding } from '../../engine/commands/new-task.ts'
import type { AgentConfig, BudgetState } from '../../engine/task.ts'

const groupMax = 100
const concurrency = 2
/** After so long, a second batch may run beside the first. Before that, one larger batch is cheaper. */
const apart_ms = 50

/** An agent for a new task, with everything that decides whether it accepts the task. */
export interface AskedAgent extends AgentAndRoom {
  /** The budgets that apply to the task. */
  budgets: readonly BudgetState[]
  standing: AgentStanding
}

/**
 * Loads the agent of a request that creates a task; throws 404 if the project or the agent does not exist. Concurrent
 * requests share statements, unless a request has its own transaction.
 */
export function makeLoadAsked({
  indexed,
  settings,
}: Pick<Database, 'indexed' | 'settings'>): (loading: Loading, repeated?: AskedRequest) => Promise<AskedAgent> {
  const groups = new Batcher<AskedPath, AskedAgent | undefined>(
    (all) => onceEach(all, nameOf, (some) => findAsked(indexed, some)),
    { concurrency, groupMax, apart_ms, waitMax_ms: settings.connectionTimeoutMillis! },
  )
  return async ({ sql: here, params: { project_id, agent_id }, principal }, repeated) => {
    const number = projectNumber(project_id!)
    if (number !== undefined && isId('agent', agent_id!)) {
      const { org_id, credential_id } = principal
      const asked = { id: agent_id!, project_id: number, org_id, credential_id, repeated }
      const agent = here.isTransaction ? (await findAsked(here, [asked]))[0] : await groups.submit(asked)
      if (agent) return agent
    }
    await requireProject(here, project_id!, principal)
    throw notFound('agent_not_found', 'agent', agent_id!.slice(0, 100))
  }
}

async function findAsked(sql: Sql, all: readonly AskedPath[]): Promise<(AskedAgent | undefined)[]> {
  const agents = await findAgentsAndRoom(sql, all, bounds.queued_tasks)
  const spenders = all.map(({ id, ...asked }) => ({ ...asked, agent_id: id }))
  const limited = spenders.filter((_, i) => agents[i]?.has_budget)
  const budgets = limited.length > 0 ? await findBudgets(sql, limited) : undefined
  return agents.map(
    (agent, i) =>
      agent && {
        ...agent,
        budgets: budgets?.get(spenders[i]!) ?? [],
        standing: { ...agent, org_id: all[i]!.org_id, config: agent.config as unknown as AgentConfig },
      },
  )
}

function nameOf({ id, project_id, org_id, credential_id, repeated }: AskedPath): string {
  const equal = repeated ? ` ${repeated.hash.toString('base64')} ${repeated.again}` : ''
  return `${id} ${project_id} ${org_id} ${credential_id}${equal}`
}
