import { useEffect } from 'react'
import { formatDuration } from '../../format.ts'
import { Time } from '../../ui/time.tsx'
import { A } from '../../task-parts/links.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Status } from '../../ui/status.tsx'
import { attemptsOf, type Attempt } from './attempts.ts'
import type { TaskLive } from './task-live.ts'

/** Newest events that attempts are read from. */
const searched_events = 500

/** Each attempt of a task: when a worker had it, what it did and why it ended, the newest first. */
export function AttemptsView({ live }: { live: TaskLive }) {
  const last = live.lastSequence
  const from = Math.max(1, last - searched_events + 1)
  useEffect(() => live.needEvents(from, last), [live, from, last])
  const events = [...live.events.values()]
    .filter(({ sequence }) => sequence >= from)
    .toSorted((a, b) => a.sequence - b.sequence)
  const isRead = events.length > last - from
  const attempts = attemptsOf(events)
  if (!isRead) return <Skeleton label="Loading attempts" rows={4} />
  if (attempts.length === 0)
    return (
      <EmptyState title="No attempts yet">
        <p>
          {live.task?.finished_at == null
            ? 'The first attempt begins as soon as its agent has a free slot.'
            : 'The task ended before a worker claimed it.'}
        </p>
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
      <ol className="max-w-4xl space-y-3">
        {attempts.map((attempt) => (
          <AttemptCard key={`${attempt.number} ${attempt.started_at}`} attempt={attempt} />
        ))}
      </ol>
      {from > 1 && (
        <p className="mt-3 text-xs text-soft">Of the newest {searched_events} events; all are under Events.</p>
      )}
    </div>
  )
}

function AttemptCard({ attempt }: { attempt: Attempt }) {
  const { number, state, started_at, ended_at, reason, work, notes, ending } = attempt
  return (
    <li className="rounded-lg border border-line bg-panel p-3 md:p-4">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <h2 className="!text-base !font-medium">{number === undefined ? 'Earlier attempt' : `Attempt ${number}`}</h2>
        <Status
          state={state === 'lost' ? 'error' : state === 'handed_back' ? 'stopped' : state}
          label={state === 'lost' ? 'worker lost' : state}
        />
        <span className="text-sm text-soft">
          <Time at={started_at} form="exact" />
          {ended_at !== null && ` · ${formatDuration(Date.parse(ended_at) - Date.parse(started_at))}`}
        </span>
      </div>
      <dl className="mt-2 grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1 text-sm [&>dt]:text-soft">
        <dt>Started</dt>
        <dd>{reason}</dd>
        <dt>Work</dt>
        <dd>{work === '' ? 'No step' : work}</dd>
        {ending !== '' && (
          <>
            <dt>Ended</dt>
            <dd className="wrap-anywhere">{ending}</dd>
          </>
        )}
      </dl>
      {notes.length > 0 && (
        <ul aria-label="Notes" className="mt-2 space-y-1 border-t border-line pt-2 text-sm">
          {notes.map(({ sequence, at, text }) => (
            <li key={sequence} className="flex gap-3">
              <Time at={at} form="clock" className="shrink-0 text-soft" />
              <span className="min-w-0 wrap-anywhere">{text}</span>
            </li>
          ))}
        </ul>
      )}
    </li>
  )
}
