import type { LockedTask, Needs, NewWork, ReadMessage, Reservation, Step, TaskWork } from '../task.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { taskEnded } from './approvals.queries.ts'
import { mayWork } from '../queue/concurrency-limits.ts'
import { columnsOfWork, lockStatement, withWork, type LockedRow } from './task-rows.ts'

/** The lease of a remote worker on a task, read under the lock of the task. */
export interface WorkRow {
  task_id: string
  project_id: number
  queue: string
  status: 'pending' | 'claimed' | 'closed'
  lease_id: string | null
  attempt: number
  lease_seconds: number | null
  lease_until: string | null
  lease_holds: boolean
  claimed_by: string | null
  credential_id: string | null
  worker: string | null
  /** The reservation of each model call in flight by its step, including calls of earlier leases. */
  holds: Record<string, Reservation>
  /** Steps whose results the worker has received. */
  delivered: string[]
  waits_since: string | null
  wants: Needs | null
}

/** Offers locked tasks to the workers of their queues, and replaces earlier offers. */
export async function offerWork(tx: Sql, offers: readonly (NewWork & WorkOf)[]): Promise<void> {
  await tx`
    insert into work (task_id, project_id, agent_id, queue, priority, status)
    select task_id, project_id, agent_id, queue, priority, 'pending'
    from jsonb_to_recordset(${jsonb(offers)}::jsonb) as o(task_id text, project_id bigint, agent_id text, queue text, priority int)
    on conflict (task_id) do update set status = 'pending', queue = excluded.queue, priority = excluded.priority, offered_at = now(),
      lease_until = null, lease_hash = null, delivered = '[]', waits_since = null, wants = null`
}

type WorkOf = Pick<LockedTask, 'project_id' | 'agent_id' | 'priority'> & { task_id: string }

/** Ends the offers and leases of locked tasks. The reservations of calls in flight stay recorded. */
export async function closeWork(tx: Sql, task_ids: readonly string[]): Promise<void> {
  await tx`update work set status = 'closed' where task_id = any(${[...task_ids]}) and status <> 'closed'`
}

/** Ids of open tasks with reservations of calls whose worker is gone: a batch, after a task's id. */
export async function listLateHolds(sql: Sql, after: string, limit: number): Promise<string[]> {
  const rows = await sql<{ task_id: string }>`
    select w.task_id from work w join task t on t.id = w.task_id
    where w.holds <> '{}' and w.task_id > ${after} and t.finished_at is null and (t.hold ->> 'late')::boolean
    order by w.task_id limit ${limit}`
  return rows.map(({ task_id }) => task_id)
}

/**
 * Locks the offered task with the highest priority in these queues whose agent may work, and reads what its run needs.
 * Tasks that others have locked are skipped.
 */
export async function lockOffered(
  tx: Sql,
  { project_id, queues }: { project_id: number; queues: readonly string[] },
): Promise<{ task: LockedTask & { work: TaskWork }; queue: string } | undefined> {
  const { fragment } = tx
  // One statement, because a claim waits for each round trip.
  const [row] = await tx.run<LockedRow & { queue: string }>(fragment`
    with offered as materialized (
      select t.id, w.queue from work w join task t on t.id = w.task_id join agent a on a.id = w.agent_id
      where w.project_id = ${project_id} and w.queue = any(${[...queues]}::text[]) and w.status = 'pending'
        and t.status = 'waiting' and t.cancel_requested_at is null and ${mayWork(tx)}
      order by w.priority desc, w.task_id limit 1 for update of t skip locked)
    ${lockStatement(tx, {
      where: fragment`t.id = (select id from offered)`,
      more: fragment`, ${columnsOfWork(tx)}, (select queue from offered) as queue`,
    })}`)
  if (!row) return undefined
  const { queue, ...task } = row
  return { task: withWork(task), queue }
}

/** A new lease, with its holder. */
export interface NewLease {
  lease_id: string
  lease_hash: Buffer
  lease_seconds: number
  attempt: number
  claimed_by: string
  credential_id: string
  worker: string | null
}

/** Assigns a locked task's offer to a worker, and returns the end of the lease. */
export async function leaseWork(tx: Sql, task_id: string, lease: NewLease): Promise<string> {
  const { lease_id, lease_hash, lease_seconds, attempt, claimed_by, credential_id, worker } = lease
  const [row] = await tx<{ until: string }>`
    update work set status = 'claimed', lease_id = ${lease_id}, lease_hash = ${lease_hash}, lease_seconds = ${lease_seconds},
      lease_until = now() + make_interval(secs => ${lease_seconds}), attempt = ${attempt}, claimed_by = ${claimed_by},
      claimed_at = now(), credential_id = ${credential_id}, worker = ${worker}, delivered = '[]', waits_since = null, wants = null
    where task_id = ${task_id} returning lease_until as until`
  return row!.until
}

/** The work row of a locked task. */
export async function findWork(tx: Sql, task_id: string): Promise<WorkRow | undefined> {
  const [row] = await tx<WorkRow>`
    select task_id, project_id, queue, status, lease_id, attempt, lease_seconds, lease_until, claimed_by, credential_id, worker, holds,
      delivered, waits_since, wants, status = 'claimed' and lease_until > now() as lease_holds
    from work where task_id = ${task_id}`
  return row
}

/** Extends the lease of a locked task by the duration of its claim, and returns its new end. */
export async function extendWork(tx: Sql, task_id: string): Promise<string> {
  const [row] = await tx<{ until: string }>`
    update work set lease_until = now() + make_interval(secs => lease_seconds) where task_id = ${task_id} returning lease_until as until`
  return row!.until
}

/** Records changes by a worker's calls in a lease. The task is locked. */
export async function noteWork(
  tx: Sql,
  task_id: string,
  { holds, waits, wants }: { holds?: Record<string, Reservation>; waits?: boolean; wants?: Needs | null },
): Promise<void> {
  await tx`
    update work set holds = coalesce(${holds === undefined ? null : jsonb(holds)}::jsonb, holds),
      waits_since = case ${waits ?? null}::boolean when true then coalesce(waits_since, now()) when false then null else waits_since end,
      wants = case when ${wants !== undefined}::boolean then ${wants ? jsonb(wants) : null}::jsonb else wants end
    where task_id = ${task_id}`
}

/** Records that a worker received the result of a step, unless its lease has ended since. */
export async function noteDelivered(
  sql: Sql,
  lease: { task_id: string; attempt: number },
  step_id: string,
): Promise<void> {
  await sql`
    update work set delivered = delivered || ${jsonb([step_id])}::jsonb
    where task_id = ${lease.task_id} and attempt = ${lease.attempt} and not delivered ? ${step_id}`
}

/**
 * Records that the worker lost the connection on which it waited for a call in flight. If it repeats the call, it gets
 * that one.
 */
export async function noteLeft(sql: Sql, lease: { task_id: string; attempt: number }, key: string): Promise<void> {
  await sql`
    update task_step set input = input || '{"left": true}'::jsonb
    where task_id = ${lease.task_id} and status = 'started' and (input ->> 'claim')::int = ${lease.attempt}
      and coalesce(input ->> 'key', input ->> 'tool_call_id') = ${key}`
}

/** Whether the stored step is still the same attempt and in progress. The task is locked. */
export async function isUnderWay(tx: Sql, { task_id, index, attempt }: Step): Promise<boolean> {
  const [row] = await tx<{ is_that: boolean }>`
    select status = 'started' and attempt = ${attempt} as is_that from task_step where task_id = ${task_id} and index = ${index}`
  return row?.is_that === true
}

/** Whether the end of the task cut this attempt of the step short, and its usage was not counted since. The task is locked. */
export async function isCutShort(tx: Sql, { task_id, index, attempt }: Step): Promise<boolean> {
  const [row] = await tx<{ is_that: boolean }>`
    select status = 'failed' and attempt = ${attempt} and usage is null and error ->> 'code' = ${taskEnded.code} as is_that
    from task_step where task_id = ${task_id} and index = ${index}`
  return row?.is_that === true
}

/** Claimed tasks whose lease or whose time is over: at most `limit` of each. */
export async function listLostWork(sql: Sql, limit: number): Promise<string[]> {
  const rows = await sql<{ task_id: string }>`
    (select task_id from work where status = 'claimed' and lease_until <= now() order by lease_until limit ${limit})
    union
    (select w.task_id from work w join task t on t.id = w.task_id
      where w.status = 'claimed' and t.status = 'running' and t.expires_at <= now() limit ${limit})`
  return rows.map(({ task_id }) => task_id)
}

/** Those of the given queues that have an offer. */
export async function listOfferedQueues(
  sql: Sql,
  keys: readonly { project_id: number; name: string }[],
): Promise<{ project_id: number; name: string }[]> {
  return sql<{ project_id: number; name: string }>`
    select k.project_id, k.name from jsonb_to_recordset(${jsonb(keys)}::jsonb) as k(project_id bigint, name text)
    where exists (select from work w where w.project_id = k.project_id and w.queue = k.name and w.status = 'pending')`
}

/** Messages to a task that were not read yet, in the order in which they came. */
export async function listUnread(tx: Sql, task_id: string): Promise<Pick<ReadMessage, 'content' | 'parts'>[]> {
  return tx<Pick<ReadMessage, 'content' | 'parts'>>`
    select content, parts from task_message where task_id = ${task_id} and before_step is null order by position`
}
