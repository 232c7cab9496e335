import pg from 'pg'
import { PgBoss, type Db } from 'pg-boss'
import type { Logger } from 'pino'
import type { Database, Fragment, Sql } from '../../platform/postgres/database.ts'

/** A job to send. A job only names its task; everything else is in the task's row. */
export interface NewJob {
  /** A UUID that the caller generates, so that the task's row can name the job in the same statement. */
  id: string
  task_id: string
  project_id: number
  /** 0 to 9; higher ones are fetched first. */
  priority: number
  /** The earliest start; undefined for now. */
  start_after?: Date | undefined
}

/** A job that this process fetched. Each fetch of a job raises its `attempt`. */
export interface Job {
  id: string
  attempt: number
  task_id: string
}

export type JobAttempt = Pick<Job, 'id' | 'attempt'>

/**
 * The queue: pg-boss on the same PostgreSQL, so that a task, its job and its events are one transaction (decision
 * 0004). Every change of jobs is part of the caller's transaction.
 *
 * A done job is deleted: the task is the history, and a small table keeps fetching fast.
 */
export interface Queue {
  /** Maximum number of waiting jobs of one project. Tasks created within one second may exceed it. */
  readonly waitingMax: number
  /** Resolves when the queue's schema exists and jobs can be sent. */
  ready: Promise<void>
  send(tx: Sql, jobs: readonly NewJob[]): Promise<void>
  /**
   * Marks jobs that this transaction inserted as active, like a fetch does, so that no other process fetches them.
   * Returns them with their attempt.
   */
  activate(tx: Sql, ids: readonly string[]): Promise<Job[]>
  /**
   * The insert of jobs that are active from the start, like fetched ones, as part of a statement. The relation `from`
   * has their `job_id`, the task's `id`, `project_id` and `priority`. The queue must be ready.
   */
  insertActive(sql: Sql, from: Fragment): Fragment
  /**
   * Fetches at most `count` jobs by priority and age, and marks them active. `perProject` bounds the active jobs of one
   * project over all processes, so that other projects do not wait behind its backlog. Jobs of the projects in `behind`
   * are fetched only if there are not enough others.
   */
  fetch(tx: Sql, count: number, perProject: number, behind?: readonly number[]): Promise<Job[]>
  /**
   * Number of waiting jobs of each project with at least `atLeast` of them, and of the projects in `project_ids`.
   * Projects without any are left out.
   */
  countWaiting(sql: Sql, atLeast: number, project_ids: readonly number[]): Promise<Map<number, number>>
  /** The deletion of jobs, as part of a caller's statement. A job that was fetched again meanwhile stays. */
  removal(sql: Sql, jobs: readonly JobAttempt[]): Fragment
  /** Deletes jobs whatever their attempt, because their tasks no longer name them. */
  discard(tx: Sql, ids: readonly string[]): Promise<void>
  /**
   * Deletes those of the jobs that are active, whatever their attempt. Waiting ones stay: their fetch may hold a lock
   * while it waits for the task's.
   */
  discardActive(tx: Sql, ids: readonly string[]): Promise<void>
  /**
   * Deletes those of the jobs that are not active. One that is being fetched stays: its fetch may wait for the lock of
   * the task.
   */
  discardTimers(tx: Sql, ids: readonly string[]): Promise<void>
  /**
   * Deletes at most `lostMax` jobs that were fetched more than `lostAfter_seconds` ago and that no task names. No
   * worker owns them, and they would count for their project until they expire. Returns their number.
   */
  discardLost(sql: Sql): Promise<number>
  /** Requeues active jobs at their old place; their next fetch has the next attempt. */
  requeue(tx: Sql, ids: readonly string[]): Promise<void>
  /** Stops the queue's maintenance. Jobs stay as they are. */
  close(): Promise<void>
}

const name = 'task'
const schema = 'pgboss'
/** The queue's expiry is the last resort behind Cadre's leases. A claim lasts an hour at most (see `run-task.ts`). */
const expire_seconds = 86_400
/** Waiting jobs are never deleted by age. */
const retention_seconds = 10 * 365 * 86_400
/** `max_attempts` of the task bounds its retries, not the queue. */
const retriesMax = 1_000_000
const maintenanceTimeout_ms = 120_000
const superviseInterval_seconds = 60
/** No transaction that fetches a job, or changes the task that names it, lasts this long. */
const lostAfter_seconds = 60
const lostMax = 1000
/**
 * Usual maximum of waiting jobs per project. Each fetch for another project scans the jobs of a project that has its
 * share of the workers. The number is about what workers complete within a second.
 */
const usualWaitingMax = 2000
/** Maximum number of jobs that one fetch takes. */
export const fetchMax = 64

/**
 * Maximum number of jobs that one fetch takes for this number of free slots. Powers of two keep the number of prepared
 * statements small.
 */
export const fetchSize = (free: number): number => 2 ** Math.floor(Math.log2(Math.min(free, fetchMax)))

/** Query for COPY: `task_id` and `start_after` of open tasks whose job is not due yet. */
export const delayedJobsQuery = `
  select t.id as task_id, j.start_after from ${schema}.job j join task t on t.job_id = j.id
  where j.name = '${name}' and j.state < 'active' and j.start_after > now()`

/** Whether the queue's schema exists and has jobs. */
export async function hasJobs(sql: Sql): Promise<boolean> {
  const [queue] = await sql<{ is_there: boolean }>`select to_regclass(${`${schema}.job`}) is not null as is_there`
  if (!queue?.is_there) return false
  const [job] = await sql.run(sql.fragment`select from pgboss.job limit 1`)
  return job !== undefined
}

/** Opens the queue. Its schema is created or checked in the background: see `ready`. */
export function openQueue({
  database,
  log,
  supervise = true,
  waitingMax = usualWaitingMax,
}: {
  database: Database
  log: Logger
  /** Whether this process maintains the queue's tables; one process is enough. */
  supervise?: boolean
  /** Tests lower it. */
  waitingMax?: number | undefined
}): Queue {
  const own = ownDatabase(database, log)
  const boss = new PgBoss({
    db: own.db,
    schema,
    schedule: false,
    supervise,
    superviseIntervalSeconds: superviseInterval_seconds,
  })
  boss.on('error', (error) => log.warn({ err: error }, 'maintenance of the queue failed; it will run again'))
  boss.on('warning', (warning) => log.warn({ warning }, 'pg-boss reported a warning'))
  const ready = start(boss)
  // The caller sees the error. Without a handler it would also end the process.
  ready.catch(() => {})

  return {
    waitingMax,
    ready,
    async send(tx, jobs) {
      if (jobs.length === 0) return
      await ready
      const inserts = jobs.map(({ id, task_id, project_id, priority, start_after }) => ({
        id,
        data: { task_id },
        priority,
        group: { id: String(project_id) },
        ...(start_after ? { startAfter: start_after } : {}),
      }))
      await boss.insert(name, inserts, { db: prepared(tx) })
    },
    async activate(tx, ids) {
      if (ids.length === 0) return []
      await ready
      return tx<Job>`
        update pgboss.job set state = 'active', started_on = now(), heartbeat_on = now()
        where name = ${name} and id = any(${[...ids]}::uuid[]) and state = 'created'
        returning id, retry_count as attempt, data->>'task_id' as task_id`
    },
    insertActive: ({ fragment }, from) => fragment`
      insert into pgboss.job (id, name, data, priority, group_id, state, started_on, heartbeat_on, expire_seconds, deletion_seconds, keep_until,
        retry_limit, retry_delay, retry_backoff, retry_delay_max, policy, dead_letter, heartbeat_seconds)
      select j.job_id, q.name, jsonb_build_object('task_id', j.id), j.priority, j.project_id::text, 'active', now(), now(), q.expire_seconds,
        q.deletion_seconds, now() + q.retention_seconds * interval '1 second', q.retry_limit, q.retry_delay, q.retry_backoff, q.retry_delay_max,
        q.policy, q.dead_letter, q.heartbeat_seconds
      from ${from} j cross join pgboss.queue q where q.name = ${name}`,
    async fetch(tx, count, perProject, behind = []) {
      await ready
      const ignoreGroups = behind.length > 0 ? behind.map(String) : null
      const first = await fetchJobs(boss, tx, { count, groupConcurrency: perProject, ignoreGroups })
      const left = count - first.length
      if (ignoreGroups === null || left <= 0) return first
      return [
        ...first,
        ...(await fetchJobs(boss, tx, { count: left, groupConcurrency: perProject, ignoreGroups: null })),
      ]
    },
    async countWaiting(sql, atLeast, project_ids) {
      await ready
      const rows = await sql.run<{ project_id: number; n: number }>(sql.fragment`
        select group_id::bigint as project_id, count(*) as n from pgboss.job
        where name = ${name} and state < 'active' and group_id is not null
        group by group_id having count(*) >= ${atLeast} or group_id = any(${project_ids.map(String)})`)
      return new Map(rows.map(({ project_id, n }) => [project_id, n]))
    },
    removal: ({ fragment }, jobs) => fragment`
      delete from pgboss.job j using unnest(${jobs.map(({ id }) => id)}::uuid[], ${jobs.map(({ attempt }) => attempt)}::int[]) as ended(id, attempt)
      where j.name = ${name} and j.id = ended.id and j.state = 'active' and j.retry_count = ended.attempt`,
    async discard(tx, ids) {
      if (ids.length === 0) return
      await ready
      await boss.deleteJob(name, [...ids], { db: prepared(tx) })
    },
    async discardActive(tx, ids) {
      if (ids.length === 0) return
      await ready
      await tx`delete from pgboss.job where name = ${name} and id = any(${[...ids]}::uuid[]) and state = 'active'`
    },
    async discardTimers(tx, ids) {
      if (ids.length === 0) return
      await ready
      await tx`
        delete from pgboss.job where name = ${name} and id in (
          select id from pgboss.job where name = ${name} and id = any(${[...ids]}::uuid[]) and state < 'active' for update skip locked)`
    },
    async discardLost(sql) {
      await ready
      const lost = await sql`
        delete from pgboss.job where name = ${name} and state = 'active' and id in (
          select j.id from pgboss.job j where j.name = ${name} and j.state = 'active'
            and j.started_on < now() - make_interval(secs => ${lostAfter_seconds})
            and not exists (select from task t where t.id = j.data->>'task_id' and t.job_id = j.id) limit ${lostMax})
        returning id`
      return lost.length
    },
    async requeue(tx, ids) {
      if (ids.length === 0) return
      await ready
      await boss.fail(name, [...ids], null, { db: prepared(tx) })
    },
    async close() {
      await ready.catch(() => {})
      await boss.stop({ graceful: false, close: false })
      await own.close()
    },
  }
}

async function start(boss: PgBoss): Promise<void> {
  await boss.start()
  if (await boss.getQueue(name)) return
  await boss.createQueue(name, {
    retryLimit: retriesMax,
    retryDelay: 0,
    expireInSeconds: expire_seconds,
    retentionSeconds: retention_seconds,
  })
}

async function fetchJobs(
  boss: PgBoss,
  tx: Sql,
  options: { count: number; groupConcurrency: number; ignoreGroups: string[] | null },
): Promise<Job[]> {
  const { count, ...rest } = options
  const batchSize = fetchSize(count)
  const jobs = await boss.fetch<{ task_id: string }>(name, { db: prepared(tx), batchSize, ...rest })
  return jobs.map(({ id, retryCount, data }) => ({ id, attempt: retryCount, task_id: data.task_id }))
}

/**
 * Wraps a transaction of Cadre for pg-boss. Its statements are named like Cadre's, so PostgreSQL prepares them once.
 */
function prepared(tx: Sql): Db {
  return {
    executeSql: async (text, values = []) => ({
      // `run` reads only the text and the values of a fragment.
      rows: await tx.run({ text, values } as Fragment),
    }),
  }
}

/** Connections for the queue's maintenance, whose statements may take longer than those of a request. */
function ownDatabase(database: Database, log: Logger): { db: Db; close(): Promise<void> } {
  const { types: _types, ...settings } = database.settings
  const pool = new pg.Pool({
    ...settings,
    application_name: 'cadre queue',
    options: `${settings.options ?? ''} -c statement_timeout=${maintenanceTimeout_ms}`,
    query_timeout: maintenanceTimeout_ms,
    max: 2,
    idleTimeoutMillis: 5000,
  })
  pool.on(
    'error',
    (error) =>
      void (pool.ending || log.warn({ err: error }, 'an idle connection of the queue was lost; it will be replaced')),
  )
  return { db: { executeSql: (text, values) => pool.query(text, values) }, close: () => pool.end() }
}
