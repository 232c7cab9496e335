import type { Actor } from '#contract/accounts/audit.ts'
import { Problem } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { agentLogRows, type AgentLogEntry } from '../../events/agent-log.ts'
import { auditRow, type AuditRow } from '../../events/audit/audit.ts'
import type { Secrets } from '../../platform/crypto/secrets.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { Batcher, batchOrEach } from '../../platform/batcher.ts'
import { auditedAgent, openMembersEntry } from './agent-content.ts'
import { launchedEvent, moveEntry, type Requester } from './agent-transitions.ts'
import { insertAgents, type AgentRow, type NewAgent } from './agents.queries.ts'

const groupMax = 64
const concurrency = 2
/** After so long, a second batch may run beside the first. Before that, one larger batch is cheaper. */
const apart_ms = 50
/** Maximum size of an agent's content that shares a statement, in characters. */
const groupedMax_chars = 16_384

/** An agent to create, with its requester and its audit log entry. */
export interface Creation {
  agent: NewAgent
  launch_trigger: 'create' | 'launch'
  requester: Requester
  actor: Actor
  /** Paths of unknown members in its configuration. */
  open_members: readonly string[]
  audit: { action: 'agent.created' | 'agent.launched'; detail?: Record<string, unknown> }
}

/** Creates agents with their first version, their log and audit entries, and the event of their launch. */
export interface CreateAgents {
  /**
   * Creates one agent: in the caller's transaction if there is one, otherwise in a statement that it may share with
   * concurrent creations. Throws `project_not_found` and `agent_conflict`.
   */
  create: (sql: Sql, creation: Creation) => Promise<AgentRow>
  /** Creates several agents in the caller's transaction. Returns the row or the problem of each, in their order. */
  createAll: (tx: Sql, creations: readonly Creation[]) => Promise<(AgentRow | Problem)[]>
}

export function makeCreateAgents({ secrets, database, engine }: Context): CreateAgents {
  const createAll: CreateAgents['createAll'] = async (sql, creations) => {
    const results = await insertAgents(
      sql,
      creations.map(({ agent }) => agent),
      {
        logs: agentLogRows(creations.flatMap(entriesOf)),
        audits: creations.map((creation) => auditOf(secrets, creation)),
        events: creations.map(({ agent, launch_trigger }) =>
          launchedEvent(asMade(agent), agent.org_id, launch_trigger),
        ),
      },
    )
    engine.agentsMade(
      sql,
      results.flatMap((row) => (row instanceof Problem ? [] : [row.id])),
    )
    return results
  }
  const groups = new Batcher<Creation, AgentRow>(
    (creations) => batchOrEach(creations, (some) => createAll(database.indexed, some)),
    { concurrency, groupMax, apart_ms, waitMax_ms: database.settings.connectionTimeoutMillis! },
  )
  const create: CreateAgents['create'] = async (sql, creation) => {
    if (!sql.isTransaction && mayShare(creation)) return groups.submit(creation)
    const [row] = await createAll(sql, [creation])
    if (row instanceof Problem) throw row
    return row!
  }
  return { create, createAll }
}

/** The row of a new agent, without timestamps. */
function asMade({
  id,
  project_id,
  created_by,
  content: { name, description, config, environment, metadata },
}: NewAgent) {
  return {
    id,
    project_id,
    created_by,
    name,
    description,
    config,
    environment,
    metadata,
    status: 'running',
    version: 0,
  } as const
}

/** The log entries of a new agent. */
function entriesOf({ agent, launch_trigger, requester, open_members }: Creation): AgentLogEntry[] {
  const { id, created_by } = agent
  return [
    moveEntry({ id, status: 'creating' }, null, requester, launch_trigger),
    ...(open_members.length > 0 ? [openMembersEntry(id, open_members)] : []),
    moveEntry({ id, status: 'running' }, 'creating', { user_id: created_by }, 'create'),
  ]
}

/** The audit log entry of a new agent, without timestamps. */
function auditOf(secrets: Secrets, { agent, actor, audit }: Creation): AuditRow {
  const times = { created_at: '', updated_at: '', last_activity: null }
  const { created_at: _, updated_at: __, ...after } = auditedAgent(secrets, { ...asMade(agent), ...times })
  const { id, project_id, org_id } = agent
  return auditRow({ ...actor, org_id }, { ...audit, target: id, project_id, after })
}

/** Whether an agent may share a statement with others. A large one may not, so that others do not wait for it. */
export function mayShare({ agent: { content } }: Creation): boolean {
  const { config, metadata, environment } = content
  return JSON.stringify([config, metadata]).length + (environment?.length ?? 0) <= groupedMax_chars
}
