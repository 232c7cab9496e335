import { useVirtualizer } from '@tanstack/react-virtual'
import { ChevronDown, ChevronUp } from 'lucide-react'
import { Link } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { useAgentNames } from '../agents/agent-names.ts'
import { paths } from '../paths.ts'
import { Button } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { usePathIds, A } from './links.tsx'
import type { LogStore } from './log-store.ts'
import { FollowBar } from './task-parts.tsx'
import type { LogLine } from './types.ts'
import { useFollow } from './use-follow.ts'
import { ValueView } from './value-view.tsx'

const line_px = 24
const roomyLine_px = 32
/** Rows are asked for once the scrolling rests for this long: what flies by is not read. */
const rest_ms = 90

const tones: Record<LogLine['level'], string> = {
  debug: 'text-soft',
  info: 'text-text',
  warn: 'text-warn',
  error: 'text-bad',
}

interface Props {
  store: LogStore
  isTailing: boolean
  isWrapped: boolean
  isUtc: boolean
  isRoomy: boolean
  /** The moment of the line that the address names. */
  at: string | undefined
  onAt: (at: string) => void
  onTask: (task: string) => void
  /** Where a line stands among those that do not match, too; undefined where all are shown. */
  aroundOf: ((at: string) => object) | undefined
}

/** The lines of a log, the newest last; only those in sight are there. */
export function LogLines({ store, isTailing, isWrapped, isUtc, isRoomy, at, onAt, onTask, aroundOf }: Props) {
  const scroller = useRef<HTMLDivElement>(null)
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set())
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
    void store.rowAt(at).then(
      (row) => rows.scrollToIndex(row, { align: 'center' }),
      () => {},
    )
    // the address alone leads to a line
  }, [at])

  async function toError(direction: 'older' | 'newer'): Promise<void> {
    const inSight = rows.getVirtualItems().flatMap(({ index }) => store.line(index) ?? [])
    const marked = at === undefined ? undefined : inSight.find(({ timestamp }) => timestamp === at)
    const from = marked ?? (direction === 'older' ? inSight[0] : inSight.at(-1))
    if (!from) return
    try {
      const found = await store.nextError(from, direction)
      setNote(found === undefined ? `There is no ${direction} error.` : '')
      if (found !== undefined) onAt(found)
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
      <div className="flex shrink-0 items-center gap-2 border-b border-line px-3 py-1 text-xs text-soft md:px-5">
        <span role="status">
          {!isTailing ? 'Still' : follow.isFollowing ? 'Live' : 'Paused'} · {count.toLocaleString()} lines
          {note !== '' && ` · ${note}`}
        </span>
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
                ref={rows.measureElement}
                aria-setsize={count}
                aria-posinset={index + 1}
                className="absolute inset-x-0 top-0"
                style={{ transform: `translateY(${start}px)` }}
              >
                {line ? (
                  <Line
                    line={line}
                    agent={line.agent_id === undefined ? undefined : (names.get(line.agent_id) ?? line.agent_id)}
                    isMarked={line.timestamp === at}
                    isOpen={open.has(index)}
                    isWrapped={isWrapped}
                    isUtc={isUtc}
                    isRoomy={isRoomy}
                    onToggle={() => toggle(index)}
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

interface LineProps {
  line: LogLine
  /** Its name, where lines of several are shown. */
  agent: string | undefined
  isMarked: boolean
  isOpen: boolean
  isWrapped: boolean
  isUtc: boolean
  isRoomy: boolean
  onToggle: () => void
  onAt: (at: string) => void
  onTask: (task: string) => void
  aroundOf: Props['aroundOf']
}

function Line({
  line,
  agent,
  isMarked,
  isOpen,
  isWrapped,
  isUtc,
  isRoomy,
  onToggle,
  onAt,
  onTask,
  aroundOf,
}: LineProps) {
  const task = (line.context as { task_id?: unknown }).task_id
  const { project } = usePathIds()
  return (
    <div className={isMarked ? 'bg-accent-soft' : ''}>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={onToggle}
        className={`flex w-full cursor-pointer items-start gap-3 px-3 text-left ${isRoomy ? 'min-h-8 py-1.5' : 'min-h-6 py-0.5'} leading-5 hover:bg-quiet md:px-5 ${agent === undefined ? '' : 'max-sm:flex-wrap max-sm:gap-y-0'} ${tones[line.level]}`}
      >
        <time dateTime={line.timestamp} className="shrink-0 text-soft tabular-nums">
          {timeOf(line.timestamp, isUtc)}
        </time>
        <span className={`w-11 shrink-0 ${line.level === 'error' ? 'font-bold' : ''}`}>{line.level}</span>
        {agent !== undefined && (
          <span className="min-w-0 truncate text-accent max-sm:flex-1 sm:w-40 sm:shrink-0">{agent}</span>
        )}
        <span
          className={`${isWrapped ? 'min-w-0 break-words whitespace-pre-wrap' : 'truncate'} ${agent === undefined ? '' : 'max-sm:basis-full'}`}
        >
          {line.message}
        </span>
        {typeof task === 'string' && !isWrapped && (
          <span className="ml-auto hidden shrink-0 truncate text-soft lg:inline">{task}</span>
        )}
      </button>
      {isOpen && (
        <div className="border-y border-line bg-quiet px-3 py-2 md:px-5">
          <ValueView label="Context" value={line.context} />
          <div className="mt-1 flex flex-wrap items-center gap-3">
            <span className="inline-flex items-center text-soft">
              Line <CopyButton text={JSON.stringify(line)} label="Copy line" />
            </span>
            <Button size="small" onClick={() => onAt(line.timestamp)}>
              Link to this line
            </Button>
            {aroundOf && <Link {...paths.logs(project, aroundOf(line.timestamp))}>Lines around it</Link>}
            {line.agent_id !== undefined && <Link {...paths.agent(project, line.agent_id)}>Open the agent</Link>}
            {typeof task === 'string' && (
              <>
                <Button size="small" onClick={() => onTask(task)}>
                  Only this task
                </Button>
                <A to={`/p/${project}/tasks/${task}`}>Open the task</A>
              </>
            )}
          </div>
        </div>
      )}
    </div>
  )
}

const parts = {
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
} as const
const local = new Intl.DateTimeFormat(undefined, parts)
const utc = new Intl.DateTimeFormat(undefined, { ...parts, timeZone: 'UTC' })

function timeOf(timestamp: string, isUtc: boolean): string {
  return (isUtc ? utc : local).format(new Date(timestamp))
}
