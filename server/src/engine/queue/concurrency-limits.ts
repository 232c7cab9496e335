import type { Fragment, Sql } from '../../platform/postgres/database.ts'

/**
 * Concurrency limits admit a bounded number of tasks: `thread:<id>` one after the other, `key:<project>:<key>` one at a
 * time, `agent:<id>` up to the agent's `max_concurrent_tasks`.
 * A task over a limit stays in the task table without a job. A transaction that queues a task with limits holds the
 * lock of each limit until its commit, so of two processes only one can queue it. Lock order: agent's row, limits in
 * the order of their hashes, tasks. A transaction that holds a limit only tries to lock another one. Ending a task
 * takes no limit's lock: it inserts a row into `freed_gate`, and the next task is queued after the commit.
 */
export type LimitKey = string

/** What a task's gates depend on. */
export interface LimitedTask {
  project_id: number
  agent_id: string
  thread_id: string | null
  concurrency_key: string | null
}

/** The gate of an agent; the same name stands for all its parked tasks, when it may work again. */
export function agentLimitKey(agent_id: string): LimitKey {
  return `agent:${agent_id}`
}

/** The gates that a task has to pass; none for most tasks, which cost nothing then. */
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
 * Locks gates for the rest of the transaction, always in the same order. From then on the transaction reads by indexes: what
 * is asked about gates is answered by a few rows, but the planner takes thousands of tasks of one thread for a reason to
 * read the whole table for each of them.
 */
export async function lockLimits(tx: Sql, limitKeys: readonly LimitKey[]): Promise<void> {
  await tx`
    select set_config('enable_seqscan', 'off', true), pg_advisory_xact_lock(hash) from (
      select distinct hashtextextended(gate, ${lockSeed}) as hash from unnest(${[...limitKeys]}::text[]) gate order by hash
    ) sorted`
}

/** Locks those of the limits that no other transaction holds now, and returns them. */
export async function tryLockLimits(tx: Sql, limitKeys: readonly LimitKey[]): Promise<Set<LimitKey>> {
  const rows = await tx<{ gate: LimitKey; locked: boolean }>`
    select gate, pg_try_advisory_xact_lock(hashtextextended(gate, ${lockSeed})) as locked from unnest(${[...limitKeys]}::text[]) gate`
  return new Set(rows.filter(({ locked }) => locked).map(({ gate }) => gate))
}

/** Notes in the transaction that frees them that gates have room, so that a crash behind it loses nothing. */
export async function noteFreed(tx: Sql, limitKeys: readonly LimitKey[]): Promise<void> {
  await tx`insert into freed_gate (gate) select unnest(${[...limitKeys]}::text[])`
}

export async function clearFreed(tx: Sql, limitKey: LimitKey): Promise<void> {
  await tx`delete from freed_gate where gate = ${limitKey}`
}

/** Limits that were freed a while ago and not dispatched: their process has died. */
export async function listForgottenLimits(sql: Sql, { seconds, limit }: { seconds: number; limit: number }) {
  const rows = await sql<{ gate: LimitKey }>`
    select distinct gate from (
      select gate from freed_gate where freed_at < now() - make_interval(secs => ${seconds}) order by id limit ${limit}
    ) oldest`
  return rows.map(({ gate }) => gate)
}

/** A parked task that might be sent. */
export interface Candidate extends LimitedTask {
  id: string
  run_after: string | null
  max_concurrent_tasks: number | null
}

/** Tasks without a job that may have one: the words of the index `task_parked`. */
export const isDeferred = (sql: Sql): Fragment => sql.fragment`
  t.job_id is null and ((t.status = 'queued' and not t.backlog)
    or (t.status = 'waiting' and (t.slot = 'wanted' or t.wait->>'reason' in ('agent_paused', 'agent_stopped'))))
  and t.due_at is null`

/** Tasks that wait for room among their project's jobs: the words of the index `task_backlog`. */
export const isBacklog = (sql: Sql): Fragment => sql.fragment`t.backlog and t.status = 'queued' and t.job_id is null`

/** Agents that may work: the rule is `agentMayWork` of the contract. */
export const mayWork = (sql: Sql): Fragment =>
  sql.fragment`(a.status in ('running', 'creating') or (a.status = 'updating' and a.settles_to = 'running'))`

/**
 * Deferred tasks that could be queued now as far as `which` goes, the most urgent first: their agent may work, and no
 * task is ahead of them in their thread or holds their key. Slots of agents are checked by `freeSlots`.
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

/** Whether a task has begun, or is sent, that has this key: the words of the index `task_key_held`. */
export const isKeyHeld = ({ fragment }: Sql, project_id: Fragment | number, key: Fragment | string | null): Fragment =>
  fragment`exists (
    select from task k where k.project_id = ${project_id} and k.concurrency_key = ${key}
      and k.finished_at is null and (k.status <> 'queued' or k.job_id is not null))`

/** How many more tasks of agents with a limit may be sent. Those that ran before there was a limit count too. */
export async function freeSlots(tx: Sql, agent_ids: readonly string[]): Promise<Map<string, number>> {
  const rows = await tx<{ id: string; free: number }>`
    select a.id, a.max_concurrent_tasks
        - (select count(*) from task t where t.agent_id = a.id and t.slot = 'held')
        - (select count(*) from task t where t.agent_id = a.id and t.status = 'running' and t.slot is distinct from 'held') as free
    from agent a where a.id = any(${[...agent_ids]}) and a.max_concurrent_tasks is not null`
  return new Map(rows.map(({ id, free }) => [id, free]))
}
