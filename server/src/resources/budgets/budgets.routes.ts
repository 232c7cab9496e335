import type { FastifyInstance } from 'fastify'
import { budgetWarning_percent } from '#contract/resources/budget-window.ts'
import * as operations from '#contract/resources/budgets.ts'
import { invalid, notFound, Problem } from '#contract/core/problems.ts'
import { isAdministrator } from '#contract/core/scopes.ts'
import type { BodyOf } from '#contract/core/operation.ts'
import { projectId } from '#contract/core/project-id.ts'
import { updateRootBudget } from '../../engine/journal/delegations.queries.ts'
import { recordAudit } from '../../events/audit/audit.ts'
import { handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { offsetPagination } from '../../http/lists/pagination.ts'
import type { Principal } from '../../http/access/principal.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { isId } from '../../platform/ids.ts'
import { requireAgent } from '../agents/agents.queries.ts'
import { requireProject } from '../projects/projects.queries.ts'
import { requireTask } from '../tasks/tasks.queries.ts'
import {
  budgetView,
  changeTaskBudget,
  deleteBudget,
  findKeyOwner,
  insertBudget,
  listBudgets,
  requireBudget,
  updateBudget,
  type BudgetPlace,
  type BudgetRow,
} from './budgets.queries.ts'

/** The part of the engine that budget routes use. */
export interface BudgetWaiters {
  /** Checks after the commit whether tasks that wait for a budget can continue. */
  budgetsChanged(tx: Sql): void
}

/** Routes of budgets. */
export function budgetRoutes(app: FastifyInstance, http: HttpContext, engine: BudgetWaiters): void {
  handle(app, http, operations.createBudget, {
    load: loadPlace,
    run: async ({ sql, loaded: place, body, principal, actor }) => {
      const { scope, period = 'month', warn_percent = budgetWarning_percent } = body
      const limits = limitsOf(body)
      const subject = await subjectOf(sql, place, body, principal)
      await requireMaySet(sql, { scope, subject }, principal)
      const budget = { ...place, ...limits, scope, subject, period, warn_percent, created_by: principal.user_id }
      return sql.begin(async (tx) => {
        const row = await insertBudget(tx, budget)
        await recordAudit(tx, actor, { action: 'budget.created', ...auditKey(row, place), after: audited(row) })
        return budgetView(row)
      })
    },
  })

  handle(app, http, operations.listBudgets, {
    load: loadPlace,
    run: async ({ sql, loaded: place, query: { limit, offset, ...filter } }) => {
      const { budgets, total } = await listBudgets(sql, { ...filter, ...place, limit, offset })
      return { budgets: budgets.map(budgetView), pagination: offsetPagination(total, limit, offset, budgets.length) }
    },
  })

  handle(app, http, operations.getBudget, {
    load: loadBudget,
    run: async ({ loaded }) => budgetView(loaded.budget),
  })

  handle(app, http, operations.updateBudget, {
    load: loadBudget,
    run: async ({ sql, loaded: { budget, place }, body, principal, actor }) => {
      await requireMaySet(sql, budget, principal)
      const { max_cost_usd = budget.max_cost_usd, max_tokens = budget.max_tokens, period = budget.period } = body
      const { max_sandbox_seconds = budget.max_sandbox_seconds, warn_percent = budget.warn_percent } = body
      const limits = limitsOf({ max_cost_usd, max_tokens, max_sandbox_seconds })
      return sql.begin(async (tx) => {
        engine.budgetsChanged(tx)
        const before = await requireBudget(tx, budget.id, place, { lock: true })
        const row = await updateBudget(tx, budget.id, { ...limits, period, warn_percent })
        const changed = { before: audited(before), after: audited(row) }
        await recordAudit(tx, actor, { action: 'budget.updated', ...auditKey(row, place), ...changed })
        return budgetView(row)
      })
    },
  })

  handle(app, http, operations.deleteBudget, {
    load: loadBudget,
    run: async ({ sql, loaded: { budget, place }, principal, actor }) => {
      await requireMaySet(sql, budget, principal)
      await sql.begin(async (tx) => {
        engine.budgetsChanged(tx)
        await deleteBudget(tx, budget.id)
        await recordAudit(tx, actor, { action: 'budget.deleted', ...auditKey(budget, place), before: audited(budget) })
      })
      return { message: 'Budget deleted', budget_id: budget.id }
    },
  })

  handle(app, http, operations.updateTaskBudget, {
    load: async ({ sql, params, principal }) => {
      const project = await requireProject(sql, params.project_id!, principal)
      return requireTask(sql, { id: params.task_id!, project_id: project.id })
    },
    run: async ({ sql, loaded: { id, project_id }, body, actor }) => {
      const budget = await sql.begin(async (tx) => {
        engine.budgetsChanged(tx)
        const changed = await changeTaskBudget(tx, id, body)
        await updateRootBudget(tx, id)
        await recordAudit(tx, actor, { action: 'task.budget_changed', target: id, project_id, ...changed })
        return changed.after
      })
      return { message: 'Budget changed', task_id: id, budget }
    },
  })
}

async function loadPlace({ sql, params, principal }: Loading): Promise<BudgetPlace> {
  const { id } = await requireProject(sql, params.project_id!, principal)
  return { project_id: id, org_id: principal.org_id }
}

async function loadBudget(loading: Loading): Promise<{ budget: BudgetRow; place: BudgetPlace }> {
  const place = await loadPlace(loading)
  return { budget: await requireBudget(loading.sql, loading.params.budget_id!, place), place }
}

/** The members of a budget for the audit log: those that users set, without spending. */
function audited({
  id,
  scope,
  subject,
  max_cost_usd,
  max_tokens,
  max_sandbox_seconds,
  period,
  warn_percent,
  created_by,
  created_at,
}: BudgetRow) {
  const limits = { max_cost_usd, max_tokens, max_sandbox_seconds }
  return { id, scope, subject, ...limits, period, warn_percent, created_by, created_at }
}

/** The target of an audit entry. Budgets of the organization and of keys do not belong to a project. */
function auditKey({ id, scope }: BudgetRow, { project_id }: BudgetPlace) {
  return { target: id, project_id: scope === 'agent' || scope === 'project' ? project_id : undefined }
}

/** The limits of a budget; throws 400 if there is none. */
function limitsOf({
  max_cost_usd = null,
  max_tokens = null,
  max_sandbox_seconds = null,
}: Partial<Pick<BudgetRow, 'max_cost_usd' | 'max_tokens' | 'max_sandbox_seconds'>>) {
  if (max_cost_usd === null && max_tokens === null && max_sandbox_seconds === null) {
    const message = 'max_cost_usd, max_tokens or max_sandbox_seconds is required'
    throw invalid({ field: 'max_cost_usd', message, code: 'required' })
  }
  return { max_cost_usd, max_tokens, max_sandbox_seconds }
}

/**
 * The subject of a new budget: an agent of the project, a key of the organization, or the current project or
 * organization.
 */
async function subjectOf(
  sql: Sql,
  { project_id, org_id }: BudgetPlace,
  { scope, subject }: BodyOf<typeof operations.createBudget>,
  principal: Principal,
): Promise<string> {
  if (scope === 'project' || scope === 'organization') {
    const own = scope === 'project' ? projectId(project_id) : org_id
    if (subject === undefined || subject === own) return own
    throw invalid({ field: 'subject', message: `can only be ${own}`, code: 'invalid_choice', provided: subject })
  }
  if (subject === undefined) throw invalid({ field: 'subject', message: 'subject is required', code: 'required' })
  if (scope === 'agent') return (await requireAgent(sql, { id: subject, project_id })).id
  const owner = isId('key', subject) ? await findKeyOwner(sql, subject, org_id) : undefined
  // The response must not reveal which keys of other users exist (decision D59).
  if (owner !== principal.user_id && !isAdministrator(principal.role)) throw forAdministrators()
  if (owner === undefined) throw notFound('api_key_not_found', 'api_key', subject)
  return subject
}

/**
 * Throws 403 unless the caller may set the budget: those of the organization and of other users' keys require an
 * administrator.
 */
async function requireMaySet(
  sql: Sql,
  { scope, subject }: Pick<BudgetRow, 'scope' | 'subject'>,
  principal: Principal,
): Promise<void> {
  if (isAdministrator(principal.role) || scope === 'agent' || scope === 'project') return
  if (scope === 'api_key' && (await findKeyOwner(sql, subject, principal.org_id)) === principal.user_id) return
  throw forAdministrators()
}

function forAdministrators(): Problem {
  return new Problem('insufficient_permissions', undefined, {
    message: 'Only owners and admins of the organization may set this budget.',
  })
}
