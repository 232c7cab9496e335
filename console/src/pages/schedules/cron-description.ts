const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']
const dayNames = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
const nicknames: Record<string, string> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
}

/** A cron pattern in words where it is one of the usual ones; undefined where only the pattern itself says it well. */
export function cronWords(cron: string): string | undefined {
  const fields = (nicknames[cron.toLowerCase()] ?? cron).trim().split(/\s+/)
  if (fields.length !== 5) return undefined
  const [minute = '', hour = '', day = '', month = '', weekday = ''] = fields
  const isEveryDay = day === '*' && month === '*' && weekday === '*'
  if (isEveryDay && minute === '*' && hour === '*') return 'Every minute'
  const minutes = /^\*\/(\d+)$/.exec(minute)?.[1]
  if (isEveryDay && minutes !== undefined && hour === '*' && 60 % Number(minutes) === 0)
    return `Every ${minutes} minutes`
  if (!/^\d{1,2}$/.test(minute)) return undefined
  if (isEveryDay && hour === '*') return Number(minute) === 0 ? 'Every hour' : `Every hour at ${minute} minutes past`
  const hours = /^\*\/(\d+)$/.exec(hour)?.[1]
  if (isEveryDay && hours !== undefined && 24 % Number(hours) === 0 && Number(minute) === 0)
    return `Every ${hours} hours`
  if (!/^\d{1,2}(,\d{1,2})*$/.test(hour)) return undefined
  const times = hour.split(',').map((one) => `${one.padStart(2, '0')}:${minute.padStart(2, '0')}`)
  const at = `at ${new Intl.ListFormat('en').format(times)}`
  if (isEveryDay) return `Every day ${at}`
  if (day === '*' && month === '*') {
    const named = weekdays(weekday)
    return named === undefined ? undefined : `${named} ${at}`
  }
  if (weekday !== '*') return undefined
  if (/^\d{1,2}$/.test(day) && month === '*') return `On day ${day} of every month ${at}`
  if (day.toUpperCase() === 'L' && month === '*') return `On the last day of every month ${at}`
  return undefined
}

function weekdays(field: string): string | undefined {
  const lower = field.toLowerCase()
  if (lower === 'mon-fri' || lower === '1-5') return 'Every weekday'
  const names = lower.split(',').map((one) => days[/^[0-7]$/.test(one) ? Number(one) % 7 : dayNames.indexOf(one)])
  return names.some((name) => name === undefined)
    ? undefined
    : `Every ${new Intl.ListFormat('en').format(names as string[])}`
}
