import type { LogLine } from '../../task-parts/types.ts'

/** The colour of a line, by its level. */
export const lineTones: Record<LogLine['level'], string> = {
  debug: 'text-soft',
  info: 'text-text',
  warn: 'text-warn',
  error: 'text-bad',
}
