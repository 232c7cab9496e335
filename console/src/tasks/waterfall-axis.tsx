import { useState, type PointerEvent } from 'react'
import type { Span, TimeAxis } from './time-axis.ts'

/** A move that is shorter than this is no brush, in percent of the width. */
const brushLeast = 0.5

/** The times over a waterfall. To draw over them chooses the part of the time that is shown; the buttons beside do it by keys. */
export function WaterfallAxis({ axis, onSpan }: { axis: TimeAxis; onSpan: (span: Span) => void }) {
  const [brush, setBrush] = useState<{ from: number; to: number }>()
  const placeOf = ({ currentTarget, clientX }: PointerEvent<HTMLElement>): number => {
    const { left, width } = currentTarget.getBoundingClientRect()
    return Math.min(100, Math.max(0, (100 * (clientX - left)) / Math.max(1, width)))
  }
  const least = brush ? Math.min(brush.from, brush.to) : 0
  const most = brush ? Math.max(brush.from, brush.to) : 0
  return (
    <div className="flex h-7 shrink-0 items-center border-b border-line text-xs text-soft" aria-hidden="true">
      <span className="w-[45%] shrink-0 px-3 md:w-72">Step</span>
      <span
        data-brush
        title="Draw to look at a part of the time"
        className="relative flex h-full min-w-0 flex-1 cursor-crosshair touch-none items-center justify-between font-mono tabular-nums select-none"
        onPointerDown={(event) => {
          if (event.button !== 0) return
          event.currentTarget.setPointerCapture(event.pointerId)
          setBrush({ from: placeOf(event), to: placeOf(event) })
        }}
        onPointerMove={(event) => {
          if (brush) setBrush({ ...brush, to: placeOf(event) })
        }}
        onPointerUp={() => {
          setBrush(undefined)
          if (most - least >= brushLeast) onSpan({ from: axis.moment(least), to: axis.moment(most) })
        }}
        onPointerCancel={() => setBrush(undefined)}
      >
        {brush && (
          <span
            className="absolute inset-y-0 border-x border-accent bg-accent-soft"
            style={{ left: `${least}%`, width: `${most - least}%` }}
          />
        )}
        {axis.ticks.map(({ at, label }) => (
          <span key={at} className="pointer-events-none relative px-2">
            {label}
          </span>
        ))}
      </span>
      <span className="w-20 shrink-0 px-3 text-right">Time</span>
    </div>
  )
}
