import { Link } from '@tanstack/react-router'
import { Check, CircleAlert, LoaderCircle, ShieldQuestion } from 'lucide-react'
import { useEffect, useState } from 'react'
import { paths } from '../../paths.ts'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Status } from '../../ui/status.tsx'
import { duration } from '../../ui/time.tsx'
import type { Item } from './transcript.ts'
import type { Run } from './use-run.ts'

const number = new Intl.NumberFormat('en')
const dollars = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', maximumFractionDigits: 6 })

/** What a task of the playground says and does, and what it costs. */
export function Output({ run, project_id }: { run: Run; project_id: string }) {
  const { transcript, task_id, error } = run
  const isRunning = run.ended_at === undefined
  return (
    <div className="space-y-3">
      <p className="flex flex-wrap items-center gap-x-4 gap-y-1 text-sm text-soft">
        <Status
          state={transcript.status === 'canceling' ? 'waiting' : transcript.status}
          label={transcript.status === 'canceling' ? 'stopping' : transcript.status}
        />
        <Elapsed {...run} />
        {transcript.usage && (
          <>
            <span>{number.format(transcript.usage.input_tokens)} in</span>
            <span>{number.format(transcript.usage.output_tokens)} out</span>
            <span>
              {transcript.usage.cost_usd === null ? 'price not known' : dollars.format(transcript.usage.cost_usd)}
            </span>
          </>
        )}
        {task_id !== undefined && <Link {...paths.task(project_id, task_id)}>Open the task</Link>}
      </p>
      {/* Only its end is read out: each word by itself would drown everything else. */}
      <div aria-busy={isRunning} aria-label="Output" role="region" className="space-y-2">
        {transcript.items.map((item) => (
          <Shown key={item.id} {...item} project_id={project_id} task_id={task_id} />
        ))}
        {isRunning && transcript.items.length === 0 && <p className="text-soft">Waiting for the agent…</p>}
      </div>
      <p role="status" className="sr-only">
        {isRunning ? '' : `The task is ${transcript.status}`}
      </p>
      {transcript.error && (
        <p role="alert" className="rounded-md border border-bad bg-bad-soft p-3 text-bad">
          {transcript.error.message} <code>{transcript.error.code}</code>
        </p>
      )}
      <ErrorBox error={error} />
    </div>
  )
}

type ShownProps = Item & { project_id: string; task_id: string | undefined }

function Shown(item: ShownProps) {
  if (item.kind === 'message')
    return <div className="rounded-md border border-line bg-panel p-3 break-words whitespace-pre-wrap">{item.text}</div>
  if (item.kind === 'tool') {
    const Icon = { running: LoaderCircle, completed: Check, failed: CircleAlert }[item.state]
    return (
      <p className="flex items-center gap-2 px-1 text-soft">
        <Icon size={14} aria-hidden className={item.state === 'running' ? 'animate-spin' : ''} />
        <span>
          <code>{item.name}</code> {item.state === 'running' ? 'is called' : item.state}
          {item.error !== undefined && `: ${item.error}`}
        </span>
      </p>
    )
  }
  return (
    <p className="flex items-center gap-2 rounded-md bg-warn-soft p-2 text-warn">
      <ShieldQuestion size={14} aria-hidden />
      <span>
        <code>{item.name}</code> {item.isOpen ? 'waits for your leave: ' : 'was answered'}
        {item.isOpen && item.task_id !== undefined && (
          <Link {...paths.task(item.project_id, item.task_id)}>answer it</Link>
        )}
      </span>
    </p>
  )
}

function Elapsed({ started_at, ended_at }: Run) {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    if (ended_at !== undefined) return
    const tick = setInterval(() => setNow(Date.now()), 250)
    return () => clearInterval(tick)
  }, [ended_at])
  return <span className="tabular-nums">{duration((ended_at ?? Math.max(now, started_at)) - started_at)}</span>
}
