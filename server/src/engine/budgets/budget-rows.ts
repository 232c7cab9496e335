import { dollarsOf } from '#contract/models/model-prices.ts'
import { projectId } from '#contract/core/project-id.ts'
import { jsonb, type Sql } from '../../platform/postgres/database.ts'
import { stateOf, type BudgetCounters } from './budgets.ts'
import type { BudgetState } from '../task.ts'

/** Identifies the budgets that a task spends: of its root, agent, project, credential and organization. */
export interface Spender {
  /** Undefined for a task that is not stored yet. */
  id?: string
  root_task_id?: string | null
  project_id: number
  agent_id: string
  org_id: string | null
  /** The credential that created the task; null for a task of a schedule. */
  credential_id: string | null
}

/** The subjects of a task's budgets, as in `budget.subject`. */
export function subjectsOf({ id, root_task_id, project_id, agent_id, org_id, credential_id }: Spender): string[] {
  const root = root_task_id ?? id ?? null
  return [agent_id, projectId(project_id), org_id, credential_id, root].filter((subject) => subject !== null)
}

/**
 * Locks the budgets of tasks in the order of their ids, and returns the budgets of each task in the current window.
 * Tasks with a common budget share one state object. The caller has locked the tasks before and locks no task
 * afterwards, so two transactions never deadlock. Without budgets it costs one index lookup.
 */
export async function lockBudgets<T extends Spender>(tx: Sql, tasks: readonly T[]): Promise<Map<T, BudgetState[]>> {
  const subjects = [...new Set(tasks.flatMap(subjectsOf))]
  const rows = await tx<BudgetCounters & { now: string }>`
    select id, scope, subject, period, max_cost_usd, max_tokens, spent_cost_usd, spent_tokens, held_cost_usd, held_tokens,
      window_start, warned, warn_percent, now() as now
    from budget where subject = any(${subjects}) order by id for update`
  return assign(tasks, rows)
}

/** Reads the budgets without locks, to check whether there is room. */
export async function findBudgets<T extends Spender>(sql: Sql, tasks: readonly T[]): Promise<Map<T, BudgetState[]>> {
  const subjects = [...new Set(tasks.flatMap(subjectsOf))]
  const rows = await sql<BudgetCounters & { now: string }>`
    select id, scope, subject, period, max_cost_usd, max_tokens, spent_cost_usd, spent_tokens, held_cost_usd, held_tokens,
      window_start, warned, warn_percent, now() as now
    from budget where subject = any(${subjects}) order by id`
  return assign(tasks, rows)
}

function assign<T extends Spender>(
  tasks: readonly T[],
  rows: readonly (BudgetCounters & { now: string })[],
): Map<T, BudgetState[]> {
  const bySubject = Map.groupBy(
    rows.map((row) => stateOf(row, row.now)),
    ({ subject }) => subject,
  )
  return new Map(tasks.map((task) => [task, subjectsOf(task).flatMap((subject) => bySubject.get(subject) ?? [])]))
}

/** Writes the changed ones of locked budgets. */
export async function writeBudgets(tx: Sql, states: Iterable<BudgetState>): Promise<void> {
  const rows = [...new Set(states)]
    .filter(({ id, changed }) => id !== null && changed)
    .map(({ id, window_start, spent_tokens, held_tokens, warned, spent_cost, held_cost }) => ({
      id,
      window_start,
      spent_tokens,
      held_tokens,
      warned,
      spent_cost_usd: dollarsOf(spent_cost),
      held_cost_usd: dollarsOf(held_cost),
    }))
  if (rows.length === 0) return
  await tx`
    update budget b set window_start = c.window_start, spent_tokens = c.spent_tokens, spent_cost_usd = c.spent_cost_usd,
      held_tokens = c.held_tokens, held_cost_usd = c.held_cost_usd, warned = c.warned
    from jsonb_to_recordset(${jsonb(rows)}::jsonb) as c(id text, window_start timestamptz, spent_tokens bigint,
      spent_cost_usd numeric, held_tokens bigint, held_cost_usd numeric, warned boolean)
    where b.id = any(${rows.map(({ id }) => id)}) and b.id = c.id`
}
