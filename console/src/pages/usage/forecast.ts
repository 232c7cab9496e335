/** Seconds of a day. */
const day = 86_400

export interface DayCost {
  /** Seconds since 1970 at which the day (UTC) begins. */
  at: number
  cost_usd: number
}

export interface Month {
  /** The beginning of each of its days. */
  times: number[]
  /** What was spent up to the end of each day; null of days to come. */
  spent: (number | null)[]
  /** The same from today on, at the rate of the last days; null of days that are over. */
  forecast: (number | null)[]
}

/** Days whose mean is taken for the days to come. */
const rateDays = 7

/** The month (UTC) that `now` is in, day by day: what was spent in it, and what it will come to at the rate of the last seven full days. */
export function monthOf(days: readonly DayCost[], now_ms: number): Month {
  const now = new Date(now_ms)
  const begin = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), 1) / 1000
  const end = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1) / 1000
  const times = Array.from({ length: (end - begin) / day }, (_, n) => begin + n * day)
  const today = now.getUTCDate() - 1
  const costs = new Map(days.map(({ at, cost_usd }) => [at, cost_usd]))
  const last = days.filter(({ at }) => at < times[today]! && at >= times[today]! - rateDays * day)
  const rate =
    last.length > 0
      ? last.reduce((sum, { cost_usd }) => sum + cost_usd, 0) / last.length
      : (costs.get(times[today]!) ?? 0)
  let sum = 0
  const spent = times.map((at, nth) => (nth > today ? null : (sum += costs.get(at) ?? 0)))
  // Today is not over: the rest of it is spent at the same rate.
  const rest = Math.max(0, rate * (1 - (now_ms / 1000 - times[today]!) / day))
  const forecast = times.map((_, nth) => (nth < today ? null : sum + (nth === today ? 0 : rest + rate * (nth - today))))
  return { times, spent, forecast }
}
