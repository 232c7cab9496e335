import type { Fragment, Sql } from '../../platform/postgres/database.ts'
import {
  clearFreed,
  freeSlots,
  limitKeysOf,
  isKeyHeld,
  listCandidates,
  lockLimits,
  tryLockLimits,
  type Candidate,
  type LimitKey,
} from '../queue/concurrency-limits.ts'
import type { Queue } from '../queue/queue.ts'
import { applyChanges } from '../journal/task-changes.ts'
import { lockTasks } from '../journal/task-rows.ts'
import type { TaskChange } from '../task.ts'

/** Maximum number of tasks that one transaction sends for an agent's limit. */
const batch = 100
/** Maximum number of tasks with the same key that are checked for one whose agent has a slot. */
const keyBatch = 20

/**
 * Result of a dispatch: the number of sent tasks, and whether there may be more now or once another transaction has
 * ended.
 */
export interface LimitDispatch {
  sent: number
  more: boolean
}

/**
 * Queues the deferred tasks that a concurrency limit has room for, in a separate transaction. A task with further
 * limits is queued only if those have room too. The row in `freed_gate` is deleted with the last task.
 */
export async function dispatchAtLimit(sql: Sql, queue: Queue, limitKey: LimitKey): Promise<LimitDispatch> {
  return sql.begin(async (tx) => {
    // Locks the limit before it reads, so that a concurrent creation under this limit is seen here, or sees the room
    // itself.
    await lockLimits(tx, [limitKey])
    const found = await listFor(tx, limitKey)
    const { candidates, contended } = await withOtherLimits(tx, limitKey, found)
    const passing = await choose(tx, candidates)
    const tasks = await lockTasks(
      tx,
      passing.map(({ id }) => id),
    )
    const changes = passing.flatMap(({ id, run_after, max_concurrent_tasks }): TaskChange[] => {
      const task = tasks.get(id)
      // Skips tasks that were canceled or expired since they were found.
      if (!task || task.job_id !== null || (task.status !== 'queued' && task.status !== 'waiting')) return []
      const start_after = run_after ? new Date(run_after) : undefined
      return [{ task, job: { kind: 'first', start_after }, slot: max_concurrent_tasks === null ? null : 'held' }]
    })
    await applyChanges(tx, queue, changes)
    const more = passing.length > 0 || contended
    if (!more) await clearFreed(tx, limitKey)
    return { sent: changes.length, more }
  })
}

/** Candidates for a locked limit. */
async function listFor(tx: Sql, limitKey: LimitKey): Promise<Candidate[]> {
  const [kind, id, key] = partsOf(limitKey)
  const { fragment } = tx
  if (kind === 'thread') {
    const head = fragment`t.id = (
      select id from task where thread_id = ${id} and finished_at is null order by thread_position limit 1)`
    return listCandidates(tx, head, 1)
  }
  if (kind === 'key') {
    // The key is checked once, not for each waiting task; `queued` selects the index `task_key_parked`.
    const next = fragment`t.project_id = ${Number(id)} and t.concurrency_key = ${key} and t.status = 'queued'
      and not ${isKeyHeld(tx, Number(id), key)}`
    return listCandidates(tx, next, keyBatch)
  }
  const free = (await freeSlots(tx, [id])).get(id) ?? batch
  if (free <= 0) return []
  return listCandidates(tx, ofAgent(tx, id), Math.min(batch, free))
}

/** The agent's tasks that have concurrency limits; all of them if the agent has one. */
function ofAgent({ fragment }: Sql, agent_id: string): Fragment {
  return fragment`t.agent_id = ${agent_id}
    and (t.thread_id is not null or t.concurrency_key is not null or a.max_concurrent_tasks is not null)`
}

function partsOf(limitKey: LimitKey): [kind: string, id: string, key: string] {
  const [, kind = '', id = '', key = ''] = /^([a-z]+):([^:]*):?(.*)$/s.exec(limitKey) ?? []
  return [kind, id, key]
}

/**
 * Candidates whose other limits can be locked now and have room. A transaction never waits for a limit while it holds
 * another one. `contended`: another transaction holds one of them.
 */
async function withOtherLimits(
  tx: Sql,
  limitKey: LimitKey,
  found: readonly Candidate[],
): Promise<{ candidates: readonly Candidate[]; contended: boolean }> {
  const limitKeys = (one: Candidate): LimitKey[] =>
    limitKeysOf(one, one.max_concurrent_tasks !== null).filter((other) => other !== limitKey)
  const others = [...new Set(found.flatMap(limitKeys))]
  if (others.length === 0) return { candidates: found, contended: false }
  const locked = await tryLockLimits(tx, others)
  const ids = found.filter((one) => limitKeys(one).every((other) => locked.has(other))).map(({ id }) => id)
  const candidates = await listCandidates(tx, tx.fragment`t.id = any(${ids})`, ids.length)
  return { candidates, contended: ids.length < found.length }
}

/** The first candidate of each key, and of each agent as many as it has free slots. */
async function choose(tx: Sql, candidates: readonly Candidate[]): Promise<Candidate[]> {
  const limited = candidates.filter(({ max_concurrent_tasks }) => max_concurrent_tasks !== null)
  const agent_ids = [...new Set(limited.map(({ agent_id }) => agent_id))]
  const free = agent_ids.length > 0 ? await freeSlots(tx, agent_ids) : new Map<string, number>()
  const keys = new Set<string>()
  return candidates.filter((one) => {
    const key = one.concurrency_key === null ? null : `${one.project_id}:${one.concurrency_key}`
    const slots = free.get(one.agent_id) ?? Infinity
    if (slots <= 0 || (key !== null && keys.has(key))) return false
    free.set(one.agent_id, slots - 1)
    if (key !== null) keys.add(key)
    return true
  })
}
