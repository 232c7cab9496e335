import { Ban, Ellipsis, Pencil, RotateCcw } from 'lucide-react'
import { Link } from '@tanstack/react-router'
import { useState, type ReactNode } from 'react'
import { api } from '../../api/client.ts'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { paths } from '../../paths.ts'
import { copyCurl, curlOf } from '../../ui/copy-as-curl.tsx'
import { saveFile } from '../../ui/save-file.ts'
import { formatCost, formatDuration, formatTokens, totalTokens, plural } from '../../format.ts'
import { versionWords } from '../../agents/version-text.ts'
import { Time } from '../../ui/time.tsx'
import { titleOf } from '../../task-parts/input-text.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { CopyId, shortId } from '../../ui/copy.tsx'
import { Menu, MenuItem } from '../../ui/menu.tsx'
import { CompareDialog } from './compare-dialog.tsx'
import { traceUrl } from '../../trace-address.ts'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import type { TaskLive } from './task-live.ts'
import { EditTask } from './edit-task.tsx'
import { TaskTrigger } from './task-trigger.tsx'
import { TaskBadge } from '../../task-parts/task-parts.tsx'
import { A } from '../../task-parts/links.tsx'
import type { Step, Task } from '../../task-parts/types.ts'
import { usePreference } from '../../preferences.ts'

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
  const [isCanceling, setCanceling] = useState(false)
  const [isEditing, setEditing] = useState(false)
  const [isComparing, setComparing] = useState(false)
  const [traceAddress] = usePreference('trace_url')
  const mayNot = useDisabledReason('tasks')
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
  const cancel = async (): Promise<void> => {
    await api.tasks.cancel(project, task.id, {})
    live.refresh()
  }
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

  const model = modelOf(live)
  const over = isOver(task)
  const menu = (
    <Menu
      trigger={
        <IconButton label="More" kind="plain">
          <Ellipsis size={16} aria-hidden />
        </IconButton>
      }
    >
      <MenuItem onClick={() => setComparing(true)}>Compare with another task</MenuItem>
      <MenuItem onClick={() => void download()}>Download as JSON</MenuItem>
      <MenuItem onClick={() => copyCurl(curlOf('GET', `/api/v1/projects/${project}/tasks/${task.id}`))}>
        Copy as curl
      </MenuItem>
    </Menu>
  )

  return (
    <header className="shrink-0 border-b border-line bg-panel px-3 py-3 md:px-5">
      <div className="flex items-start gap-3 max-md:flex-col max-md:gap-2">
        <div className="min-w-0 flex-1">
          <nav aria-label="Where" className="text-sm max-md:hidden">
            <Link {...paths.tasks(project)}>Tasks</Link>
          </nav>
          <h1 className="truncate text-lg font-semibold max-md:line-clamp-2 max-md:wrap-anywhere max-md:whitespace-normal">
            {titleOf(task)}
          </h1>
        </div>
        <div className="flex flex-wrap items-center gap-2">
          {!over && (
            <Button
              onClick={() => setCanceling(true)}
              reason={mayNot ?? cancelReason(task)}
              disabled={busy !== undefined}
              kind="danger"
            >
              <Ban size={14} aria-hidden="true" /> Cancel
            </Button>
          )}
          {over && (
            <Button onClick={() => void retry()} reason={mayNot} disabled={busy !== undefined}>
              <RotateCcw size={14} aria-hidden="true" /> Retry
            </Button>
          )}
          <Button onClick={() => setEditing(true)} reason={mayNot} aria-label="Edit and run again">
            <Pencil size={14} aria-hidden="true" /> <span className="max-sm:hidden">Edit and run again</span>
            <span className="sm:hidden">Edit</span>
          </Button>
          {menu}
        </div>
      </div>
      {/* The point before a fact that begins a line is out of sight, to the left of the frame. */}
      <div className="mt-1.5 overflow-hidden">
        <p className="-ml-4 flex flex-wrap items-center gap-y-1 text-sm *:ml-4" data-truth>
          <TaskBadge task={task} />
          <Truth>
            {task.started_at === null ? 'not started' : `${over ? 'after' : 'for'} ${spent}`}
            {live.stepCount > 0 && ` and ${plural(live.stepCount, 'step')}`}
          </Truth>
          <Truth>{formatCost(task.usage.cost_usd)}</Truth>
          <Truth>
            <span title={`${tokens.in} in, ${tokens.out} out`}>{totalTokens(task.usage)}</span>
          </Truth>
          {model !== undefined && (
            <Truth>
              <code>{model}</code>
            </Truth>
          )}
          <Truth>
            <A to={`/p/${project}/agents/${task.agent_id}`} className="text-accent underline underline-offset-2">
              {agentName ?? shortId(task.agent_id)}
            </A>{' '}
            {versionWords(task.agent_version)}
          </Truth>
          <Truth>
            <Time at={task.created_at} />
          </Truth>
          <Truth>
            <TaskTrigger project={project} task={task} />
            {task.retried_from !== null && ` ${task.retried_from}`}
          </Truth>
          {trace !== undefined && (
            <Truth>
              <a href={trace} target="_blank" rel="noreferrer" className="underline underline-offset-2">
                Open the trace
              </a>
            </Truth>
          )}
          <CopyId id={task.id} short />
        </p>
      </div>
      <ConfirmDialog
        isOpen={isCanceling}
        close={() => setCanceling(false)}
        title="Cancel the task"
        action="Cancel task"
        dismiss="Keep it running"
        run={cancel}
      >
        <p>It stops where it is. This cannot be undone, but you can retry the task from any step.</p>
      </ConfirmDialog>
      {isEditing && <EditTask task={task} isOpen close={() => setEditing(false)} onCreated={onRetried} />}
      {isComparing && <CompareDialog project={project} task={task.id} close={() => setComparing(false)} />}
      {error !== undefined && (
        <div className="mt-2">
          <ErrorBox error={error} />
        </div>
      )}
    </header>
  )
}

/** One fact of the line, with a point between it and the one before. */
function Truth({ children }: { children: ReactNode }) {
  return (
    <span className="relative min-w-0 break-words text-soft before:absolute before:-left-2.5 before:text-line before:content-['·']">
      {children}
    </span>
  )
}

/** The model that was called last, of the steps that are read. */
function modelOf({ steps }: TaskLive): string | undefined {
  let last: Step | undefined
  for (const step of steps.values())
    if (step.type === 'model_call' && (last === undefined || step.index > last.index)) last = step
  return last?.name
}
