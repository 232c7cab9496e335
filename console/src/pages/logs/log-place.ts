import type { LogLine } from '../../task-parts/types.ts'

/**
 * What the address names a line by: its moment, and a sum of what it says, because lines have no ids and many may be of one
 * moment. It is the same under every filter.
 */
export function placeOf(line: LogLine): string {
  const text = JSON.stringify([line.level, line.message, line.context])
  let sum = 0
  for (let at = 0; at < text.length; at++) sum = (Math.imul(sum, 31) + text.charCodeAt(at)) >>> 0
  return `${line.timestamp}~${sum.toString(36)}`
}

/** The moment of a place. */
export function momentOfPlace(place: string): string {
  return place.split('~', 1)[0]!
}

/** Whether a line is the one that is named; a moment alone names all of it. */
export function isAt(line: LogLine, place: string): boolean {
  return line.timestamp === place || (place.startsWith(line.timestamp) && placeOf(line) === place)
}
