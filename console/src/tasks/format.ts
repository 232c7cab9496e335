import type { Step } from './types.ts'

const number = new Intl.NumberFormat(undefined)
const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
const timeOfDay = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
})
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' })

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

export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

export function formatTime(iso: string): string {
  return timeOfDay.format(new Date(iso))
}

export function formatDateTime(iso: string): string {
  return dateTime.format(new Date(iso))
}

export function formatAgo(iso: string, now = Date.now()): string {
  const seconds = Math.round((Date.parse(iso) - now) / 1000)
  const away = Math.abs(seconds)
  if (away < 60) return relative.format(seconds, 'second')
  if (away < 3600) return relative.format(Math.round(seconds / 60), 'minute')
  if (away < 86_400) return relative.format(Math.round(seconds / 3600), 'hour')
  return relative.format(Math.round(seconds / 86_400), 'day')
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
