import type { Context } from '../context.ts'
import { sweepIdempotency } from '../http/idempotency.ts'
import { sweepOpenStreams } from '../http/connection/open-streams.ts'
import { buildLateIndexes } from './late-indexes.ts'
import { startPeriodic, type PeriodicJob } from '../platform/periodic.ts'
import type { Sql } from '../platform/postgres/database.ts'
import { sweepConversations } from '../protocols/conversations.queries.ts'
import { sweepDoorRequests } from '../protocols/door-requests.queries.ts'
import { sweepTriggerDeliveries } from '../protocols/triggers/deliveries.queries.ts'
import { ensurePartitions } from '../platform/postgres/partitions.ts'
import { foldAgentCounts } from '../resources/agents/agents.queries.ts'
import { foldProjectCounts } from '../resources/projects/projects.queries.ts'
import { dropOldLogs, dropOldMonths, makeSweepTasks, sweepLogSums, sweepRecords } from './retention.ts'

/** Partitions are made this many days ahead, so that a service that was off for a month still has one. */
const partitionsAhead_days = 45
const interval_ms = 10 * 60_000
/** Rows that are not summed up yet are counted with every read. */
const sumsInterval_ms = 60_000
/** Rows that one statement deletes, so that a sweep blocks no request for long. */
const batch = 1000

/** Background jobs that make partitions ahead, delete rows whose retention is over, and update sums. */
export interface Maintenance {
  stop(): Promise<void>
}

/**
 * A job of every ten minutes. Returns the number of deleted rows, and is called again after a full batch; or returns
 * whether there is more to do now.
 */
export type Sweep = (sql: Sql, context: Context) => Promise<number | boolean>

/**
 * Runs every sweep at the start and then every ten minutes, and sums up tasks and logs every minute. A failed sweep is
 * logged and runs again at the next interval.
 */
export function startMaintenance(context: Context, more: readonly Sweep[] = []): Maintenance {
  let stopped = false
  const sweeps: Sweep[] = [
    makePartitions,
    dropOldLogs,
    dropOldMonths,
    sweepLogSums,
    sweepWindows,
    sweepLogins,
    sweepKeys,
    foldKeyUsage,
    foldAgentCounts,
    foldProjectCounts,
    sweepUsage,
    sweepRecords,
    sweepIdempotency,
    sweepDoorRequests,
    sweepOldConversations,
    sweepTriggerDeliveries,
    sweepOpenStreams,
    ...more,
    makeSweepTasks(),
    buildLateIndexes,
  ]

  const sums: Sweep[] = [rollUpTasks, rollUpTaskTotals, rollUpLogs]

  const pass = async (all: readonly Sweep[]): Promise<void> => {
    for (const sweep of all) {
      try {
        while (!stopped && isMore(await sweep(context.sql, context))) continue
      } catch (error) {
        if (!stopped) context.log.warn({ err: error, sweep: sweep.name }, 'sweep failed; retrying')
      }
    }
  }
  const repeat = (every_ms: number, all: readonly Sweep[]): PeriodicJob => {
    // `pass` logs the failure of each sweep.
    const job = startPeriodic(() => pass(all), { every_ms, onError: () => {} })
    job.now()
    return job
  }
  const jobs = [repeat(interval_ms, sweeps), repeat(sumsInterval_ms, sums)]
  return {
    async stop() {
      stopped = true
      await Promise.all(jobs.map((job) => job.stop()))
    },
  }
}

function isMore(given: number | boolean): boolean {
  return typeof given === 'number' ? given >= batch : given
}

function sweepOldConversations(sql: Sql, { config }: Context): Promise<number> {
  return sweepConversations(sql, config.task_retention_days)
}

async function makePartitions(sql: Sql): Promise<number> {
  await ensurePartitions(sql, partitionsAhead_days)
  return 0
}

/** The age is checked again on the locked row, because a request may have been counted in it meanwhile. */
async function sweepWindows(sql: Sql): Promise<number> {
  const deleted = await sql`
    delete from rate_window where (subject, bucket) in (
      select subject, bucket from rate_window where hour_start < now() - interval '2 hours' limit ${batch})
      and hour_start < now() - interval '2 hours' returning bucket`
  await sql`delete from token_usage where hour < now() - interval '2 days'`
  return deleted.length
}

async function sweepLogins(sql: Sql): Promise<number> {
  const deleted = await sql`
    delete from login_attempt where id in (select id from login_attempt where at < now() - interval '1 day' limit ${batch}) returning id`
  const ended = await sql`
    delete from session where id in (
      select id from session where expires_at < now() or idle_expires_at < now() limit ${batch}) returning id`
  return Math.max(deleted.length, ended.length)
}

/** Revoked keys are kept 90 days for the audit log (decision D56). */
async function sweepKeys(sql: Sql): Promise<number> {
  const deleted = await sql`
    delete from api_key where id in (select id from api_key where revoked_at < now() - interval '90 days' limit ${batch}) returning id`
  return deleted.length
}

/** Merges hours that no statistic reads separately into one row per key, so that totals stay correct. */
async function foldKeyUsage(sql: Sql): Promise<number> {
  const [folded] = await sql<{ hours: number }>`
    with old as (
      delete from api_key_usage where (key_id, hour) in (
        select key_id, hour from api_key_usage where hour > '-infinity' and hour < now() - interval '32 days' limit ${batch})
      returning key_id, requests, last_at
    ), kept as (
      insert into api_key_usage as u (key_id, hour, requests, last_at)
      select key_id, '-infinity', sum(requests), max(last_at) from old group by key_id
      on conflict (key_id, hour) do update set requests = u.requests + excluded.requests, last_at = greatest(u.last_at, excluded.last_at)
    )
    select count(*) as hours from old`
  return folded?.hours ?? 0
}

/** Metrics are kept 90 days (decision D49). */
async function sweepUsage(sql: Sql): Promise<number> {
  const deleted = await sql`
    delete from agent_usage where (agent_id, minute) in (
      select agent_id, minute from agent_usage where minute < now() - interval '90 days' limit ${batch}) returning minute`
  return deleted.length
}

/** Adds ended tasks to the sums, an hour of them at a time (see `roll_up_tasks`). */
async function rollUpTasks(sql: Sql): Promise<boolean> {
  const [rolled] = await sql<{ more: boolean }>`select roll_up_tasks() as more`
  return rolled!.more
}

/** Adds new log entries to the sums, an hour of them at a time (see `roll_up_logs`). */
async function rollUpLogs(sql: Sql): Promise<boolean> {
  const [rolled] = await sql<{ more: boolean }>`select roll_up_logs() as more`
  return rolled!.more
}

/** Adds ended tasks to the totals of lists, ten minutes of them at a time (see `roll_up_task_totals`). */
async function rollUpTaskTotals(sql: Sql): Promise<boolean> {
  const [rolled] = await sql<{ more: boolean }>`select roll_up_task_totals() as more`
  return rolled!.more
}
