import { formatDuration } from './format.ts'
import type { Step, Task } from './types.ts'

/** `task`: all of it; `sight`: the steps in sight; `gaps`: those too, with the time between them cut short. */
export const scales = ['task', 'sight', 'gaps'] as const
export type Scale = (typeof scales)[number]

export interface TimeAxis {
  /** Where a moment is, in percent of the width; moments outside are at the edge. */
  place(ms: number): number
  ticks: { at: number; label: string }[]
}

/** Of the width that a gap keeps. */
const gapShare = 0.02

/** What time the width of a waterfall stands for. */
export function makeAxis(scale: Scale, task: Task | undefined, inSight: readonly Step[], now: number): TimeAxis {
  const spans = inSight.map((step): [number, number] => [
    Date.parse(step.started_at),
    step.finished_at === null ? now : Date.parse(step.finished_at),
  ])
  const origin = task ? Date.parse(task.started_at ?? task.created_at) : Math.min(...spans.flat(), now)
  const end = task?.finished_at ? Date.parse(task.finished_at) : now
  let range: [number, number] = [origin, Math.max(end, origin + 1)]
  if (scale !== 'task' && spans.length > 0)
    range = [Math.min(...spans.map(([from]) => from)), Math.max(...spans.map(([, to]) => to), 1)]
  const pieces = scale === 'gaps' ? withoutGaps(spans, range) : [{ from: range[0], to: range[1], width: 1 }]
  const place = (ms: number): number => {
    let left = 0
    for (const { from, to, width } of pieces) {
      if (ms <= to) return 100 * (left + width * Math.max(0, Math.min(1, (ms - from) / Math.max(1, to - from))))
      left += width
    }
    return 100
  }
  const label = (ms: number): string => `+${formatDuration(ms - origin)}`
  const ticks =
    scale === 'gaps'
      ? [range[0], range[1]].map((at) => ({ at, label: label(at) }))
      : [0, 1 / 3, 2 / 3, 1].map((share) => {
          const at = range[0] + share * (range[1] - range[0])
          return { at, label: label(at) }
        })
  return { place, ticks: ticks.filter(({ at }, i) => ticks.findIndex((other) => other.at === at) === i) }
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
