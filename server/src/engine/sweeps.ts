import type { Sql } from '../platform/database.ts'
import { canceled, readReceipt } from './cancel.ts'
import { expired } from './endings.ts'
import { dueSoon_ms } from './new-task.ts'
import { parkingBatch } from './parking.ts'
import type { Queue } from './queue.ts'
import { applyChanges, type PublishedEvents, type TaskChange } from './task-changes.ts'
import { lockTasks } from './task-rows.ts'

/** A worker confirms a cancellation within this time, or its hold is broken (tasks 7). */
const cancelConfirm_seconds = 10
const batch = 200
/** Tasks of a removed agent that one statement purges. */
const purgeBatch = 500

/** Ends tasks whose time is over while nobody holds them: in the queue, or waiting. */
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
    return applyChanges(
      tx,
      queue,
      still.map((task) => ({ ...expired(task), task, job: { kind: 'forget' as const } })),
    )
  })
}

/** Ends tasks whose worker was asked to cancel them and did not confirm; its writes are refused from then on. */
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
      changes.push({
        ...canceled(task, task.cancel, await readReceipt(tx, task.id), { forced: true }),
        job: { kind: 'end' },
      })
    }
    return applyChanges(tx, queue, changes)
  })
}

/** Agents that may work and have tasks that are due but not in the queue. */
export async function listAgentsWithParked(sql: Sql): Promise<string[]> {
  const rows = await sql<{ agent_id: string }>`
    select distinct t.agent_id from task t join agent a on a.id = t.agent_id
    where t.job_id is null and (a.status in ('running', 'creating') or a.settles_to = 'running')
      and (t.status = 'queued' or (t.status = 'waiting' and t.wait->>'reason' in ('agent_paused', 'agent_stopped')))
      and (t.run_after is null or t.run_after <= now() + make_interval(secs => ${dueSoon_ms / 1000}))
    limit ${parkingBatch}`
  return rows.map(({ agent_id }) => agent_id)
}

/** Agents with tasks whose `run_after` comes near. */
export async function listAgentsWithDue(sql: Sql): Promise<string[]> {
  const rows = await sql<{ agent_id: string }>`
    select distinct agent_id from (
      select agent_id from task
      where job_id is null and status = 'queued' and run_after <= now() + make_interval(secs => ${dueSoon_ms / 1000}) order by run_after limit ${parkingBatch}
    ) due`
  return rows.map(({ agent_id }) => agent_id)
}

/**
 * Removes what is left of agents that are gone: tasks with their steps and events, logs and usage, a batch a statement.
 * Without their agent nobody could see it any more.
 */
export async function purgeRemovedAgents(sql: Sql): Promise<void> {
  const removed = await sql<{ agent_id: string }>`
    select r.agent_id from removed_agent r where not exists (select from agent a where a.id = r.agent_id) order by r.removed_at limit 10`
  for (const { agent_id } of removed) {
    while ((await purgeTasks(sql, agent_id)) === purgeBatch) continue
    while ((await purgeLogs(sql, agent_id)) === purgeBatch) continue
    await sql`delete from agent_usage where agent_id = ${agent_id}`
    await sql`delete from removed_agent where agent_id = ${agent_id}`
  }
}

async function purgeTasks(sql: Sql, agent_id: string): Promise<number> {
  return sql.begin(async (tx) => {
    const tasks = await tx<{ id: string }>`select id from task where agent_id = ${agent_id} limit ${purgeBatch}`
    const ids = tasks.map(({ id }) => id)
    await tx`delete from task_event where task_id = any(${ids})`
    await tx`delete from task_step where task_id = any(${ids})`
    await tx`delete from task where id = any(${ids})`
    return ids.length
  })
}

async function purgeLogs(sql: Sql, agent_id: string): Promise<number> {
  const gone = await sql`
    delete from agent_log where (timestamp, id) in (select timestamp, id from agent_log where agent_id = ${agent_id} limit ${purgeBatch})
    returning id`
  return gone.length
}
