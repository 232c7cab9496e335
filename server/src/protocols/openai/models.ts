import type { FastifyInstance } from 'fastify'
import { getModel, openaiBounds, listModels as listModelsOperation } from '#contract/doors/openai.ts'
import { projectId } from '#contract/core/project-id.ts'
import type { Context } from '../../context.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { modelNotFound } from './problems.ts'
import { findModel, listModels } from './models.queries.ts'

/** Routes of models: each agent is a model. */
export function modelRoutes(app: FastifyInstance, http: HttpContext, { config }: Context): void {
  handle(app, http, listModelsOperation, {
    run: async ({ sql, principal }) => {
      const data = (await listModels(sql, principal)).flatMap(({ ids, names, created, project_id, project }) =>
        names.map((name, at) => ({
          id: config.openai_model_ids === 'id' ? ids[at] : `${project}/${name}`,
          ...modelOf(project_id, name, created[at]!),
        })),
      )
      // Codex requires the member `models`.
      return { object: 'list', data: data.slice(0, openaiBounds.models), models: [] }
    },
  })
  handle(app, http, getModel, {
    run: async ({ sql, principal, request, params }) => {
      const name = params['*'] ?? ''
      // No name contains NUL, and PostgreSQL refuses it in texts.
      const found = name.includes('\0') ? undefined : await findModel(sql, principal, name, projectOf({ request }))
      if (!found) throw modelNotFound(name)
      const created = Math.floor(Date.parse(found.created_at) / 1000)
      return { id: name, ...modelOf(found.project_id, found.name, created) }
    },
  })
}

function modelOf(project_id: number, name: string, created: number) {
  return { object: 'model', created, owned_by: projectId(project_id), name }
}

/** The project in the header `OpenAI-Project` of the request. */
export function projectOf({ request }: Pick<Loading, 'request'>): string | undefined {
  const header = request.headers['openai-project']
  return typeof header === 'string' && header !== '' ? header : undefined
}
