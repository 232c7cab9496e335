import type { TaskInput } from '#contract/tasks/tasks.ts'
import type { TaskState } from '#contract/tasks/task-lifecycle.ts'
import type { Fragment, Sql } from '../../platform/postgres/database.ts'
import type { Wait, TaskUsage, TaskError, TaskOutput } from '../task.ts'

/** A task as stored. */
export interface TaskRow {
  id: string
  project_id: number
  agent_id: string
  agent_version: number
  thread_id: string | null
  retried_from: string | null
  schedule_id: string | null
  parent_task_id: string | null
  root_task_id: string | null
  depth: number
  status: TaskState
  wait: Wait | null
  input: TaskInput
  output: TaskOutput | null
  error: TaskError | null
  priority: number
  concurrency_key: string | null
  run_after: string | null
  queue_ttl_seconds: number | null
  timeout_seconds: number | null
  max_attempts: number
  budget: Record<string, unknown>
  output_schema: Record<string, unknown> | null
  usage: TaskUsage
  /** Usage of the tasks below it whose results it has. */
  children_usage: TaskUsage | null
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

/** The columns of a `TaskRow`, to select from `task`. */
export const taskColumns = (sql: Sql): Fragment => sql.fragment`
  id, project_id, agent_id, agent_version, thread_id, retried_from, schedule_id, parent_task_id, root_task_id, depth, status, wait, input, output, error, priority,
  concurrency_key, run_after, queue_ttl_seconds, timeout_seconds, max_attempts, budget, output_schema, usage, children_usage, metadata, created_by, trace_id,
  created_at, started_at, finished_at, updated_at, cancel_requested_at, last_sequence`
