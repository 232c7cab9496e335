import { UsageError } from './failure.ts'

const unit_ms = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Formats of timestamps in options. */
export const momentHint = 'ISO 8601, or how long ago: 30s, 15m, 2h, 7d.'

/** Converts an option, ISO 8601 or a duration before now, to a timestamp. Throws `UsageError`. */
export function momentOf(option: string, given: unknown): string | undefined {
  if (typeof given !== 'string') return undefined
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(given) ?? []
  if (count !== undefined && unit !== undefined)
    return new Date(Date.now() - Number(count) * unit_ms[unit as keyof typeof unit_ms]).toISOString()
  if (Number.isNaN(Date.parse(given))) throw new UsageError(`${option} must be ${momentHint}`)
  return given
}
