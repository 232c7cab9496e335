import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useMemo, useRef } from 'react'
import { criticalPath } from './critical-path.ts'
import { formatCost, formatDuration, stepDuration_ms, timesOf, asText, totalTokens } from '../../../format.ts'
import { stepTitle } from '../../../task-parts/step-labels.ts'
import { FollowBar, StepIcon } from '../../../task-parts/task-parts.tsx'
import type { TaskLive } from '../task-live.ts'
import { makeAxis, type Scale, type Span } from './time-axis.ts'
import type { Step } from '../../../task-parts/types.ts'
import { useFollow } from '../../../task-parts/use-follow.ts'
import { WaterfallAxis } from './waterfall-axis.tsx'

const row_px = 34

/** The steps of a task over time. Only the rows in sight are there, and only what is read of them is asked for. */
export function Waterfall({
  live,
  scale,
  span,
  onSpan,
  only,
  selected,
  onSelect,
}: {
  live: TaskLive
  scale: Scale
  /** The part of the time that is shown; as `scale` says where there is none. */
  span: Span | undefined
  onSpan: (span: Span) => void
  /** Indexes to be shown; all where there are none. */
  only: number[] | undefined
  selected: number | undefined
  onSelect: (index: number) => void
}) {
  const scroller = useRef<HTMLDivElement>(null)
  const count = only ? only.length : live.stepCount
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => row_px,
    overscan: 12,
  })
  const isOpen = live.task !== undefined && live.task.finished_at === null
  const follow = useFollow(scroller, count, () => rows.scrollToIndex(count - 1, { align: 'end' }), isOpen && !only)
  const items = rows.getVirtualItems()
  const first = items[0]?.index ?? 0
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (!only && count > 0) live.needSteps(first, last)
  }, [live, only, first, last, count])
  useEffect(() => {
    if (selected === undefined || count === 0) return
    const at = only ? only.indexOf(selected) : selected
    if (at >= 0) rows.scrollToIndex(at, { align: 'auto' })
    // only a newly chosen step is scrolled to
  }, [selected])

  const now = Date.now()
  const critical = useMemo(
    () => criticalPath(live.steps.values(), now),
    // a new version of the task is what changes the steps
    [live.version],
  )
  const inSight = items.flatMap(({ index }) => live.steps.get(only ? (only[index] ?? -1) : index) ?? [])
  const axis = useMemo(
    () => makeAxis(scale, live.task, inSight, { now, span }),
    // a new version of the task is what changes the others
    [scale, span?.from, span?.to, live.version, first, last],
  )

  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <WaterfallAxis axis={axis} onSpan={onSpan} />
      <div
        ref={scroller}
        onScroll={follow.onScroll}
        tabIndex={0}
        role="region"
        aria-label="Steps over time"
        className="min-h-0 flex-1 overflow-y-auto"
      >
        <ol className="relative" style={{ height: rows.getTotalSize() }} aria-busy={isOpen}>
          {items.map(({ index: row, start }) => {
            const index = only ? (only[row] ?? 0) : row
            const step = live.steps.get(index)
            return (
              <li
                key={index}
                aria-setsize={count}
                aria-posinset={row + 1}
                className="absolute inset-x-0 top-0"
                style={{ height: row_px, transform: `translateY(${start}px)` }}
              >
                {step ? (
                  <Row
                    step={step}
                    isCritical={critical.has(index)}
                    axis={axis}
                    now={now}
                    isSelected={index === selected}
                    onSelect={onSelect}
                  />
                ) : (
                  <span className="flex h-full items-center px-3 text-xs text-soft">Step {index} is being read…</span>
                )}
              </li>
            )
          })}
        </ol>
      </div>
      {isOpen && !only && <FollowBar follow={follow} unit="step" />}
    </div>
  )
}

const bars: Record<string, string> = {
  model_call: 'bg-accent',
  tool_call: 'bg-(--series-2)',
  approval: 'bg-(--series-3)',
  wait: 'bg-(--series-3)',
  compaction: 'bg-soft',
}

function Row({
  step,
  isCritical,
  axis,
  now,
  isSelected,
  onSelect,
}: {
  step: Step
  /** Whether the task would have ended earlier without it. */
  isCritical: boolean
  axis: ReturnType<typeof makeAxis>
  now: number
  isSelected: boolean
  onSelect: (index: number) => void
}) {
  const [from, to] = timesOf(step, now)
  const [begin, end] = [axis.place(from), axis.place(to)]
  const isBad = step.status === 'failed' || step.status === 'unknown'
  return (
    <button
      type="button"
      onClick={() => onSelect(step.index)}
      aria-pressed={isSelected}
      className={`flex h-full w-full cursor-pointer items-center text-left text-sm hover:bg-quiet ${isSelected ? 'bg-accent-soft' : ''}`}
    >
      <span className="flex w-[45%] shrink-0 items-center gap-2 px-3 md:w-72">
        <StepIcon step={step} />
        <span className="truncate">{stepTitle(step)}</span>
        <span className="hidden shrink-0 text-xs text-soft md:inline">
          {/* The title of a compaction says what it is. */}
          {[step.type !== 'compaction' && asText(step.type), step.attempt > 1 && `try ${step.attempt}`]
            .filter(Boolean)
            .join(' · ')}
        </span>
      </span>
      <span className="relative h-full min-w-0 flex-1">
        {!axis.shows(from, to) ? (
          <span className={`absolute top-2 text-xs text-soft ${end <= 0 ? 'left-0' : 'right-0'}`}>
            {end <= 0 ? '‹ before' : 'after ›'}
          </span>
        ) : (
          <span
            data-bar
            className={`absolute top-2.5 h-3.5 min-w-[3px] rounded-sm ${isBad ? 'bg-(--chart-bad)' : (bars[step.type] ?? 'bg-(--series-2)')} ${step.status === 'started' ? 'bar-open' : ''} ${isCritical ? '' : 'opacity-40'}`}
            data-critical={isCritical || undefined}
            style={{ left: `${begin}%`, width: `${Math.max(0, end - begin)}%` }}
          />
        )}
      </span>
      <span className="w-40 shrink-0 text-right font-mono text-xs text-soft tabular-nums max-lg:hidden">
        {step.usage && `${totalTokens(step.usage)} · ${formatCost(step.usage.cost_usd as number | null)}`}
      </span>
      <span className="w-20 shrink-0 px-3 text-right font-mono text-xs tabular-nums text-soft">
        {formatDuration(stepDuration_ms(step, now))}
      </span>
    </button>
  )
}
