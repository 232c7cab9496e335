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

/** The row of a schedule. */
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

/** The members of a schedule that users set. */
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

/** Key of a schedule within its project. */
export interface ScheduleKey {
  id: string
  project_id: number
}

const columns = (sql: Sql) => sql.fragment`
  id, project_id, agent_id, thread_id, name, cron, time_zone, input, priority, timeout_seconds, budget, metadata, status, overlap, catch_up,
  next_run_at, last_run_at, last_task_id, tasks_created, skipped, last_error, created_by, created_at, updated_at`

/** A schedule in a response. */
export function scheduleView(row: ScheduleRow) {
  return { ...row, project_id: projectId(row.project_id), next_runs: runsOf(row) }
}

/**
 * The next due times. If the expression is no longer valid, only the stored one, so that the schedule can still be
 * read and repaired.
 */
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
 * A schedule of a project; throws 404 if it does not exist. With `lock` its row is locked until the transaction ends.
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

/** A page of a project's schedules, newest first, and their total number. */
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

/** Inserts an active schedule. */
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
  // The project, agent or thread was deleted since it was looked up.
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

/** Pauses a locked schedule, or activates it with a next due time. */
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

/** Schedules that are due by the database's clock, longest overdue first. */
export async function listDueSchedules(sql: Sql, limit: number): Promise<{ id: string; agent_id: string }[]> {
  return sql`
    select id, agent_id from schedule where status = 'active' and next_run_at <= now() order by next_run_at, id limit ${limit}`
}

/**
 * Locks a schedule that is still due, with the time of the transaction; undefined if another process handles or has
 * handled it. The agent is locked first (`lockAgentOf`), in the lock order of an agent's deletion.
 */
export async function lockDueSchedule(tx: Sql, id: string): Promise<(ScheduleRow & { now: string }) | undefined> {
  const [row] = await tx.run<ScheduleRow & { now: string }>(tx.fragment`
    select ${columns(tx)}, now() as now from schedule where id = ${id} and status = 'active' and next_run_at <= now()
    for update skip locked`)
  return row
}

/**
 * Locks an agent, so that it cannot change its state or be deleted until the transaction ends, and returns what
 * creating a task needs.
 */
export async function lockAgentOf(tx: Sql, agent_id: string): Promise<NewTask['agent'] | undefined> {
  const [row] = await tx<NewTask['agent']>`
    select id, project_id, version, status, settles_to,
      jsonb_build_object('max_concurrent_tasks', config->'max_concurrent_tasks') as config
    from agent where id = ${agent_id} for key share`
  return row
}

/** Whether a schedule has an open task. */
export async function hasOpenTask(sql: Sql, schedule_id: string): Promise<boolean> {
  const [open] = await sql`
    select 1 from task where schedule_id = ${schedule_id} and status in ('queued', 'running', 'waiting') limit 1`
  return open !== undefined
}

/** Records the created task of a locked schedule. */
export async function noteTask(tx: Sql, id: string, task_id: string): Promise<void> {
  await tx`
    update schedule set last_run_at = now(), last_task_id = ${task_id}, tasks_created = tasks_created + 1, last_error = null
    where id = ${id}`
}

/** Records why a locked schedule created no task. */
export async function noteError(tx: Sql, id: string, fault: NonNullable<ScheduleRow['last_error']>): Promise<void> {
  await tx`update schedule set skipped = skipped + 1, last_error = ${jsonb(fault)} where id = ${id}`
}

/** Sets the next due time of a locked schedule; null pauses it. */
export async function advanceSchedule(tx: Sql, id: string, next: string | null): Promise<void> {
  await tx`
    update schedule set next_run_at = ${next}, status = ${next === null ? 'paused' : 'active'} where id = ${id}`
}

/** Whether a thread belongs to an agent. */
export async function isThreadOf(sql: Sql, thread_id: string, agent_id: string): Promise<boolean> {
  const [row] = await sql`select 1 from thread where id = ${thread_id} and agent_id = ${agent_id}`
  return row !== undefined
}
