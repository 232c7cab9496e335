import type { FastifyInstance } from 'fastify'
import type { Actor } from '#contract/accounts/audit.ts'
import { bounds } from '#contract/core/limits.ts'
import { notFound, Problem } from '#contract/core/problems.ts'
import { listToolStatistics as listStatistics } from '#contract/tools/tool-statistics.ts'
import * as operations from '#contract/tools/tools.ts'
import type { Context } from '../../context.ts'
import { definitionsFingerprint, driftOf } from '../../engine/tools/mcp/mcp-definitions.ts'
import { markDrifted } from '../../engine/tools/tool-rows.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { bindToHosts, requireAllowedHosts } from './credential-hosts.ts'
import { writeDefinitions } from './record-asked.ts'
import { toolTrialRoutes } from './tool-trials.routes.ts'
import { listToolStatistics } from './tool-statistics.queries.ts'
import { draftTool } from './tool-content.ts'
import {
  auditedTool,
  deleteTool,
  insertTool,
  listedTool,
  listTools,
  requireFreeName,
  requireTool,
  toolView,
  updateTool,
  type StoredTool,
  type ToolContent,
} from './tools.queries.ts'

/** Tools of a project. Servers are asked and documents are read before anything is written. */
export function toolRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const { egress } = context

  handle(app, http, operations.createTool, {
    load: loadProject,
    run: async ({ sql, loaded: { id: project_id }, body, principal, actor, waits }) => {
      const draft = draftTool(egress, body)
      await requireFreeName(sql, project_id, draft.name)
      waits()
      return writeDefinitions(context, actor, project_id, draft, async (pinned) => {
        await requireAllowedHosts(sql, project_id, draft, pinned)
        const content = { ...draft, pinned }
        return sql.begin(async (tx) => {
          const tool = { ...content, id: newId('tool'), project_id, created_by: principal.user_id }
          await bindToHosts(tx, actor, project_id, draft, pinned)
          const row = await insertTool(tx, tool, bounds.tools_per_project)
          await recordAudit(tx, actor, { action: 'tool.created', target: row.id, project_id, after: auditedTool(row) })
          return toolView(row)
        })
      })
    },
  })

  handle(app, http, operations.listTools, {
    load: loadProject,
    run: async ({ sql, loaded, query: { kind, status, limit, offset } }) => {
      const { tools, total } = await listTools(sql, { project_id: loaded.id, kind, status, limit, offset })
      return { tools: tools.map(listedTool), pagination: offsetPagination(total, limit, offset, tools.length) }
    },
  })

  handle(app, http, listStatistics, {
    load: loadProject,
    run: async ({ sql, loaded, query: { tool_ids } }) => ({
      statistics: await listToolStatistics(sql, loaded.id, tool_ids?.split(',')),
    }),
  })

  toolTrialRoutes(app, http, context)

  handle(app, http, operations.getTool, { load: loadTool, run: async ({ loaded }) => toolView(loaded) })

  handle(app, http, operations.updateTool, {
    load: loadTool,
    run: async ({ sql, loaded, body, actor, waits }) => {
      const draft = draftTool(egress, body, loaded)
      await requireFreeName(sql, loaded.project_id, draft.name, loaded.id)
      const pinsAnew = loaded.kind !== 'client' && body[loaded.kind] !== undefined
      if (pinsAnew) waits()
      // A change of safety does not approve drift: the pinned definitions stay.
      const kept = loaded.pinned?.map((tool) => ({ ...tool, safety: body.safety ?? tool.safety })) ?? null
      if (!pinsAnew) return change(sql, actor, 'tool.updated', loaded, { ...draft, pinned: kept }, false)
      return writeDefinitions(context, actor, loaded.project_id, draft, async (pinned) => {
        await requireAllowedHosts(sql, loaded.project_id, draft, pinned)
        return change(sql, actor, 'tool.updated', loaded, { ...draft, pinned }, true)
      })
    },
  })

  handle(app, http, operations.approveTool, {
    load: loadTool,
    run: ({ sql, loaded, body, actor, waits }) => {
      waits()
      return writeDefinitions(context, actor, loaded.project_id, loaded, async (pinned) => {
        if (pinned === null || loaded.pinned === null) return toolView(loaded)
        await requireAllowedHosts(sql, loaded.project_id, loaded, pinned)
        const { fingerprint } = body
        if (fingerprint === undefined || fingerprint === definitionsFingerprint(pinned))
          return change(sql, actor, 'tool.approved', loaded, { ...loaded, pinned }, true)
        const drift = driftOf(loaded.pinned, pinned)
        if (drift) await markDrifted(sql, loaded, { ...drift })
        throw new Problem(
          'resource_conflict',
          {
            resource_type: 'tool',
            resource_id: loaded.id,
            conflicting_field: 'fingerprint',
            conflicting_value: fingerprint,
          },
          { message: 'The definitions have changed since they were read. Read the tool again.' },
        )
      })
    },
  })

  handle(app, http, operations.deleteTool, {
    load: loadTool,
    run: ({ sql, loaded, actor }) =>
      sql.begin(async (tx) => {
        if (!(await deleteTool(tx, loaded))) throw notFound('tool_not_found', 'tool', loaded.id)
        const { id: target, project_id } = loaded
        await recordAudit(tx, actor, { action: 'tool.deleted', target, project_id, before: auditedTool(loaded) })
        return { message: 'Tool deleted', tool_id: loaded.id }
      }),
  })
}

/** Optimistic lock: a tool that changed after it was read is not updated. */
function change(
  sql: Sql,
  actor: Actor,
  action: 'tool.updated' | 'tool.approved',
  before: StoredTool,
  content: ToolContent,
  pinsAnew: boolean,
) {
  return sql.begin(async (tx) => {
    if (pinsAnew) await bindToHosts(tx, actor, before.project_id, content, content.pinned)
    const row = await updateTool(tx, before, content, pinsAnew)
    const { id: target, project_id } = row
    const changed = { before: auditedTool(before), after: auditedTool(row) }
    await recordAudit(tx, actor, { action, target, project_id, ...changed })
    return toolView(row)
  })
}

function loadProject({ sql, params, principal }: Loading) {
  return requireProject(sql, params.project_id!, principal)
}

async function loadTool(loading: Loading) {
  const { id: project_id } = await loadProject(loading)
  return requireTool(loading.sql, { id: loading.params.tool_id!, project_id })
}
