import { notFound } from '#contract/core/problems.ts'
import type { ApprovalKind, ApprovalState, ApprovalTimeout } from '#contract/tasks/task-lifecycle.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'

/** An approval in a response. */
export interface ApprovalView {
  id: string
  task_id: string
  agent_id: string
  step_id: string
  kind: ApprovalKind
  status: ApprovalState
  tool: string
  arguments: unknown
  call_hash: string
  approved_arguments: Record<string, unknown> | null
  result: string | null
  on_timeout: ApprovalTimeout
  resolved_by: string | null
  resolved_at: string | null
  reason: string | null
  expires_at: string | null
  created_at: string
}

const columns = (sql: Sql) => sql.fragment`
  id, task_id, agent_id, step_id, kind, status, tool, arguments, call_hash, approved_arguments, result, on_timeout, resolved_by,
  resolved_at, reason, expires_at, created_at`

/** Key of an approval within its project. */
export interface ApprovalKey {
  id: string
  project_id: number
}

/** An approval of a project; throws 404 if it does not exist or its agent is deleted. */
export async function requireApproval(sql: Sql, { id, project_id }: ApprovalKey): Promise<ApprovalView> {
  const [row] = isId('appr', id)
    ? await sql.run<ApprovalView>(sql.fragment`
        select ${columns(sql)} from approval a where id = ${id} and project_id = ${project_id}
          and not exists (select from removed_agent r where r.agent_id = a.agent_id)`)
    : []
  if (!row) throw notFound('approval_not_found', 'approval', id.slice(0, 100))
  return row
}

/** Validated filters of a list of approvals. */
export interface ApprovalFilter {
  project_id: number
  status?: ApprovalState | undefined
  kind?: ApprovalKind | undefined
  agent_id?: string | undefined
  task_id?: string | undefined
  limit: number
  offset: number
}

/** A page of a project's approvals, newest first by id, and their total number. */
export async function listApprovals(
  sql: Sql,
  filter: ApprovalFilter,
): Promise<{ approvals: ApprovalView[]; total: number }> {
  const { fragment } = sql
  const conditions = [
    fragment`project_id = ${filter.project_id}`,
    fragment`not exists (select from removed_agent r where r.agent_id = a.agent_id)`,
  ]
  if (filter.status) conditions.push(fragment`status = ${filter.status}`)
  if (filter.kind) conditions.push(fragment`kind = ${filter.kind}`)
  if (filter.agent_id) conditions.push(fragment`agent_id = ${filter.agent_id}`)
  if (filter.task_id) conditions.push(fragment`task_id = ${filter.task_id}`)
  const where = conditions.reduce((all, one) => fragment`${all} and ${one}`)
  const [count] = await sql.run<{ total: number }>(fragment`select count(*) as total from approval a where ${where}`)
  const approvals = await sql.run<ApprovalView>(fragment`
    select ${columns(sql)} from approval a where ${where} order by id desc limit ${filter.limit} offset ${filter.offset}`)
  return { approvals, total: count?.total ?? 0 }
}
