import type { FastifyInstance } from 'fastify'
import type { BodyOf } from '#contract/core/operation.ts'
import { invalid } from '#contract/core/problems.ts'
import { previewTool, tryTool as tryOperation, unnamedTool } from '#contract/tools/tool-trials.ts'
import type { ToolDefinition } from '#contract/tools/tools.ts'
import type { Context } from '../../context.ts'
import { previewOpenapi } from '../../engine/tools/openapi/openapi.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { findDefinitions, lookUp } from './find-definitions.ts'
import { recordAsked } from './record-asked.ts'
import { draftTool, type ToolDraft } from './tool-content.ts'
import { tryTool } from './try-tool.ts'

/**
 * Reads a definition and makes trial calls before an agent uses the tool. Both send secrets to the address in the
 * request, so both are audited.
 */
export function toolTrialRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const { egress } = context

  handle(app, http, previewTool, {
    load: loadProject,
    run: async ({ sql, loaded: { id }, body, actor, waits }) => {
      const draft = draftOf(egress, body)
      if (draft.kind !== 'openapi' && draft.kind !== 'mcp')
        throw invalid({ field: 'kind', message: 'must be openapi or mcp', code: 'invalid_choice' })
      await recordAsked(sql, actor, 'project.tool_previewed', id, draft)
      waits()
      return { tools: draft.kind === 'mcp' ? await mcpTools(context, id, draft) : await operations(context, id, draft) }
    },
  })

  handle(app, http, tryOperation, {
    load: loadProject,
    run: async ({ sql, loaded: { id }, body, principal: { org_id }, actor, waits }) => {
      const draft = draftOf(egress, body)
      if (draft.kind === 'client')
        throw invalid({
          field: 'kind',
          message: 'must not be client: your own processes run client tools',
          code: 'invalid_choice',
        })
      await recordAsked(sql, actor, 'project.tool_tried', id, draft)
      waits()
      const pinned = await findDefinitions(context, id, draft)
      const { tool, arguments: args = {}, environment_variables: environment } = body
      return tryTool(context, { org_id, project_id: id }, { draft, pinned, tool, args, environment })
    },
  })
}

function draftOf(egress: Context['egress'], body: BodyOf<typeof previewTool> | BodyOf<typeof tryOperation>): ToolDraft {
  const draft = draftTool(egress, body)
  return { ...draft, name: draft.name || unnamedTool }
}

async function mcpTools(context: Context, project_id: number, draft: ToolDraft) {
  const found = (await findDefinitions(context, project_id, draft)) ?? []
  return found.map(({ name, description, safety, parameters }) => ({
    ...{ name, description, safety, parameters },
    operation: null,
    problem: null,
  }))
}

async function operations(context: Context, project_id: number, draft: ToolDraft) {
  const definition = draft.definition as ToolDefinition<'openapi'>
  const found = await lookUp(context, project_id, draft, (pinning) => previewOpenapi(definition, draft, pinning))
  return found.map(({ operation: { id, method, path, operation }, tool }) => ({
    ...(typeof tool === 'string'
      ? {
          name: id,
          description: typeof operation.summary === 'string' ? operation.summary : '',
          safety: 'unsafe' as const,
          parameters: {},
        }
      : { name: tool.name, description: tool.description, safety: tool.safety, parameters: tool.parameters }),
    operation: { id, method, path },
    problem: typeof tool === 'string' ? tool : null,
  }))
}

function loadProject({ sql, params, principal }: Loading) {
  return requireProject(sql, params.project_id!, principal)
}
