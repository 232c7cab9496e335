import type { FastifyReply } from 'fastify'
import type { Context } from '../../context.ts'
import type { TaskRow } from '../../engine/journal/stored-task.ts'
import type { Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import type { makeLoadAsked } from '../../resources/tasks/asked-agents.ts'
import type { TaskKey } from '../../resources/tasks/tasks.queries.ts'
import type { PublishedAgent } from './published.queries.ts'

/** An MCP request with its caller and response, and its agent if the path names one. */
export interface McpCall extends Loading {
  context: Context
  http: HttpContext
  reply: FastifyReply
  /** The agent of `/mcp/agents/{agent_id}`; undefined at `/mcp`. */
  only: PublishedAgent | undefined
  /** Asks the client's user the questions of a task, in the revision 2025-11-25. */
  asked: AskedUser
  /** Sends a message on the stream of this call. Without a stream, the message is lost. */
  push(message: object): void
  loadAsked: ReturnType<typeof makeLoadAsked>
}

/** Asks users the questions of tasks, and accepts their answers. */
export interface AskedUser {
  /**
   * Asks all questions of a task to this caller until the task has ended, waits for others, or the time is over.
   * Returns the task in its state then; undefined if it was deleted. If the user declines, the wait ends.
   */
  follow(call: McpCall, key: TaskKey, task: TaskRow, how: Following): Promise<TaskRow | undefined>
  /**
   * Handles a message that answers a question; returns false for any other message. Throws the problems of answering.
   */
  take(call: McpCall, message: unknown, findTask: (task_id: string) => Promise<TaskKey>): Promise<boolean>
}

/** Reports progress: an increasing number, and what has started. */
export type Progress = (progress: number, message: string) => void

export interface Following {
  /** In milliseconds of `performance.now()`. */
  ends_at: number
  signal: AbortSignal
  progress?: Progress | undefined
}
