const form = /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?([Zz]|[+-]\d{2}:\d{2})?)?$/

/**
 * Reads a moment as callers write it (decision D6): RFC 3339, a date alone (midnight), or without seconds; UTC where no
 * offset is given; years 0001 to 9999. Returns it in the service's form, or undefined where it is none. A leap second
 * is the second after it, as PostgreSQL reads it.
 */
export function parseTimestamp(text: string): string | undefined {
  const match = form.exec(text)
  if (!match) return undefined
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', offset = 'Z'] = match
  const shift_minutes = offsetMinutes(offset)
  if (
    Number(year) < 1 ||
    Number(hour) > 23 ||
    Number(minute) > 59 ||
    Number(second) > 60 ||
    shift_minutes === undefined
  )
    return undefined
  const midnight = new Date(`${year}-${month}-${day}T00:00:00.000Z`)
  // A day that the month does not have would roll over silently.
  if (Number.isNaN(midnight.getTime()) || midnight.getUTCDate() !== Number(day)) return undefined
  const seconds = (Number(hour) * 60 + Number(minute) - shift_minutes) * 60 + Number(second)
  const timestamp = new Date(midnight.getTime() + seconds * 1000 + Number(fraction.slice(0, 3).padEnd(3, '0')))
  return timestamp.getUTCFullYear() < 1 || timestamp.getUTCFullYear() > 9999 ? undefined : timestamp.toISOString()
}

/** Minutes ahead of UTC; undefined where no clock is that far. */
function offsetMinutes(offset: string): number | undefined {
  if (offset === 'Z' || offset === 'z') return 0
  const [hours, minutes] = [Number(offset.slice(1, 3)), Number(offset.slice(4))]
  if (hours > 23 || minutes > 59) return undefined
  return (offset.startsWith('-') ? -1 : 1) * (hours * 60 + minutes)
}
