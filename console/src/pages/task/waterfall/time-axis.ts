import { formatDuration, timesOf } from '../../../format.ts'
import type { Step, Task } from '../../../task-parts/types.ts'

/** `task`: all of it; `sight`: the steps in sight; `gaps`: those too, with the time between them cut short. */
export const scales = ['task', 'sight', 'gaps'] as const
export type Scale = (typeof scales)[number]

/** A part of a task's time that is looked at: milliseconds after its beginning. */
export interface Span {
  from: number
  to: number
}

/** The shortest span that is looked at. */
const spanLeast_ms = 1

/** A span as the address has it; undefined for what is none. */
export function readSpan(text: unknown): Span | undefined {
  const [, from, to] = /^(\d{1,12})-(\d{1,12})$/.exec(String(text)) ?? []
  const span = { from: Number(from), to: Number(to) }
  return span.to - span.from >= spanLeast_ms ? span : undefined
}

/** The same, rounded to milliseconds, so that the shortest is one. */
export function writeSpan({ from, to }: Span): string {
  const begin = Math.max(0, Math.floor(from))
  return `${begin}-${Math.max(begin + spanLeast_ms, Math.ceil(to))}`
}

/** Half of a span, or twice as much, about a moment or its middle; undefined where that is all of `whole_ms`. */
export function zoomed(
  span: Span | undefined,
  factor: 0.5 | 2,
  { whole_ms, about_ms }: { whole_ms: number; about_ms?: number | undefined },
): Span | undefined {
  const { from, to } = span ?? { from: 0, to: whole_ms }
  const width = Math.max(spanLeast_ms, (to - from) * factor)
  if (width >= whole_ms) return undefined
  return within((about_ms ?? (from + to) / 2) - width / 2, width, whole_ms)
}

/** The same width, half of it earlier or later. */
export function moved({ from, to }: Span, direction: -1 | 1, whole_ms: number): Span {
  return within(from + (direction * (to - from)) / 2, to - from, whole_ms)
}

function within(from: number, width: number, whole_ms: number): Span {
  const begin = Math.max(0, Math.min(from, whole_ms - width))
  return { from: begin, to: begin + width }
}

/** The middle of a step, in milliseconds after its task's beginning. */
export function middleOf(step: Step, task: Task, now: number): number {
  const [from, to] = timesOf(step, now)
  return (from + to) / 2 - beginningOf(task)
}

/** From the beginning of a task to its end, or to now. */
export function wholeOf(task: Task, now: number): number {
  return Math.max(1, (task.finished_at ? Date.parse(task.finished_at) : now) - beginningOf(task))
}

function beginningOf(task: Task): number {
  return Date.parse(task.started_at ?? task.created_at)
}

export interface TimeAxis {
  /** Where a moment is, in percent of the width; moments outside are at the edge. */
  place(ms: number): number
  /** The other way: milliseconds after the task's beginning. */
  moment(percent: number): number
  /** Whether any of this time is shown. */
  shows(from: number, to: number): boolean
  ticks: { at: number; label: string }[]
}

/** Shorter spans show only their ends: durations are whole milliseconds. */
const finest_ms = 30

/** Of the width that a gap keeps. */
const gapShare = 0.02

/** What time the width of a waterfall stands for. */
export function makeAxis(
  scale: Scale,
  task: Task | undefined,
  inSight: readonly Step[],
  { now, span }: { now: number; span: Span | undefined },
): TimeAxis {
  const spans = inSight.map((step) => timesOf(step, now))
  const origin = task ? beginningOf(task) : Math.min(...spans.flat(), now)
  const end = task?.finished_at ? Date.parse(task.finished_at) : now
  let range: [number, number] = [origin, Math.max(end, origin + 1)]
  if (scale !== 'task' && spans.length > 0)
    range = [Math.min(...spans.map(([from]) => from)), Math.max(...spans.map(([, to]) => to), 1)]
  if (span) range = [origin + span.from, origin + span.to]
  const isCut = scale === 'gaps' && !span
  const pieces = isCut ? withoutGaps(spans, range) : [{ from: range[0], to: range[1], width: 1 }]
  const place = (ms: number): number => {
    let left = 0
    for (const { from, to, width } of pieces) {
      if (ms <= to) return 100 * (left + width * Math.max(0, Math.min(1, (ms - from) / Math.max(1, to - from))))
      left += width
    }
    return 100
  }
  const moment = (percent: number): number => {
    let left = percent / 100
    for (const { from, to, width } of pieces) {
      if (left <= width) return from + (width > 0 ? left / width : 0) * (to - from) - origin
      left -= width
    }
    return range[1] - origin
  }
  const label = (ms: number): string => `+${formatDuration(ms - origin)}`
  const ticks =
    isCut || range[1] - range[0] < finest_ms
      ? [range[0], range[1]].map((at) => ({ at, label: label(at) }))
      : [0, 1 / 3, 2 / 3, 1].map((share) => {
          const at = range[0] + share * (range[1] - range[0])
          return { at, label: label(at) }
        })
  return {
    place,
    moment,
    shows: (from, to) => from <= range[1] && to >= range[0],
    ticks: ticks.filter(({ at }, i) => ticks.findIndex((other) => other.at === at) === i),
  }
}

interface Piece {
  from: number
  to: number
  /** Of the whole, 0 to 1. */
  width: number
}

/** The range in pieces, where those in which nothing happened are narrow. */
function withoutGaps(spans: [number, number][], [from, to]: [number, number]): Piece[] {
  const busy: [number, number][] = []
  for (const [begin, end] of spans.toSorted((a, b) => a[0] - b[0])) {
    const last = busy.at(-1)
    if (last && begin <= last[1]) last[1] = Math.max(last[1], end)
    else busy.push([begin, end])
  }
  const pieces: (Piece & { isGap: boolean })[] = []
  let at = from
  for (const [begin, end] of busy) {
    if (begin > at) pieces.push({ from: at, to: begin, width: 0, isGap: true })
    pieces.push({ from: begin, to: end, width: 0, isGap: false })
    at = end
  }
  if (to > at) pieces.push({ from: at, to, width: 0, isGap: true })
  const gaps = pieces.filter(({ isGap }) => isGap).length
  const share = Math.min(gapShare, 0.4 / Math.max(1, gaps))
  const busy_ms = Math.max(
    1,
    busy.reduce((sum, [begin, end]) => sum + end - begin, 0),
  )
  return pieces.map(({ isGap, ...piece }) => ({
    ...piece,
    width: isGap ? share : ((piece.to - piece.from) / busy_ms) * (1 - share * gaps),
  }))
}
