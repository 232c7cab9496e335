import type { Actor } from '#contract/accounts/audit.ts'
import { Problem } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { writeAgentLog } from '../../events/agent-log.ts'
import { recordAudits } from '../../events/audit/audit.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { Batcher, batchOrEach } from '../../platform/batcher.ts'
import { auditedAgent, openMembersEntry } from './agent-content.ts'
import { moveEntry, type Requester } from './agent-transitions.ts'
import { insertAgents, type AgentRow, type NewAgent } from './agents.queries.ts'
import type { AgentProvisioner } from './agent-provisioner.ts'

const groupMax = 64
const concurrency = 2
/** Of what an agent has to store, in characters, where it shares a transaction. */
const groupedMax_chars = 16_384

/** An agent to be created, by whom, and how the audit log tells it. */
export interface Creation {
  agent: NewAgent
  requester: Requester
  actor: Actor
  /** Paths in its configuration that the service does not know. */
  open_members: readonly string[]
  audit: { action: 'agent.created' | 'agent.launched'; detail?: Record<string, unknown> }
}

/** Creates agents with their first version, their log and audit entries, and has them settled. */
export interface CreateAgents {
  /**
   * One; throws `project_not_found` and `agent_conflict`. In the caller's transaction where there is one, otherwise in one that it may
   * share with agents that are created at the same time.
   */
  create: (sql: Sql, creation: Creation) => Promise<AgentRow>
  /** Several in the caller's transaction: of each, in their order, its row or why there is none. */
  createAll: (tx: Sql, creations: readonly Creation[]) => Promise<(AgentRow | Problem)[]>
}

export function makeCreateAgents({ secrets, database }: Context, agentProvisioner: AgentProvisioner): CreateAgents {
  const createAll: CreateAgents['createAll'] = async (tx, creations) => {
    const results = await insertAgents(
      tx,
      creations.map(({ agent }) => agent),
    )
    const made = results.flatMap((row, i) => (row instanceof Problem ? [] : [{ row, ...creations[i]! }]))
    if (made.length === 0) return results
    await writeAgentLog(
      tx,
      made.flatMap(({ row, requester, agent, open_members }) => [
        moveEntry(row, null, requester, agent.launch_trigger),
        ...(open_members.length > 0 ? [openMembersEntry(row.id, open_members)] : []),
      ]),
    )
    await recordAudits(
      tx,
      made.map(({ row, actor, audit }) => ({
        actor,
        entry: { ...audit, target: row.id, project_id: row.project_id, after: auditedAgent(secrets, row) },
      })),
    )
    tx.afterCommit(() => {
      for (const { row } of made) agentProvisioner.settle(row)
    })
    return results
  }
  const groups = new Batcher<Creation, AgentRow>(
    (creations) => batchOrEach(creations, (some) => database.sql.begin((tx) => createAll(tx, some), 'indexed')),
    { concurrency, groupMax, waitMax_ms: database.settings.connectionTimeoutMillis! },
  )
  const create: CreateAgents['create'] = async (sql, creation) => {
    if (!sql.isTransaction && mayShare(creation)) return groups.submit(creation)
    const [row] = await sql.begin((tx) => createAll(tx, [creation]))
    if (row instanceof Problem) throw row
    return row!
  }
  return { create, createAll }
}

/** Whether an agent may share a transaction with others: one with much to store makes none of them wait. */
export function mayShare({ agent: { content } }: Creation): boolean {
  const { config, metadata, environment } = content
  return JSON.stringify([config, metadata]).length + (environment?.length ?? 0) <= groupedMax_chars
}
