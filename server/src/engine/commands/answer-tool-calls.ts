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

/** The result of a call that a task's caller made. */
export interface ToolCallAnswer {
  call: { id: string; step_index: number }
  /** What the model reads; cut to `toolOutputMax` characters. */
  content: string
  /** The call failed, with this code; `tool_failed` where nothing is said. */
  is_error?: boolean
  error_code?: string
  user_id: string
  /** SHA-256 of the token of the lease that it is given under; without one it counts although another process holds the call. */
  lease_hash?: Buffer
}

/**
 * Writes results of calls of one task, all or none, and lets the task go on. The first result of a call wins: throws
 * `tool_call_already_resolved` with who gave it, also where time or the end of the task was first. A result under a lease that
 * has ended is `lease_lost`, or `task_canceled` where its task has ended.
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
  return applyAnswers(tx, queue, [{ task: task!, ...resumed(task!), steps, events: steps.flatMap(stepEvents) }])
}

/** Why the holder of a lease may not answer; undefined where it may, or no lease was given. */
function refusalOf(call: LeasedToolCall | undefined, lease_hash: Buffer | undefined): Problem | undefined {
  if (!lease_hash || !call) return undefined
  if (call.lease_holds && call.lease_hash?.equals(lease_hash)) return undefined
  if (['completed', 'failed', 'timed_out'].includes(call.status)) return alreadyResolved(call, call.id)
  return leaseRefused(call)
}

/** What a token that holds no lease is answered with. */
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

/** Calls that one sweep looks at. */
const lostBatch = 200

/**
 * Asks what became of calls that may not be repeated and whose leases have ended: their tasks go on, and a person is asked.
 * `more`: of a batch.
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
    if (steps.length > 0) changes.push({ task, ...resumed(task), steps, logs })
  }
  return { ...(await applyAnswers(tx, queue, changes)), more: lost.length === lostBatch }
}
