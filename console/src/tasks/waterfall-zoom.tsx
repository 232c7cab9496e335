import { X, ZoomIn, ZoomOut } from 'lucide-react'
import { Button } from '../ui/button.tsx'
import { formatDuration } from './format.ts'
import { wholeOf, zoomed, type Span } from './time-axis.ts'
import type { Task } from './types.ts'

/** Which part of a task's time its waterfall shows, and less or more of it. */
export function WaterfallZoom({
  task,
  span,
  onSpan,
}: {
  task: Task
  span: Span | undefined
  onSpan: (span: Span | undefined) => void
}) {
  const zoom = (factor: 0.5 | 2) => onSpan(zoomed(span, factor, wholeOf(task, Date.now())))
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
        <Button size="small" title="Show the whole time" onClick={() => onSpan(undefined)}>
          +{formatDuration(span.from)} to +{formatDuration(span.to)}
          <X size={12} aria-hidden />
        </Button>
      )}
    </span>
  )
}
