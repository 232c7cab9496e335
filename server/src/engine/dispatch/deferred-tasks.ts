import { agentMayWork, type agentWaitReasons } from '#contract/tasks/task-lifecycle.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { canceled, cutShort, readReceipt } from '../journal/cancel.ts'
import { agentLimitKey, isBacklog, isDeferred, mayWork, noteFreed } from '../queue/concurrency-limits.ts'
import type { Queue } from '../queue/queue.ts'
import { applyChanges, type PublishedEvents } from '../journal/task-changes.ts'
import { lockTasks } from '../journal/task-rows.ts'
import type { CancelRequest, TaskChange } from '../task.ts'

/** Maximum number of tasks that one transaction queues or relabels. Further transactions handle more. */
const deferredBatch = 1000
/**
 * Maximum number of tasks that a deletion cancels with an event each while its caller waits. Further ones are purged
 * with the agent.
 */
const cancelsMax = 1000

type AgentWaitReason = (typeof agentWaitReasons)[number]

/** The number of queued tasks, and whether there may be more. */
interface Dispatched {
  sent: number
  more: boolean
}

/**
 * Sends deferred tasks without concurrency limits of an agent that may work again: those that never started and those
 * that waited for the agent. It sends at most one batch, by priority. The caller holds the agent's row, and dispatches
 * the agent's limit after its commit. What remains is recorded as a freed limit, so a crash leaves nothing behind.
 */
export async function dispatchDeferred(tx: Sql, queue: Queue, agent_id: string): Promise<void> {
  const { more } = await dispatchBatch(tx, queue, agent_id)
  if (more || (await hasLimited(tx, agent_id))) await noteFreed(tx, [agentLimitKey(agent_id)])
}

async function hasLimited(tx: Sql, agent_id: string): Promise<boolean> {
  const [limited] = await tx.run(tx.fragment`
    select from task t where t.agent_id = ${agent_id} and ${isDeferred(tx)} limit 1`)
  return limited !== undefined
}

async function dispatchBatch(tx: Sql, queue: Queue, agent_id: string): Promise<Dispatched> {
  const deferred = await tx.run<DeferredTask & { project_id: number }>(tx.fragment`
    select t.id, t.status, t.run_after, t.project_id from task t join agent a on a.id = t.agent_id
    where t.agent_id = ${agent_id} and ${isDeferred(tx)}
      and t.thread_id is null and t.concurrency_key is null and a.max_concurrent_tasks is null
    order by t.priority desc, t.id limit ${deferredBatch}`)
  const more = deferred.length === deferredBatch
  const [first] = deferred
  if (!first) return { sent: 0, more }
  const waiting = await queue.countWaiting(tx, queue.waitingMax, [first.project_id])
  const room = queue.waitingMax - (waiting.get(first.project_id) ?? 0)
  // Tasks that have started do not wait for room.
  const now = deferred.filter(({ status }, at) => at < room || status === 'waiting')
  const rest = deferred.filter(({ status }, at) => at >= room && status !== 'waiting').map(({ id }) => id)
  if (rest.length > 0)
    await tx`update task set backlog = true where id = any(${rest}) and status = 'queued' and job_id is null`
  return { sent: await send(tx, queue, now), more }
}

interface DeferredTask {
  id: string
  status: string
  run_after: string | null
}

async function send(tx: Sql, queue: Queue, deferred: readonly DeferredTask[]): Promise<number> {
  const tasks = await lockTasks(
    tx,
    deferred.map(({ id }) => id),
  )
  const changes = deferred.flatMap(({ id, run_after }): TaskChange[] => {
    const task = tasks.get(id)
    // Skips tasks that were sent, canceled or expired since they were found.
    if (!task || task.job_id !== null || (task.status !== 'queued' && task.status !== 'waiting')) return []
    return [{ task, job: { kind: 'first', start_after: run_after ? new Date(run_after) : undefined }, slot: null }]
  })
  await applyChanges(tx, queue, changes)
  return changes.length
}

/** Sends at most `count` tasks of a project's backlog in batches, by priority. Returns whether there may be more. */
export async function dispatchBacklog(sql: Sql, queue: Queue, project_id: number, count: number): Promise<Dispatched> {
  let sent = 0
  for (let left = count; left > 0;) {
    const limit = Math.min(left, deferredBatch)
    const found = await sql.begin(async (tx) => {
      const waiting = await tx.run<DeferredTask>(tx.fragment`
        select t.id, t.status, t.run_after from task t join agent a on a.id = t.agent_id
        where t.project_id = ${project_id} and ${isBacklog(tx)} and ${mayWork(tx)}
        order by t.priority desc, t.id limit ${limit}`)
      sent += await send(tx, queue, waiting)
      return waiting.length
    })
    if (found < limit) {
      await deferBacklog(sql, project_id)
      return { sent, more: false }
    }
    left -= found
  }
  return { sent, more: true }
}

/** Moves a batch of backlog tasks whose agents were paused or stopped meanwhile to the deferred tasks. */
async function deferBacklog(sql: Sql, project_id: number): Promise<void> {
  await sql.begin(async (tx) => {
    const held = await tx.run<{ id: string; agent_id: string }>(tx.fragment`
      select t.id, t.agent_id from task t join agent a on a.id = t.agent_id
      where t.project_id = ${project_id} and ${isBacklog(tx)} and not ${mayWork(tx)} limit ${deferredBatch}`)
    if (held.length === 0) return
    // Under the agents' locks: a concurrent start would still see these tasks as backlog, and leave them out.
    const agent_ids = [...new Set(held.map(({ agent_id }) => agent_id))]
    const agents = await tx.run<{ id: string }>(tx.fragment`
      select a.id from agent a where a.id = any(${agent_ids}) and not ${mayWork(tx)} order by a.id for share`)
    await tx`
      update task set backlog = false
      where id = any(${held.map(({ id }) => id)}) and agent_id = any(${agents.map(({ id }) => id)}) and status = 'queued' and job_id is null`
  })
}

/**
 * Finishes what the actions of an agent left to do, until nothing is left. For an agent that may work, it sends the
 * deferred tasks without limits. For one that may not, it relabels tasks that an earlier action deferred.
 */
export async function dispatchAgent(
  { sql, queue, wake, isStopped }: { sql: Sql; queue: Queue; wake: () => void; isStopped: () => boolean },
  agent_id: string,
): Promise<void> {
  for (let more = true; more && !isStopped();) {
    more = await sql.begin(async (tx) => {
      // Locks the agent before its tasks, as its actions do. A pause that waits for this lock then finds the jobs and
      // ends them.
      const [agent] = await tx<{
        status: string
        settles_to: string | null
      }>`select status, settles_to from agent where id = ${agent_id} for share`
      if (!agent) return false
      if (!agentMayWork(agent)) {
        const reason = (agent.settles_to ?? agent.status) === 'paused' ? 'agent_paused' : 'agent_stopped'
        return (await relabelBatch(tx, agent_id, reason)) === deferredBatch
      }
      const batch = await dispatchBatch(tx, queue, agent_id)
      if (batch.sent > 0) tx.afterCommit(wake)
      return batch.more
    })
  }
}

/**
 * Changes the wait reason of tasks that an earlier action deferred, for example from `agent_paused` to `agent_stopped`,
 * if a start in between did not reach them. One batch now, the rest when the agent's limit is dispatched after the
 * commit. Jobs in the queue are handled when they are fetched.
 */
export async function relabelDeferred(tx: Sql, agent_id: string, reason: AgentWaitReason): Promise<void> {
  if ((await relabelBatch(tx, agent_id, reason)) === deferredBatch) await noteFreed(tx, [agentLimitKey(agent_id)])
}

async function relabelBatch(tx: Sql, agent_id: string, reason: AgentWaitReason): Promise<number> {
  const { fragment } = tx
  // Literals, because the planner cannot use the partial index for a parameter.
  const other = reason === 'agent_paused' ? fragment`'agent_stopped'` : fragment`'agent_paused'`
  const rows = await tx.run(fragment`
    update task set wait = wait || ${jsonb({ reason })}::jsonb, updated_at = greatest(now(), updated_at)
    where id in (
      select id from task where agent_id = ${agent_id} and status = 'waiting' and wait->>'reason' = ${other}
      order by id limit ${deferredBatch} for update)
    returning id`)
  return rows.length
}

/** Cancels the open tasks of an agent that is about to be deleted, running ones first, and requests its purge. */
export async function cancelAll(tx: Sql, queue: Queue, agent_id: string): Promise<PublishedEvents[]> {
  const open = await tx<{ id: string }>`
    select id from task where agent_id = ${agent_id} and status in ('running', 'waiting', 'queued')
    order by status <> 'running', status = 'queued', id limit ${cancelsMax}`
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
  await tx`insert into removed_agent (agent_id) values (${agent_id}) on conflict (agent_id) do update set removed_at = now(), purged_at = null`
  const ends = changes.filter(({ task }) => ['running', 'waiting', 'queued'].includes(task.status))
  return applyChanges(tx, queue, await cutShort(tx, ends))
}
