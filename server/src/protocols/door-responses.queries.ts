import type { TaskState } from '#contract/tasks/task-lifecycle.ts'
import type { Caller } from '../engine/task.ts'
import type { Principal } from '../http/access/principal.ts'
import { jsonb, type Sql } from '../platform/postgres/database.ts'
import { isId } from '../platform/ids.ts'

/** A segment of a task, which is a response or run of a protocol. It starts with the event `first_sequence`. */
export interface DoorResponse {
  id: string
  project_id: number
  task_id: string
  ordinal: number
  first_sequence: number
  /** The parts of the request that responses show again, in the form of the protocol. */
  request: Record<string, unknown>
  /** Items of the request, in the form of the protocol. */
  input: unknown[]
  conversation: string | null
  previous: string | null
  store: boolean
  /** Whether a wait for an approval ends the segment, because its credential may resolve approvals. */
  resolves: boolean
  created_at: string
}

/** A segment with its agent and the state of its task. */
export interface FoundResponse extends DoorResponse {
  agent_id: string
  agent_version: number
  thread_id: string | null
  thread_position: number | null
  status: TaskState
  wait: { reason: string } | null
  /** `config.doors` of the agent's version. */
  doors: unknown
  /** Whether the task has an output schema. */
  has_schema: boolean
  /** First event of the next segment of the task; null for the last segment. */
  before_sequence: number | null
}

export type NewResponse = Omit<DoorResponse, 'created_at' | 'ordinal'>

/** Stores the next segment of a task, whose row must be locked or new. */
export async function insertResponse(tx: Sql, response: NewResponse): Promise<void> {
  const { id, project_id, task_id, first_sequence, request, input, conversation, previous, store, resolves } = response
  await tx`
    insert into door_response (id, project_id, task_id, ordinal, first_sequence, request, input, conversation, previous, store, resolves)
    select ${id}, ${project_id}, ${task_id}, coalesce(max(ordinal), 0) + 1, ${first_sequence}, ${jsonb(request)}, ${jsonb(input)},
      ${conversation}, ${previous}, ${store}, ${resolves}
    from door_response where task_id = ${task_id}`
}

/**
 * A segment of the caller's organization; undefined if it does not exist, is hidden, or its agent is deleted. With
 * `hidden`, also one that is hidden: created with `store: false`, or deleted.
 */
export async function findResponse(
  sql: Sql,
  id: string,
  { org_id }: Pick<Principal, 'org_id'>,
  { hidden = false } = {},
): Promise<FoundResponse | undefined> {
  if (!isId('resp', id)) return undefined
  const [row] = await sql<FoundResponse>`
    select r.id, r.project_id, r.task_id, r.ordinal, r.first_sequence, r.request, r.input, r.conversation, r.previous, r.store,
      r.resolves, r.created_at, t.agent_id, t.agent_version, t.thread_id, t.thread_position, t.status, t.wait,
      (select coalesce(v.config, a.config)->'doors' from agent a
        left join agent_version v on v.agent_id = a.id and v.version = t.agent_version where a.id = t.agent_id) as doors,
      (t.output_schema is not null or (select jsonb_typeof(coalesce(v.config, a.config)->'output_schema') = 'object' from agent a
        left join agent_version v on v.agent_id = a.id and v.version = t.agent_version where a.id = t.agent_id)) as has_schema,
      (select n.first_sequence from door_response n where n.task_id = r.task_id and n.ordinal = r.ordinal + 1) as before_sequence
    from door_response r join project p on p.id = r.project_id and p.org_id = ${org_id} join task t on t.id = r.task_id
    where r.id = ${id} and (${hidden}::boolean or (r.store and r.deleted_at is null))
      and not exists (select from removed_agent g where g.agent_id = t.agent_id)`
  return row
}

/** Hides a response. Returns false if it was hidden already. */
export async function hideResponse(sql: Sql, id: string): Promise<boolean> {
  const hidden = await sql`
    update door_response set deleted_at = now() where id = ${id} and store and deleted_at is null returning id`
  return hidden.length > 0
}

/** Locks a task and returns the sequence number of its last event; undefined if the task does not exist. */
export async function lockLastSequence(tx: Sql, task_id: string): Promise<number | undefined> {
  const [row] = await tx<{ last_sequence: number }>`select last_sequence from task where id = ${task_id} for update`
  return row?.last_sequence
}

/** Sets the options of the caller for the rest of a locked task. The limit of tool calls can only decrease. */
export async function setCaller(tx: Sql, task_id: string, caller: Caller): Promise<void> {
  await tx`
    update task set caller = ${jsonb(caller)} || jsonb_strip_nulls(jsonb_build_object('max_tool_calls',
      least((caller->>'max_tool_calls')::int, ${caller.max_tool_calls ?? null}::int)))
    where id = ${task_id}`
}

/** Number of steps of a task. */
export async function countTaskSteps(sql: Sql, task_id: string): Promise<number> {
  const [row] = await sql<{ steps: number }>`select count(*)::int as steps from task_step where task_id = ${task_id}`
  return row?.steps ?? 0
}

/** Creates a hidden thread of an agent, optionally as a fork of another thread up to a position. Returns its id. */
export async function insertHiddenThread(
  tx: Sql,
  thread: {
    id: string
    project_id: number
    agent_id: string
    created_by: string
    parent: { thread_id: string; position: number } | null
  },
): Promise<void> {
  const { id, project_id, agent_id, created_by, parent } = thread
  await tx`
    insert into thread (id, project_id, agent_id, metadata, created_by, hidden, parent_thread_id, parent_position)
    values (${id}, ${project_id}, ${agent_id}, '{}', ${created_by}, true, ${parent?.thread_id ?? null}, ${parent?.position ?? null})`
}

/** Locks a thread and returns its last position; undefined if the thread does not exist. */
export async function lockLastPosition(tx: Sql, thread_id: string): Promise<number | undefined> {
  const [row] = await tx<{ position: number }>`
    select coalesce((select max(thread_position) from task where thread_id = h.id), 0) as position
    from thread h where id = ${thread_id} for update`
  return row?.position
}
