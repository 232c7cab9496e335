import { randomUUID } from 'node:crypto'
import { subscriptionsOf } from '#contract/events/events.ts'
import { notFound } from '#contract/core/problems.ts'
import type { TaskInput } from '#contract/tasks/tasks.ts'
import type { AgentState } from '#contract/resources/agent-lifecycle.ts'
import { agentMayWork } from '#contract/tasks/task-lifecycle.ts'
import { insertLogRows } from '../../events/agent-log.ts'
import { emitAll, insertEvents, noteEvents, type NewEvent, type WrittenEvent } from '../../events/outbox.ts'
import { jsonb, type Fragment, type Sql } from '../../platform/postgres/database.ts'
import { completeFile, nameFiles, nameFilesOf } from '../files/file-rows.ts'
import type { BegunFile } from '../files/file-store.ts'
import { filesIn } from '../files/input-files.ts'
import { freeSlots, limitKeysOf, isKeyHeld, lockLimits } from '../queue/concurrency-limits.ts'
import { segmentParts, type NewSegment } from './new-segments.ts'
import { taskColumns, type TaskRow } from '../journal/stored-task.ts'
import type { NewJob, Queue } from '../queue/queue.ts'
import { hasTaskSubscription, subscriptionsIn, taskOutbox, type PublishedTask } from '../journal/task-outbox.ts'
import { noUsage, withCaller } from '../journal/task-rows.ts'
import { nextRow, outboxEvents, writtenBy } from '../journal/task-changes.ts'
import type { AgentConfig, Caller, LockedTask, TaskChange, TaskLimits, TaskWork } from '../task.ts'

/** A task as a request describes it. */
export interface NewTask {
  id: string
  /** The agent as read before the insert; it accepted tasks then. The task keeps the agent's version. */
  agent: {
    id: string
    project_id: number
    version: number
    status: string
    settles_to: string | null
    config?: { max_concurrent_tasks?: unknown }
    standing?: AgentStanding
  }
  input: TaskInput
  /** JSON Schema of `output.data`; null if the one of its agent's configuration applies. */
  output_schema?: Record<string, unknown> | null
  /** The task runs after the tasks that its thread already has. The thread must belong to the agent. */
  thread_id?: string | null
  /** Only one task of the project with this key runs or waits at a time. */
  concurrency_key?: string | null
  priority?: number
  run_after?: string | null
  queue_ttl_seconds?: number | null
  timeout_seconds?: number | null
  max_attempts?: number
  /** Its limits. Of each, the lower one of these and of the agent's configuration applies. */
  budget?: TaskLimits
  metadata?: Record<string, unknown>
  created_by: string
  /** The API key, grant or session that created it; null for a schedule. */
  credential_id?: string | null
  request_id: string | null
  trace_id?: string | null
  schedule_id?: string | null
  /** The finished task that it retries, and the step from which it does: see `copyJournal`. */
  retry_of?: { task_id: string; from_step: number }
  /** Uploaded files of its input, stored but not visible yet; they become files of the task. */
  received?: readonly BegunFile[]
  /** W3C Trace Context from the request. */
  traceparent?: string | null
  caller?: Caller | null
  /** The response of a protocol door that the task answers; only for tasks that may share a transaction with others. */
  segment?: NewSegment
  /** Of a delegated task: the task that waits for it, the root of the tree, and its depth. */
  parent?: { task_id: string; root_task_id: string; depth: number }
}

/**
 * What the claim of a new task depends on, read together with the agent. `insertClaimed` checks that it still holds.
 */
export interface AgentStanding {
  org_id: string
  name: string
  status: AgentState
  /** Raised by each change of the agent except `last_activity`. */
  revision: number
  /** Version of the configuration that was read. */
  version: number
  config: AgentConfig
  environment: Buffer | null
  token_subject: string
  tokens_used: number
  /** See `LockedTask`. */
  providers_version: number
  /** Whether its `last_activity` is less than a second old. */
  is_fresh: boolean
  /** Whether a budget limits its tasks: of the agent, project, organization or the caller's credential. */
  has_budget: boolean
  /** The events of tasks that webhooks subscribe to; null for none. */
  subscriptions: string[] | null
}

/** The row of a new task. */
export interface CreatedRow extends TaskRow {
  /** Number of the request that was recorded with its segment; null without one. */
  request_record?: number | null
}

/** The metadata of a caller without `door`, which only the service sets. */
export function ownMetadata({ door: _door, ...metadata }: Record<string, unknown>): Record<string, unknown> {
  return metadata
}

const defaultPriority = 5
/** Number of workers that may die under a task in succession before it fails. */
const defaultAttemptsMax = 5
/** A task that is due later than this stays out of the queue until then, because waiting jobs slow down fetching. */
const dueSoon_ms = 60_000
/** The same for a task with concurrency limits, because its job blocks others while it waits to be due. */
const limitedSoon_ms = 10_000

/** Whether a new task's job is sent at once, and what the task holds then. */
interface Admission {
  sent: boolean
  slot: 'held' | null
  /** No dispatch is needed before this time; null if only the agent and the concurrency limits decide. */
  due_at: Date | null
  /** The task waits until its project has fewer jobs in the queue. */
  backlog: boolean
  /** Its place in its thread; null without one. */
  thread_position: number | null
}

const held: Admission = { sent: false, slot: null, due_at: null, backlog: false, thread_position: null }

/**
 * Stores a task with its first event and, if it may run soon, its job. Returns whether there is a job to fetch. With
 * `isFull` the project has many jobs in the queue already, so a task without concurrency limits waits for room.
 *
 * If the agent was deleted, an ordinary task is silently not stored; for any other, the lock shows it.
 * @throws `thread_not_found`, `agent_not_found`
 */
export async function insertTask(tx: Sql, queue: Queue, task: NewTask, isFull = false): Promise<boolean> {
  const admission = await admit(tx, task, isFull)
  const { rows } = await store(tx, queue, [{ task, admission }])
  if (rows.size > 0) await keepFiles(tx, task)
  return admission.sent && rows.size > 0
}

/** Assigns the files of its input to the task: uploads become visible, and existing files that it names are linked. */
async function keepFiles(
  tx: Sql,
  { id: task_id, agent: { project_id }, input, received = [], retry_of }: NewTask,
): Promise<void> {
  for (const file of received) await completeFile(tx, file.id, file, { task_id })
  await nameFiles(tx, { task_id, project_id }, filesIn(input))
  if (retry_of) await nameFilesOf(tx, task_id, retry_of.task_id)
}

/** Stores ordinary tasks and their jobs in one batch. A row is missing if the agent of its task was deleted. */
export async function insertOrdinary(tx: Sql, queue: Queue, tasks: readonly NewTask[]): Promise<Stored> {
  return store(
    tx,
    queue,
    tasks.map((task) => ({ task, admission: { ...held, sent: true } })),
  )
}

/**
 * Whether a task may be sent without checks under locks, as far as can be seen without them; the claim checks again.
 */
export function isOrdinary({ agent, run_after, thread_id, concurrency_key }: NewTask, isFull: boolean): boolean {
  const seemsLimited = thread_id != null || concurrency_key != null || agent.config?.max_concurrent_tasks != null
  return !seemsLimited && !isFull && agentMayWork(agent) && isWithin(run_after, dueSoon_ms)
}

/**
 * A new task as its claim sees it, before it is stored; undefined if the claim depends on more than was read with its
 * agent. Its times are from this process's clock and are not stored.
 */
export function claimable(task: NewTask): (LockedTask & { work: TaskWork }) | undefined {
  const { agent, created_by, request_id, credential_id = null, caller = null, timeout_seconds = null } = task
  const { standing } = agent
  const { budget: ofAgent } = (standing?.config ?? {}) as { budget?: unknown }
  const isLimited = ofAgent !== undefined || Object.keys(task.budget ?? {}).length > 0
  if (!standing || standing.version !== agent.version || standing.status !== 'running') return undefined
  if (isLimited || standing.has_budget || task.retry_of || task.run_after || task.parent) return undefined
  const now = new Date().toISOString()
  const { id, output_schema = null, metadata = {}, traceparent = null, input } = task
  const { config, environment, name, status, token_subject, is_fresh } = standing
  return {
    id,
    project_id: agent.project_id,
    agent_id: agent.id,
    agent_version: agent.version,
    status: 'queued',
    wait: null,
    usage: noUsage,
    priority: task.priority ?? defaultPriority,
    attempt: 0,
    writes: 0,
    crashes: 0,
    max_attempts: task.max_attempts ?? defaultAttemptsMax,
    unseen: 0,
    thread_id: null,
    parent_task_id: null,
    root_task_id: null,
    depth: 0,
    retried_from: null,
    concurrency_key: null,
    credential_id,
    worker_id: null,
    job_id: randomUUID(),
    job_attempt: 0,
    slot: null,
    cancel: null,
    cancel_requested_at: null,
    last_sequence: 1,
    timeout_seconds,
    expires_at: null,
    created_by,
    request_id,
    created_at: now,
    started_at: null,
    agent: { name, status, settles_to: null, token_subject, max_concurrent_tasks: null, is_fresh },
    org_id: standing.org_id,
    providers_version: standing.providers_version,
    subscriptions: standing.subscriptions,
    budget: {},
    has_budget: false,
    hold: null,
    tokens_used: standing.tokens_used,
    now,
    event_at: now,
    work: {
      id,
      input,
      output_schema,
      timeout_seconds,
      thread_id: null,
      config: withCaller(config, caller),
      environment,
      metadata,
      traceparent,
      caller,
    },
  }
}

/** A new task that is stored as already claimed, and the change of its claim. */
export interface ClaimedTask {
  task: NewTask
  change: TaskChange
}

/**
 * Stores tasks with their claims, first events, steps, logs and active jobs in a single statement, which needs no
 * transaction. Returns the tasks as created, by id. A task is missing and not stored if its agent or its organization's
 * providers have changed, or a budget or a subscription was added, since they were read.
 */
export async function insertClaimed(
  sql: Sql,
  queue: Pick<Queue, 'insertActive'>,
  claimed: readonly ClaimedTask[],
): Promise<Map<string, { row: CreatedRow; row_version: string }>> {
  const rows = claimed.map(({ task, change }) => {
    const { org_id, revision, providers_version, subscriptions } = task.agent.standing!
    return {
      ...newRow(task, { ...held, sent: true }),
      ...pick(nextRow(change, undefined), ['usage', 'attempt', 'worker_id', 'job_id', 'job_attempt', 'hold']),
      last_sequence: 1 + (change.events?.length ?? 0),
      lasts_seconds: change.expires_at ? claimSeconds(change) : null,
      org_id,
      revision,
      providers_version,
      subscriptions,
    }
  })
  const changes = claimed.map(({ change }) => change)
  const { steps, events, logs } = writtenBy(changes, new Map())
  const outbox = claimed.flatMap(({ task, change }) => [...createdEvent(task), ...outboxEvents(change)])
  const stale = claimed.filter(({ task }) => !task.agent.standing!.is_fresh).map(({ task }) => task.agent.id)
  const { fragment } = sql
  const segments = segmentParts(
    sql,
    claimed.map(({ task }) => task),
    fragment`asked`,
  )
  const stored = await sql.run<CreatedRow & WrittenEvent & { row_version: string }>(fragment`
    with asked as materialized (
      select r.* from jsonb_to_recordset(${jsonb(rows)}::jsonb) as r(id text, project_id bigint, agent_id text, agent_version int,
        input jsonb, priority int, queue_ttl_seconds int, timeout_seconds int, max_attempts int, usage jsonb, metadata jsonb,
        created_by text, request_id text, trace_id text, job_id uuid, job_attempt int, attempt int, worker_id text, hold jsonb,
        last_sequence int, lasts_seconds int, schedule_id text, traceparent text, credential_id text, output_schema jsonb,
        caller jsonb, org_id text, revision bigint, providers_version int, subscriptions text[])
      -- The limit leads to the index, once for each task, whatever the planner thinks of the sizes of the two.
      cross join lateral (select from agent a where a.id = r.agent_id and a.revision = r.revision and a.status = 'running' limit 1) as_read
      cross join lateral (select from organization o where o.id = r.org_id and o.model_providers_version = r.providers_version limit 1) same_providers
      where not exists (select from budget b where b.subject in (r.agent_id, 'proj_' || r.project_id, r.org_id, r.credential_id))
        and ${subscriptionsIn(sql, fragment`r.org_id`)} is not distinct from r.subscriptions
    ), created as (
      insert into task (id, project_id, agent_id, agent_version, status, input, priority, queue_ttl_seconds, timeout_seconds, max_attempts,
        usage, metadata, created_by, request_id, trace_id, job_id, job_attempt, attempt, worker_id, hold, last_sequence, expires_at,
        started_at, schedule_id, traceparent, credential_id, output_schema, caller)
      select id, project_id, agent_id, agent_version, 'running', input, priority, queue_ttl_seconds, timeout_seconds, max_attempts,
        usage, metadata, created_by, request_id, trace_id, job_id, job_attempt, attempt, worker_id, hold, last_sequence,
        now() + make_interval(secs => lasts_seconds), now(), schedule_id, traceparent, credential_id, output_schema, caller
      from asked returning ${taskColumns(sql)}, xmin::text as row_version
    ), subscribed as (
      insert into task_event (task_id, sequence, type, data)
      select id, 1, 'task.created', jsonb_build_object('status', 'queued', 'agent_id', agent_id, 'agent_version', agent_version)
      from asked
      union all
      select e.task_id, e.sequence, e.type, e.data
      from jsonb_to_recordset(${jsonb(events)}::jsonb) as e(task_id text, sequence int, type text, data jsonb)
      where e.task_id in (select id from asked)
    ), journaled as (
      insert into task_step (task_id, index, id, agent_id, type, status, attempt, failures, name, input)
      select task_id, index, id, agent_id, type, status, attempt, failures, name, input
      from jsonb_to_recordset(${jsonb(steps)}::jsonb) as j(task_id text, index int, id text, agent_id text, type text, status text,
        attempt int, failures int, name text, input jsonb)
      where task_id in (select id from asked)
    ), logged as (${insertLogRows(sql, logs, fragment`entry.task_id in (select id from asked)`)}
    ), sent as (${queue.insertActive(sql, fragment`asked`)}),
    touched as (
      update agent set last_activity = now() where id in (
        select id from agent where id = any(${[...new Set(stale)]}) order by id for no key update skip locked)
    )${segments.parts}
    ${outbox.length > 0 ? fragment`, emitted as (${insertEvents(sql, outbox, fragment`e.data->'task'->>'id' in (select id from asked)`)})` : fragment``}
    select created.*${segments.column}
      ${outbox.length > 0 ? fragment`, (select coalesce(bool_and(is_matched), true) from emitted) as is_matched` : fragment``}
    from created`)
  if (outbox.length > 0) noteEvents(sql, stored.slice(0, 1))
  return new Map(
    stored.map(({ row_version, is_matched: _is_matched, ...row }) => [row.id, { row: asCreated(row), row_version }]),
  )
}

/** The `task.created` event for webhooks; none if no webhook subscribes. */
function createdEvent(task: NewTask): NewEvent[] {
  const { agent } = task
  const { standing } = agent
  if (!standing?.subscriptions) return []
  const { id: agent_id, project_id, version: agent_version } = agent
  const published = { ...{ id: task.id, project_id, agent_id, agent_version }, agent_name: standing.name }
  const beginning = { thread_id: null, retried_from: null, status: 'queued' as const }
  return creationEvents({ ...published, ...beginning }, standing.org_id, { subscriptions: standing.subscriptions })
}

function creationEvents(
  task: PublishedTask,
  org_id: string,
  { subscriptions, from_step }: { subscriptions: readonly string[]; from_step?: number | undefined },
): NewEvent[] {
  const event = { sequence: 1, type: 'task.created' as const, data: { from_step } }
  const scope = { org_id, project_id: task.project_id, agent_id: task.agent_id }
  return taskOutbox(task, subscriptions, [event]).map((one) => ({ ...one, scope }))
}

/** Seconds until the task expires, by the times of the claim. */
function claimSeconds({ expires_at, task }: TaskChange): number {
  return Math.round((Date.parse(expires_at!) - Date.parse(task.now)) / 1000)
}

/** The row as it was created, before the claim. */
function asCreated(row: CreatedRow): CreatedRow {
  return { ...row, status: 'queued', started_at: null, last_sequence: 1 }
}

function pick<T extends object, K extends keyof T>(of: T, names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, of[name]])) as Pick<T, K>
}

function isWithin(run_after: string | null | undefined, ms: number): boolean {
  return !run_after || Date.parse(run_after) <= Date.now() + ms
}

/** A stored task with the data of its webhook event; null if no webhook subscribes. */
interface StoredRow extends CreatedRow {
  subscribed: { org_id: string; agent_name: string } | null
}

/** Stored tasks, and the jobs of those that are sent. */
export interface Stored {
  rows: Map<string, CreatedRow>
  jobs: readonly NewJob[]
}

/**
 * Writes new tasks, their first events and the jobs of those that are sent in two statements. A third one writes the
 * events for webhooks, if any webhook subscribes.
 */
async function store(
  tx: Sql,
  queue: Queue,
  created: readonly { task: NewTask; admission: Admission }[],
): Promise<Stored> {
  const rows = created.map(({ task, admission }) => newRow(task, admission))
  const segments = segmentParts(
    tx,
    created.map(({ task }) => task),
    tx.fragment`created`,
  )
  const stored = await tx.run<StoredRow>(tx.fragment`
    with created as (
      insert into task (id, project_id, agent_id, agent_version, thread_id, thread_position, concurrency_key, status, input, priority,
        run_after, due_at, queue_ttl_seconds, timeout_seconds, max_attempts, budget, usage, metadata, created_by, request_id, trace_id,
        job_id, slot, last_sequence, expires_at, schedule_id, retried_from, traceparent, credential_id, backlog, output_schema, caller, parent_task_id,
        root_task_id, depth)
      select r.id, r.project_id, r.agent_id, r.agent_version, r.thread_id, r.thread_position, r.concurrency_key, 'queued', r.input,
        r.priority, r.run_after, r.due_at, r.queue_ttl_seconds, r.timeout_seconds, r.max_attempts, ${lowestLimits(tx)}, r.usage,
        r.metadata, r.created_by, r.request_id, r.trace_id, r.job_id, r.slot, 1, now() + make_interval(secs => r.queue_ttl_seconds),
        r.schedule_id, r.retried_from, r.traceparent, r.credential_id, r.backlog, r.output_schema, r.caller, r.parent_task_id, r.root_task_id, r.depth
      from jsonb_to_recordset(${jsonb(rows)}::jsonb) as r(id text, project_id bigint, agent_id text, agent_version int, thread_id text,
        thread_position int, concurrency_key text, input jsonb, priority int, run_after timestamptz, due_at timestamptz,
        queue_ttl_seconds int, timeout_seconds int, max_attempts int, budget jsonb, usage jsonb, metadata jsonb, created_by text,
        request_id text, trace_id text, job_id uuid, slot text, schedule_id text, retried_from text, traceparent text, credential_id text, backlog boolean, output_schema jsonb, caller jsonb,
        parent_task_id text, root_task_id text, depth int)
      -- The limit leads to the index, once for each task, whatever the planner thinks of the sizes of the two.
      cross join lateral (
        select coalesce(v.config, a.config)->'budget' as budget from agent a
        left join agent_version v on v.agent_id = a.id and v.version = r.agent_version where a.id = r.agent_id limit 1
      ) of_agent
      returning ${taskColumns(tx)}
    ), subscribed as (
      insert into task_event (task_id, sequence, type, data)
      select id, 1, 'task.created', jsonb_build_object('status', status, 'agent_id', agent_id, 'agent_version', agent_version)
      from created
    )${segments.parts}
    select created.*${segments.column}, (
      select jsonb_build_object('org_id', p.org_id, 'agent_name', a.name)
      from agent a join project p on p.id = a.project_id join webhook w on w.org_id = p.org_id
      where a.id = created.agent_id and ${hasTaskSubscription} and w.events && ${subscriptionsOf('task.created')} limit 1) as subscribed
    from created`)
  const found = new Map(stored.map(({ subscribed: _subscribed, ...row }) => [row.id, row]))
  await emitAll(
    tx,
    stored.flatMap((row) => createdEvents(row, created)),
  )
  const jobs = created.flatMap(({ task }, i) => newJob(task, found.has(task.id) ? rows[i]!.job_id : null))
  await queue.send(tx, jobs)
  return { rows: found, jobs }
}

function createdEvents({ subscribed, ...row }: StoredRow, created: readonly { task: NewTask }[]): NewEvent[] {
  if (subscribed === null) return []
  const { org_id, agent_name } = subscribed
  const from_step = created.find(({ task }) => task.id === row.id)?.task.retry_of?.from_step
  return creationEvents({ ...row, agent_name }, org_id, { subscriptions: subscriptionsOf('task.created'), from_step })
}

function newRow(task: NewTask, { sent, slot, due_at, backlog, thread_position }: Admission) {
  const { agent, created_by, request_id } = task
  return {
    id: task.id,
    project_id: agent.project_id,
    agent_id: agent.id,
    agent_version: agent.version,
    thread_id: task.thread_id ?? null,
    thread_position,
    concurrency_key: task.concurrency_key ?? null,
    input: task.input,
    priority: task.priority ?? defaultPriority,
    run_after: task.run_after ?? null,
    due_at,
    queue_ttl_seconds: task.queue_ttl_seconds ?? null,
    timeout_seconds: task.timeout_seconds ?? null,
    max_attempts: task.max_attempts ?? defaultAttemptsMax,
    budget: task.budget ?? {},
    usage: noUsage,
    metadata: task.metadata ?? {},
    created_by,
    request_id,
    trace_id: task.trace_id ?? null,
    job_id: sent ? randomUUID() : null,
    slot,
    schedule_id: task.schedule_id ?? null,
    retried_from: task.retry_of?.task_id ?? null,
    traceparent: task.traceparent ?? null,
    credential_id: task.credential_id ?? null,
    backlog,
    output_schema: task.output_schema ?? null,
    caller: task.caller ?? null,
    parent_task_id: task.parent?.task_id ?? null,
    root_task_id: task.parent?.root_task_id ?? null,
    depth: task.parent?.depth ?? 0,
  }
}

function newJob({ id, agent, priority = defaultPriority, run_after }: NewTask, job_id: string | null): NewJob[] {
  if (job_id === null) return []
  const start_after = run_after ? new Date(run_after) : undefined
  return [{ id: job_id, task_id: id, project_id: agent.project_id, priority, start_after }]
}

const limitNames = ['max_cost_usd', 'max_tokens', 'max_steps', 'max_tool_calls'] as const satisfies (keyof TaskLimits)[]

/** Of each limit, the lower one of the task's and of the agent's at its version. */
function lowestLimits({ fragment }: Sql): Fragment {
  return fragment`case when r.budget = '{}' and of_agent.budget is null then '{}' else (
    select coalesce(jsonb_object_agg(name, lowest), '{}') from (
      select key as name, min(value::text::numeric) as lowest from (
        select key, value from jsonb_each(r.budget)
        union all
        select key, value from jsonb_each(case when jsonb_typeof(of_agent.budget) = 'object' then of_agent.budget else '{}' end)
      ) limits
      where key = any(${[...limitNames]}) and jsonb_typeof(value) = 'number' group by key
    ) lowest) end`
}

/**
 * Whether a new task may be sent. For an ordinary task, no lock is needed, because the claim checks again. For any
 * other, the decision is made under locks: of its limits, and of the agent's row, because otherwise a concurrent start
 * of the agent would miss this task and a concurrent deletion would leave it behind.
 */
async function admit(tx: Sql, task: NewTask, isFull: boolean): Promise<Admission> {
  if (isOrdinary(task, isFull)) return { ...held, sent: true }
  const { agent, thread_id = null, concurrency_key = null, run_after } = task

  const [sure] = await tx<{ status: string; settles_to: string | null; max_concurrent_tasks: number | null }>`
    select status, settles_to, max_concurrent_tasks from agent where id = ${agent.id} for share`
  if (!sure) throw notFound('agent_not_found', 'agent', agent.id)
  if (thread_id !== null) await joinThread(tx, thread_id, agent)
  const isLimited = sure.max_concurrent_tasks !== null
  const limitKeys = limitKeysOf({ ...agent, agent_id: agent.id, thread_id, concurrency_key }, isLimited)
  if (limitKeys.length > 0) await lockLimits(tx, limitKeys)
  const thread_position = thread_id === null ? null : await nextPosition(tx, thread_id)
  const soon_ms = limitKeys.length > 0 ? limitedSoon_ms : dueSoon_ms
  if (run_after && !isWithin(run_after, soon_ms))
    return { ...held, thread_position, due_at: new Date(Date.parse(run_after) - soon_ms) }
  if (isFull && limitKeys.length === 0) return { ...held, backlog: agentMayWork(sure) }
  const sent = agentMayWork(sure) && (limitKeys.length === 0 || (await areOpen(tx, task, limitKeys, isLimited)))
  return { ...held, thread_position, sent, slot: sent && isLimited ? 'held' : null }
}

/**
 * Locks the thread until the commit, so that it is not deleted, and records its use.
 * @throws `thread_not_found`
 */
async function joinThread(tx: Sql, thread_id: string, agent: NewTask['agent']): Promise<void> {
  const [thread] = await tx`
    update thread set updated_at = now() where id = ${thread_id} and project_id = ${agent.project_id} and agent_id = ${agent.id}
    returning id`
  if (!thread) throw notFound('thread_not_found', 'thread', thread_id.slice(0, 100))
}

/** Called under the thread's lock, so that each position is assigned once and in order. */
async function nextPosition(tx: Sql, thread_id: string): Promise<number> {
  const [last] = await tx<{ position: number | null }>`
    select max(thread_position) as position from task where thread_id = ${thread_id}`
  return (last?.position ?? 0) + 1
}

/** Whether the locked limits have room for a new task. Room that is about to be dispatched belongs to earlier tasks. */
async function areOpen(tx: Sql, task: NewTask, limitKeys: readonly string[], isLimited: boolean): Promise<boolean> {
  const { agent, thread_id = null, concurrency_key = null } = task
  const [row] = await tx.run<{ isBusy: boolean }>(tx.fragment`
    select exists (select from freed_gate where gate = any(${[...limitKeys]}))
      or exists (select from task t where t.thread_id = ${thread_id}::text and t.finished_at is null)
      or ${isKeyHeld(tx, agent.project_id, concurrency_key)} as "isBusy"`)
  if (row?.isBusy) return false
  return !isLimited || ((await freeSlots(tx, [agent.id])).get(agent.id) ?? 0) > 0
}
