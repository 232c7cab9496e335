import type { FastifyInstance } from 'fastify'
import { streamProjectEvents } from '#contract/events/project-events.ts'
import type { Context } from '../../context.ts'
import { streamProject } from '../../events/streams/project-stream.ts'
import { handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { requireProject } from '../projects/projects.queries.ts'

/** Route of a project's stream. */
export function projectStreamRoutes(app: FastifyInstance, http: HttpContext, { engine }: Context): void {
  handle(app, http, streamProjectEvents, {
    load: ({ sql, params, principal }) => requireProject(sql, params.project_id!, principal),
    run: ({ occupy }) => occupy(),
    finish: async ({ loaded: project, request }, _answer, reply) => {
      const last_event_id = request.headers['last-event-id']
      const headers = reply.getHeaders() as Record<string, string>
      reply.hijack()
      await streamProject(reply.raw, {
        feed: engine.projects,
        project_id: project.id,
        last_event_id: typeof last_event_id === 'string' ? last_event_id : undefined,
        headers,
      })
      return undefined
    },
  })
}
