import type { ApprovalState } from '#contract/tasks/task-lifecycle.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import type { NewApproval } from '../task.ts'

/** An approval as stored. */
export interface ApprovalRow extends NewApproval {
  project_id: number
  agent_id: string
  task_id: string
  status: ApprovalState
  approved_arguments: Record<string, unknown> | null
  result: string | null
  resolved_by: string | null
  resolved_at: string | null
  reason: string | null
  created_at: string
}

type Asked = NewApproval & Pick<ApprovalRow, 'project_id' | 'agent_id' | 'task_id'>

export async function insertApprovals(tx: Sql, asked: readonly Asked[]): Promise<void> {
  await tx`
    insert into approval (id, project_id, agent_id, task_id, step_id, step_index, kind, tool, arguments, parameters, call_hash, on_timeout, expires_at)
    select id, project_id, agent_id, task_id, step_id, step_index, kind, tool, arguments, parameters, call_hash, on_timeout, expires_at
    from jsonb_to_recordset(${jsonb(asked)}::jsonb) as a(id text, project_id bigint, agent_id text, task_id text, step_id text, step_index int,
      kind text, tool text, arguments jsonb, parameters jsonb, call_hash text, on_timeout text, expires_at timestamptz)`
}

/** Closes pending approvals of tasks that have ended. */
export async function closeApprovals(tx: Sql, task_ids: readonly string[]): Promise<void> {
  await tx`
    update approval set status = 'expired', resolved_at = now(), reason = 'The task has ended.'
    where task_id = any(${[...task_ids]}) and status = 'pending'`
}

/** The error of steps that were still in progress when their task ended. */
export const taskEnded = { code: 'task_ended', message: 'The task ended before this did.', retryable: false } as const

/**
 * Closes steps that were in progress when their task ended. The outcome of a call that is not safe to repeat is
 * `unknown`; every other step failed.
 */
export async function closeSteps(tx: Sql, task_ids: readonly string[]): Promise<void> {
  await tx`
    update task_step set finished_at = greatest(now(), started_at),
      status = case when input->>'safety' is distinct from 'safe' and (type = 'tool_call' or exists (
        select from tool_call c where c.task_id = task_step.task_id and c.step_index = task_step.index and c.attempt > 0)) then 'unknown' else 'failed' end,
      error = coalesce(error, ${jsonb(taskEnded)}::jsonb)
    where task_id = any(${[...task_ids]}) and status = 'started'`
}

/** The resolution of an approval by a person, or by its timeout. */
export interface Answer {
  status: Exclude<ApprovalState, 'pending'>
  approved_arguments?: Record<string, unknown> | undefined
  result?: string | undefined
  resolved_by: string | null
  reason: string | null
}

/**
 * Stores the resolution of a pending approval and returns its row. Undefined if it was resolved before: of two at once,
 * only one gets the row.
 */
export async function moveApproval(tx: Sql, id: string, answer: Answer): Promise<ApprovalRow | undefined> {
  const { status, approved_arguments, result, resolved_by, reason } = answer
  const [row] = await tx<ApprovalRow>`
    update approval set status = ${status}, resolved_at = now(), resolved_by = ${resolved_by}, reason = ${reason},
      approved_arguments = ${approved_arguments === undefined ? null : jsonb(approved_arguments)}, result = ${result === undefined ? null : jsonb(result)}
    where id = ${id} and status = 'pending' returning *`
  return row
}

export async function findApproval(sql: Sql, id: string): Promise<ApprovalRow | undefined> {
  const [row] = await sql<ApprovalRow>`select * from approval where id = ${id}`
  return row
}

/** A batch of approvals whose time is over. */
export async function listExpiredApprovals(sql: Sql, limit: number): Promise<{ id: string; task_id: string }[]> {
  return sql<{ id: string; task_id: string }>`
    select id, task_id from approval where status = 'pending' and expires_at <= now() order by expires_at limit ${limit}`
}
