import { Link } from '@tanstack/react-router'
import type { Task } from '#sdk/types.ts'
import { formatDuration, exactTime } from '../../format.ts'
import { paths } from '../../paths.ts'
import { usePreference } from '../../preferences.ts'

const looks: Record<string, string> = {
  completed: 'bg-good-soft border-good text-good',
  failed: 'bg-bad-soft border-bad text-bad',
  expired: 'bg-bad-soft border-bad text-bad',
  canceled: 'bg-quiet border-edge text-soft',
  running: 'bg-info-soft border-info text-info animate-pulse',
  waiting: 'bg-warn-soft border-warn text-warn',
  queued: 'bg-panel border-edge border-dashed text-soft',
}

/** Beside the colour, so that colour alone shows no state. */
const marks: Record<string, string> = {
  completed: '✓',
  failed: '✕',
  expired: '⏱',
  canceled: '–',
  waiting: '…',
  running: '▸',
}

/** Tasks of a schedule as a strip of bars, the newest at the right: each one tells its end, and leads there. Taller means longer. */
export function HistoryStrip({ project_id, tasks }: { project_id: string; tasks: readonly Task[] }) {
  const [zone] = usePreference('time_zone')
  const lengths = tasks.map(({ started_at, finished_at }) =>
    started_at === null || finished_at === null ? 0 : Date.parse(finished_at) - Date.parse(started_at),
  )
  const longest = Math.max(1, ...lengths)
  return (
    <ol aria-label="History, the newest last" className="flex h-16 items-end gap-1 overflow-x-auto">
      {tasks
        .map((task, at) => ({ task, length: lengths[at] ?? 0 }))
        .toReversed()
        .map(({ task: { id, status, created_at }, length }) => {
          const label = `${status}, ${exactTime(created_at, zone)}${length > 0 ? `, took ${formatDuration(length)}` : ''}`
          return (
            <li key={id} className="flex h-full w-6 shrink-0 items-end">
              <Link
                {...paths.task(project_id, id)}
                aria-label={label}
                title={label}
                className="flex h-full w-full items-end rounded"
              >
                <span
                  aria-hidden
                  className={`flex w-full items-end justify-center rounded-sm border text-[0.65rem] leading-4 ${looks[status] ?? ''}`}
                  style={{ height: `${28 + Math.round((length / longest) * 72)}%` }}
                >
                  {marks[status] ?? ''}
                </span>
              </Link>
            </li>
          )
        })}
    </ol>
  )
}

/** What the colours of the strip mean, and how many there are of each. */
export function HistoryKey({ tasks }: { tasks: readonly Task[] }) {
  const counts = new Map<string, number>()
  for (const { status } of tasks) counts.set(status, (counts.get(status) ?? 0) + 1)
  return (
    <ul className="mt-2 flex flex-wrap gap-x-4 text-sm text-soft">
      {[...counts].map(([status, count]) => (
        <li key={status} className="inline-flex items-center gap-1.5">
          <span aria-hidden className={`size-2.5 rounded-sm border ${looks[status] ?? ''}`} />
          {count} {status}
        </li>
      ))}
    </ul>
  )
}
