import { builtinToolDefinitions } from '#contract/tools/builtin-tools.ts'
import { ToolError, type Tool } from '../tool.ts'

/** Returns the time in UTC or in a time zone. `now` is the clock, which tests replace. */
export function currentTime(now: () => Date): Tool {
  return {
    name: 'current_time',
    ...builtinToolDefinitions.current_time,
    async call({ time_zone = 'UTC' }) {
      const format = formatOf(String(time_zone))
      return { content: JSON.stringify(timeIn(format, now())) }
    },
  }
}

/** Creating a format takes longer than everything else, and most calls ask for UTC. */
const utc = makeFormat('UTC')

function formatOf(timeZone: string): Intl.DateTimeFormat {
  if (timeZone === 'UTC') return utc
  try {
    return makeFormat(timeZone)
  } catch {
    throw new ToolError(
      'unknown_time_zone',
      `There is no time zone named ${timeZone}. Use a name such as Europe/Berlin.`,
    )
  }
}

function makeFormat(timeZone: string): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('en-GB', {
    timeZone,
    hourCycle: 'h23',
    weekday: 'long',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    timeZoneName: 'longOffset',
  })
}

/** `2026-11-20T10:30:00+01:00`, in the time zone of the format. */
function timeIn(format: Intl.DateTimeFormat, at: Date) {
  const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]))
  const offset = part.timeZoneName?.replace('GMT', '') || '+00:00'
  return {
    time: `${part.year}-${part.month}-${part.day}T${part.hour}:${part.minute}:${part.second}${offset}`,
    weekday: part.weekday,
    time_zone: format.resolvedOptions().timeZone,
  }
}
