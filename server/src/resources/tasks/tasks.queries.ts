import type { TaskState } from '#contract/task-lifecycle.ts'
import { notFound } from '#contract/problems.ts'
import type { Step, TaskError, TaskInputMessage, TaskOutput, TaskUsage, Wait } from '../../engine/task-rows.ts'
import type { TaskEvent } from '../../events/streams-hub.ts'
import type { Sql } from '../../platform/database.ts'
import { isId } from '../../platform/ids.ts'
import { projectId } from '../projects/projects.queries.ts'

/** A task as it is kept. */
export interface TaskRow {
  id: string
  project_id: number
  agent_id: string
  agent_version: number
  thread_id: string | null
  retried_from: string | null
  schedule_id: string | null
  status: TaskState
  wait: Wait | null
  input: string | TaskInputMessage[]
  output: TaskOutput | null
  error: TaskError | null
  priority: number
  concurrency_key: string | null
  run_after: string | null
  queue_ttl_seconds: number | null
  timeout_seconds: number | null
  max_attempts: number
  budget: Record<string, unknown>
  usage: TaskUsage
  metadata: Record<string, unknown>
  created_by: string
  trace_id: string | null
  created_at: string
  started_at: string | null
  finished_at: string | null
  updated_at: string
  cancel_requested_at: string | null
  last_sequence: number
}

const columns = (sql: Sql) => sql.fragment`
  id, project_id, agent_id, agent_version, thread_id, retried_from, schedule_id, status, wait, input, output, error, priority,
  concurrency_key, run_after, queue_ttl_seconds, timeout_seconds, max_attempts, budget, usage, metadata, created_by, trace_id,
  created_at, started_at, finished_at, updated_at, cancel_requested_at, last_sequence`

/** A task as it is answered. */
export function taskView(row: TaskRow) {
  return { ...row, project_id: projectId(row.project_id) }
}

/** Names a task by its own and its project's identifier: another project's does not exist. */
export interface TaskKey {
  id: string
  project_id: number
}

/** A task of a project; undefined where it is none, or its agent is gone. */
export async function findTask(sql: Sql, { id, project_id }: TaskKey): Promise<TaskRow | undefined> {
  if (!isId('task', id)) return undefined
  const [row] = await sql.run<TaskRow>(sql.fragment`
    select ${columns(sql)} from task t where id = ${id} and project_id = ${project_id}
      and not exists (select from removed_agent r where r.agent_id = t.agent_id)`)
  return row
}

/** The same; 404 where it is none. */
export async function requireTask(sql: Sql, key: TaskKey): Promise<TaskRow> {
  const row = await findTask(sql, key)
  if (!row) throw notFound('task_not_found', 'task', key.id.slice(0, 100))
  return row
}

/** What lists of tasks select by; every member is validated. */
export interface TaskFilter {
  project_id: number
  agent_id?: string | undefined
  status?: TaskState | undefined
  created_after?: string | undefined
  created_before?: string | undefined
  sort: 'created_at' | '-created_at'
  limit: number
  offset: number
}

/** A page of tasks and how many there are. Identifiers sort by the time of creation, so they are the order. */
export async function listTasks(sql: Sql, filter: TaskFilter): Promise<{ tasks: TaskRow[]; total: number }> {
  const { fragment } = sql
  const conditions = [
    fragment`project_id = ${filter.project_id}`,
    fragment`not exists (select from removed_agent r where r.agent_id = t.agent_id)`,
  ]
  if (filter.agent_id) conditions.push(fragment`agent_id = ${filter.agent_id}`)
  if (filter.status) conditions.push(fragment`status = ${filter.status}`)
  if (filter.created_after) conditions.push(fragment`created_at >= ${filter.created_after}::timestamptz`)
  if (filter.created_before) conditions.push(fragment`created_at < ${filter.created_before}::timestamptz`)
  const where = conditions.reduce((all, one) => fragment`${all} and ${one}`)
  const order = filter.sort === 'created_at' ? fragment`id` : fragment`id desc`
  const [count] = await sql.run<{ total: number }>(fragment`select count(*) as total from task t where ${where}`)
  const tasks = await sql.run<TaskRow>(fragment`
    select ${columns(sql)} from task t where ${where} order by ${order} limit ${filter.limit} offset ${filter.offset}`)
  return { tasks, total: count?.total ?? 0 }
}

/** A page of a task's journal, in the order of its steps. */
export async function listTaskSteps(sql: Sql, task_id: string, { limit, offset }: { limit: number; offset: number }) {
  const [count] = await sql<{ total: number }>`select count(*) as total from task_step where task_id = ${task_id}`
  const steps = await sql<
    Omit<Step, 'task_id' | 'agent_id' | 'failures'> & { started_at: string; finished_at: string | null }
  >`
    select id, index, type, status, attempt, name, input, output, error, model, usage, started_at, finished_at
    from task_step where task_id = ${task_id} order by index limit ${limit} offset ${offset}`
  return { steps, total: count?.total ?? 0 }
}

/** Events of a task after a sequence. They are dense, so the last sequence is how many there are. */
export async function listEventPage(sql: Sql, task_id: string, { limit, offset }: { limit: number; offset: number }) {
  const [task] = await sql<{ total: number }>`select last_sequence as total from task where id = ${task_id}`
  const events = await sql<TaskEvent>`
    select sequence, task_id, type, created_at, data from task_event
    where task_id = ${task_id} and sequence > ${offset} order by sequence limit ${limit}`
  return { events, total: task?.total ?? 0 }
}

/** Whether an agent has as many queued tasks as it may have. Reads no further than that. */
export async function isQueueFull(sql: Sql, agent_id: string, queuedMax: number): Promise<boolean> {
  const [last] = await sql`
    select 1 from task where agent_id = ${agent_id} and status = 'queued' offset ${queuedMax - 1} limit 1`
  return last !== undefined
}
