import { openToolCallStates, type ToolCallState, type ToolSafety } from '#contract/tasks/task-lifecycle.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import type { NewToolCall } from '../task.ts'

/** A tool call that is made outside the engine: its place in the journal, its state, and who sent its result. */
export interface ToolCallRow {
  id: string
  task_id: string
  step_index: number
  project_id: number
  name: string
  safety: ToolSafety
  status: ToolCallState
  resolved_by: string | null
  resolved_at: string | null
}

/** A call with its lease, read under the lock of its task. */
export interface LeasedToolCall extends ToolCallRow {
  /** SHA-256 of the lease token; null without a lease. */
  lease_hash: Buffer | null
  /** Whether the lease is still valid. */
  lease_holds: boolean
}

type Asked = NewToolCall & { task_id: string; agent_id: string; project_id: number }

export async function insertToolCalls(tx: Sql, calls: readonly Asked[]): Promise<void> {
  await tx`
    insert into tool_call (id, task_id, step_index, project_id, agent_id, name, safety, expires_at)
    select id, task_id, step_index, project_id, agent_id, name, safety, expires_at
    from jsonb_to_recordset(${jsonb(calls)}::jsonb) as c(id text, task_id text, step_index int, project_id bigint, agent_id text, name text,
      safety text, expires_at timestamptz)`
}

/** Calls by id; missing ones are left out. */
export async function listToolCalls(sql: Sql, ids: readonly string[]): Promise<ToolCallRow[]> {
  return sql<ToolCallRow>`
    select id, task_id, step_index, project_id, name, safety, status, resolved_by, resolved_at from tool_call where id = any(${[...ids]})`
}

/** Calls by id with their leases; missing ones are left out. */
export async function listLeasedToolCalls(tx: Sql, ids: readonly string[]): Promise<LeasedToolCall[]> {
  return tx<LeasedToolCall>`
    select id, task_id, step_index, project_id, name, safety, status, resolved_by, resolved_at, lease_hash,
      status = 'claimed' and lease_until > now() as lease_holds
    from tool_call where id = any(${[...ids]})`
}

/** A new state of a call, written together with its step. */
export interface ToolCallMove {
  id: string
  status: ToolCallState
  /** New deadline of a call that is offered again; null to keep the old one. */
  expires_at: string | null
}

/** Moves open calls to new states. The lock of their tasks orders these moves. */
export async function moveToolCalls(tx: Sql, moves: readonly ToolCallMove[]): Promise<void> {
  await tx`
    update tool_call c set status = m.status, lease_hash = null, lease_until = null,
      expires_at = coalesce(m.expires_at, c.expires_at),
      resolved_at = case when m.status in ('pending', 'unknown') then null else coalesce(c.resolved_at, now()) end
    from jsonb_to_recordset(${jsonb(moves)}::jsonb) as m(id text, status text, expires_at timestamptz)
    where c.id = any(${moves.map(({ id }) => id)}) and c.id = m.id and c.status = any(${openToolCallStates})`
}

/** Records who sent the results of calls. Their task is locked, and their steps were open under that lock. */
export async function noteResolved(tx: Sql, ids: readonly string[], user_id: string): Promise<void> {
  await tx`update tool_call set resolved_by = ${user_id}, resolved_at = now() where id = any(${[...ids]})`
}

/** Cancels the open calls of tasks that have ended. */
export async function closeToolCalls(tx: Sql, task_ids: readonly string[]): Promise<void> {
  await tx`
    update tool_call set status = 'canceled', lease_hash = null, lease_until = null, resolved_at = now()
    where task_id = any(${[...task_ids]}) and status = any(${openToolCallStates})`
}

/** The parameters of a claim. */
export interface ClaimRequest {
  project_id: number
  names: readonly string[]
  lease_seconds: number
  lease_hash: Buffer
  user_id: string
}

/** A claimed call. */
export interface ClaimedCall {
  id: string
  task_id: string
  step_index: number
  agent_id: string
  name: string
  arguments: unknown
  attempt: number
  until: string
}

/** Number of pending calls of each name that one claim considers: as many claims can run at the same moment. */
const claimWindow = 64

/** Claims the oldest pending call of these tools; undefined if there is none. Two claims never get the same call. */
export async function claimToolCall(sql: Sql, request: ClaimRequest): Promise<ClaimedCall | undefined> {
  const { project_id, names, lease_seconds, lease_hash, user_id } = request
  const [claimed] = await sql<ClaimedCall>`
    with next as (
      select id from tool_call
      where status = 'pending' and id in (
        select c.id from unnest(${[...new Set(names)]}::text[]) as n(name), lateral (
          select id from tool_call where project_id = ${project_id} and name = n.name and status = 'pending'
          order by id limit ${claimWindow}) c)
      order by id limit 1 for update skip locked
    ), claimed as (
      update tool_call c set status = 'claimed', attempt = c.attempt + 1, lease_hash = ${lease_hash}, lease_seconds = ${lease_seconds},
        lease_until = now() + make_interval(secs => ${lease_seconds}), claimed_by = ${user_id}
      from next where c.id = next.id
      returning c.id, c.task_id, c.step_index, c.agent_id, c.name, c.attempt, c.lease_until as until
    )
    select c.*, s.input -> 'arguments' as arguments from claimed c join task_step s on s.task_id = c.task_id and s.index = c.step_index`
  return claimed
}

/** Extends a lease by the duration of its claim and returns its new end; undefined if the token holds no lease. */
export async function extendLease(
  sql: Sql,
  { id, lease_hash }: { id: string; lease_hash: Buffer },
): Promise<string | undefined> {
  const [row] = await sql<{ until: string }>`
    update tool_call set lease_until = now() + make_interval(secs => lease_seconds)
    where id = ${id} and status = 'claimed' and lease_hash = ${lease_hash} and lease_until > now()
    returning lease_until as until`
  return row?.until
}

/** Releases a call whose claimer is gone. Returns whether the lease was still valid. */
export async function releaseClaim(sql: Sql, { id, lease_hash }: { id: string; lease_hash: Buffer }): Promise<boolean> {
  const rows = await sql`
    update tool_call set status = 'pending', attempt = attempt - 1, lease_hash = null, lease_until = null
    where id = ${id} and status = 'claimed' and lease_hash = ${lease_hash} returning id`
  return rows.length > 0
}

/** Whether the lease of any call has ended without a result. */
export async function hasEndedLeases(sql: Sql): Promise<boolean> {
  const rows = await sql`select from tool_call where status = 'claimed' and lease_until <= now() limit 1`
  return rows.length > 0
}

/** Offers repeatable calls whose leases have ended again, at most `limit`. Returns the names of their tools. */
export async function reofferExpired(sql: Sql, limit: number): Promise<string[]> {
  const rows = await sql<{ name: string }>`
    update tool_call set status = 'pending', lease_hash = null, lease_until = null
    where id in (
      select id from tool_call where status = 'claimed' and lease_until <= now() and safety <> 'unsafe'
      order by lease_until limit ${limit} for update skip locked)
    returning name`
  return rows.map(({ name }) => name)
}

/** Calls that must not be repeated and whose leases have ended, at most `limit`. */
export async function listLost(
  sql: Sql,
  limit: number,
): Promise<{ id: string; task_id: string; step_index: number }[]> {
  return sql<{ id: string; task_id: string; step_index: number }>`
    select id, task_id, step_index from tool_call
    where status = 'claimed' and lease_until <= now() and safety = 'unsafe' order by lease_until limit ${limit}`
}

/** Marks such calls as `unknown`, and returns the ids of those that were still claimed. Their tasks are locked. */
export async function markUnknown(tx: Sql, ids: readonly string[]): Promise<string[]> {
  const rows = await tx<{ id: string }>`
    update tool_call set status = 'unknown', lease_hash = null, lease_until = null
    where id = any(${[...ids]}) and status = 'claimed' and lease_until <= now() and safety = 'unsafe' returning id`
  return rows.map(({ id }) => id)
}

/** Those of the given tools that have a pending call. */
export async function listOffered(
  sql: Sql,
  keys: readonly { project_id: number; name: string }[],
): Promise<{ project_id: number; name: string }[]> {
  return sql<{ project_id: number; name: string }>`
    select k.project_id, k.name from jsonb_to_recordset(${jsonb(keys)}::jsonb) as k(project_id bigint, name text)
    where exists (select from tool_call c where c.project_id = k.project_id and c.name = k.name and c.status = 'pending')`
}
