import { bounds } from '#contract/core/limits.ts'
import { Problem } from '#contract/core/problems.ts'
import { findBudgets } from '../../engine/budgets/budget-rows.ts'
import { budgetFacts, fullestUnit, isSpent } from '../../engine/budgets/budgets.ts'
import type { TaskRow } from '../../engine/journal/stored-task.ts'
import type { NewTask } from '../../engine/commands/new-task.ts'
import type { Engine } from '../../engine/engine.ts'
import type { CancelOutcome } from '../../engine/journal/cancel.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import type { Loading } from '../../http/handle.ts'
import type { Principal } from '../../http/access/principal.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { formatTraceparent, parseTraceparent } from '../../platform/tracing/traceparent.ts'
import type { AgentRow } from '../agents/agents.queries.ts'
import { requireProject } from '../projects/projects.queries.ts'
import type { AskedAgent } from './asked-agents.ts'
import { queueFull, requireRoom, requireTask, requireWorking, type TaskKey } from './tasks.queries.ts'
import type { BudgetState, CancelRequest } from '../../engine/task.ts'

/** The task of a path; throws 404 if the project does not have it. */
export async function loadTask({ sql, params, principal }: Loading): Promise<TaskRow> {
  const project = await requireProject(sql, params.project_id!, principal)
  return requireTask(sql, { id: params.task_id!, project_id: project.id })
}

/** Throws 409 `agent_not_running`, 429 `queue_full` or `budget_exceeded` if an agent does not accept a task. */
export async function requireAccepting(sql: Sql, agent: AgentRow, principal: Principal): Promise<void> {
  await requireRoom(sql, agent)
  await requireBudget(sql, agent, principal)
}

/** Like `requireAccepting`, for an agent that was loaded with what decides. */
export function requireAskedAccepting(agent: AskedAgent): void {
  requireWorking(agent)
  if (agent.is_full) throw queueFull(bounds.queued_tasks)
  requireUnspent(agent.budgets)
}

async function requireBudget(sql: Sql, { id, project_id }: AgentRow, { org_id, credential_id }: Principal) {
  const spender = { agent_id: id, project_id, org_id, credential_id }
  requireUnspent((await findBudgets(sql, [spender])).get(spender) ?? [])
}

/** Throws 429 `budget_exceeded` if one of the budgets is exhausted. */
function requireUnspent(budgets: readonly BudgetState[]): void {
  const spent = budgets.find(isSpent)
  if (!spent) return
  const { resets_at } = spent
  const retry_after = resets_at && Math.max(1, Math.ceil((Date.parse(resets_at) - Date.now()) / 1000))
  throw new Problem(
    'budget_exceeded',
    { ...budgetFacts(spent, fullestUnit(spent)), ...(retry_after === null ? {} : { retry_after }) },
    retry_after === null ? {} : { members: { retry_after }, headers: { 'retry-after': String(retry_after) } },
  )
}

/** Cancels a task for a caller. The first request to cancel it is recorded in the audit log. */
export function cancelAsAsked(
  sql: Sql,
  engine: Pick<Engine, 'cancel'>,
  actor: Loading['actor'],
  { id: target, project_id }: TaskKey,
  request: CancelRequest,
): Promise<CancelOutcome> {
  return sql.begin(async (tx) => {
    const became = await engine.cancel(tx, target, request)
    if ('is_new' in became && became.is_new) {
      const detail = { reason: request.reason, mode: request.mode }
      await recordAudit(tx, actor, { action: 'task.canceled', target, project_id, detail })
    }
    return became
  })
}

/** The creator of a task from a request, with its trace (W3C Trace Context). */
export function madeBy({
  principal,
  request,
  request_id,
}: Loading): Pick<NewTask, 'created_by' | 'credential_id' | 'request_id' | 'trace_id' | 'traceparent'> {
  const caller = parseTraceparent(request.headers.traceparent)
  return {
    created_by: principal.user_id,
    credential_id: principal.credential_id,
    request_id,
    trace_id: caller?.trace_id ?? null,
    traceparent: caller ? formatTraceparent(caller) : null,
  }
}
