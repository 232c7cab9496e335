import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { Ban, Download, RotateCcw } from 'lucide-react'
import { useMemo, useState, type ReactNode } from 'react'
import { APIError } from '../../../sdk/src/errors.ts'
import { cadre as api } from '../api/client.ts'
import { curlOf } from '../ui/copy-as-curl.tsx'
import { saveFile } from './download.ts'
import { formatAgo, formatCost, formatCount, formatDateTime, formatDuration } from './format.ts'
import { Button, CopyButton, Empty, ErrorNotice, inputClass } from './kit.tsx'
import type { Search } from '../router.tsx'
import { A, usePathIds, useWords } from './links.tsx'
import { TaskBadge } from './task-parts.tsx'
import { titleOf } from './task-header.tsx'
import type { Task, TaskStatus } from './types.ts'
import { useAgentNames, useAgents } from './use-agents.ts'
import { LiveBadge } from '../ui/live-badge.tsx'

const states: TaskStatus[] = ['queued', 'running', 'waiting', 'completed', 'failed', 'canceled', 'expired']
const pageSize = 50
/** Tasks that an export holds at most. */
const exportMost = 10_000
const periods = { '1h': 3600_000, '24h': 86_400_000, '7d': 604_800_000, '30d': 2_592_000_000 } as const

interface Words extends Search {
  status: TaskStatus
  agent: string
  since: keyof typeof periods
  sort: 'created_at'
  offset: number
}
type Outcome = { isDone: boolean; text: string; link?: string }

/** The tasks of a project, live, to be filtered, canceled and retried. */
export function TasksPage() {
  const { project } = usePathIds()
  const [words, setWords] = useWords<Words>()
  const queries = useQueryClient()
  const names = useAgentNames(project)
  const agents = useAgents(project)
  const status = states.find((state) => state === words.status)
  const since = words.since !== undefined && words.since in periods ? words.since : undefined
  const offset = typeof words.offset === 'number' ? words.offset : 0
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set())
  const [outcomes, setOutcomes] = useState<ReadonlyMap<string, Outcome>>(new Map())
  const [busy, setBusy] = useState<string>()
  const [exportError, setExportError] = useState<unknown>()

  // The period ends now, and now is when it was chosen: else every reading would be of another list.
  const created_after = useMemo(
    () => (since === undefined ? undefined : new Date(Date.now() - periods[since]).toISOString()),
    [since],
  )
  const filter = {
    ...(status ? { status } : {}),
    ...(created_after ? { created_after } : {}),
    ...(words.sort === 'created_at' ? ({ sort: 'created_at' } as const) : {}),
  }
  const read = (query: { limit: number; offset?: number }) =>
    typeof words.agent === 'string'
      ? api.tasks.listOfAgent(project, words.agent, { ...filter, ...query })
      : api.tasks.list(project, { ...filter, ...query })
  const list = useQuery({
    queryKey: ['project', project, 'tasks', words.agent, filter, offset],
    queryFn: () => read({ limit: pageSize, offset }).page(),
    placeholderData: keepPreviousData,
  })

  const tasks = list.data?.items ?? []
  const chosen = tasks.filter(({ id }) => selected.has(id))
  const isFiltered = status !== undefined || since !== undefined || words.agent !== undefined

  async function actOnAll(name: string, targets: Task[], work: (task: Task) => Promise<Outcome>): Promise<void> {
    setBusy(name)
    for (const task of targets) {
      const outcome = await work(task).catch((error: unknown) => ({
        isDone: false,
        text: error instanceof APIError ? `${error.message} (${error.code})` : String(error),
      }))
      setOutcomes((before) => new Map(before).set(task.id, outcome))
    }
    setBusy(undefined)
    setSelected(new Set())
    await queries.invalidateQueries({ queryKey: ['project', project, 'tasks'] })
  }
  const cancel = () =>
    actOnAll('Canceling…', chosen, async ({ id }) => {
      const { status } = await api.tasks.cancel(project, id, {})
      return { isDone: true, text: status === 'canceled' ? 'Canceled' : 'Is being canceled' }
    })
  const retry = () =>
    actOnAll('Retrying…', chosen, async ({ id }) => {
      const made = await api.tasks.retry(project, id, {})
      return { isDone: true, text: 'Retried as', link: made.id }
    })
  async function exportAll(): Promise<void> {
    setBusy('Exporting…')
    setExportError(undefined)
    try {
      const found = await read({ limit: 100 }).toArray({ max: exportMost })
      saveFile(
        'tasks.ndjson',
        'application/x-ndjson',
        found.map((task) => `${JSON.stringify(task)}\n`),
      )
    } catch (error) {
      setExportError(error)
    } finally {
      setBusy(undefined)
    }
  }
  const chosenReason = (isOpenWanted: boolean): string | undefined => {
    if (chosen.length === 0) return 'Choose tasks first.'
    if (chosen.some(({ finished_at }) => (finished_at === null) === isOpenWanted)) return undefined
    return isOpenWanted ? "Tasks that have ended can't be canceled." : "Tasks that have not ended can't be retried."
  }
  const toggle = (id: string) =>
    setSelected((before) => {
      const next = new Set(before)
      if (!next.delete(id)) next.add(id)
      return next
    })

  return (
    <div className="w-full">
      <header className="mb-3 flex flex-wrap items-center gap-3">
        <h1>Tasks</h1>
        <LiveBadge />
        <span className="inline-flex items-center text-xs text-soft md:ml-auto">
          curl
          <CopyButton
            text={() => curlOf('GET', `/api/v1/projects/${project}/tasks${status ? `?status=${status}` : ''}`)}
            label="Copy as curl"
          />
        </span>
        <Button onClick={() => void exportAll()} disabled={busy !== undefined || tasks.length === 0}>
          <Download size={14} aria-hidden="true" /> Export
        </Button>
      </header>
      <div className="mb-3 grid grid-cols-2 gap-2 sm:flex sm:flex-wrap" role="search" aria-label="Filter tasks">
        <Select
          label="Status"
          value={status ?? ''}
          onChange={(value) => setWords({ status: (value || undefined) as TaskStatus, offset: undefined })}
        >
          <option value="">Any status</option>
          {states.map((state) => (
            <option key={state}>{state}</option>
          ))}
        </Select>
        <Select
          label="Agent"
          value={words.agent ?? ''}
          onChange={(value) => setWords({ agent: value || undefined, offset: undefined })}
        >
          <option value="">Any agent</option>
          {agents.data?.items.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </Select>
        <Select
          label="Created"
          value={since ?? ''}
          onChange={(value) => setWords({ since: (value || undefined) as Words['since'], offset: undefined })}
        >
          <option value="">At any time</option>
          <option value="1h">In the last hour</option>
          <option value="24h">In the last 24 hours</option>
          <option value="7d">In the last 7 days</option>
          <option value="30d">In the last 30 days</option>
        </Select>
        <Select
          label="Order"
          value={words.sort ?? ''}
          onChange={(value) => setWords({ sort: (value || undefined) as Words['sort'], offset: undefined })}
        >
          <option value="">Newest first</option>
          <option value="created_at">Oldest first</option>
        </Select>
      </div>
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <label className="inline-flex min-h-8 cursor-pointer items-center gap-2 pr-2 text-sm">
          <input
            type="checkbox"
            checked={tasks.length > 0 && chosen.length === tasks.length}
            onChange={({ target }) => setSelected(new Set(target.checked ? tasks.map(({ id }) => id) : []))}
          />
          {chosen.length > 0 ? `${chosen.length} chosen` : 'Choose all on this page'}
        </label>
        <Button tone="danger" reason={chosenReason(true)} disabled={busy !== undefined} onClick={() => void cancel()}>
          <Ban size={14} aria-hidden="true" /> Cancel
        </Button>
        <Button reason={chosenReason(false)} disabled={busy !== undefined} onClick={() => void retry()}>
          <RotateCcw size={14} aria-hidden="true" /> Retry
        </Button>
        <span role="status" className="text-xs text-soft">
          {busy ??
            (outcomes.size > 0 &&
              `${[...outcomes.values()].filter(({ isDone }) => isDone).length} of ${outcomes.size} done`)}
        </span>
      </div>
      {(list.error ?? exportError) !== null && (list.error ?? exportError) !== undefined && (
        <ErrorNotice error={list.error ?? exportError} onRetry={() => void list.refetch()} />
      )}
      {list.data && tasks.length === 0 && !isFiltered && (
        <Empty title="No agent has been given a task yet">
          <p>
            A task is a piece of work for an agent: it is kept before its creation is answered, and outlives crashes.
          </p>
          <pre
            tabIndex={0}
            className="overflow-x-auto rounded-md border border-line bg-quiet p-3 text-left font-mono text-xs text-text"
          >
            cadre tasks run &lt;agent&gt; "Hello, agent"
          </pre>
          <p>
            <A to={`/p/${project}/playground`}>Or try one in the playground</A>
          </p>
        </Empty>
      )}
      {list.data && tasks.length === 0 && isFiltered && (
        <Empty title="No task matches">
          <Button
            onClick={() => setWords({ status: undefined, agent: undefined, since: undefined, offset: undefined })}
          >
            Show all tasks
          </Button>
        </Empty>
      )}
      {tasks.length > 0 && (
        <div className="overflow-x-auto rounded-lg border border-line bg-panel">
          <table className="rows" aria-busy={list.isFetching}>
            <thead>
              <tr>
                <th>
                  <span className="sr-only">Choose</span>
                </th>
                <th>Task</th>
                <th>Status</th>
                <th>Agent</th>
                <th aria-sort={words.sort === 'created_at' ? 'ascending' : 'descending'}>Created</th>
                <th className="number">Duration</th>
                <th className="number">Steps</th>
                <th className="number">Tokens</th>
                <th className="number">Cost</th>
              </tr>
            </thead>
            <tbody>
              {tasks.map((task) => (
                <Row
                  key={task.id}
                  task={task}
                  agent={names.get(task.agent_id)}
                  outcome={outcomes.get(task.id)}
                  isSelected={selected.has(task.id)}
                  onToggle={() => toggle(task.id)}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {list.data && list.data.total > 0 && (
        <nav aria-label="Pages" className="mt-3 flex items-center gap-3 text-sm">
          <Button
            onClick={() => setWords({ offset: Math.max(0, offset - pageSize) || undefined })}
            disabled={offset === 0}
          >
            Previous
          </Button>
          <span className="text-soft">
            {formatCount(offset + 1)}–{formatCount(offset + tasks.length)} of {formatCount(list.data.total)}
          </span>
          <Button
            onClick={() => setWords({ offset: offset + pageSize })}
            disabled={offset + pageSize >= list.data.total}
          >
            Next
          </Button>
        </nav>
      )}
    </div>
  )
}

function Select({
  label,
  value,
  onChange,
  children,
}: {
  label: string
  value: string
  onChange: (value: string) => void
  children: ReactNode
}) {
  return (
    <select aria-label={label} value={value} onChange={({ target }) => onChange(target.value)} className={inputClass}>
      {children}
    </select>
  )
}

function Row({
  task,
  agent,
  outcome,
  isSelected,
  onToggle,
}: {
  task: Task
  agent: string | undefined
  outcome: Outcome | undefined
  isSelected: boolean
  onToggle: () => void
}) {
  const at = `/p/${usePathIds().project}`
  const ended = task.finished_at === null ? Date.now() : Date.parse(task.finished_at)
  return (
    <tr data-current={isSelected || undefined}>
      <td className="w-px">
        <label className="inline-flex size-6 cursor-pointer items-center justify-center">
          <input type="checkbox" checked={isSelected} onChange={onToggle} aria-label={`Choose ${titleOf(task)}`} />
        </label>
      </td>
      <td className="whole w-[40%] max-w-0">
        <A to={`${at}/tasks/${task.id}`} className="block truncate font-medium text-text hover:underline">
          {titleOf(task)}
        </A>
        <span className="flex items-center gap-1">
          <code className="truncate font-mono text-xs text-soft">{task.id}</code>
          <CopyButton text={task.id} label="Copy id" />
        </span>
        {task.error && <code className="text-xs text-bad">{task.error.code}</code>}
        {outcome && (
          <span className={`block text-xs ${outcome.isDone ? 'text-good' : 'text-bad'}`}>
            {outcome.text} {outcome.link && <A to={`${at}/tasks/${outcome.link}`}>{outcome.link}</A>}
          </span>
        )}
      </td>
      <td data-label="Status">
        <TaskBadge task={task} />
      </td>
      <td data-label="Agent">
        <A to={`${at}/agents/${task.agent_id}`}>{agent ?? task.agent_id}</A>
      </td>
      <td data-label="Created" className="whitespace-nowrap">
        <time dateTime={task.created_at} title={formatDateTime(task.created_at)}>
          {formatAgo(task.created_at)}
        </time>
      </td>
      <td data-label="Duration" className="number whitespace-nowrap">
        {task.started_at === null ? '—' : formatDuration(ended - Date.parse(task.started_at))}
      </td>
      <td data-label="Steps" className="number">
        {formatCount(task.usage.steps)}
      </td>
      <td data-label="Tokens" className="number">
        {formatCount(task.usage.input_tokens + task.usage.output_tokens)}
      </td>
      <td data-label="Cost" className="number">
        {formatCost(task.usage.cost_usd)}
      </td>
    </tr>
  )
}
