import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useRef, useState } from 'react'
import { Time } from '../../ui/time.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import type { TaskLive } from './task-live.ts'
import { FollowBar } from '../../task-parts/task-parts.tsx'
import type { TaskEvent } from '../../task-parts/types.ts'
import { useFollow } from '../../task-parts/use-follow.ts'

/** Characters of an event's data in its line. */
const lineMost = 400

/** Every kept event of a task, by sequence, as the API tells it. */
export function EventsView({ live }: { live: TaskLive }) {
  const scroller = useRef<HTMLDivElement>(null)
  const [open, setOpen] = useState<number>()
  const count = live.lastSequence
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => 30,
    overscan: 15,
  })
  const isOpen = live.task !== undefined && live.task.finished_at === null
  const follow = useFollow(scroller, count, () => rows.scrollToIndex(count - 1, { align: 'end' }))
  const items = rows.getVirtualItems()
  const first = items[0]?.index ?? 0
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    if (count > 0) live.needEvents(first + 1, last + 1)
  }, [live, first, last, count])

  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <div
        ref={scroller}
        onScroll={follow.onScroll}
        tabIndex={0}
        role="region"
        aria-label="Events"
        className="min-h-0 flex-1 overflow-y-auto font-mono text-xs"
      >
        <ol className="relative" style={{ height: rows.getTotalSize() }} aria-busy={isOpen}>
          {items.map(({ index, start }) => {
            const event = live.events.get(index + 1)
            return (
              <li
                key={index}
                data-index={index}
                data-sequence={event?.sequence}
                data-type={event?.type}
                ref={rows.measureElement}
                aria-setsize={count}
                aria-posinset={index + 1}
                className="absolute inset-x-0 top-0 border-b border-line"
                style={{ transform: `translateY(${start}px)` }}
              >
                {event ? (
                  <EventLine
                    event={event}
                    isOpen={open === event.sequence}
                    onToggle={() => setOpen(open === event.sequence ? undefined : event.sequence)}
                  />
                ) : (
                  <p className="px-3 py-1.5 text-soft">{index + 1} is being read…</p>
                )}
              </li>
            )
          })}
        </ol>
      </div>
      {isOpen && <FollowBar follow={follow} unit="event" />}
    </div>
  )
}

function EventLine({ event, isOpen, onToggle }: { event: TaskEvent; isOpen: boolean; onToggle: () => void }) {
  return (
    <>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={onToggle}
        className="flex min-h-7 w-full cursor-pointer items-center gap-3 px-3 text-left hover:bg-quiet"
      >
        <span className="w-10 shrink-0 text-right text-soft tabular-nums">{event.sequence}</span>
        <Time at={event.created_at} form="clock" className="hidden shrink-0 text-soft sm:inline" />
        <span className="w-40 shrink-0 font-medium">{event.type}</span>
        <span className="truncate text-soft">{JSON.stringify(event.data).slice(0, lineMost)}</span>
      </button>
      {isOpen && (
        <div className="flex items-start gap-1 bg-quiet px-3 py-2">
          <pre className="max-h-96 min-w-0 flex-1 overflow-auto whitespace-pre-wrap break-words" tabIndex={0}>
            {JSON.stringify(event, null, 2).slice(0, 100_000)}
          </pre>
          <CopyButton text={() => JSON.stringify(event, null, 2)} label="Copy event" />
        </div>
      )}
    </>
  )
}
