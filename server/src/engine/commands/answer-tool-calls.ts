import { Problem } from '#contract/core/problems.ts'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import { cleanText, cutText } from '../../platform/clean-text.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { goOn, tell, type JournalNotice } from '../journal/resume.ts'
import { findStep, lockTasks } from '../journal/task-rows.ts'
import { noteResolved, type ToolCallRow } from '../journal/tool-calls.queries.ts'
import type { Queue } from '../queue/queue.ts'
import { stepEvents } from '../run/tool-plan.ts'
import { toolOutputMax } from '../tools/tool.ts'
import type { Step } from '../task.ts'

/** The result of a call that a task's caller made. */
export interface ToolCallAnswer {
  call: ToolCallRow
  /** What the model reads; cut to `toolOutputMax` characters. */
  content: string
  is_error?: boolean
  user_id: string
}

/**
 * Writes results of calls of one task, all or none, and lets the task go on. The first result of a call wins: throws
 * `tool_call_already_resolved` with who gave it, also where time or the end of the task was first.
 */
export async function answerToolCalls(
  tx: Sql,
  queue: Queue,
  task_id: string,
  answers: readonly ToolCallAnswer[],
): Promise<JournalNotice> {
  const task = (await lockTasks(tx, [task_id])).get(task_id)
  const steps: Step[] = []
  for (const { call, content, is_error = false, user_id } of answers) {
    const step = await findStep(tx, task_id, call.step_index)
    if (!task || isFinished(task.status) || step?.status !== 'started') throw alreadyResolved(call)
    const text = cutText(cleanText(content), toolOutputMax)
    const error = { code: 'tool_failed', message: text.slice(0, 2000), retryable: false }
    steps.push({
      ...step,
      output: { content: text },
      ...(is_error ? { status: 'failed', error } : { status: 'completed' }),
    })
    await noteResolved(tx, call.id, user_id)
  }
  return tell(tx, queue, [{ task: task!, ...goOn(task!), steps, events: steps.flatMap(stepEvents) }])
}

function alreadyResolved({ id, resolved_by, resolved_at }: ToolCallRow): Problem {
  return new Problem('tool_call_already_resolved', {
    resource_type: 'tool_call',
    resource_id: id,
    resolved_by,
    resolved_at,
  })
}
