import { agentMayWork, agentWaitReasons } from '#contract/task-lifecycle.ts'
import type { Sql } from '../platform/database.ts'
import { canceled, readReceipt } from './cancel.ts'
import { dueSoon_ms } from './new-task.ts'
import type { Queue } from './queue.ts'
import { applyChanges, type PublishedEvents, type TaskChange } from './task-changes.ts'
import { lockTasks, type CancelRequest } from './task-rows.ts'

/** Tasks that one transaction puts into the queue, or cancels; more follow in transactions of their own. */
export const parkingBatch = 1000
/** Queued tasks that a deletion cancels with an event each; those beyond are purged with the rest. */
const cancelsMax = 5000

/** How many tasks were put into the queue, and whether there may be more. */
export interface Dispatched {
  sent: number
  more: boolean
}

/**
 * Sends the parked tasks of an agent that may work again: those that never started and those that waited for it. At
 * most a batch, the oldest first; gives whether there may be more. The caller holds the agent's row.
 */
export async function dispatchBatch(tx: Sql, queue: Queue, agent_id: string): Promise<Dispatched> {
  const parked = await tx<{ id: string; run_after: string | null }>`
    select id, run_after from task
    where agent_id = ${agent_id} and job_id is null and status in ('queued', 'waiting')
      and (status = 'queued' or wait->>'reason' = any(${[...agentWaitReasons]}))
      and (run_after is null or run_after <= now() + make_interval(secs => ${dueSoon_ms / 1000}))
    order by id limit ${parkingBatch}`
  const tasks = await lockTasks(
    tx,
    parked.map(({ id }) => id),
  )
  const changes = parked.flatMap(({ id, run_after }): TaskChange[] => {
    const task = tasks.get(id)
    // Canceled or expired since it was looked for.
    if (!task || task.job_id !== null || (task.status !== 'queued' && task.status !== 'waiting')) return []
    return [{ task, job: { kind: 'first', start_after: run_after ? new Date(run_after) : undefined } }]
  })
  await applyChanges(tx, queue, changes)
  return { sent: changes.length, more: parked.length === parkingBatch }
}

/** The same in a transaction of its own, if the agent may still work. */
export async function dispatchMore(sql: Sql, queue: Queue, agent_id: string): Promise<Dispatched> {
  return sql.begin(async (tx) => {
    // The agent before its tasks, as its actions do; a pause that waits for this finds the jobs and ends them.
    const [agent] = await tx<{
      status: string
      settles_to: string | null
    }>`select status, settles_to from agent where id = ${agent_id} for share`
    return agent && agentMayWork(agent) ? dispatchBatch(tx, queue, agent_id) : { sent: 0, more: false }
  })
}

/** Tasks that waited for a paused agent wait for a stopped one now. Jobs in the queue are dealt with when they are fetched. */
export async function relabelParked(tx: Sql, agent_id: string): Promise<void> {
  await tx`
    update task set wait = wait || '{"reason": "agent_stopped"}', updated_at = now()
    where agent_id = ${agent_id} and status = 'waiting' and wait->>'reason' = 'agent_paused'`
}

/** Cancels the open tasks of an agent that is about to be deleted, those that have begun first, and asks for its purge. */
export async function cancelAll(tx: Sql, queue: Queue, agent_id: string): Promise<PublishedEvents[]> {
  const open = await tx<{ id: string }>`
    select id from task where agent_id = ${agent_id} and status in ('running', 'waiting', 'queued')
    order by status = 'queued', id limit ${cancelsMax}`
  const changes: TaskChange[] = []
  for (const task of (
    await lockTasks(
      tx,
      open.map(({ id }) => id),
    )
  ).values()) {
    const request: CancelRequest = task.cancel ?? {
      reason: 'The agent was deleted.',
      mode: 'force',
      user_id: task.created_by,
    }
    const receipt = task.started_at === null ? { effects: [], uncertain: [] } : await readReceipt(tx, task.id)
    changes.push({ ...canceled(task, request, receipt), job: { kind: task.status === 'running' ? 'end' : 'forget' } })
  }
  await tx`insert into removed_agent (agent_id) values (${agent_id}) on conflict (agent_id) do update set removed_at = now()`
  return applyChanges(
    tx,
    queue,
    changes.filter(({ task }) => ['running', 'waiting', 'queued'].includes(task.status)),
  )
}
