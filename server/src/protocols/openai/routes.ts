import type { FastifyInstance } from 'fastify'
import type { Context } from '../../context.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { chatRoutes } from './chat.ts'
import { conversationRoutes } from './conversations.ts'
import { modelRoutes } from './models.ts'
import { makeOpenAiDoor } from './open.ts'
import { responseRoutes } from './responses.ts'

/** Serves the OpenAI protocol at `/v1`: agents are models, and requests are tasks. */
export function openaiRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const door = makeOpenAiDoor(context)
  app.addHook('onClose', () => door.ends.flush())
  modelRoutes(app, http, context)
  chatRoutes(app, http, door)
  responseRoutes(app, http, door)
  conversationRoutes(app, http, context)
}
