import { deleteDoorRows } from './door-rows.queries.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { cutShort, forced } from '../journal/cancel.ts'
import { expired } from '../journal/endings.ts'
import { agentLimitKey, isDeferred, mayWork, noteFreed, type LimitKey } from '../queue/concurrency-limits.ts'
import type { Queue } from '../queue/queue.ts'
import { applyChanges, type PublishedEvents } from '../journal/task-changes.ts'
import { lightest } from './task-retention.ts'
import { lockTasks } from '../journal/task-rows.ts'
import type { TaskChange } from '../task.ts'

/** A worker that has not confirmed a cancellation after this time loses the task. */
const cancelConfirm_seconds = 10
const batch = 200
/** No transaction that creates a task lasts this long. After this time a deleted agent gets no more tasks. */
const lateCreation_seconds = 120
/** Maximum number of tasks of a deleted agent that one statement purges. */
const purgeBatch = 500
/** Maximum number of due tasks that one statement handles. */
const dueBatch = 1000
/** Maximum number of agents that one statement lists. */
const agentsBatch = 500

/** Ends expired tasks that no worker holds: queued and waiting ones. */
export async function expireTasks(sql: Sql, queue: Queue): Promise<PublishedEvents[]> {
  return sql.begin(async (tx) => {
    const over = await tx<{ id: string }>`
      select id from task where expires_at <= now() and status in ('queued', 'waiting') order by expires_at limit ${batch}`
    const tasks = [
      ...(
        await lockTasks(
          tx,
          over.map(({ id }) => id),
        )
      ).values(),
    ]
    const still = tasks.filter(({ status }) => status === 'queued' || status === 'waiting')
    const ends = still.map((task) => ({ ...expired(task), task, job: { kind: 'forget' as const } }))
    return applyChanges(tx, queue, await cutShort(tx, ends))
  })
}

/** Cancels tasks whose worker did not confirm their cancellation in time. Later writes of that worker are rejected. */
export async function forceCancels(sql: Sql, queue: Queue): Promise<PublishedEvents[]> {
  return sql.begin(async (tx) => {
    const late = await tx<{ id: string }>`
      select id from task where status = 'running' and cancel_requested_at < now() - make_interval(secs => ${cancelConfirm_seconds}) limit ${batch}`
    const changes: TaskChange[] = []
    for (const task of (
      await lockTasks(
        tx,
        late.map(({ id }) => id),
      )
    ).values()) {
      if (task.status !== 'running' || !task.cancel) continue
      changes.push(await forced(tx, task, task.cancel))
    }
    return applyChanges(tx, queue, await cutShort(tx, changes))
  })
}

/**
 * Lists the agents after `after` that have deferred tasks and may work, one batch. `next` is the `after` of the next
 * batch.
 */
export async function listAgentsWithDeferred(
  sql: Sql,
  after: string,
): Promise<{ agents: string[]; next: string | undefined }> {
  const deferred = sql.fragment`${isDeferred(sql)}`
  // Each recursion finds one agent, so an agent with many tasks costs no more than one with few.
  const rows = await sql.run<{ agent_id: string; works: boolean }>(sql.fragment`
    with recursive parked as (
      (select t.agent_id, 1 as n from task t where t.agent_id > ${after} and ${deferred} order by t.agent_id limit 1)
      union all
      select (select t.agent_id from task t where t.agent_id > p.agent_id and ${deferred} order by t.agent_id limit 1), p.n + 1
      from parked p where p.agent_id is not null and p.n < ${agentsBatch}
    )
    select p.agent_id, coalesce(${mayWork(sql)}, false) as works from parked p left join agent a on a.id = p.agent_id
    where p.agent_id is not null order by p.agent_id`)
  const agents = rows.filter(({ works }) => works).map(({ agent_id }) => agent_id)
  return { agents, next: rows.length === agentsBatch ? rows.at(-1)?.agent_id : undefined }
}

/**
 * Marks tasks whose `run_after` is near as deferred: from then on only their agent and their concurrency limits decide.
 * Returns the limit keys of their agents, which are also stored, so that a crash before the dispatch loses nothing.
 */
export async function markDue(sql: Sql): Promise<{ limitKeys: LimitKey[]; more: boolean }> {
  return sql.begin(async (tx) => {
    const due = await tx<{ agent_id: string }>`
      update task set due_at = null where id in (
        select id from task where due_at <= now() order by due_at limit ${dueBatch} for update skip locked)
      returning agent_id`
    const limitKeys = [...new Set(due.map(({ agent_id }) => agentLimitKey(agent_id)))]
    if (limitKeys.length > 0) await noteFreed(tx, limitKeys)
    return { limitKeys, more: due.length === dueBatch }
  })
}

/**
 * Deletes what is left of deleted agents: tasks with their rows, threads, logs, usage and, where an earlier build deleted it, versions, one batch per statement.
 * Without their agent, no caller sees them.
 */
export async function purgeRemovedAgents(sql: Sql, queue: Queue): Promise<void> {
  const removed = await sql<{ agent_id: string; asked: string }>`
    select r.agent_id, r.removed_at::text as asked from removed_agent r
    where (r.purged_at is null or r.purged_at < now() - make_interval(secs => ${lateCreation_seconds}))
      and not exists (select from agent a where a.id = r.agent_id)
    order by r.removed_at limit 10`
  for (const { agent_id, asked } of removed) {
    while (await purgeTasks(sql, queue, agent_id)) continue
    while ((await purgeThreads(sql, agent_id)) === purgeBatch) continue
    while ((await purgeLogs(sql, agent_id)) === purgeBatch) continue
    await sql`delete from agent_version where agent_id = ${agent_id}`
    await sql`delete from agent_usage where agent_id = ${agent_id}`
    await sql`delete from model_warning where agent_id = ${agent_id}`
    await sql`delete from task_rollup where agent_id = ${agent_id}`
    await sql`delete from log_rollup where agent_id = ${agent_id}`
    // The first pass only marks the agent. By the second pass no transaction can still be creating a task for it. A
    // changed `removed_at` shows that a task arrived meanwhile, so the purge must run again.
    const [again] = await sql`
      delete from removed_agent where agent_id = ${agent_id} and purged_at is not null and removed_at = ${asked}::timestamptz
      returning agent_id`
    if (!again)
      await sql`update removed_agent set purged_at = now() where agent_id = ${agent_id} and removed_at = ${asked}::timestamptz`
  }
}

/** Deletes a batch of an agent's tasks. Returns whether there are more. */
async function purgeTasks(sql: Sql, queue: Queue, agent_id: string): Promise<boolean> {
  return sql.begin(async (tx) => {
    const tasks = await tx<{ id: string; events: number }>`
      select id, last_sequence as events from task where agent_id = ${agent_id} order by id limit ${purgeBatch} for update`
    const ids = lightest(tasks).map(({ id }) => id)
    await tx`delete from task_event where task_id = any(${ids})`
    await tx`delete from task_step where task_id = any(${ids})`
    const deleted = await tx<{ limit_key: LimitKey; job_id: string | null }>`
      delete from task where id = any(${ids})
      returning job_id, case when concurrency_key is not null and finished_at is null then 'key:' || project_id || ':' || concurrency_key end as limit_key`
    // Jobs of tasks that were created and started while their agent was being deleted.
    await queue.discardActive(
      tx,
      deleted.flatMap(({ job_id }) => job_id ?? []),
    )
    // After the tasks: the locks of the tasks prevent new rows of these kinds.
    await tx`delete from approval where task_id = any(${ids})`
    await tx`delete from task_message where task_id = any(${ids})`
    await deleteDoorRows(tx, ids)
    // Other agents of the project may share a concurrency key, so its limit must be dispatched.
    const limitKeys = new Set(deleted.flatMap(({ limit_key }) => limit_key ?? []))
    if (limitKeys.size > 0) await noteFreed(tx, [...limitKeys])
    return tasks.length === purgeBatch || ids.length < tasks.length
  })
}

async function purgeThreads(sql: Sql, agent_id: string): Promise<number> {
  const deleted = await sql`
    delete from thread where id in (select id from thread where agent_id = ${agent_id} limit ${purgeBatch}) returning id`
  return deleted.length
}

async function purgeLogs(sql: Sql, agent_id: string): Promise<number> {
  const deleted = await sql`
    delete from agent_log where (timestamp, id) in (select timestamp, id from agent_log where agent_id = ${agent_id} limit ${purgeBatch})
    returning id`
  return deleted.length
}
