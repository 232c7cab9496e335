import type { BudgetPeriod, BudgetScope } from '#contract/resources/budget-window.ts'
import { dollarsOf } from '#contract/models/model-prices.ts'
import { notFound, Problem } from '#contract/core/problems.ts'
import { projectId } from '#contract/core/project-id.ts'
import { isNearlySpent, stateOf, type BudgetCounters } from '../../engine/budgets/budgets.ts'
import { answerConstraints } from '../../platform/postgres/constraints.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { isId, newId } from '../../platform/ids.ts'
import type { TaskLimits } from '../../engine/task.ts'

/** The row of a budget, with the time of the read. */
export interface BudgetRow extends BudgetCounters {
  max_sandbox_seconds: number | null
  /** In the current period. */
  spent_sandbox_seconds: number
  created_by: string
  created_at: string
  updated_at: string
  now: string
}

const columns = (sql: Sql) => sql.fragment`
  id, scope, subject, period, max_cost_usd, max_tokens, spent_cost_usd, spent_tokens, held_cost_usd, held_tokens, window_start,
  warned, warn_percent, created_by, created_at, updated_at, now() as now, max_sandbox_seconds,
  case when sandbox_window = case period when 'total' then 'epoch'::timestamptz else date_trunc(period, now(), 'UTC') end
    then spent_sandbox_seconds else 0 end as spent_sandbox_seconds`

/** A budget in a response, with spending in the current window. */
export function budgetView(row: BudgetRow) {
  const { id, scope, subject, max_cost_usd, max_tokens, period, warn_percent, created_by, created_at, updated_at } = row
  const state = stateOf(row, row.now)
  return {
    id,
    scope,
    subject,
    max_cost_usd,
    max_tokens,
    max_sandbox_seconds: row.max_sandbox_seconds,
    period,
    warn_percent,
    spent: {
      cost_usd: dollarsOf(state.spent_cost),
      tokens: state.spent_tokens,
      sandbox_seconds: row.spent_sandbox_seconds,
    },
    reserved: { cost_usd: dollarsOf(state.held_cost), tokens: state.held_tokens },
    resets_at: state.resets_at,
    created_by,
    created_at,
    updated_at,
  }
}

/** A project and its organization, from which budgets are visible. */
export interface BudgetPlace {
  project_id: number
  org_id: string
}

/** SQL condition for budgets that are visible in a project: its own, and those of the organization and its keys. */
function seenFrom({ fragment }: Sql, { project_id, org_id }: BudgetPlace) {
  return fragment`org_id = ${org_id} and scope <> 'task' and (project_id = ${project_id} or scope in ('organization', 'api_key'))`
}

/**
 * A budget that is visible in a project; throws 404 if it does not exist. With `lock` its row is locked until the
 * transaction ends.
 */
export async function requireBudget(
  sql: Sql,
  id: string,
  place: BudgetPlace,
  { lock = false } = {},
): Promise<BudgetRow> {
  const [row] = isId('budget', id)
    ? await sql.run<BudgetRow>(sql.fragment`
        select ${columns(sql)} from budget where id = ${id} and ${seenFrom(sql, place)}
        ${lock ? sql.fragment`for update` : sql.fragment``}`)
    : []
  if (!row) throw budgetNotFound(id)
  return row
}

function budgetNotFound(id: string): Problem {
  return notFound('budget_not_found', 'budget', id.slice(0, 100))
}

export interface BudgetFilter extends BudgetPlace {
  scope?: BudgetScope | undefined
  subject?: string | undefined
  limit: number
  offset: number
}

/** A page of the budgets that are visible in a project, newest first, and their total number. */
export async function listBudgets(
  sql: Sql,
  { scope, subject, limit, offset, ...place }: BudgetFilter,
): Promise<{ budgets: BudgetRow[]; total: number }> {
  const where = sql.fragment`
    ${seenFrom(sql, place)} and (${scope ?? null}::text is null or scope = ${scope ?? null})
    and (${subject ?? null}::text is null or subject = ${subject ?? null})`
  const [count] = await sql.run<{ total: number }>(sql.fragment`select count(*) as total from budget where ${where}`)
  const budgets = await sql.run<BudgetRow>(sql.fragment`
    select ${columns(sql)} from budget where ${where} order by id desc limit ${limit} offset ${offset}`)
  return { budgets, total: count?.total ?? 0 }
}

export interface NewBudget extends BudgetPlace {
  scope: BudgetScope
  subject: string
  period: BudgetPeriod
  max_cost_usd: number | null
  max_tokens: number | null
  max_sandbox_seconds: number | null
  /** Percentage of a limit at which a warning is sent. */
  warn_percent: number
  created_by: string
}

/** Inserts a budget with no spending. Throws `resource_conflict` if the subject already has one for the period. */
export async function insertBudget(sql: Sql, budget: NewBudget): Promise<BudgetRow> {
  const { org_id, project_id, scope, subject, period, max_cost_usd, max_tokens, max_sandbox_seconds } = budget
  const { warn_percent, created_by } = budget
  const insert = async () => {
    const [row] = await sql.run<BudgetRow>(sql.fragment`
      insert into budget (id, org_id, project_id, scope, subject, agent_id, key_id, max_cost_usd, max_tokens, max_sandbox_seconds, period, warn_percent, window_start, created_by)
      values (${newId('budget')}, ${org_id}, ${project_id}, ${scope}, ${subject}, ${scope === 'agent' ? subject : null},
        ${scope === 'api_key' ? subject : null}, ${max_cost_usd}, ${max_tokens}, ${max_sandbox_seconds}, ${period}, ${warn_percent}, now(), ${created_by})
      returning ${columns(sql)}`)
    return row!
  }
  // The project was deleted concurrently.
  const missingParents = {
    budget_project_id_fkey: () => notFound('project_not_found', 'project', projectId(project_id)),
  }
  return answerConstraints(missingParents, () => onePerPeriod({ subject, period }, insert))
}

/**
 * Changes a budget. A new period starts with no spending, and a raised limit allows a new warning. Reservations of
 * running calls stay. Throws 404 if it does not exist.
 */
export async function updateBudget(
  tx: Sql,
  id: string,
  next: Pick<NewBudget, 'period' | 'max_cost_usd' | 'max_tokens' | 'max_sandbox_seconds' | 'warn_percent'>,
): Promise<BudgetRow> {
  const [before] = await tx.run<BudgetRow>(tx.fragment`select ${columns(tx)} from budget where id = ${id} for update`)
  if (!before) throw budgetNotFound(id)
  const anew = before.period !== next.period
  const state = stateOf({ ...before, ...next, ...(anew ? { spent_tokens: 0, spent_cost_usd: 0 } : {}) }, before.now)
  const { period, max_cost_usd, max_tokens, max_sandbox_seconds, warn_percent } = next
  return onePerPeriod({ subject: before.subject, period }, async () => {
    const [row] = await tx.run<BudgetRow>(tx.fragment`
      update budget set period = ${period}, max_cost_usd = ${max_cost_usd}, max_tokens = ${max_tokens}, max_sandbox_seconds = ${max_sandbox_seconds},
        sandbox_window = case when ${anew} then null else sandbox_window end, warn_percent = ${warn_percent},
        spent_tokens = ${state.spent_tokens}, spent_cost_usd = ${dollarsOf(state.spent_cost)}, window_start = ${state.window_start},
        warned = ${isNearlySpent(state) && state.warned}, updated_at = greatest(now(), updated_at + interval '1 millisecond')
      where id = ${id} returning ${columns(tx)}`)
    return row!
  })
}

/**
 * Deletes a budget; throws 404 if it does not exist. Reservations of running calls may still refer to it without
 * effect.
 */
export async function deleteBudget(sql: Sql, id: string): Promise<void> {
  const deleted = await sql`delete from budget where id = ${id} returning id`
  if (deleted.length === 0) throw budgetNotFound(id)
}

/** Changes the given limits of a task that has not ended; null removes a limit. Returns the old and new limits. */
export async function changeTaskBudget(
  sql: Sql,
  id: string,
  limits: TaskLimits,
): Promise<{ before: TaskLimits; after: TaskLimits }> {
  const { max_cost_usd, max_tokens, max_steps, max_tool_calls } = limits
  const [row] = await sql<{ before: TaskLimits; after: TaskLimits }>`
    with was as materialized (select id, budget from task where id = ${id} and finished_at is null for update)
    update task set budget = jsonb_strip_nulls(was.budget || ${jsonb({ max_cost_usd, max_tokens, max_steps, max_tool_calls })}::jsonb),
      updated_at = now()
    from was where task.id = was.id returning was.budget as before, task.budget as after`
  if (row) return row
  const [task] = await sql<{ status: string }>`select status from task where id = ${id}`
  throw new Problem('task_already_finished', {
    resource_type: 'task',
    resource_id: id,
    current_status: task?.status ?? 'canceled',
  })
}

/** The owner of a key; undefined if the organization has no such key or it is revoked. */
export async function findKeyOwner(sql: Sql, id: string, org_id: string): Promise<string | undefined> {
  const [row] = await sql<{
    user_id: string
  }>`select user_id from api_key where id = ${id} and org_id = ${org_id} and revoked_at is null`
  return row?.user_id
}

function onePerPeriod<T>({ subject, period }: { subject: string; period: string }, statement: () => Promise<T>) {
  return answerConstraints(
    {
      budget_subject: () =>
        new Problem(
          'resource_conflict',
          { resource_type: 'budget', resource_id: subject, conflicting_field: 'period', conflicting_value: period },
          { message: `${subject} already has a budget with the period ${period}.` },
        ),
      // The agent was deleted concurrently.
      budget_agent_id_fkey: () => notFound('agent_not_found', 'agent', subject),
    },
    statement,
  )
}
