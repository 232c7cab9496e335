import type { FastifyInstance } from 'fastify'
import * as operations from '#contract/agents.ts'
import { agentActions, settlesTo, type AgentAction } from '#contract/agent-lifecycle.ts'
import { eventAgent } from '#contract/events.ts'
import { invalid, notFound, Problem } from '#contract/problems.ts'
import type { Context } from '../../context.ts'
import { emit } from '../../events/outbox.ts'
import { etag, requireMatch } from '../../http/etag.ts'
import { Answer, handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/pagination.ts'
import { requireTokens } from '../../http/token-limit.ts'
import type { Sql } from '../../platform/database.ts'
import { findAgentStats } from '../tasks/stats.queries.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { agentView, applyBody, emptyContent, readableEnvironment } from './agent-content.ts'
import { logMove, scope, transition, type Actor } from './agent-transitions.ts'
import {
  deleteAgent,
  insertAgent,
  listAgents,
  lockAgent,
  lockAgentByName,
  newAgentId,
  requireAgent,
  updateAgent,
  type AgentRow,
} from './agents.queries.ts'
import type { Settler } from './settler.ts'

/** Agents (spec 4.4 and 3, decisions D33–D47). */
export function agentRoutes(app: FastifyInstance, http: HttpContext, context: Context, settler: Settler): void {
  const { secrets, config } = context
  const detailed = (row: AgentRow) => agentView(row, readableEnvironment(secrets, row) ?? {})

  handle(app, http, operations.listAgents, {
    load: loadProject,
    run: async ({ sql, loaded, query }) => {
      const { limit = 20, offset = 0, sort = '-created_at', status } = query
      const { agents, total } = await listAgents(sql, { project_id: loaded.id, status, sort, limit, offset })
      return {
        agents: agents.map((row) => agentView(row)),
        pagination: offsetPagination(total, limit, offset, agents.length),
      }
    },
  })

  handle(app, http, operations.createAgent, {
    load: loadProject,
    run: async (handling) => {
      const { sql, loaded, body, principal } = handling
      const id = newAgentId()
      const content = applyBody(body, emptyContent(id, config.default_model), config.default_model, secrets)
      const row = await sql.begin(async (tx) => {
        const created = await insertAgent(tx, id, loaded.id, content, principal, 'create')
        await logMove(tx, created, null, actorOf(handling), 'create')
        tx.afterCommit(() => settler.settle(created))
        return created
      })
      handling.header('etag', etag(row.revision))
      return detailed(row)
    },
  })

  handle(app, http, operations.getAgent, {
    load: loadAgent,
    run: async ({ sql, loaded, header }) => {
      header('etag', etag(loaded.revision))
      return { ...detailed(loaded), stats: await findAgentStats(sql, loaded.id) }
    },
  })

  handle(app, http, operations.updateAgent, {
    load: loadAgent,
    run: async (handling) => {
      const { sql, loaded, body, principal, request } = handling
      if (
        body.name === undefined &&
        body.description === undefined &&
        body.config === undefined &&
        body.metadata === undefined
      ) {
        throw invalid({ field: 'body', message: 'name, description, config or metadata is required', code: 'required' })
      }
      const row = await sql.begin(async (tx) => {
        const before = await lockAgent(tx, loaded)
        requireMatch(request.headers['if-match'], before.revision)
        const content = applyBody(body, before, config.default_model, secrets)
        const updated = await updateAgent(
          tx,
          before,
          content,
          settlesTo(before.status) ?? before.settles_to,
          principal.user_id,
        )
        await logMove(tx, updated, before.status, actorOf(handling), 'update')
        tx.afterCommit(() => settler.settle(updated))
        return updated
      })
      handling.header('etag', etag(row.revision))
      return detailed(row)
    },
  })

  handle(app, http, operations.deleteAgent, {
    load: loadAgent,
    run: async (handling) => {
      const { sql, loaded, principal, request } = handling
      await sql.begin(async (tx) => {
        const row = await lockAgent(tx, loaded)
        requireMatch(request.headers['if-match'], row.revision)
        const state = row.settles_to ?? row.status
        if (state === 'running' || state === 'paused') {
          await emit(tx, 'agent.stopped', scope(row, principal), {
            agent: eventAgent({ ...row, status: 'stopped' }),
            reason: 'deleted',
            user_id: principal.user_id,
          })
        }
        await context.engine.cancelTasks(tx, row.id)
        await deleteAgent(tx, row.id)
      })
      return { message: 'Agent deleted', agent_id: loaded.id }
    },
  })

  const actions = {
    start: operations.startAgent,
    pause: operations.pauseAgent,
    stop: operations.stopAgent,
    restart: operations.restartAgent,
  }
  for (const action of Object.keys(actions) as AgentAction[]) {
    handle(app, http, actions[action], {
      load: loadAgent,
      run: async (handling) => {
        const { sql, loaded, principal, request } = handling
        if (action === 'start' || action === 'restart') await requireTokens(sql, http.authentication, principal)
        const row = await sql.begin(async (tx) => {
          const before = await lockAgent(tx, loaded)
          requireMatch(request.headers['if-match'], before.revision)
          return transition(context, tx, before, action, actorOf(handling))
        })
        handling.header('etag', etag(row.revision))
        return { message: agentActions[action].done, agent_id: row.id, status: row.status }
      },
    })
  }

  handle(app, http, operations.launchAgent, {
    run: async (handling) => {
      const { sql, body, principal } = handling
      const name = body.name.normalize('NFC')
      const project = await requireProject(sql, String(body.project_id), principal).catch((error: unknown) => {
        if (!(error instanceof Problem)) throw error
        throw notFound('project_not_found', 'project', body.project_id)
      })
      await requireTokens(sql, http.authentication, principal)
      // Of two that launch a new name at once the second finds it taken, and then confirms what the first made.
      const created = await sql
        .begin((tx) => launch(tx, handling, project.id, name))
        .catch((error: unknown) => {
          if (error instanceof Problem && error.kind === 'agent_conflict')
            return sql.begin((tx) => launch(tx, handling, project.id, name))
          throw error
        })
      return new Answer(created ? 201 : 200, { message: `Agent '${name}' launched in project ${project.id}` })
    },
  })

  /** Makes the agent of this name run (decision D47); gives whether it had to be created. */
  async function launch(tx: Sql, handling: Loading, project_id: number, name: string): Promise<boolean> {
    const known = await lockAgentByName(tx, project_id, name)
    if (known) {
      if (known.status === 'paused' || known.status === 'stopped')
        await transition(context, tx, known, 'start', actorOf(handling), 'launch')
      if (known.status === 'error') await transition(context, tx, known, 'restart', actorOf(handling), 'launch')
      return false
    }
    const id = newAgentId()
    const content = applyBody({ name }, emptyContent(id, config.default_model), config.default_model, secrets)
    const row = await insertAgent(tx, id, project_id, content, handling.principal, 'launch')
    await logMove(tx, row, null, actorOf(handling), 'launch')
    tx.afterCommit(() => settler.settle(row))
    return true
  }
}

function loadProject({ sql, params, principal }: Loading) {
  return requireProject(sql, params.project_id!, principal)
}

/** The agent that the path names, in the project that the path names. */
export async function loadAgent({ sql, params, principal }: Loading): Promise<AgentRow> {
  const project = await requireProject(sql, params.project_id!, principal)
  return requireAgent(sql, { id: params.agent_id!, project_id: project.id })
}

/** Who asks, for what a transition leaves behind. */
export function actorOf({ principal, request_id }: Loading): Actor {
  return { user_id: principal.user_id, org_id: principal.org_id, subject: principal.subject, request_id }
}
