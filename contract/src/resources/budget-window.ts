/** Resources that a budget may limit. Tasks have their own limits. */
export const budgetScopes = ['agent', 'project', 'api_key', 'organization'] as const
export type BudgetScope = (typeof budgetScopes)[number]

/** Periods after which spending starts again at zero; for `total` it never does. */
export const budgetPeriods = ['hour', 'day', 'month', 'total'] as const
export type BudgetPeriod = (typeof budgetPeriods)[number]

/** Default percentage of a limit at which `budget.warning` is sent. */
export const budgetWarning_percent = 80

/** Start of the window that contains `at`. Windows are aligned to UTC; that of `total` starts in 1970. */
export function windowStart(period: BudgetPeriod, at: string): string {
  const date = new Date(at)
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  const starts: Record<BudgetPeriod, number> = {
    hour: Date.UTC(year, month, day, date.getUTCHours()),
    day: Date.UTC(year, month, day),
    month: Date.UTC(year, month),
    total: 0,
  }
  return new Date(starts[period]).toISOString()
}

/** Start of the next window; null for `total`. */
export function windowEnd(period: BudgetPeriod, at: string): string | null {
  const start = new Date(windowStart(period, at))
  if (period === 'total') return null
  if (period === 'hour') start.setUTCHours(start.getUTCHours() + 1)
  if (period === 'day') start.setUTCDate(start.getUTCDate() + 1)
  if (period === 'month') start.setUTCMonth(start.getUTCMonth() + 1)
  return start.toISOString()
}
