import { useMemo } from 'react'
import { zoneOffset_ms, type TimeZone } from '../../format.ts'
import type { Search } from '../../search-text.ts'
import type { LogFilter } from './log-store.ts'
import type { LogLine } from '../../task-parts/types.ts'

export const levels = ['debug', 'info', 'warn', 'error'] as const
const periods = { '15m': 900_000, '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000 } as const
/** `custom`: between the moments `from` and `to`, of which either may be left out. */
export type Period = keyof typeof periods | 'custom'

export interface LogWords extends Search {
  agent: string
  level: LogLine['level']
  /** A text that looks like a number is read as one from the address. */
  q: string | number
  task: string | number
  since: Period
  from: string
  to: string
  density: 'roomy'
  /** `off`: new lines are not loaded. */
  tail: 'off'
  wrap: boolean
  zone: 'utc' | 'local'
  /** A line: its moment, and a sum of what it says. */
  at: string
}

/** Which lines the address asks for. */
export function useLogFilter(
  project: string,
  agent: string | undefined,
  { q, task, since, from, to, level: said }: Partial<LogWords>,
): LogFilter {
  const level = levels.find((name) => name === said)
  return useMemo(() => {
    const [start_time, end_time] =
      since === 'custom'
        ? [momentOf(from), momentOf(to)]
        : [since !== undefined && since in periods ? new Date(Date.now() - periods[since]).toISOString() : undefined]
    return { project, agent, level, search: textOf(q), task_id: textOf(task), start_time, end_time }
  }, [project, agent, q, task, since, from, to, level])
}

/** A moment of the address, in ISO 8601; undefined where it is none. */
function momentOf(word: unknown): string | undefined {
  const at = typeof word === 'string' ? Date.parse(word) : Number.NaN
  return Number.isNaN(at) ? undefined : new Date(at).toISOString()
}

/** What a field for date and time shows of a moment. */
export function asFieldTime(word: unknown, zone: TimeZone): string {
  const moment = momentOf(word)
  if (moment === undefined) return ''
  const at = Date.parse(moment)
  return new Date(at + zoneOffset_ms(at, zone)).toISOString().slice(0, 19)
}

/** The moment that such a field says. */
export function ofFieldTime(text: string, zone: TimeZone): string | undefined {
  const asUtc = Date.parse(`${text}Z`)
  if (Number.isNaN(asUtc)) return undefined
  // The offset at about that time, then at the time that follows from it: near a change of the clock they differ.
  const about = asUtc - zoneOffset_ms(asUtc, zone)
  return new Date(asUtc - zoneOffset_ms(about, zone)).toISOString()
}

function textOf(word: string | number | undefined): string | undefined {
  return word === undefined || word === '' ? undefined : String(word)
}
