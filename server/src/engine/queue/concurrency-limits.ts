import type { Fragment, Sql } from '../../platform/postgres/database.ts'

/**
 * Concurrency limits admit a bounded number of tasks: `thread:<id>` one after the other, `key:<project>:<key>` one at a
 * time, `agent:<id>` up to the agent's `max_concurrent_tasks`.
 *
 * A task over a limit stays in the task table without a job. A transaction that queues a task with limits holds the
 * lock of each limit until its commit, so of two processes only one can queue it. Lock order: agent's row, limits in
 * the order of their hashes, tasks. A transaction that holds a limit only tries to lock another one. Ending a task
 * takes no limit's lock: it inserts a row into `freed_gate`, and the next task is queued after the commit.
 */
export type LimitKey = string

/** The columns that determine a task's limits. */
export interface LimitedTask {
  project_id: number
  agent_id: string
  thread_id: string | null
  concurrency_key: string | null
}

/** The limit of an agent. The same key stands for all deferred tasks of an agent that may work again. */
export function agentLimitKey(agent_id: string): LimitKey {
  return `agent:${agent_id}`
}

/** The limits of a task; most tasks have none. */
export function limitKeysOf(
  { project_id, agent_id, thread_id, concurrency_key }: LimitedTask,
  isLimited: boolean,
): LimitKey[] {
  return [
    ...(thread_id === null ? [] : [`thread:${thread_id}`]),
    ...(concurrency_key === null ? [] : [`key:${project_id}:${concurrency_key}`]),
    ...(isLimited ? [agentLimitKey(agent_id)] : []),
  ]
}

const lockSeed = 4711

/**
 * Locks limits until the end of the transaction, always in the same order. It also disables sequential scans for the
 * transaction: its queries need a few rows, but the planner prefers to read the whole table when one thread has
 * thousands of tasks.
 */
export async function lockLimits(tx: Sql, limitKeys: readonly LimitKey[]): Promise<void> {
  await tx`
    select set_config('enable_seqscan', 'off', true), pg_advisory_xact_lock(hash) from (
      select distinct hashtextextended(limit_key, ${lockSeed}) as hash from unnest(${[...limitKeys]}::text[]) limit_key order by hash
    ) sorted`
}

/** Locks those of the limits that no other transaction holds now, and returns them. */
export async function tryLockLimits(tx: Sql, limitKeys: readonly LimitKey[]): Promise<Set<LimitKey>> {
  const rows = await tx<{ limit_key: LimitKey; locked: boolean }>`
    select limit_key, pg_try_advisory_xact_lock(hashtextextended(limit_key, ${lockSeed})) as locked
    from unnest(${[...limitKeys]}::text[]) limit_key`
  return new Set(rows.filter(({ locked }) => locked).map(({ limit_key }) => limit_key))
}

/** Records freed limits in the transaction that frees them, so that a crash after it loses nothing. */
export async function noteFreed(tx: Sql, limitKeys: readonly LimitKey[]): Promise<void> {
  await tx`insert into freed_gate (gate) select unnest(${[...limitKeys]}::text[])`
}

export async function clearFreed(tx: Sql, limitKey: LimitKey): Promise<void> {
  await tx`delete from freed_gate where gate = ${limitKey}`
}

/** Limits that were freed more than `seconds` ago and not dispatched, because their process died. */
export async function listForgottenLimits(sql: Sql, { seconds, limit }: { seconds: number; limit: number }) {
  const rows = await sql<{ limit_key: LimitKey }>`
    select distinct limit_key from (
      select gate as limit_key from freed_gate where freed_at < now() - make_interval(secs => ${seconds}) order by id limit ${limit}
    ) oldest`
  return rows.map(({ limit_key }) => limit_key)
}

/** A deferred task that might be sent. */
export interface Candidate extends LimitedTask {
  id: string
  run_after: string | null
  max_concurrent_tasks: number | null
}

/** Tasks without a job that may have one: the predicate of the index `task_parked`. */
export const isDeferred = (sql: Sql): Fragment => sql.fragment`
  t.job_id is null and ((t.status = 'queued' and not t.backlog)
    or (t.status = 'waiting' and (t.slot = 'wanted' or t.wait->>'reason' in ('agent_paused', 'agent_stopped'))))
  and t.due_at is null`

/** Tasks that wait until their project has fewer jobs in the queue: the predicate of the index `task_backlog`. */
export const isBacklog = (sql: Sql): Fragment => sql.fragment`t.backlog and t.status = 'queued' and t.job_id is null`

/** Agents that may work: the rule `agentMayWork` of the contract. */
export const mayWork = (sql: Sql): Fragment =>
  sql.fragment`(a.status in ('running', 'creating') or (a.status = 'updating' and a.settles_to = 'running'))`

/**
 * Deferred tasks among `which` that could be queued now, by priority: their agent may work, and no task is ahead of
 * them in their thread or holds their key. `freeSlots` checks the slots of agents.
 */
export async function listCandidates(tx: Sql, which: Fragment, limit: number): Promise<Candidate[]> {
  return tx.run<Candidate>(tx.fragment`
    select t.id, t.project_id, t.agent_id, t.thread_id, t.concurrency_key, t.run_after, a.max_concurrent_tasks
    from task t join agent a on a.id = t.agent_id
    where ${which} and ${isDeferred(tx)} and ${mayWork(tx)}
      and (t.thread_id is null or not exists (
        select from task e where e.thread_id = t.thread_id and e.thread_position < t.thread_position and e.finished_at is null))
      -- A task that has begun keeps its key while it waits.
      and (t.concurrency_key is null or t.status <> 'queued'
        or not ${isKeyHeld(tx, tx.fragment`t.project_id`, tx.fragment`t.concurrency_key`)})
    order by t.priority desc, t.id limit ${limit}`)
}

/** Whether a task with this key has started or has a job: the predicate of the index `task_key_held`. */
export const isKeyHeld = ({ fragment }: Sql, project_id: Fragment | number, key: Fragment | string | null): Fragment =>
  fragment`exists (
    select from task k where k.project_id = ${project_id} and k.concurrency_key = ${key}
      and k.finished_at is null and (k.status <> 'queued' or k.job_id is not null))`

/**
 * How many more tasks of each agent with a limit may be sent. Tasks that started before the agent had a limit count
 * too.
 */
export async function freeSlots(tx: Sql, agent_ids: readonly string[]): Promise<Map<string, number>> {
  const rows = await tx<{ id: string; free: number }>`
    select a.id, a.max_concurrent_tasks
        - (select count(*) from task t where t.agent_id = a.id and t.slot = 'held')
        - (select count(*) from task t where t.agent_id = a.id and t.status = 'running' and t.slot is distinct from 'held') as free
    from agent a where a.id = any(${[...agent_ids]}) and a.max_concurrent_tasks is not null`
  return new Map(rows.map(({ id, free }) => [id, free]))
}
