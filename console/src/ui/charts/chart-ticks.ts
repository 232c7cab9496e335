import { formatCount, formatDuration } from '../../format.ts'

const hour = 3600
const day = 24 * hour
/** Spans that people count time in, in seconds. */
const roundSpans = [
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60),
  ...[1, 2, 3, 4, 6, 12].map((hours) => hours * hour),
  ...[1, 2, 7, 14, 28].map((days) => days * day),
]
/** Pixels that a label takes with the space beside it. */
const labelWidths_px = { day: 64, minute: 104, hour: 60 }

/**
 * Which of `times` (seconds since 1970, evenly apart by `step`) are written below a chart, and how: the first of each round span,
 * such as midnight or every third hour of the zone that is `offset` seconds ahead of UTC. `slot_px` is how far two times are apart.
 */
export function timeLabels(
  times: readonly number[],
  { step, slot_px, offset }: { step: number; slot_px: number; offset: (at: number) => number },
): { unit: 'day' | 'minute' | 'hour'; at: number[] } {
  const isLong = times.length * step > 2 * day
  const unitOf = (span: number) => (span >= day ? 'day' : isLong ? 'minute' : 'hour')
  const fits = (span: number): boolean => span >= step && (span / step) * slot_px >= labelWidths_px[unitOf(span)]
  const span = roundSpans.find(fits) ?? Math.ceil(((labelWidths_px.day / slot_px) * step) / day) * day
  const count = (at: number): number => Math.floor((at + offset(at)) / span)
  return {
    unit: unitOf(span),
    at: times.flatMap((at, index) => (count(at) === count(at - step) ? [] : [index])),
  }
}

/** A mark of the axis of values. */
export interface Tick {
  at: number
  label: string
}

const units_s = { s: 1, min: 60, h: hour, d: day }
const roundSteps_s = [
  ...[1, 2, 5, 10, 15, 20, 30],
  ...[1, 2, 5, 10, 15, 20, 30].map((minutes) => minutes * units_s.min),
  ...[1, 2, 3, 6, 12].map((hours) => hours * hour),
]

/** Marks of an axis of seconds: round in the one unit that all of them are written in, so that none is too long for its place. */
export function durationTicks(most_s: number): Tick[] {
  if (most_s <= 4) return ticksUpTo(most_s).map((at) => ({ at, label: formatDuration(at * 1000) }))
  const size = roundSteps_s.find((step) => step * 4 >= most_s) ?? Math.ceil(most_s / (4 * day)) * day
  const [unit, unit_s] = Object.entries(units_s).findLast(([, unit_s]) => unit_s <= size)!
  return Array.from({ length: Math.ceil(most_s / size) + 1 }, (_, n) => ({
    at: n * size,
    label: n === 0 ? '0' : `${formatCount((n * size) / unit_s)} ${unit}`,
  }))
}

/** Round values from 0 to the first that holds `most`, four or five of them. */
export function ticksUpTo(most: number): number[] {
  if (!(most > 0)) return [0, 1]
  const rough = most / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const size = [1, 2, 2.5, 5, 10].map((of) => of * power).find((one) => one >= rough)!
  const count = Math.ceil(most / size - 1e-9)
  return Array.from({ length: count + 1 }, (_, n) => Number((n * size).toPrecision(12)))
}
