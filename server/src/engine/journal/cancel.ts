import { isFinished, type TaskState } from '#contract/tasks/task-lifecycle.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { taskEnded } from './approvals.queries.ts'
import { isCallers } from './call-states.ts'
import { dropRequested, listOpenBelow } from './delegations.queries.ts'
import { applyChanges, type PublishedEvents } from './task-changes.ts'
import type { Queue } from '../queue/queue.ts'
import { lockTasks } from './task-rows.ts'
import { partialOutput } from './endings.ts'
import type { LockedTask, CancelRequest, Step, TaskArtifact, TaskChange, TaskOutput } from '../task.ts'

/**
 * Outcome of a cancellation. `canceled`: the task is canceled, by this request or an earlier one. `requested`: its
 * worker, or the worker of a task below it, was signaled and will confirm. `finished`: it had ended otherwise.
 * `missing`: there is no such task. `is_new`: no cancellation was requested before.
 */
export type CancelOutcome =
  | { outcome: 'canceled' | 'requested'; status: TaskState; is_new: boolean }
  | { outcome: 'finished'; status: TaskState }
  | { outcome: 'missing' }

/** The effects of a canceled task: tool calls that took effect, and tool calls of unknown outcome. */
export interface CancelReceipt {
  effects: { step_id: string; tool: string }[]
  uncertain: { step_id: string; tool: string }[]
}

/**
 * Cancels a task and all tasks that it delegated. A task that a worker holds is canceled when the worker confirms; with
 * mode `force` it is canceled at once, later writes of the worker are rejected, and calls in flight are uncertain. Any
 * other task is canceled at once. Repeated requests change nothing.
 */
export async function cancelTask(
  tx: Sql,
  queue: Queue,
  task_id: string,
  request: CancelRequest,
): Promise<{ result: CancelOutcome; published: PublishedEvents[]; interrupts: string[] }> {
  const task = (await lockTasks(tx, [task_id])).get(task_id)
  if (!task) return { result: { outcome: 'missing' }, published: [], interrupts: [] }
  const { status } = task
  if (status === 'canceled')
    return { result: { outcome: 'canceled', status, is_new: false }, published: [], interrupts: [] }
  if (isFinished(status)) return { result: { outcome: 'finished', status }, published: [], interrupts: [] }
  const below = await cancelBelow(tx, queue, task_id, request)
  if (status === 'running' && task.worker_id !== null && request.mode === 'force') {
    const changes = await cutShort(tx, [await forced(tx, task, request)])
    return {
      result: { outcome: 'canceled', status: 'canceled', is_new: true },
      published: [...below.published, ...(await applyChanges(tx, queue, changes))],
      interrupts: [...below.interrupts, task_id],
    }
  }
  if (status === 'running' && task.worker_id !== null) {
    const published = task.cancel ? [] : await applyChanges(tx, queue, [requested(task, request)])
    return {
      result: { outcome: 'requested', status, is_new: task.cancel === null },
      published: [...below.published, ...published],
      interrupts: [...below.interrupts, task_id],
    }
  }
  // Delegated tasks that workers hold end first, then this one.
  if (below.isOpen) {
    const published = task.cancel ? [] : await applyChanges(tx, queue, [requested(task, request)])
    return {
      result: { outcome: 'requested', status, is_new: task.cancel === null },
      published: [...below.published, ...published],
      interrupts: below.interrupts,
    }
  }
  const receipt = await readReceipt(tx, task_id)
  const changes = await cutShort(tx, [{ ...canceled(task, request, receipt), job: { kind: 'forget' } }])
  const published = await applyChanges(tx, queue, changes)
  return {
    result: { outcome: 'canceled', status: 'canceled', is_new: true },
    published: [...below.published, ...published],
    interrupts: below.interrupts,
  }
}

/**
 * Cancels the tasks below a task at any depth, the deepest first. `isOpen`: a worker holds one of them and must
 * confirm. The task itself is locked. Tasks below it were created later, so they are locked in the order of their ids.
 */
async function cancelBelow(
  tx: Sql,
  queue: Queue,
  task_id: string,
  request: CancelRequest,
): Promise<{ published: PublishedEvents[]; interrupts: string[]; isOpen: boolean }> {
  const open = await listOpenBelow(tx, task_id)
  await dropRequested(tx, [task_id, ...open])
  const tasks = [...(await lockTasks(tx, open)).values()].filter(({ status }) => !isFinished(status))
  const changes: TaskChange[] = []
  const interrupts: string[] = []
  let isOpen = false
  for (const task of tasks.toSorted((one, other) => other.depth - one.depth)) {
    const isHeld = task.status === 'running' && task.worker_id !== null
    if (isHeld) interrupts.push(task.id)
    if (isHeld && request.mode === 'force') changes.push(await forced(tx, task, request))
    else if (isHeld) {
      isOpen = true
      if (!task.cancel) changes.push(requested(task, request))
    } else changes.push({ ...canceled(task, request, await readReceipt(tx, task.id)), job: { kind: 'forget' } })
  }
  return { published: await applyChanges(tx, queue, await cutShort(tx, changes)), interrupts, isOpen }
}

/** The request to a running task's worker to cancel it. */
export function requested(task: LockedTask, cancel: CancelRequest): TaskChange {
  return { task, cancel, events: [{ type: 'cancel.requested', data: { reason: cancel.reason, mode: cancel.mode } }] }
}

/** The end of a canceled task, with its receipt. */
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

/** The end of a task by force: later writes of its worker are rejected. */
export async function forced(tx: Sql, task: LockedTask, request: CancelRequest): Promise<TaskChange> {
  const end = canceled(task, request, await readReceipt(tx, task.id), { forced: true })
  return { ...end, job: { kind: 'end' } }
}

/**
 * The changes, where those that end a task without its run keep what it has written so far as its output. They first
 * discard the message of a model call in progress: a worker that died or lost the task has left it open.
 */
export async function cutShort(tx: Sql, changes: readonly TaskChange[]): Promise<TaskChange[]> {
  const ended = changes.filter(({ task, status }) => status && isFinished(status) && task.started_at !== null)
  if (ended.length === 0) return [...changes]
  const ids = ended.map(({ task }) => task.id)
  const cut = await listCutShort(tx, ids)
  const outputs = await listPartialOutputs(tx, ids)
  return changes.map((change) => {
    if (!ended.includes(change)) return change
    const output = outputs.get(change.task.id) ?? null
    const events = (change.events ?? []).map((event) =>
      event.type === 'task.failed' || event.type === 'task.expired'
        ? { ...event, data: { ...event.data, output } }
        : event,
    )
    return { ...change, output, events: [...(cut.get(change.task.id) ?? []), ...events] }
  })
}

/** What tasks have written so far, by task: the last text of their model, and the files that they made. */
async function listPartialOutputs(tx: Sql, task_ids: readonly string[]): Promise<Map<string, TaskOutput | null>> {
  const rows = await tx<{ id: string; text: string | null; artifacts: TaskArtifact[] }>`
    select asked.id,
      (select s.output->>'text' from task_step s
        where s.task_id = asked.id and s.type = 'model_call' and s.status = 'completed'
          and s.input->>'is_workers' is distinct from 'true'
        order by s.index desc limit 1) as text,
      (select coalesce(jsonb_agg(made.artifact order by s.index, made.nth), '[]') from task_step s
        cross join lateral jsonb_array_elements(s.output->'artifacts') with ordinality as made(artifact, nth)
        where s.task_id = asked.id and s.type = 'tool_call') as artifacts
    from unnest(${[...task_ids]}::text[]) as asked(id)`
  return new Map(rows.map(({ id, text, artifacts }) => [id, partialOutput(text ?? undefined, artifacts)]))
}

/** The events, by task, that discard the messages of model calls in progress. */
export async function listCutShort(
  tx: Sql,
  task_ids: readonly string[],
): Promise<Map<string, NonNullable<TaskChange['events']>>> {
  const steps = await tx<Pick<Step, 'task_id' | 'id' | 'index' | 'type' | 'name'> & { message_id: string }>`
    select task_id, id, index, type, name, input->>'message_id' as message_id from task_step
    where task_id = any(${[...task_ids]}) and type = 'model_call' and status = 'started'`
  return new Map(
    steps.map(({ task_id, id, index, type, name, message_id }) => [
      task_id,
      [
        { type: 'message.discarded', data: { message_id, step_id: id } },
        { type: 'step.failed', data: { step_id: id, index, type, name, error: taskEnded, will_retry: false } },
      ],
    ]),
  )
}

/** The error code of a call that failed but may have taken effect. */
export const uncertainCode = 'tool_outcome_unknown'

type CallStep = Pick<Step, 'id' | 'type' | 'name' | 'status' | 'input' | 'error'> & {
  /** Whether the call is made outside the engine and no process has claimed it. */
  is_unclaimed?: boolean
}

/** The tool calls that took effect, and those of unknown outcome. A call that is safe to repeat is never uncertain. */
export function receiptOf(steps: readonly CallStep[]): CancelReceipt {
  const tools = steps.filter((step) => step.type === 'tool_call' || isCallers(step))
  const named = (wanted: (step: CallStep) => boolean) =>
    tools.filter(wanted).map(({ id, name }) => ({ step_id: id, tool: name }))
  return {
    effects: named(({ status }) => status === 'completed'),
    uncertain: named(
      ({ status, error, input, is_unclaimed = false }) =>
        status === 'unknown' ||
        error?.code === uncertainCode ||
        (status === 'started' && (input as { safety?: string }).safety !== 'safe' && !is_unclaimed),
    ),
  }
}

/** The receipt of a task that no worker holds, including all tasks below it. */
export async function readReceipt(tx: Sql, task_id: string): Promise<CancelReceipt> {
  const steps = await tx<CallStep>`
    with recursive tree as (
      select id from task where id = ${task_id}
      union all select t.id from task t join tree on t.parent_task_id = tree.id
    )
    select s.id, s.type, s.name, s.status, s.input, s.error, c.attempt = 0 as is_unclaimed
    from tree join task_step s on s.task_id = tree.id left join tool_call c on s.type = 'wait' and c.task_id = s.task_id and c.step_index = s.index
    where (s.type = 'tool_call' or s.type = 'wait' and s.input ->> 'is_callers' = 'true') order by s.task_id, s.index`
  return receiptOf(steps)
}
