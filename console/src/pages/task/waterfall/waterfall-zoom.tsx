import { ChevronLeft, ChevronRight, X, ZoomIn, ZoomOut } from 'lucide-react'
import { Button } from '../../../ui/button.tsx'
import { formatDuration } from '../../../format.ts'
import { middleOf, moved, wholeOf, zoomed, type Span } from './time-axis.ts'
import type { Step, Task } from '../../../task-parts/types.ts'

/** Which part of a task's time its waterfall shows, and less, more, earlier or later of it. Less is about the selected step. */
export function WaterfallZoom({
  task,
  selected,
  span,
  onSpan,
}: {
  task: Task
  selected: Step | undefined
  span: Span | undefined
  onSpan: (span: Span | undefined) => void
}) {
  const zoom = (factor: 0.5 | 2) => {
    const now = Date.now()
    const about_ms = selected ? middleOf(selected, task, now) : undefined
    onSpan(zoomed(span, factor, { whole_ms: wholeOf(task, now), about_ms }))
  }
  const move = (direction: -1 | 1) => onSpan(span && moved(span, direction, wholeOf(task, Date.now())))
  return (
    <span className="inline-flex items-center gap-1">
      <Button size="small" aria-label="Zoom in" title="Half of the time" onClick={() => zoom(0.5)}>
        <ZoomIn size={14} aria-hidden />
      </Button>
      <Button
        size="small"
        aria-label="Zoom out"
        title="Twice as much time"
        disabled={span === undefined}
        onClick={() => zoom(2)}
      >
        <ZoomOut size={14} aria-hidden />
      </Button>
      {span && (
        <>
          <Button size="small" aria-label="Earlier" title="Earlier" onClick={() => move(-1)}>
            <ChevronLeft size={14} aria-hidden />
          </Button>
          <Button size="small" aria-label="Later" title="Later" onClick={() => move(1)}>
            <ChevronRight size={14} aria-hidden />
          </Button>
          <Button size="small" title="Show the whole time" onClick={() => onSpan(undefined)}>
            +{formatDuration(span.from)} to +{formatDuration(span.to)}
            <X size={12} aria-hidden />
          </Button>
        </>
      )}
    </span>
  )
}
