import { useMemo } from 'react'
import type { Search } from '../router.tsx'
import type { LogFilter } from './log-store.ts'
import type { LogLine } from './types.ts'

export const levels = ['debug', 'info', 'warn', 'error'] as const
const periods = { '15m': 900_000, '1h': 3_600_000, '24h': 86_400_000, '7d': 604_800_000 } as const
export type Period = keyof typeof periods

export interface LogWords extends Search {
  agent: string
  level: LogLine['level']
  /** A text that looks like a number is read as one from the address. */
  q: string | number
  task: string | number
  since: Period
  /** `off`: nothing is read by itself. */
  tail: 'off'
  wrap: boolean
  zone: 'utc'
  /** The moment of a line. */
  at: string
}

/** Which lines the address asks for. */
export function useLogFilter(
  project: string,
  agent: string | undefined,
  { q, task, since, level: said }: Partial<LogWords>,
): LogFilter {
  const level = levels.find((name) => name === said)
  return useMemo(() => {
    const start_time =
      since !== undefined && since in periods ? new Date(Date.now() - periods[since]).toISOString() : undefined
    return { project, agent, level, search: textOf(q), task_id: textOf(task), start_time }
  }, [project, agent, q, task, since, level])
}

function textOf(word: string | number | undefined): string | undefined {
  return word === undefined || word === '' ? undefined : String(word)
}
