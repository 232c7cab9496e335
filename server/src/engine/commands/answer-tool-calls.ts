import { Problem } from '#contract/core/problems.ts'
import { isFinished } from '#contract/tasks/task-lifecycle.ts'
import { cleanText, cutText } from '../../platform/clean-text.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { applyAnswers, resumed, type JournalNotice } from '../journal/resume.ts'
import { findStep, lockTasks } from '../journal/task-rows.ts'
import {
  listLeasedToolCalls,
  listLost,
  markUnknown,
  noteResolved,
  type LeasedToolCall,
} from '../journal/tool-calls.queries.ts'
import type { Queue } from '../queue/queue.ts'
import { stepEvents } from '../run/tool-plan.ts'
import { toolOutputMax } from '../tools/tool.ts'
import type { Step, TaskChange } from '../task.ts'

/** The result of a tool call that the caller made. */
export interface ToolCallAnswer {
  call: { id: string; step_index: number }
  /** What the model reads; cut to `toolOutputMax` characters. */
  content: string
  /** The call failed, with `error_code`; `tool_failed` by default. */
  is_error?: boolean
  error_code?: string
  user_id: string
  /**
   * SHA-256 of the lease token that the result is sent with. Without it, the result counts even if a process holds the
   * call.
   */
  lease_hash?: Buffer
}

/**
 * Stores results of calls of one task, all or none, and lets the task continue. The first result of a call wins.
 * @throws `tool_call_already_resolved`, with who resolved it, also after a timeout or the end of the task. With a
 *   `lease_hash` whose lease has ended: `lease_lost`, or `task_canceled` if its task has ended.
 */
export async function answerToolCalls(
  tx: Sql,
  queue: Queue,
  task_id: string,
  answers: readonly ToolCallAnswer[],
): Promise<JournalNotice> {
  const task = (await lockTasks(tx, [task_id])).get(task_id)
  const ids = answers.map(({ call }) => call.id)
  const calls = new Map((await listLeasedToolCalls(tx, ids)).map((call) => [call.id, call]))
  const steps: Step[] = []
  for (const { call, content, is_error = false, error_code = 'tool_failed', lease_hash } of answers) {
    const step = await findStep(tx, task_id, call.step_index)
    const refusal = refusalOf(calls.get(call.id), lease_hash)
    if (refusal) throw refusal
    if (!task || isFinished(task.status) || step?.status !== 'started')
      throw alreadyResolved(calls.get(call.id), call.id)
    const text = cutText(cleanText(content), toolOutputMax)
    const error = { code: error_code, message: text.slice(0, 2000), retryable: false }
    steps.push({
      ...step,
      output: { content: text },
      ...(is_error ? { status: 'failed', error } : { status: 'completed' }),
    })
  }
  await noteResolved(tx, ids, answers[0]?.user_id ?? '')
  return applyAnswers(tx, queue, [resumed(task!, { steps, events: steps.flatMap(stepEvents) })])
}

/** Why the holder of a lease may not send a result; undefined if it may, or without a lease. */
function refusalOf(call: LeasedToolCall | undefined, lease_hash: Buffer | undefined): Problem | undefined {
  if (!lease_hash || !call) return undefined
  if (call.lease_holds && call.lease_hash?.equals(lease_hash)) return undefined
  if (['completed', 'failed', 'timed_out'].includes(call.status)) return alreadyResolved(call, call.id)
  return leaseRefused(call)
}

/** The problem for a token that holds no lease on the call. */
export function leaseRefused({ id, status }: { id: string; status: string }): Problem {
  const kind = status === 'canceled' ? 'task_canceled' : 'lease_lost'
  return new Problem(kind, { resource_type: 'tool_call', resource_id: id, current_status: status })
}

function alreadyResolved(call: LeasedToolCall | undefined, resource_id: string): Problem {
  return new Problem('tool_call_already_resolved', {
    resource_type: 'tool_call',
    resource_id,
    resolved_by: call?.resolved_by ?? null,
    resolved_at: call?.resolved_at ?? null,
  })
}

/** Maximum number of calls that one sweep looks at. */
const lostBatch = 200

/**
 * Handles unsafe calls whose leases ended without a result: marks them as unknown and resumes their tasks, which then
 * ask a person. `more` is set if the batch was full.
 */
export async function loseToolCalls(tx: Sql, queue: Queue): Promise<JournalNotice & { more: boolean }> {
  const lost = await listLost(tx, lostBatch)
  const tasks = await lockTasks(tx, [...new Set(lost.map(({ task_id }) => task_id))])
  const unknown = new Set(
    lost.length > 0
      ? await markUnknown(
          tx,
          lost.map(({ id }) => id),
        )
      : [],
  )
  const changes: TaskChange[] = []
  for (const [task_id, task] of tasks) {
    if (isFinished(task.status)) continue
    const steps: Step[] = []
    for (const { id, task_id: of, step_index } of lost) {
      const step = of === task_id && unknown.has(id) ? await findStep(tx, task_id, step_index) : undefined
      if (step?.status === 'started') steps.push({ ...step, status: 'unknown' })
    }
    const logs = steps.map(({ name, id }) => ({
      level: 'warn' as const,
      message: `The lease of a call of ${name} ended without a result; a person is asked what became of it`,
      context: { tool: name, step_id: id },
    }))
    if (steps.length > 0) changes.push(resumed(task, { steps, logs }))
  }
  return { ...(await applyAnswers(tx, queue, changes)), more: lost.length === lostBatch }
}
