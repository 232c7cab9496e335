import {
  budgetWarning_percent,
  windowEnd,
  windowStart,
  type BudgetPeriod,
  type BudgetScope,
} from '#contract/resources/budget-window.ts'
import { billionthsOf, dollarsOf, highestRates } from '#contract/models/model-prices.ts'
import type { TaskUsage, TaskLimits, BudgetState, Reservation, Need } from '../task.ts'

/** What a call used. A cost that is not known is null, and cannot be counted. */
export interface Spent {
  tokens: number
  cost_usd: number | null
}

/**
 * Whether a call may begin. `held`: yes, with at most `max_output_tokens`. `refused`: budget `by` has no room.
 * `passing` is true where room returns when other calls end; otherwise there is none before `resets_at`, or until the
 * budget is raised. `unpriced`: budget `by` limits the cost, and the price of the model is unknown.
 */
export type ReservationResult =
  | { outcome: 'held'; hold: Reservation | null; max_output_tokens: number | undefined }
  | { outcome: 'refused'; by: BudgetState; passing: boolean; resets_at: string | null }
  | { outcome: 'unpriced'; by: BudgetState }

/** Output of a call under a budget where the agent's `max_tokens` says nothing. */
export const outputDefault = 4096
/** An answer with less room than this is not worth its input. */
export const outputMin = 16

/** A row as it is kept, with the moment of the transaction. */
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

/** A budget in the window that `now` is in: of an earlier one only what is held counts. */
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

/** A task's own limits as a budget like others, where it has any; `usage` is all that it has used, as it is kept. */
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
 * Reserves what a call may use at most, of all budgets or of none. Its output is bounded by what they leave of what is
 * spent; what other calls hold is not taken for spent, so that no answer is cut short because of answers that turn out
 * short: such a call waits for the others instead.
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

/** Takes back what was held, wherever it still is, and counts what was used; gives the budgets that are near their end. */
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

/** Whether so much of a limit is spent that a warning is due. Reservations do not count. */
export function isNearlySpent({ max_cost, max_tokens, warn_percent, spent_cost, spent_tokens }: BudgetState): boolean {
  const reaches = (spent: number, max: number | null) => max !== null && spent * 100 >= max * warn_percent
  return reaches(spent_cost, max_cost) || reaches(spent_tokens, max_tokens)
}

/** Whether a limit is spent, so that no further call can begin. */
export function isSpent({ max_cost, max_tokens, spent_cost, spent_tokens }: BudgetState): boolean {
  return (max_cost !== null && spent_cost >= max_cost) || (max_tokens !== null && spent_tokens >= max_tokens)
}

/** What a limit counts; the last two only of a task's own. */
export type BudgetUnit = 'cost_usd' | 'tokens' | 'steps' | 'tool_calls'

/** A budget as events and errors show it, in one unit. */
export function budgetFacts(budget: BudgetState, unit: 'cost_usd' | 'tokens') {
  const { id, scope, subject, max_cost, max_tokens, spent_cost, spent_tokens, resets_at } = budget
  const [limit, spent] =
    unit === 'tokens' ? [max_tokens ?? 0, spent_tokens] : [dollarsOf(max_cost ?? 0), dollarsOf(spent_cost)]
  return { budget_id: id, scope, subject, unit, limit, spent, resets_at }
}

/** The unit of which the greater part is spent. */
export function fullestUnit({ max_cost, max_tokens, spent_cost, spent_tokens }: BudgetState): 'cost_usd' | 'tokens' {
  const part = (spent: number, max: number | null) => (max === null ? -1 : max === 0 ? Infinity : spent / max)
  return part(spent_cost, max_cost) >= part(spent_tokens, max_tokens) ? 'cost_usd' : 'tokens'
}

/** The unit that leaves less room for a call. */
export function tightestUnit(budget: BudgetState, need: Need): 'cost_usd' | 'tokens' {
  return costLeft(budget, need, 0) <= tokensLeft(budget, need, 0) ? 'cost_usd' : 'tokens'
}

/** Tokens of output for which a budget has room, `holds` times what is held counted as spent; may be below zero. */
function outputLeft(budget: BudgetState, need: Need, holds: 0 | 1): number {
  return Math.min(tokensLeft(budget, need, holds), costLeft(budget, need, holds))
}

function tokensLeft({ max_tokens, spent_tokens, held_tokens }: BudgetState, need: Need, holds: 0 | 1): number {
  return max_tokens === null ? Infinity : max_tokens - spent_tokens - holds * held_tokens - need.input_tokens
}

function costLeft({ max_cost, spent_cost, held_cost }: BudgetState, need: Need, holds: 0 | 1): number {
  if (max_cost === null || need.price === null) return Infinity
  const rates = highestRates(need.price, need.input_tokens)
  // A cost of zero is in every budget, a spent one too.
  if (rates.input === 0 && rates.output === 0) return Infinity
  const left =
    BigInt(max_cost - spent_cost - holds * held_cost) * 1000n - BigInt(need.input_tokens) * BigInt(rates.input)
  if (left < 0n) return -1
  return rates.output === 0 ? Infinity : Number(left / BigInt(rates.output))
}

/** The most that a call can cost, in billionths of a dollar, rounded up. */
function costAtMost({ price, input_tokens }: Need, output_tokens: number): number {
  if (!price) return 0
  const rates = highestRates(price, input_tokens)
  const exact = BigInt(input_tokens) * BigInt(rates.input) + BigInt(output_tokens) * BigInt(rates.output)
  return Number((exact + 999n) / 1000n)
}

/** When the last of them begins anew; null where one never does. */
function lastReset(budgets: readonly BudgetState[]): string | null {
  const resets = budgets.flatMap(({ resets_at }) => resets_at ?? [])
  if (resets.length < budgets.length) return null
  return resets.reduce((last, one) => (one > last ? one : last))
}
