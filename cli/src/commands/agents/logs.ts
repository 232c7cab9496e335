import { setTimeout as pause } from 'node:timers/promises'
import type { LogEntry } from '#sdk/types.ts'
import { define, type AddCommand } from '../../define.ts'
import { UsageError } from '../../failure.ts'
import { untilInterrupted } from '../../interrupt.ts'
import { momentHint, momentOf } from '../../moment.ts'
import { plain } from '../../output/plain.ts'

const levels = ['debug', 'info', 'warn', 'error'] as const
const poll_ms = 1000
/** Overlap of polls, because entries may become visible out of order. */
const overlap_ms = 5000
/** Retries while following a log, so that a restart of the service does not end it. */
const retriesMax = 20
const limitDefault = 100
/** Members of an entry, which `--json` may select. */
const members: readonly (keyof LogEntry)[] = ['timestamp', 'level', 'message', 'context']

/** `cadre agents logs`. */
export const addAgentsLogs: AddCommand = (program) =>
  define(program, 'agents logs', {
    summary: "Read an agent's log.",
    description:
      'Prints the newest entries in chronological order; --since and --until select a period. -f waits for new entries. --json prints one entry per line.',
    args: ['<agent_id>'],
    examples: [
      'cadre agents logs agent_01jcm3x5v8f9a2b4c6d8e0g2h4 -f --level error',
      'cadre agents logs agent_01jcm3x5v8f9a2b4c6d8e0g2h4 --since 2h --search refused --limit 1000',
    ],
    async run(
      context,
      [agent_id = ''],
      { follow, level: given, limit = String(limitDefault), since, until, search, task },
    ) {
      const level = levels.find((one) => one === given)
      if (given !== undefined && level === undefined)
        throw new UsageError(`--level must be one of ${levels.join(', ')}.`)
      const max = Number(limit)
      if (!Number.isSafeInteger(max) || max < 1) throw new UsageError('--limit must be an integer of at least 1.')
      const [start_time, end_time] = [momentOf('--since', since), momentOf('--until', until)]
      if (follow && end_time !== undefined) throw new UsageError('--until and --follow cannot be combined.')
      const filter = {
        level,
        ...(typeof search === 'string' ? { search } : {}),
        ...(typeof task === 'string' ? { task_id: task } : {}),
      }
      const { out } = context
      out.checkEventFields(members)
      const project = await context.project()
      const list = (between: { start_time?: string; end_time?: string }, max: number, options = {}) =>
        context
          .client()
          .agents.logs(project, agent_id, { ...filter, ...between }, options)
          .toArray({ max })
      const show = (entry: LogEntry) => {
        if (out.options.json) return out.event(entry)
        const { timestamp, level, message } = entry
        out.line(`${out.dim(timestamp)} ${level.padEnd(5)} ${plain(message).replaceAll('\n', ' ')}`)
      }
      const between = { ...(start_time ? { start_time } : {}), ...(end_time ? { end_time } : {}) }
      const newest = await list(between, max + 1)
      const first = newest.slice(0, max).reverse()
      for (const entry of first) show(entry)
      if (newest.length > max) out.note(`There are older entries. Use --limit to show more than ${max}.`)
      if (!follow) return
      let seen = countsOf(first)
      let last = first.at(-1)?.timestamp ?? new Date().toISOString()
      await untilInterrupted(async (signal) => {
        for (;;) {
          await pause(poll_ms, undefined, { signal })
          const start_time = new Date(Date.parse(last) - overlap_ms).toISOString()
          const entries = (
            await list({ start_time }, Number.POSITIVE_INFINITY, { signal, maxRetries: retriesMax })
          ).reverse()
          const now = new Map<string, number>()
          for (const entry of entries) {
            const key = JSON.stringify(entry)
            const count = (now.get(key) ?? 0) + 1
            now.set(key, count)
            if (count > (seen.get(key) ?? 0)) show(entry)
          }
          seen = now
          if (entries.length > 0) last = entries.at(-1)!.timestamp
        }
      })
    },
  })
    .option('-f, --follow', 'Print new entries until Ctrl-C.')
    .option('--since <time>', `Only entries from this time. ${momentHint}`)
    .option('--until <time>', `Only entries before this time. ${momentHint}`)
    .option('--search <text>', 'Only entries whose message contains this text, in any case.')
    .option('--task <task_id>', 'Only entries of this task.')
    .option('--level <level>', `Only entries of this level: ${levels.join(', ')}.`)
    .option('--limit <number>', `Number of entries; ${limitDefault} by default.`)

/** Counts equal entries, because entries have no ids. */
function countsOf(entries: readonly LogEntry[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const entry of entries) counts.set(JSON.stringify(entry), (counts.get(JSON.stringify(entry)) ?? 0) + 1)
  return counts
}
