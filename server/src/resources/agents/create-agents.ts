import type { Doer } from '#contract/audit.ts'
import { Problem } from '#contract/problems.ts'
import type { Context } from '../../context.ts'
import { isPassing } from '../../engine/journal.ts'
import { writeAgentLog } from '../../events/agent-log.ts'
import { recordAudits } from '../../events/audit.ts'
import type { Sql } from '../../platform/database.ts'
import { Groups } from '../../platform/groups.ts'
import { auditedAgent } from './agent-content.ts'
import { moveEntry, type Actor } from './agent-transitions.ts'
import { insertAgents, type AgentRow, type NewAgent } from './agents.queries.ts'
import type { Settler } from './settler.ts'

const groupMax = 64
const lanes = 2
/** An agent with more to store than this, in characters, makes no other one wait. */
const groupedMax_chars = 16_384

/** An agent to be created, by whom, and how the audit log tells it. */
export interface Creation {
  agent: NewAgent
  actor: Actor
  doer: Doer
  audit: { action: 'agent.created' | 'agent.launched'; detail?: Record<string, unknown> }
}

/**
 * Creates an agent with its first version, its log and audit entries, and has it settled; throws `project_not_found` and
 * `agent_conflict`. In the caller's transaction where there is one, otherwise in one that it may share with agents that are
 * created at the same time.
 */
export type CreateAgent = (sql: Sql, creation: Creation) => Promise<AgentRow>

export function makeCreateAgent({ secrets, database }: Context, settler: Settler): CreateAgent {
  const createAll = async (tx: Sql, creations: readonly Creation[]): Promise<(AgentRow | Problem)[]> => {
    const results = await insertAgents(
      tx,
      creations.map(({ agent }) => agent),
    )
    const made = results.flatMap((row, i) => (row instanceof Problem ? [] : [{ row, ...creations[i]! }]))
    if (made.length === 0) return results
    await writeAgentLog(
      tx,
      made.map(({ row, actor, agent }) => moveEntry(row, null, actor, agent.launch_trigger)),
    )
    await recordAudits(
      tx,
      made.map(({ row, doer, audit }) => ({
        doer,
        entry: { ...audit, target: row.id, project_id: row.project_id, after: auditedAgent(secrets, row) },
      })),
    )
    tx.afterCommit(() => {
      for (const { row } of made) settler.settle(row)
    })
    return results
  }
  const together = (creations: readonly Creation[]) =>
    database.sql
      .begin((tx) => createAll(tx, creations), 'byKeys')
      .catch(async (error: unknown) => {
        // What of it was stored is not known where the connection was lost, so it is not for us to try again.
        if (creations.length === 1 || isPassing(error)) throw error
        return eachAlone(creations)
      })
  // One that cannot be stored must not take the others of its group with it.
  const eachAlone = async (creations: readonly Creation[]): Promise<(AgentRow | Error)[]> => {
    const results: (AgentRow | Error)[] = []
    for (const creation of creations) results.push(...(await together([creation]).catch((error: Error) => [error])))
    return results
  }
  const groups = new Groups<Creation, AgentRow>(together, {
    lanes,
    groupMax,
    waitMax_ms: database.settings.connectionTimeoutMillis!,
  })

  return async (sql, creation) => {
    if (!sql.isTransaction && isSmall(creation)) return groups.submit(creation)
    const [row] = await sql.begin((tx) => createAll(tx, [creation]))
    if (row instanceof Problem) throw row
    return row!
  }
}

function isSmall({ agent: { content } }: Creation): boolean {
  const { config, metadata, environment } = content
  return JSON.stringify([config, metadata]).length + (environment?.length ?? 0) <= groupedMax_chars
}
