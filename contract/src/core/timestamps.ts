const form = /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?([Zz]|[+-]\d{2}:\d{2})?)?$/

/**
 * Parses a timestamp of a request (decision D6): RFC 3339, a date alone (midnight), or without seconds; UTC if it has
 * no offset; years 0001 to 9999. Returns it as ISO 8601 in UTC with milliseconds, or undefined if it is invalid. A
 * leap second becomes the next second, as in PostgreSQL.
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
  // `Date` would roll 30 February over to March.
  if (Number.isNaN(midnight.getTime()) || midnight.getUTCDate() !== Number(day)) return undefined
  const seconds = (Number(hour) * 60 + Number(minute) - shift_minutes) * 60 + Number(second)
  const timestamp = new Date(midnight.getTime() + seconds * 1000 + Number(fraction.slice(0, 3).padEnd(3, '0')))
  return timestamp.getUTCFullYear() < 1 || timestamp.getUTCFullYear() > 9999 ? undefined : timestamp.toISOString()
}

/** Maximum length of the name of a time zone, in characters. */
export const timeZoneMax = 64

/**
 * Whether a name is in the time zone database. Offsets such as `+02:00` are refused, because they have no daylight
 * saving time.
 */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/** Minutes ahead of UTC; undefined if the offset is out of range. */
function offsetMinutes(offset: string): number | undefined {
  if (offset === 'Z' || offset === 'z') return 0
  const [hours, minutes] = [Number(offset.slice(1, 3)), Number(offset.slice(4))]
  if (hours > 23 || minutes > 59) return undefined
  return (offset.startsWith('-') ? -1 : 1) * (hours * 60 + minutes)
}
