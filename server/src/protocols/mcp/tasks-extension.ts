import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import type { TaskRow } from '../../engine/journal/stored-task.ts'
import type { McpCall } from './mcp-call.ts'
import { elicitations, openQuestions, questionOf } from './settle.ts'
import { pollInterval, toolAnswerOf } from './task-answers.ts'

const day_ms = 86_400_000

/** A task in the response to the call that created it, for clients with the Tasks extension (SEP-2663). */
export function taskHandle(call: McpCall, task: TaskRow): Record<string, unknown> {
  return { resultType: 'task', ...common(call, task), status: 'working' }
}

/**
 * A task in the response to `tasks/get`: with its result, its questions, or its error. A client that cannot ask its
 * user never gets a question (SEP-2322). Instead, a question of the agent ends the call with the question and the
 * handle, so that the client's model can answer with `answer_task`. For an approval the call waits, because a person
 * decides elsewhere.
 */
export async function taskState(
  call: McpCall,
  task: TaskRow,
  { canElicit }: { canElicit: boolean },
): Promise<Record<string, unknown>> {
  const of = common(call, task)
  if (task.status === 'canceled') return { ...of, status: 'cancelled' }
  // A failed task is a completed tool call with an error result. `failed` is for calls that could not be made.
  if (isFinished(task.status)) return { ...of, status: 'completed', result: toolAnswerOf(call, task) }
  const questions = await openQuestions(call, task)
  const isAsked = questions.length > 0
  if (isAsked && canElicit) return { ...of, status: 'input_required', inputRequests: elicitations(questions) }
  const result = toolAnswerOf(call, task, { question: await questionOf(call, task) })
  if (isAsked && task.wait?.reason === 'input') return { ...of, status: 'completed', result }
  return { ...of, status: 'working', statusMessage: result.content[0]?.text }
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
