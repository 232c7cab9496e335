import type { FastifyInstance } from 'fastify'
import { getModel, listModels as listModelsOperation } from '#contract/doors/openai.ts'
import { projectId } from '#contract/core/project-id.ts'
import type { Context } from '../../context.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { modelNotFound } from './problems.ts'
import { findModel, listModels, type ModelRow } from './models.queries.ts'

/** Agents as models of the OpenAI protocol. */
export function modelRoutes(app: FastifyInstance, http: HttpContext, { config }: Context): void {
  const view = (row: ModelRow) => ({
    id: config.openai_model_ids === 'id' ? row.id : `${row.project}/${row.name}`,
    object: 'model',
    created: Math.floor(Date.parse(row.created_at) / 1000),
    owned_by: projectId(row.project_id),
    name: row.name,
  })
  handle(app, http, listModelsOperation, {
    // Codex reads `models`, and fails without it.
    run: async ({ sql, principal }) => ({
      object: 'list',
      data: (await listModels(sql, principal)).map(view),
      models: [],
    }),
  })
  handle(app, http, getModel, {
    run: async ({ sql, principal, request, params }) => {
      const name = params['*'] ?? ''
      const found = await findModel(sql, principal, name, projectOf({ request }))
      if (!found) throw modelNotFound(name)
      return { ...view(found), id: name }
    },
  })
}

/** The project that a request is about, by the header of the OpenAI clients. */
export function projectOf({ request }: Pick<Loading, 'request'>): string | undefined {
  const header = request.headers['openai-project']
  return typeof header === 'string' && header !== '' ? header : undefined
}
