import { localZone } from '#contract/accounts/preference-choices.ts'
import type { Step } from './task-parts/types.ts'

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
]

/** The zone that times are shown in: an IANA time zone, or `local`, that of the browser. A user chooses it in Preferences. */
export type TimeZone = string

/** Asked for once: making a formatter takes a third of a millisecond, and a table has a hundred times in it. */
let browserZone: string | undefined

/** The zone's name, as it is shown beside a time or a chart. */
export function zoneName(zone: TimeZone): string {
  if (zone !== localZone) return zone
  return (browserZone ??= Intl.DateTimeFormat().resolvedOptions().timeZone)
}

/** How far a zone is ahead of UTC at a moment, in milliseconds. */
export function zoneOffset_ms(at: number, zone: TimeZone): number {
  if (zone === localZone) return -60_000 * new Date(at).getTimezoneOffset()
  const format = once(
    `${zone} offset`,
    () => new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' }),
  )
  // GMT, GMT+05:30, and with seconds before there were zones.
  const [, sign, ...parts] = /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(format.format(at)) ?? []
  const [hours = 0, minutes = 0, seconds = 0] = parts.map((part) => Number(part ?? 0))
  return (sign === '-' ? -1000 : 1000) * ((hours * 60 + minutes) * 60 + seconds)
}

/** How dates and numbers are written. A user chooses one in Preferences. */
export const forms = { day: 'en-GB', month: 'en-US', iso: 'sv-SE' } as const
export type Form = keyof typeof forms

let form: Form = 'day'
/** From here on every date and number is written so. */
export function writeAs(next: Form): void {
  form = next
}

const made = new Map<string, Intl.DateTimeFormat | Intl.NumberFormat>()
function once<T extends Intl.DateTimeFormat | Intl.NumberFormat>(key: string, make: () => T): T {
  const known = made.get(key) ?? make()
  made.set(key, known)
  return known as T
}

const day = { month: 'short', day: '2-digit' } as const
const clock = { hour: '2-digit', minute: '2-digit' } as const
const second = { ...clock, second: '2-digit' } as const
const parts = {
  exact: { year: 'numeric', ...day, ...second },
  precise: { year: 'numeric', ...day, ...second, fractionalSecondDigits: 3 },
  minute: { ...day, ...clock },
  date: { year: 'numeric', ...day },
  day,
  hour: clock,
  clock: { ...second, fractionalSecondDigits: 3 },
  log: { ...day, ...second, fractionalSecondDigits: 3 },
} as const satisfies Record<string, Intl.DateTimeFormatOptions>

function written(at: string | number | Date, zone: TimeZone, name: keyof typeof parts): string {
  const options: Intl.DateTimeFormatOptions = parts[name]
  const format = once(`${form} ${zone} ${name}`, () => {
    const iso = form === 'iso' && options.month !== undefined ? ({ month: '2-digit' } as const) : {}
    return new Intl.DateTimeFormat(forms[form], {
      ...options,
      ...iso,
      ...(zone === localZone ? {} : { timeZone: zone }),
    })
  })
  // Some locales put the fraction behind a comma; there is one form of it.
  const text = format.format(new Date(at)).replace(/(:\d\d),(\d{3})/, '$1.$2')
  // Without a year, the locale of the ISO form writes the day first.
  return form === 'iso' ? text.replace(/^(\d\d)\/(\d\d)\b/, '$2-$1') : text
}

/** Date and time in full, to the millisecond where `precise`. */
export function exactTime(at: string | number | Date, zone: TimeZone, { precise = false } = {}): string {
  return written(at, zone, precise ? 'precise' : 'exact')
}

/** The time of day to the millisecond. */
export function clockTime(at: string | number | Date, zone: TimeZone): string {
  return written(at, zone, 'clock')
}

/** Day, month and time of day to the millisecond, as lines of a log show it. */
export function logTime(at: string | number | Date, zone: TimeZone): string {
  return written(at, zone, 'log')
}

/** A moment as it stands below a chart: the day, the minute of a day, or the time of day. */
export function axisTime(at: string | number | Date, zone: TimeZone, unit: 'day' | 'minute' | 'hour' | 'date'): string {
  return written(at, zone, unit)
}

/** The day with its name, and the time of day, of a moment in any time zone. */
export function dueTime(at: string, timeZone: string): { day: string; time: string } {
  const part = (name: string, locale: string, options: Intl.DateTimeFormatOptions): string =>
    once(`${form} ${timeZone} due ${name}`, () => new Intl.DateTimeFormat(locale, { ...options, timeZone })).format(
      new Date(at),
    )
  const time = part('time', forms[form], clock)
  if (form !== 'iso')
    return { day: part('day', forms[form], { weekday: 'short', day: 'numeric', month: 'short' }), time }
  const date = part('date', forms.iso, { year: 'numeric', month: '2-digit', day: '2-digit' })
  return { day: `${part('weekday', forms.day, { weekday: 'short' })} ${date.slice('2026-'.length)}`, time }
}

/** How long ago, or in how long, rounded to one unit: never 60 seconds, which are a minute. */
export function ago(at: string | number | Date, now = Date.now()): string {
  const distance_ms = new Date(at).getTime() - now
  if (Math.abs(distance_ms) < 5_000) return 'just now'
  const [unit, size_ms] = units.findLast(
    ([, size], index) => index === 0 || Math.abs(Math.round(distance_ms / size)) * size < units[index - 1]![1],
  )!
  return relative.format(Math.round(distance_ms / size_ms), unit)
}

function number(value: number, options: Intl.NumberFormatOptions): string {
  const locale = form === 'iso' ? 'fr-FR' : 'en'
  return once(`${locale} ${JSON.stringify(options)}`, () => new Intl.NumberFormat(locale, options)).format(value)
}

/** A whole number, grouped by thousands. */
export function formatCount(value: number): string {
  return number(value, {})
}

/** A number with what it counts: 1 task, 1,204 tasks. `write` is how the number is written. */
export function plural(count: number, one: string, many = `${one}s`, write = formatCount): string {
  return `${write(count)} ${count === 1 ? one : many}`
}

/** A number of any size in few digits: 0.012, 4.2, 1,234, 12.3K, 4.5M. */
export function formatShort(value: number): string {
  if (value !== 0 && Math.abs(value) < 1) return number(value, { maximumSignificantDigits: 2 })
  if (Math.abs(value) < 10_000) return number(value, { maximumFractionDigits: Math.abs(value) < 100 ? 1 : 0 })
  return number(value, { notation: 'compact', maximumFractionDigits: 1 })
}

/** A part of 1 in percent. */
export function formatShare(share: number): string {
  return number(share, { style: 'percent', maximumFractionDigits: share !== 0 && Math.abs(share) < 0.1 ? 1 : 0 })
}

const sizes = ['B', 'kB', 'MB', 'GB', 'TB'] as const

/** A size, in thousands of bytes. */
export function formatSize(bytes: number): string {
  const power = bytes < 1000 ? 0 : Math.min(sizes.length - 1, Math.floor(Math.log10(bytes) / 3))
  return `${number(bytes / 1000 ** power, { maximumFractionDigits: power === 0 ? 0 : 1 })} ${sizes[power]}`
}

/** All tokens that a model read and wrote, as a list or a line shows them. */
export function totalTokens(usage: Partial<Record<string, unknown>>): string {
  const count = Number(usage.input_tokens ?? 0) + Number(usage.output_tokens ?? 0)
  return plural(count, 'token', 'tokens', formatShort)
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

/** US dollars, to the cent from ten cents on; null where a price is not known, which is not nothing. */
export function formatCost(usd: number | null | undefined): string {
  if (usd === null || usd === undefined) return 'unknown'
  if (usd === 0) return '$0'
  const digits = usd < 0.1 ? { maximumSignificantDigits: 2 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 }
  return `$${number(usd, digits)}`
}

/** A span of time: 840 ms, 3.21 s, 4 min 10 s, 3 h, 2 d 4 h. */
export function formatDuration(ms: number): string {
  const rounded_ms = Math.max(0, Math.round(ms))
  if (rounded_ms < 1000) return `${rounded_ms} ms`
  // From here on it is rounded before it is taken apart: 59.96 s are a minute, and no minute has 60 s.
  for (const [digits, limit_s] of [
    [2, 10],
    [1, 60],
  ] as const) {
    const seconds = Math.round((ms / 1000) * 10 ** digits) / 10 ** digits
    if (seconds < limit_s) return `${number(seconds, { minimumFractionDigits: digits })} s`
  }
  const all_s = Math.round(ms / 1000)
  const minutes = Math.floor(all_s / 60)
  const hours = Math.floor(minutes / 60)
  const [first, second] =
    minutes < 60
      ? [`${minutes} min`, `${all_s % 60} s`]
      : hours < 48
        ? [`${hours} h`, `${minutes % 60} min`]
        : [`${Math.floor(hours / 24)} d`, `${hours % 24} h`]
  return second.startsWith('0 ') ? first : `${first} ${second}`
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
export function asText(name: string): string {
  return name.replaceAll('_', ' ')
}
