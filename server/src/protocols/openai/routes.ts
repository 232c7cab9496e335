import type { FastifyInstance } from 'fastify'
import type { Context } from '../../context.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { chatRoutes } from './chat.ts'
import { conversationRoutes } from './conversations.ts'
import { modelRoutes } from './models.ts'
import { responseRoutes } from './responses.ts'

/** The OpenAI protocol at `/v1`, in front of the same tasks. */
export function openaiRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  modelRoutes(app, http, context)
  chatRoutes(app, http, context)
  responseRoutes(app, http, context)
  conversationRoutes(app, http, context)
}
