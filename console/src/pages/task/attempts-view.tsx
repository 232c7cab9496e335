import { useEffect } from 'react'
import { formatDuration } from '../../format.ts'
import { Time } from '../../ui/time.tsx'
import { A } from '../../task-parts/links.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import type { TaskLive } from './task-live.ts'

/** Newest events that are searched for what workers did. */
const searched_events = 500
const telling = [
  'task.started',
  'task.resumed',
  'task.retrying',
  'task.waiting',
  'model.fallback',
  'context.compacted',
  'step.failed',
]

/** Which workers had the task, and what was tried again: the newest end of its events, without its work. */
export function AttemptsView({ live }: { live: TaskLive }) {
  const from = Math.max(1, live.lastSequence - searched_events + 1)
  useEffect(() => live.needEvents(from, live.lastSequence), [live, from, live.lastSequence])
  const events = [...live.events.values()]
    .filter(({ type, sequence }) => sequence >= from && telling.includes(type))
    .toSorted((a, b) => b.sequence - a.sequence)
  if (events.length === 0)
    return (
      <EmptyState title="No attempts yet">
        <p>It starts as soon as its agent has a free slot.</p>
      </EmptyState>
    )
  return (
    <div className="min-h-0 flex-1 overflow-y-auto px-3 py-3 md:px-5" tabIndex={0} role="region" aria-label="Attempts">
      {live.task?.retried_from && (
        <p className="mb-3 text-sm">
          This task is a retry of{' '}
          <A to={`/p/${live.project}/tasks/${live.task.retried_from}`}>{live.task.retried_from}</A>.
        </p>
      )}
      <table className="w-full text-sm">
        <thead className="text-left text-xs text-soft">
          <tr>
            <th className="py-1 pr-3 font-medium">Time</th>
            <th className="py-1 pr-3 font-medium">Event</th>
            <th className="py-1 font-medium">Details</th>
          </tr>
        </thead>
        <tbody>
          {events.map(({ sequence, type, created_at, data }) => (
            <tr key={sequence} className="border-t border-line align-top">
              <td className="py-1.5 pr-3 text-soft">
                <Time at={created_at} form="exact" className="md:whitespace-nowrap" />
              </td>
              <td className="py-1.5 pr-3 whitespace-nowrap">{type}</td>
              <td className="py-1.5 wrap-anywhere">{tellData(data)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {from > 1 && (
        <p className="mt-3 text-xs text-soft">Of the newest {searched_events} events; all are under Events.</p>
      )}
    </div>
  )
}

function tellData(data: Record<string, unknown>): string {
  const { attempt, reason, wait, error, name, index, before_step, will_retry, retry_in_seconds } = data as {
    attempt?: number
    reason?: string | null
    wait?: { reason: string }
    error?: { message: string }
    name?: string
    index?: number
    before_step?: number
    will_retry?: boolean
    retry_in_seconds?: number
  }
  return [
    attempt !== undefined && `attempt ${attempt}`,
    reason && `because of ${reason.replaceAll('_', ' ')}`,
    wait && `for ${wait.reason.replaceAll('_', ' ')}`,
    index !== undefined && (name === undefined ? `step ${index}` : `step ${index}, ${name}`),
    before_step !== undefined &&
      (before_step === 0
        ? 'a summary in place of earlier messages of the thread'
        : `a summary in place of the steps before step ${before_step}`),
    error?.message,
    will_retry === true && 'it is tried again',
    retry_in_seconds !== undefined && `again in ${formatDuration(retry_in_seconds * 1000)}`,
  ]
    .filter(Boolean)
    .join(' · ')
}
