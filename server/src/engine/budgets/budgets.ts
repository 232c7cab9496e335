import {
  budgetWarning_percent,
  windowEnd,
  windowStart,
  type BudgetPeriod,
  type BudgetScope,
} from '#contract/resources/budget-window.ts'
import { billionthsOf, dollarsOf, highestRates } from '#contract/models/model-prices.ts'
import type { TaskUsage, TaskLimits, BudgetState, Reservation, Need } from '../task.ts'

/** The usage of a call. An unknown cost is null, and is not counted. */
export interface Spent {
  tokens: number
  cost_usd: number | null
}

/**
 * Whether a call may start. `held`: yes, with at most `max_output_tokens`. `refused`: budget `by` has no room. If
 * `passing` is true, calls in flight may leave room when they end; otherwise there is none before `resets_at`, or until
 * the budget is raised. `unpriced`: budget `by` limits the cost, and the price of the model is unknown.
 */
export type ReservationResult =
  | { outcome: 'held'; hold: Reservation | null; max_output_tokens: number | undefined }
  | { outcome: 'refused'; by: BudgetState; passing: boolean; resets_at: string | null }
  | { outcome: 'unpriced'; by: BudgetState }

/** Maximum output tokens of a call under a budget if the agent has no `max_tokens`. */
export const outputDefault = 4096
/** With room for fewer output tokens than this, an answer is not worth the cost of its input. */
export const outputMin = 16

/** A row as stored, except limits of the sandbox. */
export interface BudgetCounters {
  id: string
  scope: BudgetScope
  subject: string
  period: BudgetPeriod
  max_cost_usd: number | null
  max_tokens: number | null
  warn_percent: number
  spent_cost_usd: number
  spent_tokens: number
  held_cost_usd: number
  held_tokens: number
  window_start: string
  warned: boolean
}

/** A budget in the window of `now`. Of an earlier window, only reservations count. */
export function stateOf(row: BudgetCounters, now: string): BudgetState {
  const { id, scope, subject, period, max_cost_usd, max_tokens, warn_percent, held_tokens } = row
  const window_start = windowStart(period, now)
  const runs = row.window_start >= window_start
  return {
    id,
    scope,
    subject,
    max_cost: max_cost_usd === null ? null : billionthsOf(max_cost_usd),
    max_tokens,
    warn_percent,
    spent_cost: runs ? billionthsOf(row.spent_cost_usd) : 0,
    spent_tokens: runs ? row.spent_tokens : 0,
    held_cost: billionthsOf(row.held_cost_usd),
    held_tokens,
    window_start,
    resets_at: windowEnd(period, now),
    warned: runs && row.warned,
    changed: false,
  }
}

/** A task's limits as a budget like others; undefined without any. `usage` is the task's stored usage. */
export function ownBudget(task_id: string, limits: TaskLimits, usage: TaskUsage): BudgetState | undefined {
  const { max_cost_usd = null, max_tokens = null } = limits
  if (max_cost_usd === null && max_tokens === null) return undefined
  const own: BudgetState = {
    id: null,
    scope: 'task',
    subject: task_id,
    max_cost: max_cost_usd === null ? null : billionthsOf(max_cost_usd),
    max_tokens,
    warn_percent: budgetWarning_percent,
    spent_cost: billionthsOf(usage.cost_usd ?? 0),
    spent_tokens: usage.input_tokens + usage.output_tokens,
    held_cost: 0,
    held_tokens: 0,
    window_start: '',
    resets_at: null,
    warned: false,
    changed: false,
  }
  return { ...own, warned: isNearlySpent(own) }
}

/**
 * Reserves the maximum usage of a call in all budgets, or in none. The maximum output is what the budgets leave after
 * what is spent. Reservations of other calls do not shorten the answer, because calls often use less than they reserve;
 * without enough room beside them, the call waits.
 */
export function reserve(budgets: readonly BudgetState[], need: Need): ReservationResult {
  if (budgets.length === 0) return { outcome: 'held', hold: null, max_output_tokens: need.max_output_tokens }
  const unpriced = budgets.find(({ max_cost }) => max_cost !== null && need.price === null)
  if (unpriced) return { outcome: 'unpriced', by: unpriced }
  const wanted = need.max_output_tokens ?? outputDefault
  const output = Math.min(wanted, ...budgets.map((budget) => outputLeft(budget, need, 0)))
  if (output < Math.min(outputMin, wanted)) {
    const spent = budgets.filter((budget) => outputLeft(budget, need, 0) < Math.min(outputMin, wanted))
    return { outcome: 'refused', by: spent[0]!, passing: false, resets_at: lastReset(spent) }
  }
  const busy = budgets.filter((budget) => outputLeft(budget, need, 1) < output)
  if (busy[0]) return { outcome: 'refused', by: busy[0], passing: true, resets_at: lastReset(busy) }
  const tokens = need.input_tokens + output
  const cost = costAtMost(need, output)
  for (const budget of budgets) {
    budget.held_tokens += tokens
    budget.held_cost += cost
    budget.changed = true
  }
  const budget_ids = budgets.flatMap(({ id }) => id ?? [])
  return { outcome: 'held', hold: { tokens, cost_usd: dollarsOf(cost), budget_ids }, max_output_tokens: output }
}

/**
 * Releases a reservation in all budgets that have it, and counts usage. Returns the budgets that reached their warning
 * threshold.
 */
export function settle(
  budgets: readonly BudgetState[],
  hold: Reservation | null,
  spent: Spent | undefined,
): BudgetState[] {
  for (const budget of budgets) {
    if (hold && budget.id !== null && hold.budget_ids.includes(budget.id)) {
      budget.held_tokens = Math.max(0, budget.held_tokens - hold.tokens)
      budget.held_cost = Math.max(0, budget.held_cost - billionthsOf(hold.cost_usd))
      budget.changed = true
    }
    if (spent && (spent.tokens > 0 || (spent.cost_usd ?? 0) > 0)) {
      budget.spent_tokens += spent.tokens
      budget.spent_cost += billionthsOf(spent.cost_usd ?? 0)
      budget.changed = true
    }
  }
  const near = budgets.filter((budget) => !budget.warned && isNearlySpent(budget))
  for (const budget of near) {
    budget.warned = true
    budget.changed = true
  }
  return near
}

/** Whether the spent share of a limit reaches the warning threshold. Reservations do not count. */
export function isNearlySpent({ max_cost, max_tokens, warn_percent, spent_cost, spent_tokens }: BudgetState): boolean {
  const reaches = (spent: number, max: number | null) => max !== null && spent * 100 >= max * warn_percent
  return reaches(spent_cost, max_cost) || reaches(spent_tokens, max_tokens)
}

/** Whether a limit is spent, so that no further call can start. */
export function isSpent({ max_cost, max_tokens, spent_cost, spent_tokens }: BudgetState): boolean {
  return (max_cost !== null && spent_cost >= max_cost) || (max_tokens !== null && spent_tokens >= max_tokens)
}

/** The unit of a limit; the last two only for a task's limits. */
export type BudgetUnit = 'cost_usd' | 'tokens' | 'steps' | 'tool_calls'

/** A budget in one unit, as events and errors show it. */
export function budgetFacts(budget: BudgetState, unit: 'cost_usd' | 'tokens') {
  const { id, scope, subject, max_cost, max_tokens, spent_cost, spent_tokens, resets_at } = budget
  const [limit, spent] =
    unit === 'tokens' ? [max_tokens ?? 0, spent_tokens] : [dollarsOf(max_cost ?? 0), dollarsOf(spent_cost)]
  return { budget_id: id, scope, subject, unit, limit, spent, resets_at }
}

/** The unit with the greater spent share. */
export function fullestUnit({ max_cost, max_tokens, spent_cost, spent_tokens }: BudgetState): 'cost_usd' | 'tokens' {
  const part = (spent: number, max: number | null) => (max === null ? -1 : max === 0 ? Infinity : spent / max)
  return part(spent_cost, max_cost) >= part(spent_tokens, max_tokens) ? 'cost_usd' : 'tokens'
}

/** The unit that leaves less room for a call. */
export function tightestUnit(budget: BudgetState, need: Need): 'cost_usd' | 'tokens' {
  return costLeft(budget, need, 0) <= tokensLeft(budget, need, 0) ? 'cost_usd' : 'tokens'
}

/** Output tokens for which a budget has room; may be negative. With `holds` 1, reservations count as spent. */
function outputLeft(budget: BudgetState, need: Need, holds: 0 | 1): number {
  return Math.min(tokensLeft(budget, need, holds), costLeft(budget, need, holds))
}

function tokensLeft({ max_tokens, spent_tokens, held_tokens }: BudgetState, need: Need, holds: 0 | 1): number {
  return max_tokens === null ? Infinity : max_tokens - spent_tokens - holds * held_tokens - need.input_tokens
}

function costLeft({ max_cost, spent_cost, held_cost }: BudgetState, need: Need, holds: 0 | 1): number {
  if (max_cost === null || need.price === null) return Infinity
  const rates = highestRates(need.price, need.input_tokens)
  // A call without cost fits every budget, even a spent one.
  if (rates.input === 0 && rates.output === 0) return Infinity
  const left =
    BigInt(max_cost - spent_cost - holds * held_cost) * 1000n - BigInt(need.input_tokens) * BigInt(rates.input)
  if (left < 0n) return -1
  return rates.output === 0 ? Infinity : Number(left / BigInt(rates.output))
}

/** The maximum cost of a call in billionths of a dollar, rounded up. */
function costAtMost({ price, input_tokens }: Need, output_tokens: number): number {
  if (!price) return 0
  const rates = highestRates(price, input_tokens)
  const exact = BigInt(input_tokens) * BigInt(rates.input) + BigInt(output_tokens) * BigInt(rates.output)
  return Number((exact + 999n) / 1000n)
}

/** The latest reset of these budgets; null if one never resets. */
function lastReset(budgets: readonly BudgetState[]): string | null {
  const resets = budgets.flatMap(({ resets_at }) => resets_at ?? [])
  if (resets.length < budgets.length) return null
  return resets.reduce((last, one) => (one > last ? one : last))
}
