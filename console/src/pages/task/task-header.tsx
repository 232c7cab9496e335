import { Ban, Download, Pencil, RotateCcw } from 'lucide-react'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { curlOf } from '../../ui/copy-as-curl.tsx'
import { saveFile } from '../../ui/save-file.ts'
import { formatCost, formatCount, formatDuration, formatTokens } from '../../format.ts'
import { Time } from '../../ui/time.tsx'
import { titleOf } from '../../task-parts/input-words.ts'
import { Button } from '../../ui/button.tsx'
import { CopyButton, CopyId } from '../../ui/copy.tsx'
import { traceUrl, useTraceAddress } from '../../trace-address.ts'
import { ErrorBox } from '../../ui/error-box.tsx'
import type { TaskLive } from './task-live.ts'
import { EditTask } from './edit-task.tsx'
import { TaskTrigger } from './task-trigger.tsx'
import { TaskBadge } from '../../task-parts/task-parts.tsx'
import { A } from '../../task-parts/links.tsx'
import type { Step, Task } from '../../task-parts/types.ts'

const isOver = (task: Task): boolean => task.finished_at !== null

/** Why a task cannot be retried; undefined where it can. */
export function retryReason(task: Task): string | undefined {
  return isOver(task) ? undefined : `A ${task.status} task can't be retried: it has not ended.`
}

function cancelReason(task: Task): string | undefined {
  if (isOver(task)) return `A ${task.status} task can't be canceled: it has ended.`
  return task.cancel_requested_at === null ? undefined : 'It is being canceled.'
}

/** What a task is, how it stands, what it cost, and what may be done with it. */
export function TaskHeader({
  live,
  agentName,
  onRetried,
}: {
  live: TaskLive
  agentName: string | undefined
  onRetried: (task_id: string) => void
}) {
  const { task } = live
  const [error, setError] = useState<unknown>()
  const [busy, setBusy] = useState<string>()
  const [isEditing, setEditing] = useState(false)
  const [traceAddress] = useTraceAddress()
  if (!task) return null
  const { project } = live
  const tokens = formatTokens(task.usage)
  const trace = task.trace_id === null ? undefined : traceUrl(traceAddress, task.trace_id)

  async function act(name: string, work: () => Promise<void>): Promise<void> {
    setBusy(name)
    setError(undefined)
    try {
      await work()
    } catch (thrown) {
      setError(thrown)
    } finally {
      setBusy(undefined)
    }
  }
  const cancel = () =>
    act('Canceling…', async () => {
      await api.tasks.cancel(project, task.id, {})
      live.refresh()
    })
  const retry = () => act('Retrying…', async () => onRetried((await api.tasks.retry(project, task.id, {})).id))
  const download = () =>
    act('Reading…', async () => {
      const steps: Step[] = []
      for await (const step of api.tasks.steps(project, task.id, { limit: 100 })) steps.push(step)
      saveFile(`${task.id}.json`, 'application/json', [JSON.stringify({ task, steps }, null, 2)])
    })
  const spent = task.started_at
    ? formatDuration((task.finished_at ? Date.parse(task.finished_at) : Date.now()) - Date.parse(task.started_at))
    : '—'

  return (
    <header className="shrink-0 border-b border-line px-3 py-3 md:px-5">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <h1 className="min-w-0 truncate text-lg font-semibold">{titleOf(task)}</h1>
        <TaskBadge task={task} />
        <Connection live={live} />
        <div className="flex flex-wrap gap-2 md:ml-auto">
          <Button onClick={() => void cancel()} reason={cancelReason(task)} disabled={busy !== undefined} kind="danger">
            <Ban size={14} aria-hidden="true" /> Cancel
          </Button>
          <Button onClick={() => void retry()} reason={retryReason(task)} disabled={busy !== undefined}>
            <RotateCcw size={14} aria-hidden="true" /> Retry
          </Button>
          <Button onClick={() => setEditing(true)}>
            <Pencil size={14} aria-hidden="true" /> Edit and run again
          </Button>
          <Button onClick={() => void download()} disabled={busy !== undefined}>
            <Download size={14} aria-hidden="true" /> JSON
          </Button>
          <span className="inline-flex items-center text-xs text-soft">
            curl
            <CopyButton
              text={() => curlOf('GET', `/api/v1/projects/${project}/tasks/${task.id}`)}
              label="Copy as curl"
            />
          </span>
        </div>
      </div>
      <div className="mt-1 flex flex-wrap items-center gap-x-4 gap-y-1 text-xs text-soft">
        <CopyId id={task.id} />
        <span>
          Agent <A to={`/p/${project}/agents/${task.agent_id}`}>{agentName ?? task.agent_id}</A>, version{' '}
          {task.agent_version}
        </span>
        <span>
          Trigger <TaskTrigger project={project} task={task} />
          {task.retried_from !== null && ` ${task.retried_from}`}
        </span>
        {task.trace_id !== null && (
          <span className="inline-flex items-center gap-1">
            {trace === undefined ? (
              'Trace'
            ) : (
              <a href={trace} target="_blank" rel="noreferrer">
                Open the trace
              </a>
            )}{' '}
            <CopyId id={task.trace_id} />
          </span>
        )}
        <Time at={task.created_at} form="exact" />
      </div>
      <dl className="mt-2 flex flex-wrap gap-x-6 gap-y-1 text-sm">
        {(
          [
            ['Time', spent],
            ['Steps', formatCount(live.stepCount)],
            ['Tokens', `${tokens.in} in, ${tokens.out} out`],
            ['Cost', formatCost(task.usage.cost_usd)],
          ] as const
        ).map(([name, value]) => (
          <div key={name} className="flex gap-1.5">
            <dt className="text-soft">{name}</dt>
            <dd className="tabular-nums">{value}</dd>
          </div>
        ))}
      </dl>
      {isEditing && <EditTask task={task} isOpen close={() => setEditing(false)} onCreated={onRetried} />}
      {error !== undefined && (
        <div className="mt-2">
          <ErrorBox error={error} />
        </div>
      )}
    </header>
  )
}

function Connection({ live }: { live: TaskLive }) {
  const { connection, task } = live
  if (!task || task.finished_at !== null) return null
  const isOpen = connection === 'open'
  return (
    <span className="inline-flex items-center gap-1.5 text-xs text-soft" data-connection={connection}>
      <span aria-hidden="true" className={`size-2 rounded-full ${isOpen ? 'bg-good' : 'bg-warn'}`} />
      {isOpen ? 'Live' : connection === 'ended' ? 'Ended' : connection === 'connecting' ? 'Connecting' : 'Reconnecting'}
    </span>
  )
}
