import { formatCost, formatTokens, formatDuration } from '../../format.ts'
import { Link } from '@tanstack/react-router'
import { Check, CircleAlert, FoldVertical, LoaderCircle, ShieldQuestion } from 'lucide-react'
import { useEffect, useState } from 'react'
import { paths } from '../../paths.ts'
import { Answer } from '../../task-parts/answer.tsx'
import { FileLine } from '../../task-parts/files.tsx'
import { DataTree } from '../../ui/texts/data-tree.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Status } from '../../ui/status.tsx'
import type { Item } from './transcript.ts'
import type { Run } from './use-runs.ts'

/** Characters of an answer that is still being written up to which each word more is laid out as Markdown. */
const laidOutLive = 10_000

/** What a task of the playground says and does, and what it costs. */
export function Output({ run, project_id }: { run: Run; project_id: string }) {
  const { transcript, task_id, error } = run
  const isRunning = run.ended_at === undefined
  // What the data was read from would say everything twice: it is folded under it.
  const answer = transcript.data === undefined ? undefined : transcript.items.findLast(isMessage)
  return (
    <div className="space-y-3">
      {/* What was refused is no task: its error stands alone. */}
      {(isRunning || task_id !== undefined) && <Facts run={run} project_id={project_id} />}
      {/* Only its end is read out: single words would drown everything else. */}
      <div aria-busy={isRunning} className="space-y-2">
        {transcript.items
          .filter((item) => item !== answer)
          .map((item) => (
            <Shown key={item.id} {...item} project_id={project_id} task_id={task_id} />
          ))}
        {isRunning && transcript.items.length === 0 && <p className="text-soft">Waiting for the agent…</p>}
      </div>
      {transcript.data !== undefined && <DataTree label="Data of the answer" value={transcript.data} />}
      {answer && (
        <details>
          <summary className="min-h-6 w-fit text-sm text-soft">As text</summary>
          <div className="mt-1 rounded-md border border-line bg-panel p-3 break-words">
            <Answer text={answer.text} />
          </div>
        </details>
      )}
      <p role="status" className="sr-only">
        {isRunning || task_id === undefined ? '' : `The task is ${transcript.status}`}
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

function isMessage(item: Item): item is Extract<Item, { kind: 'message' }> {
  return item.kind === 'message'
}

function Facts({ run, project_id }: { run: Run; project_id: string }) {
  const { status, usage } = run.transcript
  const tokens = formatTokens(usage ?? {})
  return (
    <p className="flex flex-wrap items-center gap-x-4 gap-y-1 text-sm text-soft">
      <Status
        state={status === 'canceling' ? 'waiting' : status}
        label={status === 'canceling' ? 'stopping' : status}
      />
      <Elapsed {...run} />
      {usage && (
        <>
          <span>{tokens.in} in</span>
          <span>{tokens.out} out</span>
          <span>{usage.cost_usd === null ? 'price not known' : formatCost(usage.cost_usd)}</span>
        </>
      )}
      {run.task_id !== undefined && <Link {...paths.task(project_id, run.task_id)}>Open the task</Link>}
    </p>
  )
}

function Shown(item: Item & { project_id: string; task_id: string | undefined }) {
  if (item.kind === 'message')
    return (
      <div className="rounded-md border border-line bg-panel p-3 break-words">
        {item.isDone || item.text.length < laidOutLive ? (
          <Answer text={item.text} />
        ) : (
          <p className="whitespace-pre-wrap">{item.text}</p>
        )}
      </div>
    )
  if (item.kind === 'artifact')
    return (
      <div className="px-1">
        <FileLine project_id={item.project_id} file={{ ...item, file_id: item.id }} />
      </div>
    )
  if (item.kind === 'compaction')
    return (
      <p className="flex items-start gap-2 px-1 text-soft">
        <FoldVertical size={14} aria-hidden className="mt-0.5 shrink-0" />
        Context compacted: what came earlier was replaced by a summary.
      </p>
    )
  if (item.kind === 'tool') {
    const Icon = { running: LoaderCircle, completed: Check, failed: CircleAlert }[item.state]
    const name = <code>{item.name}</code>
    return (
      <p className="flex items-center gap-2 px-1 text-soft">
        <Icon size={14} aria-hidden className={item.state === 'running' ? 'animate-spin' : ''} />
        <span className="min-w-0 break-words">
          {item.task_id === undefined || item.index === undefined ? (
            name
          ) : (
            <Link {...paths.task(item.project_id, item.task_id, { step: item.index })} title="Open the step">
              {name}
            </Link>
          )}{' '}
          {item.state === 'running' ? 'is called' : item.state}
          {item.error !== undefined && `: ${item.error}`}
        </span>
      </p>
    )
  }
  return (
    <p className="flex items-center gap-2 rounded-md bg-warn-soft p-2 text-warn">
      <ShieldQuestion size={14} aria-hidden />
      <span>
        <code>{item.name}</code> {item.isOpen ? 'waits for your approval: ' : 'was answered'}
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
  return <span className="tabular-nums">{formatDuration((ended_at ?? Math.max(now, started_at)) - started_at)}</span>
}
