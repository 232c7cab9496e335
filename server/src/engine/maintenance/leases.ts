import type { Fragment, Sql } from '../../platform/postgres/database.ts'
import { applyChanges, type PublishedEvents } from '../journal/task-changes.ts'
import type { Queue } from '../queue/queue.ts'
import { lockTasks } from '../journal/task-rows.ts'
import type { LockedTask, TaskChange } from '../task.ts'

/** Interval of a worker's heartbeat: see `heartbeat.ts`. */
export const heartbeat_ms = 1000
/**
 * A worker without a heartbeat for this long is dead if its presence lock is free: PostgreSQL releases the lock as soon
 * as the process is gone. A worker that still holds the lock may only be busy.
 */
export const silent_seconds = 3
/**
 * A worker without a heartbeat for this long is dead even if it holds its presence lock: the process is stopped or
 * hung, or its network drops packets.
 */
export const lease_seconds = 10
const batch = 500

/** What this process sees of another worker. */
export interface SeenWorker {
  /** Seconds since its last heartbeat, by the database's clock; undefined without a row. */
  unseen_seconds: number | undefined
  holds_lock: boolean
  /** Of the same instance as a process that is starting. */
  is_predecessor: boolean
}

/** Whether a worker is dead. `listDeadWorkers` has the same rule in SQL; a test compares the two for every case. */
export function isDead({
  unseen_seconds = (silent_seconds + lease_seconds) / 2,
  holds_lock,
  is_predecessor,
}: SeenWorker): boolean {
  return unseen_seconds > lease_seconds || ((unseen_seconds > silent_seconds || is_predecessor) && !holds_lock)
}

/**
 * The row of a worker. `instance` is the host and data folder with the embedded database, so a restarted process
 * recognizes its predecessor; else it is the worker's id.
 */
export interface WorkerIdentity {
  id: string
  instance: string
  slots: number
}

const presenceSeed = 1984

/**
 * Presence lock: held on a dedicated connection, which PostgreSQL closes when the process is gone, so the lock shows
 * that the worker lives. It is shared: a new connection does not wait for the end of a lost one.
 */
export function presenceLock(worker_id: string): { text: string; values: unknown[] } {
  return { text: 'select pg_advisory_lock_shared(hashtextextended($1, $2))', values: [worker_id, presenceSeed] }
}

/** Whether a process holds the presence lock of a worker; `name` is a column or a value with the worker's id. */
export function holdsPresenceLock({ fragment }: Sql, name: Fragment): Fragment {
  return fragment`exists (
    select from pg_locks l where l.locktype = 'advisory' and l.granted and l.objsubid = 1
      and l.database = (select oid from pg_database where datname = current_database())
      and ((l.classid::bigint << 32) | l.objid::bigint) = hashtextextended(${name}, ${presenceSeed}))`
}

/**
 * Inserts or renews the worker's row. With `isDraining`, a new row is marked as draining, for a worker whose row was
 * deleted by others.
 */
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

/** What a worker reads about all workers at each heartbeat. */
export interface SeenWorkers {
  /** Whether this worker's row exists. */
  registered: boolean
  /** Whether a person asked this worker to drain. */
  is_draining: boolean
  /** Sum over all living workers that are not draining. */
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

/** Records that a draining worker has no tasks left. No-op if it is no longer draining. */
export async function recordDrained(sql: Sql, id: string): Promise<void> {
  await sql`update worker set drained_at = now() where id = ${id} and draining_since is not null and drained_at is null`
}

/**
 * Ids of dead workers, including those that hold tasks but have no row. While this process is `starting`, a free
 * presence lock alone shows that its predecessor is dead, so the predecessor's tasks continue at once. Another process
 * with the same folder holds its lock.
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
      -- A frozen worker whose row was deleted woke up, claimed these, and died before it inserted a row again.
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
 * Requeues the tasks of a dead worker in batches, deletes its row, and returns the number of tasks; undefined if another
 * process has done all that. The next worker continues from the last completed step. The fencing number rejects stale
 * writes of the dead worker.
 */
export async function reapWorker(sql: Sql, queue: Queue, worker_id: string): Promise<number | undefined> {
  let given = 0
  for (;;) {
    const { count } = await requeueTasks(sql, queue, worker_id, { crashed: true, except: [] })
    given += count
    if (count < batch) break
  }
  const [deleted] =
    await sql`delete from worker w where id = ${worker_id} and not exists (select from task where worker_id = ${worker_id} and status = 'running') returning id`
  return given > 0 || deleted ? given : undefined
}

/** The change that lets any worker take a task again. With `crashed`, it also counts one more crash under the task. */
export function givenBack(task: LockedTask, { crashed }: { crashed: boolean }): TaskChange {
  return { task, crashes: task.crashes + (crashed ? 1 : 0), job: { kind: 'back' } }
}

/**
 * Requeues tasks that the worker holds by their rows, except those in `except`. `count` is the number of tasks looked
 * at, at most one batch.
 */
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
 * Lists the tasks of a worker whose calls in flight must be aborted, with the reason:
 * - `lost`: the worker no longer holds the task (taken over, canceled by force, deleted);
 * - `cancel`: its cancellation was requested;
 * - `agent`: its agent does not work.
 * Signals announce these earlier, but can be lost with a connection or with the process that sends them.
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
