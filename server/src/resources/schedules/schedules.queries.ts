import { notFound } from '#contract/core/problems.ts'
import type { ScheduleError, ScheduleState } from '#contract/tasks/schedule-lifecycle.ts'
import type { TaskInput } from '#contract/tasks/tasks.ts'
import { projectId } from '#contract/core/project-id.ts'
import type { NewTask } from '../../engine/commands/new-task.ts'
import { answerConstraints, type ConstraintAnswers } from '../../platform/postgres/constraints.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'
import { CronError } from './cron.ts'
import { nextRuns, type Timing } from './due.ts'

/** A schedule as it is kept. */
export interface ScheduleRow extends Timing {
  id: string
  project_id: number
  agent_id: string
  thread_id: string | null
  name: string
  input: TaskInput
  priority: number
  timeout_seconds: number | null
  budget: Record<string, unknown>
  metadata: Record<string, unknown>
  status: ScheduleState
  last_run_at: string | null
  last_task_id: string | null
  tasks_created: number
  skipped: number
  last_error: { code: ScheduleError; message: string; at: string } | null
  created_by: string
  created_at: string
  updated_at: string
}

/** What its owner says of a schedule. */
export type ScheduleContent = Pick<
  ScheduleRow,
  | 'name'
  | 'cron'
  | 'time_zone'
  | 'input'
  | 'thread_id'
  | 'priority'
  | 'timeout_seconds'
  | 'budget'
  | 'metadata'
  | 'overlap'
  | 'catch_up'
>

/** Names a schedule by its own and its project's identifier: another project's does not exist. */
export interface ScheduleKey {
  id: string
  project_id: number
}

const columns = (sql: Sql) => sql.fragment`
  id, project_id, agent_id, thread_id, name, cron, time_zone, input, priority, timeout_seconds, budget, metadata, status, overlap, catch_up,
  next_run_at, last_run_at, last_task_id, tasks_created, skipped, last_error, created_by, created_at, updated_at`

/** A schedule as it is answered. */
export function scheduleView(row: ScheduleRow) {
  return { ...row, project_id: projectId(row.project_id), next_runs: runsOf(row) }
}

/** Without those that the pattern gives where this version no longer understands it: it can still be read and repaired. */
function runsOf(row: ScheduleRow): string[] {
  const { next_run_at } = row
  if (next_run_at === null) return []
  try {
    return nextRuns(row, next_run_at, new Date(next_run_at))
  } catch (error) {
    if (!(error instanceof CronError)) throw error
    return [next_run_at]
  }
}

/**
 * A schedule of a project; throws 404 for a missing one. With `lock` it cannot change for the rest of the transaction.
 */
export async function requireSchedule(sql: Sql, key: ScheduleKey, { lock = false } = {}): Promise<ScheduleRow> {
  const [row] = isId('sched', key.id)
    ? await sql.run<ScheduleRow>(sql.fragment`
        select ${columns(sql)} from schedule where id = ${key.id} and project_id = ${key.project_id}
        ${lock ? sql.fragment`for update` : sql.fragment``}`)
    : []
  if (!row) throw notFound('schedule_not_found', 'schedule', key.id.slice(0, 100))
  return row
}

/** A page of a project's schedules, the newest first, and how many there are. */
export async function listSchedules(
  sql: Sql,
  filter: {
    project_id: number
    agent_id?: string | undefined
    status?: ScheduleState | undefined
    limit: number
    offset: number
  },
): Promise<{ schedules: ScheduleRow[]; total: number }> {
  const { fragment } = sql
  const conditions = [fragment`project_id = ${filter.project_id}`]
  if (filter.agent_id !== undefined) conditions.push(fragment`agent_id = ${filter.agent_id}`)
  if (filter.status) conditions.push(fragment`status = ${filter.status}`)
  const where = conditions.reduce((all, one) => fragment`${all} and ${one}`)
  const [count] = await sql.run<{ total: number }>(fragment`select count(*) as total from schedule where ${where}`)
  const schedules = await sql.run<ScheduleRow>(fragment`
    select ${columns(sql)} from schedule where ${where} order by id desc limit ${filter.limit} offset ${filter.offset}`)
  return { schedules, total: count?.total ?? 0 }
}

/** Keeps a new schedule, active. */
export async function insertSchedule(
  sql: Sql,
  schedule: ScheduleContent & ScheduleKey & Pick<ScheduleRow, 'agent_id' | 'next_run_at' | 'created_by'>,
): Promise<ScheduleRow> {
  const { id, project_id, agent_id, thread_id, name, cron, time_zone, input, priority, timeout_seconds } = schedule
  const { budget, metadata, overlap, catch_up, next_run_at, created_by } = schedule
  const statement = sql.fragment`
    insert into schedule (id, project_id, agent_id, thread_id, name, cron, time_zone, input, priority, timeout_seconds, budget, metadata,
      overlap, catch_up, next_run_at, created_by)
    values (${id}, ${project_id}, ${agent_id}, ${thread_id}, ${name}, ${cron}, ${time_zone}, ${jsonb(input)}, ${priority},
      ${timeout_seconds}, ${jsonb(budget)}, ${jsonb(metadata)}, ${overlap}, ${catch_up}, ${next_run_at}, ${created_by})
    returning ${columns(sql)}`
  // Removed since they were looked up.
  const missingParents: ConstraintAnswers = {
    schedule_agent_id_fkey: () => notFound('agent_not_found', 'agent', agent_id),
    schedule_thread_id_fkey: () => notFound('thread_not_found', 'thread', thread_id ?? ''),
  }
  const [row] = await answerConstraints(missingParents, () => sql.run<ScheduleRow>(statement))
  return row!
}

/** Replaces the content of a locked schedule. `next_run_at` is null for a paused one. */
export async function updateSchedule(
  tx: Sql,
  { id }: ScheduleKey,
  content: ScheduleContent,
  next_run_at: string | null,
): Promise<ScheduleRow> {
  const { name, cron, time_zone, input, thread_id, priority, timeout_seconds } = content
  const { budget, metadata, overlap, catch_up } = content
  const [row] = await tx.run<ScheduleRow>(tx.fragment`
    update schedule set name = ${name}, cron = ${cron}, time_zone = ${time_zone}, input = ${jsonb(input)}, thread_id = ${thread_id},
      priority = ${priority}, timeout_seconds = ${timeout_seconds}, budget = ${jsonb(budget)}, metadata = ${jsonb(metadata)},
      overlap = ${overlap}, catch_up = ${catch_up}, next_run_at = ${next_run_at},
      updated_at = greatest(now(), updated_at + interval '1 millisecond')
    where id = ${id} returning ${columns(tx)}`)
  return row!
}

/** Pauses a locked schedule, or makes it active from a due time on. */
export async function moveSchedule(tx: Sql, { id }: ScheduleKey, next_run_at: string | null): Promise<ScheduleRow> {
  const [row] = await tx.run<ScheduleRow>(tx.fragment`
    update schedule set status = ${next_run_at === null ? 'paused' : 'active'}, next_run_at = ${next_run_at},
      updated_at = greatest(now(), updated_at + interval '1 millisecond')
    where id = ${id} returning ${columns(tx)}`)
  return row!
}

export async function deleteSchedule(sql: Sql, { id }: ScheduleKey): Promise<boolean> {
  return (await sql`delete from schedule where id = ${id} returning id`).length > 0
}

/** Schedules that are due by the database's clock, those that wait longest first. */
export async function listDueSchedules(sql: Sql, limit: number): Promise<{ id: string; agent_id: string }[]> {
  return sql`
    select id, agent_id from schedule where status = 'active' and next_run_at <= now() order by next_run_at, id limit ${limit}`
}

/**
 * Locks a schedule that is still due, with the moment of the transaction; undefined where another process has it or had
 * it. Its agent is locked first (`lockAgentOf`), in the order in which an agent's removal locks the two.
 */
export async function lockDueSchedule(tx: Sql, id: string): Promise<(ScheduleRow & { now: string }) | undefined> {
  const [row] = await tx.run<ScheduleRow & { now: string }>(tx.fragment`
    select ${columns(tx)}, now() as now from schedule where id = ${id} and status = 'active' and next_run_at <= now()
    for update skip locked`)
  return row
}

/** An agent as creating a task needs it; it cannot be moved or removed for the rest of the transaction. */
export async function lockAgentOf(tx: Sql, agent_id: string): Promise<NewTask['agent'] | undefined> {
  const [row] = await tx<NewTask['agent']>`
    select id, project_id, version, status, settles_to,
      jsonb_build_object('max_concurrent_tasks', config->'max_concurrent_tasks') as config
    from agent where id = ${agent_id} for key share`
  return row
}

/** Whether a task of a schedule has not ended. */
export async function hasOpenTask(sql: Sql, schedule_id: string): Promise<boolean> {
  const [open] = await sql`
    select 1 from task where schedule_id = ${schedule_id} and status in ('queued', 'running', 'waiting') limit 1`
  return open !== undefined
}

/** Notes the task that a locked schedule has created in this transaction. */
export async function noteTask(tx: Sql, id: string, task_id: string): Promise<void> {
  await tx`
    update schedule set last_run_at = now(), last_task_id = ${task_id}, tasks_created = tasks_created + 1, last_error = null
    where id = ${id}`
}

/** Notes why a locked schedule has created none. */
export async function noteError(tx: Sql, id: string, fault: NonNullable<ScheduleRow['last_error']>): Promise<void> {
  await tx`update schedule set skipped = skipped + 1, last_error = ${jsonb(fault)} where id = ${id}`
}

/** Moves a locked schedule on to its next due time; without one it is paused. */
export async function advanceSchedule(tx: Sql, id: string, next: string | null): Promise<void> {
  await tx`
    update schedule set next_run_at = ${next}, status = ${next === null ? 'paused' : 'active'} where id = ${id}`
}

/** Whether a thread is one of an agent's. */
export async function isThreadOf(sql: Sql, thread_id: string, agent_id: string): Promise<boolean> {
  const [row] = await sql`select 1 from thread where id = ${thread_id} and agent_id = ${agent_id}`
  return row !== undefined
}
