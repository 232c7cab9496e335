import type { FastifyReply } from 'fastify'
import type { Context } from '../../context.ts'
import type { TaskRow } from '../../engine/journal/stored-task.ts'
import type { Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import type { makeLoadAsked } from '../../resources/tasks/asked-agents.ts'
import type { TaskKey } from '../../resources/tasks/tasks.queries.ts'
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

/** Puts the questions of tasks to users, and takes their answers. */
export interface AskedUser {
  /**
   * Asks what a task asks this caller, and what it asks next, until it has ended, waits for others, or the time is over. Gives it as
   * it is then; undefined where it is gone. A user who declines ends the wait.
   */
  follow(call: McpCall, key: TaskKey, task: TaskRow, how: Following): Promise<TaskRow | undefined>
  /** Takes a message that answers one of our questions; false where it is none. Throws what answering the question throws. */
  take(call: McpCall, message: unknown, findTask: (task_id: string) => Promise<TaskKey>): Promise<boolean>
}

/** Tells how far a task is: a number that only rises, and what has started. */
export type Progress = (progress: number, message: string) => void

export interface Following {
  /** By the clock of `performance`. */
  ends_at: number
  signal: AbortSignal
  progress?: Progress | undefined
}
