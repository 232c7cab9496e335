/** Ranges that the metrics page offers, in seconds, with the interval that shows them well. */
export const ranges = {
  '1h': { label: 'Last hour', seconds: 3600, interval: '1m' },
  '6h': { label: 'Last 6 hours', seconds: 21_600, interval: '5m' },
  '24h': { label: 'Last 24 hours', seconds: 86_400, interval: '1h' },
  '7d': { label: 'Last 7 days', seconds: 604_800, interval: '1h' },
  '30d': { label: 'Last 30 days', seconds: 2_592_000, interval: '1d' },
} as const
export type RangeName = keyof typeof ranges

export const intervals = { '1m': 60, '5m': 300, '15m': 900, '1h': 3600, '1d': 86_400 } as const
export type IntervalName = keyof typeof intervals
/** The service refuses a request for more points. */
const pointsMax = 1500

/** Why an interval does not go with a range; undefined where it does. */
export function intervalRefusal(range: RangeName, interval: IntervalName): string | undefined {
  const points = ranges[range].seconds / intervals[interval]
  if (points > pointsMax) return `more than ${pointsMax} points`
  return points < 2 ? 'longer than the range' : undefined
}

export interface Period {
  start_time: string
  end_time: string
}

/**
 * The period of a range that ends now, and the one before it. Both begin and end on bounds of the interval, so that the point
 * of one stands for as much time as that of the other.
 */
export function periodsOf(
  range: RangeName,
  interval: IntervalName,
  now_ms: number,
): { current: Period; previous: Period } {
  const step = intervals[interval] * 1000
  const length = ranges[range].seconds * 1000
  const end = Math.ceil(now_ms / step) * step
  const at = (ms: number): string => new Date(ms).toISOString()
  return {
    current: { start_time: at(end - length), end_time: at(end) },
    previous: { start_time: at(end - 2 * length), end_time: at(end - length) },
  }
}

/** How a figure stands to that of the period before: +0.25 is a quarter more. Undefined where there was nothing. */
export function change(current: number, previous: number): number | undefined {
  return previous === 0 ? undefined : (current - previous) / previous
}
