import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import { problems } from '#contract/core/problems.ts'
import type { TaskRow } from '../../engine/journal/stored-task.ts'
import type { McpCall } from './mcp-call.ts'
import { elicitations, openQuestions, questionOf } from './settle.ts'
import { pollInterval, toolAnswerOf } from './task-answers.ts'

const day_ms = 86_400_000

/** A task as the answer of the call that made it, for clients that know the Tasks extension (SEP-2663). */
export function taskHandle(call: McpCall, task: TaskRow): Record<string, unknown> {
  return { resultType: 'task', ...common(call, task), status: 'working' }
}

/** A task as `tasks/get` gives it: with its result, what it asks, or why it failed. */
export async function taskState(call: McpCall, task: TaskRow): Promise<Record<string, unknown>> {
  const of = common(call, task)
  if (task.status === 'canceled') return { ...of, status: 'cancelled' }
  // A task that failed is a tool that ran and says so; `failed` is for calls that could not be made.
  if (isFinished(task.status)) return { ...of, status: 'completed', result: toolAnswerOf(call.context, task) }
  const questions = await openQuestions(call, task)
  if (questions.length > 0) return { ...of, status: 'input_required', inputRequests: elicitations(questions) }
  const said = toolAnswerOf(call.context, task, { question: await questionOf(call, task) }).content[0]?.text
  return { ...of, status: 'working', statusMessage: said }
}

function common({ context: { config } }: McpCall, task: TaskRow) {
  const { task_retention_days } = config
  return {
    taskId: task.id,
    createdAt: task.created_at,
    lastUpdatedAt: task.updated_at,
    ttlMs: task_retention_days === 0 ? null : task_retention_days * day_ms,
    pollIntervalMs: pollInterval(task.created_at, Date.now()),
  }
}

/** The code of a problem, as the API tells it. */
export function codeOf(kind: keyof typeof problems): string {
  return problems[kind].agents
}
