import { randomUUID } from 'node:crypto'
import { isFinished, isTerminalEvent } from '#contract/tasks/task-lifecycle.ts'
import { agentLogRows, type AgentLogRow } from '../../events/agent-log.ts'
import { insertEvents, noteEvents, type NewEvent, type WrittenEvent } from '../../events/outbox.ts'
import type { TaskEvent } from '../../events/streams/streams-hub.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { closeApprovals, closeSteps, insertApprovals } from './approvals.queries.ts'
import { callId, inputOf, isCallers, timeoutCode } from './call-states.ts'
import { insertDelegations } from './delegations.queries.ts'
import { closeToolCalls, insertToolCalls, moveToolCalls, type ToolCallMove } from './tool-calls.queries.ts'
import { limitKeysOf, noteFreed, type LimitKey } from '../queue/concurrency-limits.ts'
import { storedEvents } from './stored-events.ts'
import { taskColumns, type TaskRow } from './stored-task.ts'
import type { JobAttempt, NewJob, Queue } from '../queue/queue.ts'
import { reservationAfter, settleChanges } from '../budgets/ledger.ts'
import { taskOutbox, type PublishedTask } from './task-outbox.ts'
import { newWarnings } from './model-warnings.ts'
import { addUsage, type AgentConsumption } from './usage.queries.ts'
import { closeWork, offerWork } from './work.queries.ts'
import { isRemote, type Step, type TaskChange } from '../task.ts'

type Logs = NonNullable<TaskChange['logs']>

/** Events of one task that will have happened once the transaction has committed. */
export interface PublishedEvents {
  task_id: string
  events: TaskEvent[]
  /** Concurrency limits that it frees: a deferred task may take its place. */
  freed: LimitKey[]
  /** The row of a finished task that is awaited; known once the transaction has committed. */
  row?: Promise<TaskRow | undefined>
}

/**
 * Applies changes to locked tasks in a few statements, however many they are: rows, steps, events with dense sequences,
 * logs, outbox, usage and jobs. Returns the events, to be published after the commit, with the rows of those finished tasks that
 * are awaited.
 */
export async function applyChanges(
  tx: Sql,
  queue: Queue,
  wanted: readonly TaskChange[],
  isAwaited: (task_id: string) => boolean = () => false,
): Promise<PublishedEvents[]> {
  if (wanted.length === 0) return []
  const changes = await settleChanges(tx, wanted)
  const published: PublishedEvents[] = changes
    .map((change) => ({ task_id: change.task.id, events: sequenced(change), freed: freedLimits(change) }))
    .filter(({ events, freed }) => events.length > 0 || freed.length > 0)
  const awaited = changes.filter(({ status, task }) => isFinished(status ?? task.status) && isAwaited(task.id))
  const sends = changes.map(newJob)
  const warnings = await newWarnings(tx, changes)
  const freed = new Set(published.flatMap(({ freed }) => freed))
  // None needs the result of another, so they are sent at once, and what follows does not wait for their answers.
  const written = writeTasks(tx, queue, {
    awaited: awaited.map(({ task }) => task.id),
    rows: changes.map((change, i) => nextRow(change, sends[i]?.id)),
    ...writtenBy(changes, warnings),
    outbox: changes.flatMap(outboxEvents),
    jobs: changes.filter(({ job }) => job?.kind === 'end' || job?.kind === 'again').flatMap(heldJob),
  })
  await tx.leave([written, addUsage(tx, changes.map(consumption))])
  for (const one of published)
    if (awaited.some(({ task }) => task.id === one.task_id)) one.row = rowIn(written, one.task_id)
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
  return published
}

/** The row of a task among those of a statement; undefined where that failed, which the end of its transaction reports. */
async function rowIn(written: Promise<ReadonlyMap<string, TaskRow>>, id: string): Promise<TaskRow | undefined> {
  return written.then(
    (rows) => rows.get(id),
    () => undefined,
  )
}

/** Steps, events and logs that changes write beside the rows of their tasks; `warnings` are entries of the logs too. */
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

/** What a claim that stored its task publishes; `at` is the moment of its transaction. */
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
 * Agents whose tasks these changes remove from the queue, to wait for the agent. An agent that was started between the
 * check and the commit would leave them undispatched, so the caller checks again after the commit.
 */
export function agentsWithDeferred(changes: readonly TaskChange[]): string[] {
  const deferred = changes.filter(({ task, job, status = task.status }) => job?.kind === 'end' && !isFinished(status))
  return [...new Set(deferred.map(({ task }) => task.agent_id))]
}

/**
 * The limits that a change frees: all of them where the task ends; its key and its agent's where its job is removed
 * before it began; its agent's where it waits, or goes on without a slot.
 */
function freedLimits({ task, status = task.status, job }: TaskChange): LimitKey[] {
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

/** The job that a change makes. */
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

/** The job of a task that waited until a moment, where the task goes on or ends before that. */
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
    created_at: task.told_at,
    // By the end of a delegated task its parent goes on.
    data: parent_task_id !== null && isTerminalEvent(type) ? { ...data, parent_task_id } : data,
  }))
}

/** The row of a task after a change; `sent` is the job that the change makes. */
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

interface Written {
  /** Tasks of these rows that are returned as they are then; not those that have events for webhooks. */
  awaited: string[]
  rows: { id: string }[]
  steps: Step[]
  events: TaskEvent[]
  logs: AgentLogRow[]
  /** Events for webhooks. */
  outbox: NewEvent[]
  /** Jobs that end. */
  jobs: JobAttempt[]
}

/**
 * Writes the rows, steps, events and logs, and ends jobs, in one statement: all of it belongs to tasks that are locked already, and
 * each statement more costs a message both ways. What is empty is left out, because an empty part of a statement is not free either.
 */
async function writeTasks(
  tx: Sql,
  queue: Queue,
  { awaited, rows, steps, events, logs, outbox, jobs }: Written,
): Promise<ReadonlyMap<string, TaskRow>> {
  const { fragment } = tx
  const returnsRows = awaited.length > 0 && outbox.length === 0
  const selected = returnsRows
    ? fragment`select ${taskColumns(tx)} from changed where id = any(${awaited})`
    : fragment`select limit 0`
  const written = await tx.run<Partial<WrittenEvent> | TaskRow>(fragment`
    with changed as (
      update task t set status = c.status, wait = c.wait, output = coalesce(c.output, t.output), error = coalesce(c.error, t.error),
        usage = c.usage, unseen = c.unseen, attempt = c.attempt, writes = c.writes, crashes = c.crashes, worker_id = c.worker_id, job_id = c.job_id,
        job_attempt = c.job_attempt, slot = c.slot, backlog = t.backlog and c.job_id is null, hold = c.hold, cancel = c.cancel, expires_at = c.expires_at, last_sequence = t.last_sequence + c.events,
        cancel_requested_at = case when c.cancel_requested then greatest(now(), t.updated_at) else t.cancel_requested_at end,
        started_at = case when c.started then coalesce(t.started_at, greatest(now(), t.updated_at)) else t.started_at end,
        finished_at = case when c.finished then coalesce(t.finished_at, greatest(now(), t.updated_at)) end, updated_at = greatest(now(), t.updated_at)
      from jsonb_to_recordset(${jsonb(rows)}::jsonb) as c(id text, status text, wait jsonb, output jsonb, error jsonb, usage jsonb,
        unseen int, attempt int, writes int, crashes int, worker_id text, job_id uuid, job_attempt int, slot text, hold jsonb, cancel jsonb, cancel_requested boolean,
        expires_at timestamptz, started boolean, finished boolean, events int)
      -- The list leads to the index whatever the planner thinks of the sizes of the two.
      where t.id = any(${rows.map(({ id }) => id)}) and t.id = c.id ${returnsRows ? fragment`returning t.*` : fragment``}
    ), journaled as (
      insert into task_step as s (task_id, index, id, agent_id, type, status, attempt, failures, name, input, output, error, model, usage, turn,
        started_at, finished_at)
      select task_id, index, id, agent_id, type, status, attempt, failures, name, input, output, error, model, usage, decode(turn, 'base64'), now(), case when status <> 'started' then now() end
      from jsonb_to_recordset(${jsonb(steps)}::jsonb) as j(task_id text, index int, id text, agent_id text, type text, status text,
        attempt int, failures int, name text, input jsonb, output jsonb, error jsonb, model text, usage jsonb, turn text)
      on conflict (task_id, index) do update set status = excluded.status, attempt = excluded.attempt, failures = excluded.failures,
        name = excluded.name, input = excluded.input, output = excluded.output, error = excluded.error, model = excluded.model,
        usage = excluded.usage, turn = excluded.turn, finished_at = excluded.finished_at,
        started_at = case when excluded.status = 'started' then excluded.started_at else s.started_at end
    ), logged as (
      insert into agent_log (id, agent_id, task_id, timestamp, level, message, context)
      select id, agent_id, task_id, clock_timestamp(), level, message, context
      from jsonb_to_recordset(${jsonb(logs)}::jsonb) as l(id text, agent_id text, task_id text, level text, message text, context jsonb)
    ), published as (
      insert into task_event (task_id, sequence, type, data, created_at)
      select task_id, sequence, type, data, created_at
      from jsonb_to_recordset(${jsonb(events)}::jsonb) as e(task_id text, sequence int, type text, data jsonb, created_at timestamptz)
    )
    ${jobs.length > 0 ? fragment`, ended as (${queue.removal(tx, jobs)})` : fragment``}
    ${outbox.length > 0 ? fragment`, emitted as (${insertEvents(tx, outbox)}) select is_matched from emitted` : selected}`)
  if (outbox.length > 0) noteEvents(tx, written as WrittenEvent[])
  return new Map(returnsRows ? (written as TaskRow[]).map((row) => [row.id, row]) : [])
}

/** Questions to people: asked with the change, and closed where their task has ended; and messages that are read. */
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
  // One that the service completed has nothing open, a remote worker may have left calls; one that never began has asked nothing.
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

/** Whether a task is no longer offered to remote workers, or no longer with one, whatever it does instead. */
function leavesWork({ task, status = task.status, job, claimed }: TaskChange): boolean {
  if (!isRemote(task) || claimed) return false
  return status !== task.status || job !== undefined
}

/** What a step's new state makes of the tool call that it stands for; nothing where it is new. */
function toolCallMove(step: Step): ToolCallMove[] {
  if (!isCallers(step) || (step.status === 'started' && step.attempt === 1)) return []
  const { until = null } = inputOf(step)
  if (step.status === 'started') return [{ id: callId(step), status: 'pending', expires_at: until }]
  const status = step.status === 'failed' && step.error?.code === timeoutCode ? 'timed_out' : step.status
  return [{ id: callId(step), status, expires_at: null }]
}

/** Webhook events: those of the task where a webhook subscribes to them, and those of its agent while it exists. */
function outboxEvents(change: TaskChange): NewEvent[] {
  const { task, outbox = [] } = change
  const { org_id, project_id, agent_id } = task
  if (org_id === null) return []
  const events =
    task.subscriptions === null ? [] : taskOutbox(publishedTask(change), task.subscriptions, sequenced(change))
  return [...events, ...(task.agent ? outbox : [])].map((event) => ({
    ...event,
    scope: { org_id, project_id, agent_id },
  }))
}

function publishedTask({ task, status = task.status }: TaskChange): PublishedTask {
  return { ...task, status, agent_name: task.agent?.name }
}

/** What a change cost its agent, and how many bytes it stores. */
function consumption(change: TaskChange): AgentConsumption {
  const { task, consumed, steps = [], output, claimed, status, calls = [] } = change
  const over = status !== undefined && isFinished(status)
  // Beginnings are small and would cost a statement each; what is stored is counted with results.
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
