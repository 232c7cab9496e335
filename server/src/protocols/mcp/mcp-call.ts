import type { FastifyReply } from 'fastify'
import type { Context } from '../../context.ts'
import type { Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import type { makeLoadAsked } from '../../resources/tasks/asked-agents.ts'
import type { PublishedAgent } from './published.queries.ts'

/** A request of the MCP door: who sends it, where it is answered, and which agent it is about where it is about one. */
export interface McpCall extends Loading {
  context: Context
  http: HttpContext
  reply: FastifyReply
  /** The agent of `/mcp/agents/{agent_id}`; undefined at `/mcp`. */
  only: PublishedAgent | undefined
  loadAsked: ReturnType<typeof makeLoadAsked>
}
