import { logTime, type TimeZone } from '../../format.ts'
import { Link } from '@tanstack/react-router'
import { paths } from '../../paths.ts'
import { Button } from '../../ui/button.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { usePathIds, A } from '../../task-parts/links.tsx'
import { lineTones } from './line-tones.ts'
import { LinesAround } from './lines-around.tsx'
import { placeOf } from './log-place.ts'
import type { LogStore } from './log-store.ts'
import type { LogLine } from '../../task-parts/types.ts'
import { ValueView } from '../../task-parts/value-view.tsx'

interface LineProps {
  store: LogStore
  line: LogLine
  /** Its name, where lines of several are shown. */
  agent: string | undefined
  isMarked: boolean
  isChosen: boolean
  isOpen: boolean
  isWrapped: boolean
  zone: TimeZone
  isRoomy: boolean
  onToggle: () => void
  /** Chooses lines from here, or up to here; `isChoosing`: the other end is known. */
  onChoose: () => void
  isChoosing: boolean
  onAt: (at: string) => void
  /** Shows the lines of one task alone; undefined where only those are shown. */
  onTask: ((task: string) => void) | undefined
  /** Where a line stands among those that do not match, too; undefined where all are shown. */
  aroundOf: ((at: string) => object) | undefined
}

/** A line of a log, and what belongs to it once it is opened. */
export function Line({
  store,
  line,
  agent,
  isMarked,
  isChosen,
  isOpen,
  isWrapped,
  zone,
  isRoomy,
  onToggle,
  onChoose,
  isChoosing,
  onAt,
  onTask,
  aroundOf,
}: LineProps) {
  const task = (line.context as { task_id?: unknown }).task_id
  const { project } = usePathIds()
  return (
    <div
      className={`${isMarked ? 'bg-accent-soft' : isChosen ? 'bg-quiet' : ''} ${isChosen ? 'shadow-[inset_2px_0_var(--accent)]' : ''}`}
    >
      <button
        type="button"
        data-open
        aria-expanded={isOpen}
        onClick={({ shiftKey }) => (shiftKey ? onChoose() : onToggle())}
        className={`flex w-full cursor-pointer items-start gap-3 px-3 text-left ${isRoomy ? 'min-h-8 py-1.5' : 'min-h-6 py-0.5'} leading-5 hover:bg-quiet md:px-5 ${agent === undefined ? '' : 'max-sm:flex-wrap max-sm:gap-y-0'} ${lineTones[line.level]}`}
      >
        <time dateTime={line.timestamp} className="shrink-0 text-soft tabular-nums">
          {logTime(line.timestamp, zone)}
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
          {aroundOf && <LinesAround store={store} line={line} zone={zone} />}
          <div className="mt-2 flex flex-wrap items-center gap-3 font-sans">
            <span className="inline-flex items-center text-soft">
              Line <CopyButton text={JSON.stringify(line)} label="Copy line" />
            </span>
            <Button size="small" onClick={onChoose} title="Shift and a click on a line">
              {isChoosing ? 'Select to here' : 'Select from here'}
            </Button>
            <Button size="small" onClick={() => onAt(placeOf(line))}>
              Link to this line
            </Button>
            {aroundOf && <Link {...paths.logs(project, aroundOf(placeOf(line)))}>Show in all lines</Link>}
            {line.agent_id !== undefined && <Link {...paths.agent(project, line.agent_id)}>Open the agent</Link>}
            {typeof task === 'string' && (
              <>
                {onTask && (
                  <Button size="small" onClick={() => onTask(task)}>
                    Only this task
                  </Button>
                )}
                {onTask && <A to={`/p/${project}/tasks/${task}`}>Open the task</A>}
              </>
            )}
          </div>
        </div>
      )}
    </div>
  )
}
