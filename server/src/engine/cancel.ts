import { isFinished, type TaskState } from '#contract/task-lifecycle.ts'
import type { Sql } from '../platform/database.ts'
import { applyChanges, type PublishedEvents, type TaskChange } from './task-changes.ts'
import type { Queue } from './queue.ts'
import { lockTasks, type CancelRequest, type LockedTask } from './task-rows.ts'

/**
 * What became of a cancellation (tasks 7): `canceled` it is so now, or was before; `requested` its worker is told and
 * confirms; `finished` it had ended otherwise; `missing`.
 */
export type CancelOutcome =
  | { outcome: 'canceled' | 'requested' | 'finished'; status: TaskState }
  | { outcome: 'missing' }

/** What a cancellation leaves behind: calls that took effect, and calls whose outcome is unknown. */
export interface CancelReceipt {
  effects: { step_id: string; tool: string }[]
  uncertain: { step_id: string; tool: string }[]
}

/** Cancels a task: at once unless a worker holds it, which is asked to. Repeating it changes nothing. */
export async function cancelTask(
  tx: Sql,
  queue: Queue,
  task_id: string,
  request: CancelRequest,
): Promise<{ result: CancelOutcome; published: PublishedEvents[] }> {
  const task = (await lockTasks(tx, [task_id])).get(task_id)
  if (!task) return { result: { outcome: 'missing' }, published: [] }
  const { status } = task
  if (status === 'canceled') return { result: { outcome: 'canceled', status }, published: [] }
  if (isFinished(status)) return { result: { outcome: 'finished', status }, published: [] }
  if (status === 'running' && task.worker_id !== null) {
    const published = task.cancel ? [] : await applyChanges(tx, queue, [requested(task, request)])
    return { result: { outcome: 'requested', status }, published }
  }
  const receipt = await readReceipt(tx, task_id)
  const published = await applyChanges(tx, queue, [{ ...canceled(task, request, receipt), job: { kind: 'forget' } }])
  return { result: { outcome: 'canceled', status: 'canceled' }, published }
}

function requested(task: LockedTask, cancel: CancelRequest): TaskChange {
  return { task, cancel, events: [{ type: 'cancel.requested', data: { reason: cancel.reason, mode: cancel.mode } }] }
}

/** The end of a canceled task, with its receipt (tasks 7). */
export function canceled(
  task: LockedTask,
  cancel: CancelRequest,
  receipt: CancelReceipt,
  details: { forced?: true } = {},
): TaskChange {
  return {
    task,
    status: 'canceled',
    wait: null,
    ...(task.cancel ? {} : { cancel }),
    events: [
      {
        type: 'task.canceled',
        data: { reason: cancel.reason, ...receipt, cost_usd: task.usage.cost_usd, usage: task.usage, ...details },
      },
    ],
    logs: [{ level: 'info', message: 'Task canceled', context: { reason: cancel.reason, ...details } }],
  }
}

/** Which tool calls of a task took effect, and of which nobody knows. */
export async function readReceipt(tx: Sql, task_id: string): Promise<CancelReceipt> {
  const rows = await tx<{ id: string; name: string; status: string }>`
    select id, name, status from task_step where task_id = ${task_id} and type = 'tool_call' and status <> 'failed' order by index`
  const named = (wanted: (status: string) => boolean) =>
    rows.filter(({ status }) => wanted(status)).map(({ id, name }) => ({ step_id: id, tool: name }))
  return { effects: named((status) => status === 'completed'), uncertain: named((status) => status !== 'completed') }
}
