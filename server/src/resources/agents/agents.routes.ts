import type { FastifyInstance } from 'fastify'
import * as operations from '#contract/resources/agents.ts'
import { agentActions, settlesTo, type AgentAction, type AgentState } from '#contract/resources/agent-lifecycle.ts'
import type { AuditAction, Actor } from '#contract/accounts/audit.ts'
import { eventAgent } from '#contract/events/events.ts'
import { invalid, notFound, Problem } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { writeAgentLog } from '../../events/agent-log.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { emit } from '../../events/outbox.ts'
import { etag, requireMatch } from '../../http/etag.ts'
import { Answer, handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import { requireTokens } from '../../http/access/token-limit.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { projectNotFound, projectNumber, requireProject } from '../projects/projects.queries.ts'
import {
  agentView,
  applyBody,
  auditedAgent,
  emptyContent,
  newOpenMembers,
  openMembersEntry,
  readableEnvironment,
  type AgentBody,
} from './agent-content.ts'
import { logMove, scope, transition, type Requester } from './agent-transitions.ts'
import { makeCreateAgents, mayShare, type Creation } from './create-agents.ts'
import {
  deleteAgent,
  lockAgent,
  lockAgentByName,
  newAgentId,
  requireAgent,
  updateAgent,
  type AgentKey,
  type AgentRow,
} from './agents.queries.ts'
import { requireDelegates } from './delegates.ts'
import { makeListAgents, makeReadAgent } from './read-agents.ts'
import type { AgentProvisioner } from './agent-provisioner.ts'

/** Routes of agents (spec 4.4 and 3, decisions D33–D47). */
export function agentRoutes(
  app: FastifyInstance,
  http: HttpContext,
  context: Context,
  agentProvisioner: AgentProvisioner,
): void {
  const { secrets, config } = context
  const readAgent = makeReadAgent(context.database)
  const listAgents = makeListAgents(context.database)
  const { create: createAgent, createAll } = makeCreateAgents(context)
  const detailed = (row: AgentRow) => agentView(row, readableEnvironment(secrets, row) ?? {})
  const audited = (row: AgentRow) => auditedAgent(secrets, row)

  handle(app, http, operations.listAgents, {
    loadIfRefused: loadProject,
    run: async ({ params, principal, query }) => {
      const { limit, offset, sort, ...filter } = query
      const project_id = projectNumber(params.project_id!)
      const { org_id } = principal
      const found =
        project_id === undefined ? undefined : await listAgents({ ...filter, org_id, project_id, sort, limit, offset })
      if (!found) throw projectNotFound(params.project_id!)
      const { agents, total } = found
      return {
        agents: agents.map((row) => agentView(row)),
        pagination: offsetPagination(total, limit, offset, agents.length),
      }
    },
  })

  handle(app, http, operations.createAgent, {
    loadIfRefused: loadProject,
    run: async (handling) => {
      const creation = createdBy(handling)
      await requireDelegates(handling.sql, creation.agent)
      return answered(handling, await createAgent(handling.sql, creation))
    },
    shared: {
      prepare: async (handling): Promise<CreationItem | undefined> => {
        const creation = createdBy(handling)
        await requireDelegates(handling.sql, creation.agent)
        return mayShare(creation) ? { handling, creation } : undefined
      },
      work: async (tx, items: readonly CreationItem[]) => {
        const rows = await createAll(
          tx,
          items.map(({ creation }) => creation),
        )
        return rows.map((row, i) => (row instanceof Problem ? row : answered(items[i]!.handling, row)))
      },
    },
  })

  handle(app, http, operations.getAgent, {
    loadsEarly: true,
    load: ({ params, principal }) =>
      readAgent({ project_id: params.project_id!, agent_id: params.agent_id! }, principal),
    run: async ({ loaded, header }) => {
      header('etag', etag(loaded.revision))
      return { ...detailed(loaded), stats: loaded.stats }
    },
  })

  handle(app, http, operations.updateAgent, {
    load: loadAgent,
    run: async (handling) => {
      const { sql, loaded, body, principal, request, actor } = handling
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
        if (body.config) await requireDelegates(tx, { project_id: before.project_id, content })
        const updated = await updateAgent(
          tx,
          before,
          content,
          settlesTo(before.status) ?? before.settles_to,
          principal.user_id,
        )
        await logMove(tx, updated, before.status, requesterOf(handling), 'update')
        const open = newOpenMembers(body, before.config)
        if (open.length > 0) await writeAgentLog(tx, [openMembersEntry(updated.id, open)])
        const changed = { before: audited(before), after: audited(updated) }
        await recordAudit(tx, actor, { action: 'agent.updated', ...auditKey(updated), ...changed })
        tx.afterCommit(() => agentProvisioner.settle(updated))
        return updated
      })
      handling.header('etag', etag(row.revision))
      return detailed(row)
    },
  })

  handle(app, http, operations.deleteAgent, {
    load: loadAgent,
    run: async (handling) => {
      const { sql, loaded, principal, request, actor } = handling
      await sql.begin(async (tx) => {
        const row = await lockAgent(tx, loaded)
        requireMatch(request.headers['if-match'], row.revision)
        const state = row.settles_to ?? row.status
        // An agent without a launch event gets no stop event.
        if (row.launch_trigger === null && (state === 'running' || state === 'paused')) {
          await emit(tx, 'agent.stopped', scope(row, principal), {
            agent: eventAgent({ ...row, status: 'stopped' }),
            reason: 'deleted',
            user_id: principal.user_id,
          })
        }
        await context.engine.cancelTasks(tx, row.id)
        await deleteAgent(tx, row.id)
        await recordAudit(tx, actor, { action: 'agent.deleted', ...auditKey(row), before: audited(row) })
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
        const { sql, loaded, principal, request, actor } = handling
        if (action === 'start' || action === 'restart') await requireTokens(sql, http.authentication, principal)
        const row = await sql.begin(async (tx) => {
          const before = await lockAgent(tx, loaded)
          requireMatch(request.headers['if-match'], before.revision)
          const moved = await transition(context, tx, before, action, requesterOf(handling))
          await recordMove(tx, actor, actionDone[action], before, moved, action)
          return moved
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
      // Of two concurrent launches of a new name, the second finds the name taken and then launches the existing
      // agent.
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

  /** Launches the agent with this name (decision D47). Returns whether it was created. */
  async function launch(tx: Sql, handling: Loading, project_id: number, name: string): Promise<boolean> {
    const known = await lockAgentByName(tx, project_id, name)
    if (known) {
      const action = launchActions[known.status]
      if (action) {
        const moved = await transition(context, tx, known, action, requesterOf(handling), 'launch')
        await recordMove(tx, handling.actor, 'agent.launched', known, moved, action)
      }
      return false
    }
    const creation = creationOf(handling, { id: project_id, named: project_id }, { name }, 'launch')
    await createAgent(tx, { ...creation, audit: { action: 'agent.launched', detail: { trigger: 'create' } } })
    return true
  }

  function createdBy(handling: Loading & { body: AgentBody }): Creation {
    const { params, body } = handling
    const named = params.project_id!
    const id = projectNumber(named)
    if (id === undefined) throw projectNotFound(named)
    return { ...creationOf(handling, { id, named }, body, 'create'), audit: { action: 'agent.created' } }
  }

  function answered({ header }: Pick<Loading, 'header'>, row: AgentRow) {
    header('etag', etag(row.revision))
    return detailed(row)
  }

  /** The agent to create for a request. */
  function creationOf(
    handling: Loading,
    project: { id: number; named: string | number },
    body: AgentBody,
    launch_trigger: 'create' | 'launch',
  ) {
    const { principal, actor } = handling
    const id = newAgentId()
    const content = applyBody(body, emptyContent(id, config.default_model), config.default_model, secrets)
    const { org_id, user_id, subject } = principal
    const agent = {
      id,
      project_id: project.id,
      project_named: project.named,
      org_id,
      content,
      created_by: user_id,
      token_subject: subject,
    }
    return { agent, launch_trigger, open_members: newOpenMembers(body), requester: requesterOf(handling), actor }
  }
}

function loadProject({ sql, params, principal }: Loading) {
  return requireProject(sql, params.project_id!, principal)
}

/** The agent of a path; throws 404 if it does not exist. */
export async function loadAgent({ sql, params, principal }: Loading): Promise<AgentRow> {
  const project = await requireProject(sql, params.project_id!, principal)
  return requireAgent(sql, { id: params.agent_id!, project_id: project.id })
}

/** One agent of a batch. */
interface CreationItem {
  handling: Loading
  creation: Creation
}

/** The action that launches an existing agent, by state. In other states it is already running or starting. */
const launchActions: Partial<Record<AgentState, AgentAction>> = { paused: 'start', stopped: 'start', error: 'restart' }

const actionDone = {
  start: 'agent.started',
  pause: 'agent.paused',
  stop: 'agent.stopped',
  restart: 'agent.restarted',
} as const satisfies Record<AgentAction, AuditAction>

/** Records an action in the audit log if it changed the revision of the agent. */
async function recordMove(
  tx: Sql,
  actor: Actor,
  action: AuditAction,
  before: AgentRow,
  after: AgentRow,
  trigger: AgentAction,
): Promise<void> {
  if (after.revision === before.revision) return
  const states = { before: { status: before.status }, after: { status: after.status } }
  await recordAudit(tx, actor, { action, ...auditKey(after), ...states, detail: { trigger } })
}

function auditKey({ id, project_id }: AgentKey) {
  return { target: id, project_id }
}

/** The requester of a transition. */
export function requesterOf({ principal, request_id }: Loading): Requester {
  return { user_id: principal.user_id, org_id: principal.org_id, subject: principal.subject, request_id }
}
