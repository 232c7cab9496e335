import { plural, type TimeZone } from '../../format.ts'
import { useVirtualizer } from '@tanstack/react-virtual'
import { ChevronDown, ChevronUp } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { useAgentNames } from '../../agents/agent-names.ts'
import { Button } from '../../ui/button.tsx'
import { ChosenLines } from './chosen-lines.tsx'
import { usePathIds } from '../../task-parts/links.tsx'
import { Line } from './log-line.tsx'
import { isAt, momentOfPlace, placeOf } from './log-place.ts'
import type { LogStore } from './log-store.ts'
import { FollowBar } from '../../task-parts/task-parts.tsx'
import { useFollow } from '../../task-parts/use-follow.ts'

const line_px = 24
const roomyLine_px = 32
/** Rows are asked for once the scrolling rests for this long: what flies by is not read. */
const rest_ms = 90

interface Props {
  store: LogStore
  isTailing: boolean
  isWrapped: boolean
  zone: TimeZone
  isRoomy: boolean
  /** The line that the address names: see `placeOf`. */
  at: string | undefined
  onAt: (at: string) => void
  /** Shows the lines of one task alone; undefined where only those are shown. */
  onTask: ((task: string) => void) | undefined
  /** Where a line stands among those that do not match, too; undefined where all are shown. */
  aroundOf: ((at: string) => object) | undefined
}

/** The lines of a log, the newest last; only those in sight are there. */
export function LogLines({ store, isTailing, isWrapped, zone, isRoomy, at, onAt, onTask, aroundOf }: Props) {
  const scroller = useRef<HTMLDivElement>(null)
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set())
  /** Rows that are chosen, both ends included. */
  const [chosen, setChosen] = useState<readonly [number, number]>()
  const [note, setNote] = useState('')
  const { count } = store
  const { project } = usePathIds()
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => (isRoomy ? roomyLine_px : line_px),
    overscan: 20,
  })
  const names = useAgentNames(
    project,
    store.filter.agent === undefined ? rows.getVirtualItems().map(({ index }) => store.line(index)?.agent_id) : [],
  )
  const follow = useFollow(
    scroller,
    count,
    () => rows.scrollToIndex(count - 1, { align: 'end' }),
    isTailing && at === undefined,
  )
  const items = rows.getVirtualItems()
  const first = items[0]?.index ?? 0
  const last = items.at(-1)?.index ?? 0
  useEffect(() => {
    const timer = setTimeout(() => store.need(first, last), rest_ms)
    return () => clearTimeout(timer)
  }, [store, first, last, count])
  useEffect(() => {
    if (at === undefined) {
      rows.scrollToIndex(store.count - 1, { align: 'end' })
      return
    }
    void store.rowAt(momentOfPlace(at)).then(
      (row) => rows.scrollToIndex(row, { align: 'center' }),
      () => {},
    )
    // the address alone leads to a line
  }, [at])

  async function toError(direction: 'older' | 'newer'): Promise<void> {
    const inSight = rows.getVirtualItems().flatMap(({ index }) => store.line(index) ?? [])
    const marked = at === undefined ? undefined : inSight.find((line) => isAt(line, at))
    const from = marked ?? (direction === 'older' ? inSight[0] : inSight.at(-1))
    if (!from) return
    try {
      const found = await store.nextError(from, direction)
      setNote(found === undefined ? `There is no ${direction} error.` : '')
      if (found !== undefined) onAt(placeOf(found))
    } catch (error) {
      setNote(error instanceof Error ? error.message : String(error))
    }
  }
  const toggle = (index: number) =>
    setOpen((before) => {
      const next = new Set(before)
      if (!next.delete(index)) next.add(index)
      return next
    })

  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <div className="flex shrink-0 flex-wrap items-center gap-2 border-b border-line px-3 py-1 text-xs text-soft md:px-5">
        <span role="status">
          {isTailing && (follow.isFollowing ? 'Live · ' : 'Paused · ')}
          {plural(count, 'line')}
          {note !== '' && ` · ${note}`}
        </span>
        {chosen && <ChosenLines store={store} from={chosen[0]} to={chosen[1]} onClear={() => setChosen(undefined)} />}
        <span className="ml-auto inline-flex gap-1">
          <Button size="small" kind="ghost" onClick={() => void toError('older')} title="Shift E">
            <ChevronUp size={14} aria-hidden="true" /> Older error
          </Button>
          <Button size="small" kind="ghost" onClick={() => void toError('newer')} title="E">
            <ChevronDown size={14} aria-hidden="true" /> Newer error
          </Button>
        </span>
      </div>
      <div
        ref={scroller}
        onScroll={follow.onScroll}
        onKeyDown={(event) => {
          if (event.key.toLowerCase() !== 'e' || event.ctrlKey || event.metaKey || event.altKey) return
          void toError(event.shiftKey ? 'older' : 'newer')
        }}
        tabIndex={0}
        role="log"
        aria-label="Lines"
        aria-live={isTailing && follow.isFollowing ? 'polite' : 'off'}
        className="min-h-0 flex-1 overflow-auto font-mono text-xs"
      >
        <ol className="relative" style={{ height: rows.getTotalSize(), minWidth: '100%' }}>
          {items.map(({ index, start }) => {
            const line = store.line(index)
            return (
              <li
                key={index}
                data-index={index}
                data-row={index}
                ref={rows.measureElement}
                aria-setsize={count}
                aria-posinset={index + 1}
                className="absolute inset-x-0 top-0"
                style={{ transform: `translateY(${start}px)` }}
              >
                {line ? (
                  <Line
                    store={store}
                    line={line}
                    agent={line.agent_id === undefined ? undefined : (names.get(line.agent_id) ?? line.agent_id)}
                    isMarked={at !== undefined && isAt(line, at)}
                    isChosen={chosen !== undefined && index >= chosen[0] && index <= chosen[1]}
                    isOpen={open.has(index)}
                    isWrapped={isWrapped}
                    zone={zone}
                    isRoomy={isRoomy}
                    onToggle={() => toggle(index)}
                    isChoosing={chosen !== undefined}
                    onChoose={() =>
                      setChosen(([least, most] = [index, index]) => [Math.min(least, index), Math.max(most, index)])
                    }
                    onAt={onAt}
                    onTask={onTask}
                    aroundOf={aroundOf}
                  />
                ) : (
                  <span className="flex h-6 items-center px-3 text-soft md:px-5">…</span>
                )}
              </li>
            )
          })}
        </ol>
      </div>
      {isTailing && <FollowBar follow={follow} unit="line" />}
    </div>
  )
}
