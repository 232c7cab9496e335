import type { Step } from './task-parts/types.ts'

const number = new Intl.NumberFormat('en')
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
]

/** The zone that times are shown in: that of the browser, or UTC. A user chooses it in Preferences. */
export type TimeZone = 'local' | 'UTC'

/** The zone's name, as it is shown beside a time or a chart. */
export function zoneName(zone: TimeZone): string {
  return zone === 'UTC' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone
}

/** Date and time in full, to the millisecond where `precise`. */
export function exactTime(at: string | number | Date, zone: TimeZone, { precise = false } = {}): string {
  return new Date(at).toLocaleString('en-GB', {
    ...zoneOption(zone),
    year: 'numeric',
    month: 'short',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    ...(precise ? { fractionalSecondDigits: 3 } : {}),
  })
}

/** The time of day to the millisecond. */
export function clockTime(at: string | number | Date, zone: TimeZone): string {
  return new Date(at).toLocaleTimeString('en-GB', {
    ...zoneOption(zone),
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
  })
}

/** Day, month and time of day to the millisecond, as lines of a log show it. */
export function logTime(at: string | number | Date, zone: TimeZone): string {
  return new Date(at).toLocaleString('en-GB', {
    ...zoneOption(zone),
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    fractionalSecondDigits: 3,
  })
}

function zoneOption(zone: TimeZone): { timeZone?: string } {
  return zone === 'UTC' ? { timeZone: 'UTC' } : {}
}

/** How long ago, or in how long, rounded to one unit. */
export function ago(at: string | number | Date, now = Date.now()): string {
  const distance_ms = new Date(at).getTime() - now
  const [unit, size_ms] = units.find(([, size]) => Math.abs(distance_ms) >= size) ?? ['second', 1_000]
  return Math.abs(distance_ms) < 5_000 ? 'just now' : relative.format(Math.round(distance_ms / size_ms), unit)
}

export function formatCount(value: number): string {
  return number.format(value)
}

/** Tokens that a model read and wrote, with what of them was cached and what was reasoning. */
export function formatTokens(usage: Partial<Record<string, unknown>>): { in: string; out: string } {
  const count = (name: string): number => (typeof usage[name] === 'number' ? usage[name] : 0)
  const text = (name: string, part: string, word: string): string =>
    `${formatCount(count(name))}${count(part) > 0 ? ` (${formatCount(count(part))} ${word})` : ''}`
  return {
    in: text('input_tokens', 'cached_tokens', 'cached'),
    out: text('output_tokens', 'reasoning_tokens', 'reasoning'),
  }
}

/** US dollars; null where a price is not known, which is not nothing. */
export function formatCost(usd: number | null | undefined): string {
  if (usd === null || usd === undefined) return 'unknown'
  if (usd === 0) return '$0'
  return usd < 0.01 ? `$${usd.toPrecision(2)}` : `$${usd.toFixed(usd < 1 ? 3 : 2)}`
}

/** A span of time: 840 ms, 3.21 s, 4 min 10 s, 3 h 5 min, 2 d 4 h. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

/** When a step began and ended, in ms since 1970; it ends now where it has not ended. */
export function timesOf({ started_at, finished_at }: Step, now: number): [from: number, to: number] {
  return [Date.parse(started_at), finished_at === null ? now : Date.parse(finished_at)]
}

/** How long a step has taken, up to now where it has not ended. */
export function stepDuration_ms(step: Step, now = Date.now()): number {
  const [from, to] = timesOf(step, now)
  return to - from
}

/** A name in words: `tool_call` is a tool call. */
export function words(name: string): string {
  return name.replaceAll('_', ' ')
}
