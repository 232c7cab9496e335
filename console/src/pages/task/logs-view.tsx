import { useEffect, useMemo } from 'react'
import { Link } from '@tanstack/react-router'
import { paths } from '../../paths.ts'
import { useSearchState } from '../../search-state.ts'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { LogLines } from '../logs/log-lines.tsx'
import type { LogFilter } from '../logs/log-store.ts'
import { useLogStore } from '../logs/use-log-store.ts'
import type { TaskLive } from './task-live.ts'
import { usePreference } from '../../preferences.ts'

/** What the agent logged for a task, as it logs it. */
export function LogsView({ live }: { live: TaskLive }) {
  const [search, change] = useSearchState<{ at: string }>()
  const [zone] = usePreference('time_zone')
  const { project, id, task, lastSequence } = live
  const filter = useMemo<LogFilter>(
    () => ({ project, agent: task?.agent_id, task_id: id }),
    [project, task?.agent_id, id],
  )
  const isOpen = task !== undefined && task.finished_at === null
  const store = useLogStore(filter, true)
  // The page reads the stream of the task in place of the project's: an event of the task may have a line.
  useEffect(() => store.happened(), [store, lastSequence])
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <p className="flex shrink-0 flex-wrap gap-x-3 px-3 py-1.5 text-sm text-soft md:px-5">
        <Link {...paths.logs(project, { agent: task?.agent_id, task: id })}>Open in Logs</Link>
      </p>
      <ErrorBox error={store.error} />
      {!store.isRead && store.error === undefined && <Skeleton label="Loading the log" />}
      {store.isRead && store.count === 0 && (
        <EmptyState title="No log lines">
          <p>An agent logs when a task begins and ends, when a tool is refused, and when something fails.</p>
        </EmptyState>
      )}
      {store.isRead && store.count > 0 && (
        <LogLines
          store={store}
          isTailing={isOpen}
          isWrapped
          zone={zone}
          isRoomy={false}
          at={search.at}
          onAt={(at) => change({ at }, { replace: true })}
          onTask={undefined}
          aroundOf={undefined}
        />
      )}
    </div>
  )
}
