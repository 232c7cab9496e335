import { projectId } from '#contract/core/project-id.ts'
import { mcpBounds } from '#contract/doors/mcp.ts'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import type { TaskRow } from '../../engine/journal/stored-task.ts'
import type { Context } from '../../context.ts'
import type { McpCall } from './mcp-call.ts'

/** Structured result of a tool about a task. */
export interface TaskAnswer {
  task_id: string
  status: string
  content: string | null
  data: unknown
  wait: { reason: string; approval_ids: string[] } | null
  console_url: string
  /** The open question of the task. */
  question?: string | undefined
  [member: string]: unknown
}

/** JSON Schema of `TaskAnswer`. It has no lists of types, because some clients refuse them. */
export const taskAnswerSchema = {
  type: 'object',
  properties: {
    task_id: { type: 'string', description: 'The handle of the task, for wait_task and cancel_task.' },
    status: { type: 'string', description: 'queued, running, waiting, completed, failed, canceled or expired.' },
    content: {
      anyOf: [{ type: 'string' }, { type: 'null' }],
      description: 'The answer of the agent so far.',
    },
    data: { description: 'The answer as JSON, for an agent with an output schema.' },
    wait: {
      description: 'What the task waits for.',
      anyOf: [
        {
          type: 'object',
          properties: { reason: { type: 'string' }, approval_ids: { type: 'array', items: { type: 'string' } } },
        },
        { type: 'null' },
      ],
    },
    console_url: { type: 'string', description: 'Page of the task in the console.' },
  },
  required: ['task_id', 'status'],
}

export interface ToolAnswer {
  content: { type: 'text'; text: string }[]
  structuredContent?: Record<string, unknown>
  isError?: boolean
  [member: string]: unknown
}

export function consoleUrl({ public_url }: Pick<Context, 'public_url'>, { id, project_id }: TaskRow): string {
  return `${public_url()}/p/${projectId(project_id)}/tasks/${id}`
}

export function answerOf(context: Pick<Context, 'public_url'>, task: TaskRow): TaskAnswer {
  return {
    task_id: task.id,
    status: task.status,
    content: task.output?.content ?? null,
    data: task.output?.data ?? null,
    wait: task.wait && { reason: task.wait.reason, approval_ids: task.wait.approval_ids },
    console_url: consoleUrl(context, task),
  }
}

/** A task as the result of a tool: its answer if it completed, an error if it ended otherwise, or else a handle. */
export function toolAnswerOf(call: Pick<McpCall, 'context' | 'only'>, task: TaskRow, more: object = {}): ToolAnswer {
  const answer = { ...answerOf(call.context, task), ...more }
  return {
    content: [{ type: 'text', text: sentenceOf(call, answer, task) }],
    structuredContent: answer,
    ...(isFinished(task.status) && task.status !== 'completed' ? { isError: true } : {}),
  }
}

function sentenceOf(
  { only }: Pick<McpCall, 'only'>,
  answer: TaskAnswer,
  { id, status, output, error, wait }: TaskRow,
): string {
  if (status === 'completed') return output?.content ?? ''
  if (status === 'failed' || status === 'expired')
    return `Task ${id} ${status === 'failed' ? 'failed' : 'expired'}: ${error?.message ?? status} (${error?.code ?? status}).`
  if (status === 'canceled') return `Task ${id} was canceled.`
  if (wait?.reason === 'approval' || wait?.reason === 'unknown_outcome')
    return `Task ${id} waits for the approval ${wait.approval_ids.join(', ')} of a person, at ${answer.console_url}. Then call wait_task with this id.`
  if (wait?.reason === 'input') {
    // The address of one agent has no answer_task.
    const next = only
      ? `A person answers it at ${answer.console_url}. Then call wait_task with this id.`
      : 'Call answer_task with this id and the answer.'
    return `Task ${id} asks a question: ${answer.question ?? ''} ${next}`
  }
  if (wait) return `Task ${id} waits (${wait.reason}). Call wait_task with this id to get its answer.`
  return `Task ${id} is still ${status}. Call wait_task with this id to get its answer.`
}

/** A refusal as the result of a tool: code and message of the problem. */
export function refusal(code: string, message: string): ToolAnswer {
  return { content: [{ type: 'text', text: `${code}: ${message}` }], isError: true }
}

/** The poll interval for a task; it grows with the age of the task. */
export function pollInterval(created_at: string, now: number): number {
  const age_ms = Math.max(0, now - Date.parse(created_at))
  return Math.min(mcpBounds.poll_max_ms, Math.max(mcpBounds.poll_min_ms, Math.round(age_ms / 10)))
}
