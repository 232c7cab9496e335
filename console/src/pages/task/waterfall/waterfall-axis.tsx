import { useRef, useState, type PointerEvent } from 'react'
import type { Span, TimeAxis } from './time-axis.ts'

/** A move that is shorter than this is no brush, in percent of the width. */
const brushLeast = 0.5

/** What is drawn, in percent of the width. */
interface Brush {
  least: number
  most: number
}

/** The times over a waterfall. To draw over them chooses the part of the time that is shown; the buttons beside do it by keys. */
export function WaterfallAxis({ axis, onSpan }: { axis: TimeAxis; onSpan: (span: Span) => void }) {
  const [brush, setBrush] = useState<Brush>()
  /** Where it began: the end of a quick move comes before what the move changed is drawn. */
  const from = useRef<number>(undefined)
  const placeOf = ({ currentTarget, clientX }: PointerEvent<HTMLElement>): number => {
    const { left, width } = currentTarget.getBoundingClientRect()
    return Math.min(100, Math.max(0, (100 * (clientX - left)) / Math.max(1, width)))
  }
  const brushTo = (place: number): Brush | undefined =>
    from.current === undefined
      ? undefined
      : { least: Math.min(from.current, place), most: Math.max(from.current, place) }
  const end = (): void => {
    from.current = undefined
    setBrush(undefined)
  }
  return (
    <div className="flex h-7 shrink-0 items-center border-b border-line text-xs text-soft" aria-hidden="true">
      <span className="w-[45%] shrink-0 px-3 md:w-72">Step</span>
      <span
        data-brush
        title="Drag to zoom in"
        className="relative flex h-full min-w-0 flex-1 cursor-crosshair touch-none items-center justify-between font-mono tabular-nums select-none"
        onPointerDown={(event) => {
          if (event.button !== 0) return
          event.currentTarget.setPointerCapture(event.pointerId)
          from.current = placeOf(event)
          setBrush(brushTo(from.current))
        }}
        onPointerMove={(event) => setBrush(brushTo(placeOf(event)))}
        onPointerUp={(event) => {
          const drawn = brushTo(placeOf(event))
          end()
          if (drawn && drawn.most - drawn.least >= brushLeast)
            onSpan({ from: axis.moment(drawn.least), to: axis.moment(drawn.most) })
        }}
        onPointerCancel={end}
      >
        {brush && (
          <span
            className="absolute inset-y-0 border-x border-accent bg-accent-soft"
            style={{ left: `${brush.least}%`, width: `${brush.most - brush.least}%` }}
          />
        )}
        {axis.ticks.map(({ at, label }, i, all) => (
          <span
            key={at}
            // A telephone has room for the first and the last.
            className={`pointer-events-none relative px-2 whitespace-nowrap ${i > 0 && i < all.length - 1 ? 'max-md:hidden' : ''}`}
          >
            {label}
          </span>
        ))}
      </span>
      <span className="w-40 shrink-0 text-right max-lg:hidden">Tokens · cost</span>
      <span className="w-20 shrink-0 px-3 text-right">Duration</span>
    </div>
  )
}
