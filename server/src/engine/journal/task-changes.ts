import { randomUUID } from 'node:crypto'
import { isFinished, isTerminalEvent } from '#contract/tasks/task-lifecycle.ts'
import { agentLogRows, type AgentLogRow } from '../../events/agent-log.ts'
import type { NewEvent } from '../../events/outbox.ts'
import { noteFinishReason } from '../../events/streams/finish-reasons.ts'
import type { TaskEvent } from '../../events/streams/streams-hub.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { closeApprovals, closeSteps, insertApprovals } from './approvals.queries.ts'
import type { ModelCallOutput } from '../conversation/conversation.ts'
import { callId, inputOf, isCallers, timeoutCode } from './call-states.ts'
import { insertDelegations } from './delegations.queries.ts'
import { closeToolCalls, insertToolCalls, moveToolCalls, type ToolCallMove } from './tool-calls.queries.ts'
import { limitKeysOf, noteFreed, type LimitKey } from '../queue/concurrency-limits.ts'
import { storedEvents } from './stored-events.ts'
import type { JobAttempt, NewJob, Queue } from '../queue/queue.ts'
import { reservationAfter, settleChanges } from '../budgets/ledger.ts'
import { taskOutbox, type PublishedTask } from './task-outbox.ts'
import { newWarnings } from './model-warnings.ts'
import { writeTasks, type Written, type WrittenTasks } from './task-statement.ts'
import type { AgentConsumption } from './usage.queries.ts'
import { closeWork, offerWork } from './work.queries.ts'
import { isRemote, type Step, type TaskChange } from '../task.ts'

type Logs = NonNullable<TaskChange['logs']>

/** Events of one task, to publish once the transaction has committed. */
export interface PublishedEvents {
  task_id: string
  events: TaskEvent[]
  /** Concurrency limits that the change frees; deferred tasks may use the room. */
  freed: LimitKey[]
}

/**
 * Applies changes to locked tasks in a few statements for any number of tasks: rows, steps, events with dense
 * sequences, logs, outbox, usage and jobs. Returns the events to publish after the commit.
 */
export async function applyChanges(tx: Sql, queue: Queue, wanted: readonly TaskChange[]): Promise<PublishedEvents[]> {
  return (await applyNoted(tx, queue, wanted)).published
}

/** Does the same, and returns what was written, with the rows of finished tasks for which `isAwaited` is true. */
export async function applyNoted(
  tx: Sql,
  queue: Queue,
  wanted: readonly TaskChange[],
  isAwaited: (task_id: string) => boolean = () => false,
): Promise<Applied> {
  if (wanted.length === 0) return { published: [], changes: [], written: Promise.resolve(undefined) }
  const changes = await settleChanges(tx, wanted)
  const sends = changes.map(newJob)
  const warnings = await newWarnings(tx, changes)
  const published = publishedBy(changes)
  const freed = new Set(published.flatMap(({ freed }) => freed))
  // None needs the result of another, so they are sent together, and later statements do not wait for the responses.
  const writing = writeTasks(tx, queue, allWritten(changes, { sends, warnings, isAwaited }))
  await tx.leave([writing])
  // If the statement fails, the commit fails too.
  const written = writing.catch(() => undefined)
  await Promise.all([
    writeApprovals(tx, changes),
    freed.size > 0 ? noteFreed(tx, [...freed]) : undefined,
    queue.send(
      tx,
      sends.filter((job) => job !== undefined),
    ),
    queue.requeue(
      tx,
      changes.filter(({ job }) => job?.kind === 'back').flatMap(({ task }) => task.job_id ?? []),
    ),
    queue.discardTimers(tx, changes.flatMap(needlessTimer)),
  ])
  return { published, changes, written }
}

/** The result of applied changes. */
export interface Applied {
  published: PublishedEvents[]
  /** The changes as written. */
  changes: readonly TaskChange[]
  /** The result of the statement that wrote them, after the commit; undefined if it failed. */
  written: Promise<WrittenTasks | undefined>
}

/** The events of changes, and the limits that they free. */
export function publishedBy(changes: readonly TaskChange[]): PublishedEvents[] {
  return changes
    .map((change) => ({
      task_id: change.task.id,
      events: withReasons(sequenced(change), change),
      freed: freedLimits(change),
    }))
    .filter(({ events, freed }) => events.length > 0 || freed.length > 0)
}

/**
 * Everything that the statement of these changes writes. `sends` are their new jobs. With `isForeseen`, the time of the
 * changes is that of their tasks, not that of the statement.
 */
export function allWritten(
  changes: readonly TaskChange[],
  {
    sends = [],
    warnings = new Map(),
    isAwaited = () => false,
    isForeseen = false,
  }: {
    sends?: readonly (NewJob | undefined)[]
    warnings?: ReadonlyMap<TaskChange, Logs>
    isAwaited?: ((task_id: string) => boolean) | undefined
    isForeseen?: boolean
  },
): Written {
  return {
    awaited: changes
      .filter(({ status, task }) => isFinished(status ?? task.status) && isAwaited(task.id))
      .map(({ task }) => task.id),
    rows: changes.map((change, i) => ({
      ...nextRow(change, sends[i]?.id),
      event_at: isForeseen ? change.task.event_at : null,
    })),
    ...writtenBy(changes, warnings),
    outbox: changes.flatMap((change) => outboxEvents(change, isForeseen ? change.task.event_at : undefined)),
    jobs: changes.filter(({ job }) => job?.kind === 'end' || job?.kind === 'again').flatMap(heldJob),
    usage: changes.map(consumption),
  }
}

/** The steps, events and logs of changes. `warnings` are further log entries. */
export function writtenBy(
  changes: readonly TaskChange[],
  warnings: ReadonlyMap<TaskChange, Logs>,
): Pick<Written, 'steps' | 'events' | 'logs'> {
  return {
    steps: changes.flatMap(({ steps = [] }) => steps),
    events: changes.flatMap((change) => sequenced({ ...change, events: storedEvents(change) })),
    logs: logRows(changes, warnings),
  }
}

/** The events that a claim publishes if it also stored its task; `at` is the time of its transaction. */
export function publishedAt(change: TaskChange, at: string): PublishedEvents {
  const events = sequenced(change).map((event) => ({ ...event, created_at: at }))
  return { task_id: change.task.id, events, freed: [] }
}

function logRows(changes: readonly TaskChange[], warnings: ReadonlyMap<TaskChange, Logs>): AgentLogRow[] {
  const entries = changes.flatMap((change) => {
    const { task, logs = [] } = change
    return [...(warnings.get(change) ?? []), ...logs].map(({ context, ...log }) => ({
      ...log,
      agent_id: task.agent_id,
      task_id: task.id,
      context: { task_id: task.id, ...context },
    }))
  })
  return agentLogRows(
    entries,
    changes.flatMap(({ secrets = [] }) => secrets),
  )
}

/**
 * Agents whose tasks these changes defer, without a job. If such an agent is started between the check and the commit,
 * the tasks would not be dispatched, so the caller checks again after the commit.
 */
export function agentsWithDeferred(changes: readonly TaskChange[]): string[] {
  const deferred = changes.filter(({ task, job, status = task.status }) => job?.kind === 'end' && !isFinished(status))
  return [...new Set(deferred.map(({ task }) => task.agent_id))]
}

/**
 * The limits that a change frees:
 * - all of them if the task ends;
 * - its key's and its agent's if its job is removed before it started;
 * - its agent's if it waits, or continues without a slot.
 */
export function freedLimits({ task, status = task.status, job }: TaskChange): LimitKey[] {
  const over = isFinished(status)
  if (!over && (job === undefined || job.kind === 'back' || job.kind === 'first')) return []
  const { thread_id, concurrency_key } = task
  return limitKeysOf(
    {
      ...task,
      thread_id: over ? thread_id : null,
      concurrency_key: over || status === 'queued' ? concurrency_key : null,
    },
    task.agent !== null && task.agent.max_concurrent_tasks !== null,
  )
}

/** The new job of a change. */
export function newJob({ task, job }: TaskChange): NewJob | undefined {
  if (job?.kind !== 'again' && job?.kind !== 'first') return undefined
  return {
    id: randomUUID(),
    task_id: task.id,
    project_id: task.project_id,
    priority: task.priority,
    start_after: job.start_after,
  }
}

function heldJob({ task }: TaskChange): JobAttempt[] {
  return task.job_id === null ? [] : [{ id: task.job_id, attempt: task.job_attempt }]
}

/** The delayed job of a waiting task that continues or ends before its time. */
function needlessTimer({ task, job }: TaskChange): string[] {
  const isOver = task.status === 'waiting' && job !== undefined && job.kind !== 'back'
  return isOver && task.job_id !== null ? [task.job_id] : []
}

function sequenced({ task, events = [] }: TaskChange): TaskEvent[] {
  const { parent_task_id } = task
  return events.map(({ type, data }, i) => ({
    sequence: task.last_sequence + i + 1,
    task_id: task.id,
    type,
    created_at: task.event_at,
    // The end of a delegated task resumes its parent.
    data: parent_task_id !== null && isTerminalEvent(type) ? { ...data, parent_task_id } : data,
  }))
}

/** Adds to published messages why the model stopped. */
function withReasons(events: TaskEvent[], { steps = [] }: TaskChange): TaskEvent[] {
  for (const event of events) {
    if (event.type !== 'message.completed') continue
    const step = steps.find(({ id, type }) => id === event.data['step_id'] && type === 'model_call')
    if (step?.output) noteFinishReason(event, (step.output as ModelCallOutput).finish_reason ?? null)
  }
  return events
}

/** The row of a task after a change; `sent` is the id of the change's new job. */
export function nextRow(change: TaskChange, sent: string | undefined) {
  const { task, claimed, job } = change
  const status = change.status ?? task.status
  const over = isFinished(status)
  return {
    id: task.id,
    status,
    wait: change.wait === undefined ? task.wait : change.wait,
    output: change.output ?? null,
    error: change.error ?? null,
    usage: change.usage ?? task.usage,
    attempt: claimed ? task.attempt + 1 : task.attempt,
    writes: claimed ? 0 : task.writes + (change.counted ? 1 : 0),
    crashes: change.crashes ?? task.crashes,
    worker_id: claimed ? claimed.worker_id : over || job ? null : task.worker_id,
    job_id: sent ?? (over || job?.kind === 'end' || job?.kind === 'forget' ? null : task.job_id),
    job_attempt: claimed ? claimed.job_attempt : sent ? -1 : task.job_attempt,
    slot: change.slot !== undefined ? change.slot : over || (job && job.kind !== 'back') ? null : task.slot,
    hold: reservationAfter(change),
    cancel: change.cancel ?? task.cancel,
    unseen: change.read ? 0 : task.unseen + (change.unseen ? 1 : 0),
    cancel_requested: change.cancel !== undefined,
    expires_at: change.expires_at === undefined ? task.expires_at : change.expires_at,
    started: claimed !== undefined,
    finished: over,
    events: change.events?.length ?? 0,
  }
}

/**
 * Writes new approvals, tool calls, delegations and offers, closes those of ended tasks, and marks messages as read.
 */
async function writeApprovals(tx: Sql, changes: readonly TaskChange[]): Promise<void> {
  const asked = changes.flatMap(({ task, approvals = [] }) =>
    approvals.map((approval) => ({
      ...approval,
      project_id: task.project_id,
      agent_id: task.agent_id,
      task_id: task.id,
    })),
  )
  if (asked.length > 0) await insertApprovals(tx, asked)
  const calls = changes.flatMap(({ task, tool_calls = [] }) =>
    tool_calls.map((call) => ({
      ...call,
      project_id: task.project_id,
      agent_id: task.agent_id,
      task_id: task.id,
    })),
  )
  if (calls.length > 0) await insertToolCalls(tx, calls)
  const delegations = changes.flatMap(({ task, delegations: some = [] }) =>
    some.map((one) => ({ ...one, parent_task_id: task.id, project_id: task.project_id })),
  )
  if (delegations.length > 0) await insertDelegations(tx, delegations)
  const left = changes.filter(leavesWork).map(({ task }) => task.id)
  if (left.length > 0) await closeWork(tx, left)
  const offers = changes.flatMap(({ task, offer }) => {
    const { id: task_id, project_id, agent_id, priority } = task
    return offer ? [{ ...offer, task_id, project_id, agent_id, priority }] : []
  })
  if (offers.length > 0) await offerWork(tx, offers)
  const moves = changes.flatMap(({ steps = [] }) => steps.flatMap(toolCallMove))
  if (moves.length > 0) await moveToolCalls(tx, moves)
  // A task that the service completed has nothing open, and one that never started has asked nothing. A remote worker
  // may have left calls open.
  const over = changes.filter(
    ({ task, status = task.status }) =>
      isFinished(status) && (status !== 'completed' || isRemote(task)) && task.attempt > 0,
  )
  if (over.length > 0) {
    const ids = over.map(({ task }) => task.id)
    await closeApprovals(tx, ids)
    await closeToolCalls(tx, ids)
    await closeSteps(tx, ids)
  }
  const reads = changes.filter(({ read }) => read)
  for (const { task, read } of reads) {
    await tx`update task_message set before_step = ${read!.before_step} where task_id = ${task.id} and before_step is null`
  }
}

/** Whether a task leaves the remote workers: it is no longer offered to them, or no longer held by one. */
function leavesWork({ task, status = task.status, job, claimed }: TaskChange): boolean {
  if (!isRemote(task) || claimed) return false
  return status !== task.status || job !== undefined
}

/** How the new state of a step moves the tool call that it stands for; none for a new call. */
export function toolCallMove(step: Step): ToolCallMove[] {
  if (!isCallers(step) || (step.status === 'started' && step.attempt === 1)) return []
  const { until = null } = inputOf(step)
  if (step.status === 'started') return [{ id: callId(step), status: 'pending', expires_at: until }]
  const status = step.status === 'failed' && step.error?.code === timeoutCode ? 'timed_out' : step.status
  return [{ id: callId(step), status, expires_at: null }]
}

/**
 * The webhook events of a change: those of the task that webhooks subscribe to, and those of its agent unless it was
 * deleted. `at` is their time if it is not the transaction's.
 */
export function outboxEvents(change: TaskChange, at?: string): NewEvent[] {
  const { task, outbox = [] } = change
  const { org_id, project_id, agent_id } = task
  if (org_id === null) return []
  const events =
    task.subscriptions === null ? [] : taskOutbox(publishedTask(change), task.subscriptions, sequenced(change))
  return [...events, ...(task.agent ? outbox : [])].map((event) => ({
    ...event,
    scope: { org_id, project_id, agent_id },
    ...(at === undefined ? {} : { occurred_at: at }),
  }))
}

function publishedTask({ task, status = task.status }: TaskChange): PublishedTask {
  return { ...task, status, agent_name: task.agent?.name }
}

/** The usage of a change's agent, including the bytes that it stores. */
export function consumption(change: TaskChange): AgentConsumption {
  const { task, consumed, steps = [], output, claimed, status, calls = [] } = change
  const over = status !== undefined && isFinished(status)
  // Starts of steps are small and would cost a statement each, so stored bytes are counted with results only.
  const counts = consumed !== undefined || over
  const stored_bytes = counts
    ? [...steps, ...storedEvents(change), output ?? ''].reduce(
        (sum: number, part) => sum + (JSON.stringify(part)?.length ?? 0),
        0,
      )
    : 0
  return {
    agent_id: task.agent_id,
    token_subject: task.agent?.token_subject ?? null,
    active: (claimed !== undefined || counts) && task.agent?.is_fresh !== true,
    consumed: { ...consumed, stored_bytes },
    spender: task,
    calls,
  }
}
