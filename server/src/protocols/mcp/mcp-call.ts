import type { FastifyReply } from 'fastify'
import type { Context } from '../../context.ts'
import type { Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import type { makeLoadAsked } from '../../resources/tasks/asked-agents.ts'
import type { AskedUser } from './asked-user.ts'
import type { PublishedAgent } from './published.queries.ts'

/** A request of the MCP door: who sends it, where it is answered, and which agent it is about where it is about one. */
export interface McpCall extends Loading {
  context: Context
  http: HttpContext
  reply: FastifyReply
  /** The agent of `/mcp/agents/{agent_id}`; undefined at `/mcp`. */
  only: PublishedAgent | undefined
  /** Puts what a task asks to the client's user, in the revision 2025-11-25. */
  asked: AskedUser
  /** Sends a message of ours on the stream of this call; where its answer is no stream, the message is lost. */
  push(message: object): void
  loadAsked: ReturnType<typeof makeLoadAsked>
}
