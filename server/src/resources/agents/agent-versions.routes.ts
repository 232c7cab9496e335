import type { FastifyInstance } from 'fastify'
import { settlesTo } from '#contract/resources/agent-lifecycle.ts'
import * as operations from '#contract/resources/agent-versions.ts'
import { Problem } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { etag, requireMatch } from '../../http/etag.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { agentView, auditedAgent, readableEnvironment, withEnvironment } from './agent-content.ts'
import { logMove } from './agent-transitions.ts'
import { listVersions, requireVersion, type AgentVersionRow } from './agent-versions.queries.ts'
import { lockAgent, updateAgent, type AgentContent, type AgentRow } from './agents.queries.ts'
import { requesterOf, loadAgent } from './agents.routes.ts'
import type { AgentProvisioner } from './agent-provisioner.ts'

/** Routes of versions of agents, and of the rollback. */
export function agentVersionRoutes(
  app: FastifyInstance,
  http: HttpContext,
  context: Context,
  agentProvisioner: AgentProvisioner,
): void {
  const { secrets } = context

  handle(app, http, operations.listAgentVersions, {
    load: loadAgent,
    run: async ({ sql, loaded, query: { limit, offset } }) => {
      const { versions, total } = await listVersions(sql, loaded.id, { limit, offset })
      return {
        versions: versions.map(versionView),
        pagination: offsetPagination(total, limit, offset, versions.length),
      }
    },
  })

  handle(app, http, operations.getAgentVersion, {
    load: async (loading) => {
      const agent = await loadAgent(loading)
      return { agent, row: await requireVersion(loading.sql, agent.id, loading.params.version!) }
    },
    run: async ({ loaded: { agent, row } }) => {
      const environment = readableEnvironment(secrets, { id: agent.id, environment: row.environment })
      return versionView({ ...row, config: withEnvironment(row.config, environment ?? {}) })
    },
  })

  handle(app, http, operations.rollbackAgent, {
    load: loadAgent,
    run: async (handling) => {
      const { sql, loaded, body, principal, request, actor } = handling
      const row = await sql.begin(async (tx) => {
        const before = await lockAgent(tx, loaded)
        requireMatch(request.headers['if-match'], before.revision)
        const content = await requireVersion(tx, before.id, body.version)
        const updated = await restore(tx, before, { ...content, metadata: before.metadata }, principal.user_id)
        await logMove(tx, updated, before.status, requesterOf(handling), 'rollback')
        await recordAudit(tx, actor, {
          action: 'agent.rolled_back',
          target: updated.id,
          project_id: updated.project_id,
          before: auditedAgent(secrets, before),
          after: auditedAgent(secrets, updated),
          detail: { version: body.version },
        })
        tx.afterCommit(() => agentProvisioner.settle(updated))
        return updated
      })
      handling.header('etag', etag(row.revision))
      return agentView(row, readableEnvironment(secrets, row) ?? {})
    },
  })
}

/** Creates the next version of a locked agent. It keeps its current name if another agent has the old one now. */
async function restore(tx: Sql, before: AgentRow, content: AgentContent, user_id: string): Promise<AgentRow> {
  const settles_to = settlesTo(before.status) ?? before.settles_to
  try {
    return await tx.begin((inner) => updateAgent(inner, before, content, settles_to, user_id))
  } catch (error) {
    if (!(error instanceof Problem) || error.kind !== 'agent_conflict') throw error
    return updateAgent(tx, before, { ...content, name: before.name }, settles_to, user_id)
  }
}

function versionView(row: AgentVersionRow) {
  const { agent_id, version, current, name, description, config, created_by, created_at } = row
  return { agent_id, version, current, name, description, config, created_by, created_at }
}
