import { randomUUID } from 'node:crypto'
import { agentMayWork } from '#contract/task-lifecycle.ts'
import { jsonb, type Sql } from '../platform/database.ts'
import type { Queue } from './queue.ts'
import { noUsage, type TaskInputMessage } from './task-rows.ts'

/** A task as it is asked for (tasks 2 and 3). */
export interface NewTask {
  id: string
  /** The agent as it was read just before; it is known to accept tasks. The task keeps its version. */
  agent: { id: string; project_id: number; version: number; status: string; settles_to: string | null }
  input: string | TaskInputMessage[]
  priority?: number
  run_after?: string | null
  queue_ttl_seconds?: number | null
  timeout_seconds?: number | null
  max_attempts?: number
  metadata?: Record<string, unknown>
  created_by: string
  request_id: string | null
  trace_id?: string | null
}

export const defaultPriority = 5
/** Workers that may die under a task, one after the other, before it is failed. */
export const defaultAttemptsMax = 5
/** A task that is due later than this stays out of the queue until then: waiting jobs slow down fetching (engine 2). */
export const dueSoon_ms = 60_000

/** Stores a task with its first event and, where it may run soon, its job. Returns whether there is something to fetch. */
export async function insertTask(tx: Sql, queue: Queue, task: NewTask): Promise<boolean> {
  const start_after = task.run_after ? new Date(task.run_after) : undefined
  const soon = !start_after || start_after.getTime() <= Date.now() + dueSoon_ms
  const { id, agent, priority = defaultPriority, queue_ttl_seconds = null } = task
  const { id: agent_id, project_id, version: agent_version } = agent
  const job_id = soon && (await mayWork(tx, agent)) ? randomUUID() : null
  await tx`
    with created as (
      insert into task (id, project_id, agent_id, agent_version, status, input, priority, run_after, queue_ttl_seconds, timeout_seconds,
        max_attempts, usage, metadata, created_by, request_id, trace_id, job_id, last_sequence, expires_at)
      values (${id}, ${project_id}, ${agent_id}, ${agent_version}, 'queued', ${jsonb(task.input)}, ${priority}, ${task.run_after ?? null},
        ${queue_ttl_seconds}, ${task.timeout_seconds ?? null}, ${task.max_attempts ?? defaultAttemptsMax}, ${jsonb(noUsage)},
        ${jsonb(task.metadata ?? {})}, ${task.created_by}, ${task.request_id}, ${task.trace_id ?? null}, ${job_id}, 1,
        now() + make_interval(secs => ${queue_ttl_seconds}))
    )
    insert into task_event (task_id, sequence, type, data)
    values (${id}, 1, 'task.created', ${jsonb({ status: 'queued', agent_id, agent_version })})`
  if (job_id) await queue.send(tx, [{ id: job_id, task_id: id, project_id, priority, start_after }])
  return job_id !== null
}

/**
 * Whether the agent may work now. Seeing that it may is enough: the claim looks again. Seeing that it may not is only
 * believed under a lock, because a start in between would not see this task, and nobody would dispatch it.
 */
async function mayWork(tx: Sql, agent: NewTask['agent']): Promise<boolean> {
  if (agentMayWork(agent)) return true
  const [sure] = await tx<{ status: string; settles_to: string | null }>`
    select status, settles_to from agent where id = ${agent.id} for share`
  return !sure || agentMayWork(sure)
}
