import type { Fragment, Sql } from '../../platform/postgres/database.ts'
import { applyChanges, type PublishedEvents } from '../journal/task-changes.ts'
import type { Queue } from '../queue/queue.ts'
import { lockTasks } from '../journal/task-rows.ts'
import type { LockedTask, TaskChange } from '../task.ts'

/** How often a worker says that it lives: see `heartbeat.ts`. */
export const heartbeat_ms = 1000
/**
 * A worker unseen for this long is dead if it does not hold its lock either: its process is gone, PostgreSQL noticed at
 * once. One that still holds it may only be busy.
 */
export const silent_seconds = 3
/** A worker unseen for this long is dead whatever it holds: stopped, hung, or behind a network that swallows. */
export const lease_seconds = 10
const batch = 500

/** What is seen of a worker that is not this one. */
export interface SeenWorker {
  /** How long ago it said that it lives, by the database's clock; undefined where it has no row. */
  unseen_seconds: number | undefined
  holds_lock: boolean
  /** Of the same instance as a process that is starting. */
  is_predecessor: boolean
}

/** Whether a worker is dead: the rule that `listDeadWorkers` asks in SQL, which a test holds to it case by case. */
export function isDead({
  unseen_seconds = (silent_seconds + lease_seconds) / 2,
  holds_lock,
  is_predecessor,
}: SeenWorker): boolean {
  return unseen_seconds > lease_seconds || ((unseen_seconds > silent_seconds || is_predecessor) && !holds_lock)
}

/** A worker as its row: `instance` is the host and data folder, which tells a predecessor from a neighbour. */
export interface WorkerIdentity {
  id: string
  instance: string
  slots: number
}

const presenceSeed = 1984

/**
 * Taken on a connection of the process's own, which PostgreSQL closes when the process is gone: the lock tells that a
 * worker lives. Shared, so that a new connection need not wait for the end of a lost one.
 */
export function presenceLock(worker_id: string): { text: string; values: unknown[] } {
  return { text: 'select pg_advisory_lock_shared(hashtextextended($1, $2))', values: [worker_id, presenceSeed] }
}

/** Whether a process holds the lock of the worker that `name`, a column or a value, names. */
export function holdsPresenceLock({ fragment }: Sql, name: Fragment): Fragment {
  return fragment`exists (
    select from pg_locks l where l.locktype = 'advisory' and l.granted and l.objsubid = 1
      and l.database = (select oid from pg_database where datname = current_database())
      and ((l.classid::bigint << 32) | l.objid::bigint) = hashtextextended(${name}, ${presenceSeed}))`
}

/** Writes the worker's row. With `isDraining` a row that others removed is written as that of a draining worker again. */
export async function registerWorker(
  sql: Sql,
  { id, instance, slots }: WorkerIdentity,
  { isDraining = false } = {},
): Promise<void> {
  await sql`
    insert into worker (id, instance, slots, draining_since)
    values (${id}, ${instance}, ${slots}, case when ${isDraining}::boolean then now() end)
    on conflict (id) do update set seen_at = now(), slots = excluded.slots`
}

/** What a worker reads of all workers at each heartbeat. */
export interface SeenWorkers {
  /** Whether this one's row is still there. */
  registered: boolean
  /** Whether a person asked this one to take no more tasks. */
  is_draining: boolean
  /** Of all workers that live and take tasks. */
  slots: number
}

export async function readWorkers(sql: Sql, id: string): Promise<SeenWorkers> {
  const [row] = await sql<SeenWorkers>`
    select count(*) filter (where id = ${id}) > 0 as registered,
      count(*) filter (where id = ${id} and draining_since is not null) > 0 as is_draining,
      coalesce(sum(slots) filter (where draining_since is null and seen_at > now() - make_interval(secs => ${lease_seconds})), 0) as slots
    from worker where true`
  return row!
}

/** A draining worker says that it works on nothing. No-op where it was taken back to work meanwhile. */
export async function recordDrained(sql: Sql, id: string): Promise<void> {
  await sql`update worker set drained_at = now() where id = ${id} and draining_since is not null and drained_at is null`
}

/**
 * Dead workers, including those that hold tasks without a row. While this process is `starting`, a missing lock alone
 * shows that its predecessor is dead, so that its tasks continue at once; a sibling with the same folder holds a lock.
 */
export async function listDeadWorkers(
  sql: Sql,
  me: WorkerIdentity,
  { starting }: { starting: boolean },
): Promise<string[]> {
  const rows = await sql.run<{ id: string }>(sql.fragment`
    select w.id from (
      select id, instance, seen_at from worker
      union all
      -- Buried while it was frozen, it came back and took these, and was gone before it had a row again.
      select distinct t.worker_id, null, null::timestamptz from task t
      where t.status = 'running' and t.worker_id is not null and not starts_with(t.worker_id, 'work_') and not exists (select from worker where id = t.worker_id)
    ) w
    where w.id <> ${me.id} and (
      w.seen_at < now() - make_interval(secs => ${lease_seconds})
      or ((w.seen_at is null or w.seen_at < now() - make_interval(secs => ${silent_seconds}) or (${starting}::boolean and w.instance = ${me.instance}))
        and not ${holdsPresenceLock(sql, sql.fragment`w.id`)}))`)
  return rows.map(({ id }) => id)
}

/**
 * Requeues the tasks of a dead worker in batches and deletes its row. The next worker continues from the last finished
 * step. Stale writes are rejected by the fencing token.
 */
export async function reapWorker(sql: Sql, queue: Queue, worker_id: string): Promise<number> {
  let given = 0
  for (;;) {
    const { count } = await requeueTasks(sql, queue, worker_id, { crashed: true, except: [] })
    given += count
    if (count < batch) break
  }
  await sql`delete from worker w where id = ${worker_id} and not exists (select from task where worker_id = ${worker_id} and status = 'running')`
  return given
}

/** What becomes of a task that its worker no longer works on: any worker may take it, and one more has died of it. */
export function givenBack(task: LockedTask, { crashed }: { crashed: boolean }): TaskChange {
  return { task, crashes: task.crashes + (crashed ? 1 : 0), job: { kind: 'back' } }
}

/** Requeues tasks that a worker holds by their rows, but for those in `except`. */
export async function requeueTasks(
  sql: Sql,
  queue: Queue,
  worker_id: string,
  { crashed, except }: { crashed: boolean; except: readonly string[] },
): Promise<{ count: number; published: PublishedEvents[] }> {
  return sql.begin(async (tx) => {
    const held = await tx<{ id: string }>`
      select id from task where worker_id = ${worker_id} and status = 'running' and id <> all(${[...except]}) order by id limit ${batch}`
    const tasks = [
      ...(
        await lockTasks(
          tx,
          held.map(({ id }) => id),
        )
      ).values(),
    ]
    const theirs = tasks.filter((task) => task.worker_id === worker_id && task.status === 'running')
    const published = await applyChanges(
      tx,
      queue,
      theirs.map((task) => givenBack(task, { crashed })),
    )
    return { count: held.length, published }
  })
}

/**
 * Of the tasks that a worker works on, those whose calls in flight are to be aborted: `lost` they are no longer its own
 * (taken over, canceled by force, removed), `cancel` it was asked to cancel them, `agent` their agent does not work. The
 * signals that tell it sooner may be lost, with a connection or with the process that owed them.
 */
export async function listInterrupted(
  sql: Sql,
  worker_id: string,
  task_ids: readonly string[],
): Promise<{ id: string; reason: 'lost' | 'cancel' | 'agent' }[]> {
  if (task_ids.length === 0) return []
  return sql<{ id: string; reason: 'lost' | 'cancel' | 'agent' }>`
    select found.id, found.reason from (
      select wanted.id, case
          when t.id is null then 'lost'
          when t.cancel_requested_at is not null then 'cancel'
          when coalesce(case when a.status = 'updating' then a.settles_to else a.status end, 'deleted')
            not in ('running', 'creating', 'paused') then 'agent' end as reason
      from unnest(${[...task_ids]}::text[]) wanted(id)
      left join task t on t.id = wanted.id and t.worker_id = ${worker_id} and t.status = 'running'
      left join agent a on a.id = t.agent_id) found
    where found.reason is not null`
}
