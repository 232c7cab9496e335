import type { TaskState } from '#contract/tasks/task-lifecycle.ts'
import type { Caller } from '../engine/task.ts'
import type { Principal } from '../http/access/principal.ts'
import { jsonb, type Sql } from '../platform/postgres/database.ts'
import { isId } from '../platform/ids.ts'

/** A response of a door: a segment of a task, which begins with the event `first_sequence`. */
export interface DoorResponse {
  id: string
  project_id: number
  task_id: string
  ordinal: number
  first_sequence: number
  /** What was asked for, in the words of the protocol, as far as it is shown again. */
  request: Record<string, unknown>
  /** Items of the request, in the words of the protocol. */
  input: unknown[]
  conversation: string | null
  previous: string | null
  store: boolean
  /** A wait for an approval ends it, because its credential may resolve approvals. */
  resolves: boolean
  created_at: string
}

/** A response with what continues it: its agent and where its task stands. */
export interface FoundResponse extends DoorResponse {
  agent_id: string
  agent_version: number
  thread_id: string | null
  thread_position: number | null
  status: TaskState
  wait: { reason: string } | null
  /** `config.doors` of its agent's version. */
  doors: unknown
  /** Its task's answer must meet a schema. */
  has_schema: boolean
  /** The first event of the next segment of the task; null of the last. */
  before_sequence: number | null
}

export type NewResponse = Omit<DoorResponse, 'created_at' | 'ordinal'>

/** Stores a segment as the next one of its task, whose row is locked or new. */
export async function insertResponse(tx: Sql, response: NewResponse): Promise<void> {
  const { id, project_id, task_id, first_sequence, request, input, conversation, previous, store, resolves } = response
  await tx`
    insert into door_response (id, project_id, task_id, ordinal, first_sequence, request, input, conversation, previous, store, resolves)
    select ${id}, ${project_id}, ${task_id}, coalesce(max(ordinal), 0) + 1, ${first_sequence}, ${jsonb(request)}, ${jsonb(input)},
      ${conversation}, ${previous}, ${store}, ${resolves}
    from door_response where task_id = ${task_id}`
}

/**
 * A response of the caller's organization; undefined where there is none, its agent is gone, or it was deleted. `hidden`
 * also finds one that is not to be retrieved (`store: false`) or was deleted.
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

/** Hides a response that is not hidden; gives whether it did. */
export async function hideResponse(sql: Sql, id: string): Promise<boolean> {
  const hidden = await sql`
    update door_response set deleted_at = now() where id = ${id} and store and deleted_at is null returning id`
  return hidden.length > 0
}

/** Locks a task and gives its last event; undefined where there is none. */
export async function lockLastSequence(tx: Sql, task_id: string): Promise<number | undefined> {
  const [row] = await tx<{ last_sequence: number }>`select last_sequence from task where id = ${task_id} for update`
  return row?.last_sequence
}

/** Sets what the caller of a task asks for it from now on; its bound on calls of tools only gets lower. Its row is locked. */
export async function setCaller(tx: Sql, task_id: string, caller: Caller): Promise<void> {
  await tx`
    update task set caller = ${jsonb(caller)} || jsonb_strip_nulls(jsonb_build_object('max_tool_calls',
      least((caller->>'max_tool_calls')::int, ${caller.max_tool_calls ?? null}::int)))
    where id = ${task_id}`
}

/** How many steps a task has. */
export async function countTaskSteps(sql: Sql, task_id: string): Promise<number> {
  const [row] = await sql<{ steps: number }>`select count(*)::int as steps from task_step where task_id = ${task_id}`
  return row?.steps ?? 0
}

/** A hidden thread of an agent, which may go on from another up to a position; gives its id. */
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

/** Locks a thread and gives its last position; undefined where it is gone. */
export async function lockLastPosition(tx: Sql, thread_id: string): Promise<number | undefined> {
  const [row] = await tx<{ position: number }>`
    select coalesce((select max(thread_position) from task where thread_id = h.id), 0) as position
    from thread h where id = ${thread_id} for update`
  return row?.position
}
