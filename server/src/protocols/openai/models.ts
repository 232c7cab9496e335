import type { FastifyInstance } from 'fastify'
import { getModel, openaiBounds, listModels as listModelsOperation } from '#contract/doors/openai.ts'
import { projectId } from '#contract/core/project-id.ts'
import type { Context } from '../../context.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { modelNotFound } from './problems.ts'
import { findModel, listModels } from './models.queries.ts'

/** Agents as models of the OpenAI protocol. */
export function modelRoutes(app: FastifyInstance, http: HttpContext, { config }: Context): void {
  handle(app, http, listModelsOperation, {
    run: async ({ sql, principal }) => {
      const data = (await listModels(sql, principal)).flatMap(({ ids, names, created, project_id, project }) =>
        names.map((name, at) => ({
          id: config.openai_model_ids === 'id' ? ids[at] : `${project}/${name}`,
          ...modelOf(project_id, name, created[at]!),
        })),
      )
      // Codex reads `models`, and fails without it.
      return { object: 'list', data: data.slice(0, openaiBounds.models), models: [] }
    },
  })
  handle(app, http, getModel, {
    run: async ({ sql, principal, request, params }) => {
      const name = params['*'] ?? ''
      // No agent has such a name, and PostgreSQL takes no text with one.
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

/** The project that a request is about, by the header of the OpenAI clients. */
export function projectOf({ request }: Pick<Loading, 'request'>): string | undefined {
  const header = request.headers['openai-project']
  return typeof header === 'string' && header !== '' ? header : undefined
}
