const form = /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?([Zz]|[+-]\d{2}:?\d{2})?)?$/

/**
 * Reads a moment as callers write it (decision D6): RFC 3339, a date alone (midnight), or without seconds; UTC where no
 * offset is given; years 0001 to 9999. Returns it in the service's form, or undefined where it is none.
 */
export function parseTimestamp(text: string): string | undefined {
  const match = form.exec(text)
  if (!match) return undefined
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', offset = 'Z'] = match
  if (Number(year) < 1 || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined
  const millisecond = fraction.slice(0, 3).padEnd(3, '0')
  const local = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}.${millisecond}Z`)
  // A day that the month does not have would roll over silently.
  if (Number.isNaN(local.getTime()) || local.getUTCDate() !== Number(day)) return undefined
  const moment = new Date(local.getTime() - offsetMinutes(offset) * 60_000)
  if (moment.getUTCFullYear() < 1 || moment.getUTCFullYear() > 9999) return undefined
  return Math.abs(offsetMinutes(offset)) < 24 * 60 ? moment.toISOString() : undefined
}

function offsetMinutes(offset: string): number {
  if (offset === 'Z' || offset === 'z') return 0
  const sign = offset.startsWith('-') ? -1 : 1
  return sign * (Number(offset.slice(1, 3)) * 60 + Number(offset.slice(-2)))
}
