import type { Sql } from '../../platform/postgres/database.ts'
import { deleteEndedTasks } from './door-rows.queries.ts'

/** Maximum number of tasks that one statement reads. */
const tasksMax = 500
/** Maximum number of events that one statement deletes with their tasks; a single task may have more. */
const eventsMax = 20_000
/** Maximum number of threads that one statement reads. */
const threadsMax = 2000
/** Interval between two passes over all tasks. */
const again_ms = 6 * 3_600_000

/** Deletes a batch of tasks that ended more than `days` days ago. Returns whether there is more to do now. */
export type TaskRetention = (sql: Sql, days: number) => Promise<boolean>

/**
 * Makes the sweep that deletes tasks whose end is more than `days` days ago, with their steps, events, approvals and
 * messages; 0 keeps all tasks. Tasks of a thread stay while the thread has a task that is open or ended later, because
 * they are its history. An empty thread is deleted too, if it was not used for `days` days and no schedule writes into
 * it.
 *
 * A pass walks from the oldest task on and remembers its position, so it does not read the tasks that stay with every
 * batch. It skips rows that another process has locked.
 */
export function makeTaskRetention(now: () => number = () => performance.now()): TaskRetention {
  let stage: Stage = { of: 'tasks', behind: first }
  return async (sql, days) => {
    if (days === 0 || (stage.of === 'rest' && now() < stage.until)) return false
    if (stage.of === 'rest') stage = { of: 'tasks', behind: first }
    if (stage.of === 'tasks') {
      const behind = await removeTasks(sql, days, stage.behind)
      stage = behind ? { of: 'tasks', behind } : { of: 'threads', behind: '' }
      return true
    }
    const behind = await removeThreads(sql, days, stage.behind)
    stage = behind === undefined ? { of: 'rest', until: now() + again_ms } : { of: 'threads', behind }
    return behind !== undefined
  }
}

type Stage = { of: 'tasks'; behind: Place } | { of: 'threads'; behind: string } | { of: 'rest'; until: number }

/** Position of the last task read. `at` is the database's text, because it has more digits than a `Date`. */
interface Place {
  at: string
  id: string
}

const first: Place = { at: '-infinity', id: '' }

interface OldTask extends Place {
  thread_id: string | null
  events: number
}

/** Deletes a batch after a position. Returns the next position; undefined at the end. */
async function removeTasks(sql: Sql, days: number, { at, id }: Place): Promise<Place | undefined> {
  const found = await sql<OldTask>`
    select id, finished_at::text as at, thread_id, last_sequence as events from task
    where finished_at < now() - make_interval(days => ${days}) and (finished_at, id) > (${at}::timestamptz, ${id})
    order by finished_at, id limit ${tasksMax}`
  const batch = lightest(found)
  const stored = await listStoredThreads(sql, days, batch)
  const old = batch.filter(({ thread_id }) => thread_id === null || !stored.has(thread_id))
  if (old.length > 0) await deleteTasks(sql, old)
  return found.length < tasksMax && batch.length === found.length ? undefined : batch.at(-1)
}

/** The first of these tasks, as many as one statement can delete in its time: at least one. */
export function lightest<Task extends { events: number }>(tasks: readonly Task[]): Task[] {
  let sum = 0
  const end = tasks.findIndex(({ events }) => (sum += events) > eventsMax)
  return end < 0 ? [...tasks] : tasks.slice(0, Math.max(1, end))
}

/** The threads of these tasks that have a task which is open or ended later. */
async function listStoredThreads(sql: Sql, days: number, tasks: readonly OldTask[]): Promise<Set<string>> {
  const threads = [...new Set(tasks.flatMap(({ thread_id }) => thread_id ?? []))]
  if (threads.length === 0) return new Set()
  // Newest first: in a thread in use, the first row decides.
  const rows = await sql<{ thread_id: string }>`
    select h.thread_id from unnest(${threads}::text[]) h(thread_id), lateral (
      select from task t where t.thread_id = h.thread_id
        and (t.finished_at is null or t.finished_at >= now() - make_interval(days => ${days}))
      order by t.thread_position desc limit 1
    ) later`
  return new Set(rows.map(({ thread_id }) => thread_id))
}

/** Tasks of deleted agents are purged by `purgeRemovedAgents`, which takes locks in another order. */
async function deleteTasks(sql: Sql, tasks: readonly OldTask[]): Promise<void> {
  await sql.begin(async (tx) => {
    const locked = await tx<{ id: string }>`
      select id from task t where id = any(${tasks.map(({ id }) => id)})
        and not exists (select from removed_agent r where r.agent_id = t.agent_id)
      order by id for update skip locked`
    const ids = locked.map(({ id }) => id)
    if (ids.length === 0) return
    await deleteEndedTasks(tx, ids)
  })
}

/** Deletes empty threads among the next ones. Returns the id of the last one read; undefined at the end. */
async function removeThreads(sql: Sql, days: number, after: string): Promise<string | undefined> {
  // Adding a task to a thread updates `updated_at` first, so that thread stays.
  const [looked] = await sql<{ count: number; last: string | null }>`
    with next as materialized (
      select id, updated_at from thread
      where id > ${after} and id < id_floor('thread', now() - make_interval(days => ${days})) order by id limit ${threadsMax}
    ), gone as (
      delete from thread h using next n
      where h.id = n.id and h.updated_at < now() - make_interval(days => ${days})
        and not exists (select from task t where t.thread_id = h.id)
        and not exists (select from schedule s where s.thread_id = h.id)
    )
    select count(*) as count, max(id) as last from next`
  return looked && looked.count === threadsMax && looked.last !== null ? looked.last : undefined
}
