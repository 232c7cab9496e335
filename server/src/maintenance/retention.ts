import { retention_days } from '#contract/core/limits.ts'
import type { Context } from '../context.ts'
import { makeTaskRetention } from '../engine/maintenance/task-retention.ts'
import { areDeliveriesOver, areEventsDelivered } from '../events/webhooks/delivery-retention.ts'
import type { Sql } from '../platform/postgres/database.ts'
import { dropPartition, listPartitions } from '../platform/postgres/partitions.ts'

/** Events, deliveries and attempts are dropped by whole months, long after the last attempt of a delivery (decision D97). */
const { events: eventsRetention_days, webhook_deliveries: deliveriesRetention_days } = retention_days
/** A month of tasks is not dropped at once after its end, because a clock that is behind may still make identifiers for it. */
const monthOver_days = 7
/** Usage by the hour is kept for a year and a month, to compare bills. */
const { usage: usageRetention_days, audit_log: auditRetention_days, refusals: refusalsRetention_days } = retention_days
/** Days of a key's calls that are stored. */
const callsRetention_days = 31
const batch = 1000

/** Makes the sweep of old tasks and threads: see `makeTaskRetention`. */
export function makeSweepTasks(): (sql: Sql, context: Context) => Promise<boolean> {
  const removeOld = makeTaskRetention()
  return function sweepTasks(sql, { config }) {
    return removeOld(sql, config.task_retention_days)
  }
}

/**
 * Drops the days of agents' logs whose retention is over (decision D48). The same transaction ends counting them; another
 * sweep deletes their sums.
 */
export async function dropOldLogs(sql: Sql, { config }: Context): Promise<boolean> {
  const before = await daysAgo(sql, config.log_retention_days + 1, 'YYYYMMDD')
  for (const name of await listPartitions(sql, 'agent_log'))
    if (name < `agent_log_${before}`)
      await dropPartition(sql, { table: 'agent_log', name }, (tx) => keepLogsBehind(tx, name))
  // An older build without sums may have dropped some partitions.
  const [oldest] = await listPartitions(sql, 'agent_log')
  if (oldest !== undefined) await keepLogsFrom(sql, oldest, 0)
  return false
}

async function keepLogsBehind(tx: Sql, partition: string): Promise<true> {
  await keepLogsFrom(tx, partition, 1)
  return true
}

/** Counts log entries only from the given number of days after the start of a partition. */
async function keepLogsFrom(sql: Sql, partition: string, days: 0 | 1): Promise<void> {
  await sql`
    update log_rollup_state set kept_from = kept.day
    from (select (to_date(${partition.slice(-8)}, 'YYYYMMDD') + ${days}::int)::timestamp at time zone 'UTC' as day) kept where kept_from < kept.day`
}

/** Deletes sums of dropped logs. */
export async function sweepLogSums(sql: Sql): Promise<number> {
  const deleted = await sql`
    delete from log_rollup where (agent_id, seconds, bucket) in (
      select agent_id, seconds, bucket from log_rollup
      where seconds = any('{900,86400}') and bucket < (select kept_from from log_rollup_state) limit ${batch}) returning seconds`
  return deleted.length
}

/** Drops months of steps and task events without tasks, and old months of events and deliveries that are finished. */
export async function dropOldMonths(sql: Sql): Promise<boolean> {
  const over = await daysAgo(sql, monthOver_days, 'YYYYMM')
  for (const table of ['task_step', 'task_event'])
    for (const name of await listPartitions(sql, table))
      await dropMonth(sql, { table, name, before: over }, isWithoutTasks)
  const before = await daysAgo(sql, eventsRetention_days, 'YYYYMM')
  for (const name of await listPartitions(sql, 'event'))
    await dropMonth(sql, { table: 'event', name, before }, areEventsDelivered)
  await dropOldDeliveries(sql)
  return false
}

/** Drops old months of deliveries, then of attempts: while a month has deliveries, another attempt may be written. */
async function dropOldDeliveries(sql: Sql): Promise<void> {
  const before = await daysAgo(sql, deliveriesRetention_days, 'YYYYMM')
  for (const name of await listPartitions(sql, 'delivery'))
    await dropMonth(sql, { table: 'delivery', name, before }, areDeliveriesOver)
  const left = new Set((await listPartitions(sql, 'delivery')).map(monthOf))
  for (const name of await listPartitions(sql, 'delivery_attempt'))
    if (!left.has(monthOf(name))) await dropMonth(sql, { table: 'delivery_attempt', name, before }, async () => true)
}

/** Drops an old month if `isOver` holds; checks it without the lock first, because most months are not dropped. */
async function dropMonth(
  sql: Sql,
  { table, name, before }: { table: string; name: string; before: string },
  isOver: (sql: Sql, month: string) => Promise<boolean>,
): Promise<void> {
  const month = monthOf(name)
  if (month < before && (await isOver(sql, month))) await dropPartition(sql, { table, name }, (tx) => isOver(tx, month))
}

function monthOf(name: string): string {
  return name.slice(-6)
}

/**
 * Whether no task of a month is left. Tasks are counted instead of journal rows, because a waiting task may have none and
 * rows of a deleted task may remain.
 */
async function isWithoutTasks(sql: Sql, month: string): Promise<boolean> {
  const rows = await sql`
    with month as (select to_timestamp(${month}, 'YYYYMM') as at)
    select 1 from task where id >= (select id_floor('task', at) from month)
      and id < (select id_floor('task', at + interval '1 month') from month) limit 1`
  return rows.length === 0
}

async function daysAgo(sql: Sql, days: number, form: 'YYYYMM' | 'YYYYMMDD'): Promise<string> {
  const [row] = await sql<{ day: string }>`select to_char(now() - make_interval(days => ${days}), ${form}) as day`
  return row!.day
}

/**
 * Deletes everything whose retention is over, until nothing is left or the signal aborts; returns whether nothing is left.
 * Sweeps of other processes may run at the same time.
 */
export async function purge(context: Context, signal: AbortSignal): Promise<boolean> {
  for (const sweep of [dropOldLogs, dropOldMonths, sweepLogSums, sweepRecords, makeSweepTasks()]) {
    for (let left: number | boolean = true; left === true || (typeof left === 'number' && left >= batch);) {
      if (signal.aborted) return false
      left = await sweep(context.sql, context)
    }
  }
  return true
}

/** Deletes old usage, audit log entries, refusals, and calls of API keys, a batch of each; returns whether more may be left. */
export async function sweepRecords(sql: Sql): Promise<boolean> {
  const hours = await sql`
    delete from usage_hour where ctid = any(array(
      select ctid from usage_hour where hour < now() - make_interval(days => ${usageRetention_days}) limit ${batch}))
      and hour < now() - make_interval(days => ${usageRetention_days}) returning hour`
  const entries = await sql`
    delete from audit where id in (
      select id from audit where id < id_floor('aud', now() - make_interval(days => ${auditRetention_days})) limit ${batch})
    returning id`
  const refusals = await sql`
    delete from refusal_hour where ctid = any(array(
      select ctid from refusal_hour where hour < now() - make_interval(days => ${refusalsRetention_days}) limit ${batch}))
      and hour < now() - make_interval(days => ${refusalsRetention_days}) returning hour`
  const calls = await sql`
    delete from api_key_call where ctid = any(array(
      select ctid from api_key_call where day < (now() - make_interval(days => ${callsRetention_days}))::date limit ${batch}))
      and day < (now() - make_interval(days => ${callsRetention_days}))::date returning day`
  return Math.max(...[hours, entries, refusals, calls].map(({ length }) => length)) >= batch
}
