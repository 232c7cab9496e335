import { randomUUID } from 'node:crypto'
import { isFinished, type TaskEventType, type TaskState } from '#contract/task-lifecycle.ts'
import type { EventName } from '#contract/events.ts'
import { agentLogRows, type AgentLogEntry, type AgentLogRow } from '../events/agent-log.ts'
import { emitAll, type NewEvent } from '../events/outbox.ts'
import type { TaskEvent } from '../events/streams-hub.ts'
import { jsonb, type Sql } from '../platform/database.ts'
import type { JobAttempt, NewJob, Queue } from './queue.ts'
import type { CancelRequest, LockedTask, Step, TaskError, TaskOutput, TaskUsage, Wait } from './task-rows.ts'
import { addUsage, type AgentConsumption, type Consumption } from './usage.queries.ts'

/** What is to become of one locked task. What is not given stays as it is. */
export interface TaskChange {
  task: LockedTask
  status?: TaskState
  wait?: Wait | null
  output?: TaskOutput | null
  error?: TaskError
  usage?: TaskUsage
  /** A worker takes the task: a new fencing number, and the attempt of the job it fetched. */
  claimed?: { worker_id: string; job_attempt: number }
  /** One more write of the claim: see `task.writes`. */
  counted?: boolean
  crashes?: number
  cancel?: CancelRequest
  expires_at?: string | null
  /**
   * What becomes of its job, and of its worker's hold: `end` removes the job this claim holds, `forget` leaves it to
   * whoever fetches it and finds that the task no longer names it, `back` lets any worker fetch it again at its old
   * place, `again` replaces it by one for later, `first` makes one where there is none.
   */
  job?: { kind: 'end' | 'forget' | 'back' } | { kind: 'again' | 'first'; start_after: Date | undefined }
  steps?: Step[]
  events?: { type: TaskEventType; data: Record<string, unknown> }[]
  logs?: Omit<AgentLogEntry, 'agent_id' | 'task_id'>[]
  /** What must not appear in its logs: values of environment variables (decision D48). */
  secrets?: readonly string[]
  outbox?: { type: EventName; data: Record<string, unknown> }[]
  consumed?: Consumption
}

/** Events of one task that will have happened once the transaction has committed. */
export interface PublishedEvents {
  task_id: string
  events: TaskEvent[]
}

/**
 * Applies changes to locked tasks in a few statements, however many they are: rows, steps, events with dense sequences,
 * logs, outbox, usage and jobs. Returns the events, to be published after the commit.
 */
export async function applyChanges(tx: Sql, queue: Queue, changes: readonly TaskChange[]): Promise<PublishedEvents[]> {
  if (changes.length === 0) return []
  const published = changes
    .map((change) => ({ task_id: change.task.id, events: sequenced(change) }))
    .filter(({ events }) => events.length > 0)
  const sends = changes.map(newJob)
  await writeTasks(tx, {
    rows: changes.map((change, i) => nextRow(change, sends[i]?.id)),
    steps: changes.flatMap(({ steps = [] }) => steps),
    events: published.flatMap(({ events }) => events),
    logs: logRows(changes),
  })
  await emitAll(tx, changes.flatMap(outboxEvents))
  await queue.send(
    tx,
    sends.filter((job) => job !== undefined),
  )
  await queue.remove(tx, changes.filter(({ job }) => job?.kind === 'end' || job?.kind === 'again').flatMap(heldJob))
  await queue.giveBack(
    tx,
    changes.filter(({ job }) => job?.kind === 'back').flatMap(({ task }) => task.job_id ?? []),
  )
  await addUsage(tx, changes.map(consumption))
  return published
}

function logRows(changes: readonly TaskChange[]): AgentLogRow[] {
  const entries = changes.flatMap(({ task, logs = [] }) =>
    logs.map(({ context, ...log }) => ({
      ...log,
      agent_id: task.agent_id,
      task_id: task.id,
      context: { task_id: task.id, ...context },
    })),
  )
  return agentLogRows(
    entries,
    changes.flatMap(({ secrets = [] }) => secrets),
  )
}

/**
 * Agents whose tasks these changes take out of the queue, to wait for them. An agent may have been started between the
 * look at it and the commit, and then nobody would dispatch them: whoever parks looks again after the commit.
 */
export function parkedAgents(changes: readonly TaskChange[]): string[] {
  const parked = changes.filter(({ task, job, status = task.status }) => job?.kind === 'end' && !isFinished(status))
  return [...new Set(parked.map(({ task }) => task.agent_id))]
}

function newJob({ task, job }: TaskChange): NewJob | undefined {
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

function sequenced({ task, events = [] }: TaskChange): TaskEvent[] {
  return events.map(({ type, data }, i) => ({
    sequence: task.last_sequence + i + 1,
    task_id: task.id,
    type,
    created_at: task.now,
    data,
  }))
}

function nextRow(change: TaskChange, sent: string | undefined) {
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
    cancel: change.cancel ?? task.cancel,
    cancel_requested: change.cancel !== undefined,
    expires_at: change.expires_at === undefined ? task.expires_at : change.expires_at,
    started: claimed !== undefined,
    finished: over,
    events: change.events?.length ?? 0,
  }
}

interface Written {
  rows: { id: string }[]
  steps: Step[]
  events: TaskEvent[]
  logs: AgentLogRow[]
}

/** The rows and all that is told of them: one statement, because all of it belongs to tasks that are locked already. */
async function writeTasks(tx: Sql, { rows, steps, events, logs }: Written): Promise<void> {
  await tx`
    with changed as (
      update task t set status = c.status, wait = c.wait, output = coalesce(c.output, t.output), error = coalesce(c.error, t.error),
        usage = c.usage, attempt = c.attempt, writes = c.writes, crashes = c.crashes, worker_id = c.worker_id, job_id = c.job_id,
        job_attempt = c.job_attempt, cancel = c.cancel, expires_at = c.expires_at, last_sequence = t.last_sequence + c.events,
        cancel_requested_at = case when c.cancel_requested then now() else t.cancel_requested_at end,
        started_at = case when c.started then coalesce(t.started_at, now()) else t.started_at end,
        finished_at = case when c.finished then now() end, updated_at = now()
      from jsonb_to_recordset(${jsonb(rows)}::jsonb) as c(id text, status text, wait jsonb, output jsonb, error jsonb, usage jsonb,
        attempt int, writes int, crashes int, worker_id text, job_id uuid, job_attempt int, cancel jsonb, cancel_requested boolean,
        expires_at timestamptz, started boolean, finished boolean, events int)
      -- The list leads to the index whatever the planner thinks of the sizes of the two.
      where t.id = any(${rows.map(({ id }) => id)}) and t.id = c.id
    ), journaled as (
      insert into task_step as s (task_id, index, id, agent_id, type, status, attempt, failures, name, input, output, error, model, usage,
        started_at, finished_at)
      select task_id, index, id, agent_id, type, status, attempt, failures, name, input, output, error, model, usage, now(), case when status <> 'started' then now() end
      from jsonb_to_recordset(${jsonb(steps)}::jsonb) as j(task_id text, index int, id text, agent_id text, type text, status text,
        attempt int, failures int, name text, input jsonb, output jsonb, error jsonb, model text, usage jsonb)
      on conflict (task_id, index) do update set status = excluded.status, attempt = excluded.attempt, failures = excluded.failures,
        name = excluded.name, input = excluded.input, output = excluded.output, error = excluded.error, model = excluded.model,
        usage = excluded.usage, finished_at = excluded.finished_at,
        started_at = case when excluded.status = 'started' then excluded.started_at else s.started_at end
    ), logged as (
      insert into agent_log (id, agent_id, task_id, timestamp, level, message, context)
      select id, agent_id, task_id, clock_timestamp(), level, message, context
      from jsonb_to_recordset(${jsonb(logs)}::jsonb) as l(id text, agent_id text, task_id text, level text, message text, context jsonb)
    )
    insert into task_event (task_id, sequence, type, data, created_at)
    select task_id, sequence, type, data, created_at
    from jsonb_to_recordset(${jsonb(events)}::jsonb) as e(task_id text, sequence int, type text, data jsonb, created_at timestamptz)`
}

function outboxEvents({ task, outbox = [] }: TaskChange): NewEvent[] {
  const { org_id, project_id, agent_id } = task
  return org_id === null
    ? []
    : outbox.map(({ type, data }) => ({ type, data, scope: { org_id, project_id, agent_id } }))
}

/** What a change cost its agent, and how many bytes it stores. */
function consumption({
  task,
  consumed,
  steps = [],
  events = [],
  output,
  claimed,
  status,
}: TaskChange): AgentConsumption {
  const over = status !== undefined && isFinished(status)
  // Beginnings are small and would cost a statement each; what is stored is counted with results.
  const counts = consumed !== undefined || over
  const stored_bytes = counts
    ? [...steps, ...events, output ?? ''].reduce((sum: number, part) => sum + (JSON.stringify(part)?.length ?? 0), 0)
    : 0
  return {
    agent_id: task.agent_id,
    token_subject: task.agent?.token_subject ?? null,
    active: (claimed !== undefined || counts) && task.agent?.is_fresh !== true,
    consumed: { ...consumed, stored_bytes },
  }
}
