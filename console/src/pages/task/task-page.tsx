import { formatCount } from '../../format.ts'
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react'
import { useNavigate } from '@tanstack/react-router'
import { useQuery } from '@tanstack/react-query'
import { APIError } from '#sdk/errors.ts'
import { api } from '../../api/client.ts'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { useOwnStream } from '../../api/live.tsx'
import { ApprovalCard } from '../approvals/approval-card.tsx'
import { AttemptsView } from './attempts-view.tsx'
import { EventsView } from './events-view.tsx'
import { LogsView } from './logs-view.tsx'
import { paths } from '../../paths.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Choices } from '../../ui/forms/choices.tsx'
import { EmptyState, Missing } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { fullHeight, usePageTitle } from '../../ui/page.tsx'
import { useSearchState } from '../../search-state.ts'
import type { Search } from '../../search-text.ts'
import { usePathIds } from '../../task-parts/links.tsx'
import { CredentialBox } from './credential-box.tsx'
import { MessageBox } from './message-box.tsx'
import { OpenToolCalls } from './open-tool-calls.tsx'
import { StepInspector } from './step-inspector.tsx'
import { titleOf } from '../../task-parts/input-text.ts'
import { retryReason, TaskHeader } from './task-header.tsx'
import { TaskLive } from './task-live.ts'
import { isInTree, TaskTree } from './task-tree.tsx'
import { readSpan, scales, writeSpan, type Scale, type Span } from './waterfall/time-axis.ts'
import { TypedSearch } from '../../ui/forms/typed-search.tsx'
import { Transcript } from './transcript.tsx'
import { useStepFilter } from './use-step-filter.ts'
import { Waterfall } from './waterfall/waterfall.tsx'
import { WaterfallZoom } from './waterfall/waterfall-zoom.tsx'

const views = [
  ['transcript', 'Transcript'],
  ['waterfall', 'Waterfall'],
  ['logs', 'Logs'],
  ['events', 'Events'],
  ['attempts', 'Attempts'],
] as const
type View = (typeof views)[number][0]

interface Words extends Search {
  view: View
  step: number
  failures: boolean
  /** A text that looks like a number is read as one from the address. */
  find: string | number
  scale: Scale
  /** Milliseconds after the task's beginning: `1200-3400`. */
  span: string
}

/** One task, live while it goes on. */
export function TaskPage() {
  const { project, task: id } = usePathIds()
  const live = useTaskLive(project, id)
  const navigate = useNavigate()
  const [params, setParams] = useSearchState<Words>()
  const view = views.find(([name]) => name === params.view)?.[0] ?? 'transcript'
  const step = typeof params.step === 'number' ? params.step : undefined
  const text = params.find === undefined || params.find === '' ? undefined : String(params.find)
  const isFailed = params.failures === true
  const span = readSpan(params.span)
  const setSpan = (next: Span | undefined) => setParams({ span: next && writeSpan(next) }, { replace: true })
  const filter = useStepFilter(live, { isFailed, text })
  const [retryError, setRetryError] = useState<unknown>()
  const mayNot = useDisabledReason('tasks')
  const agent = useQuery({
    queryKey: ['agent', project, live.task?.agent_id],
    queryFn: () => api.agents.get(project, live.task!.agent_id),
    enabled: live.task !== undefined,
    retry: false,
  })
  usePageTitle(live.task && titleOf(live.task))

  const openTask = (task_id: string) => void navigate({ to: `/p/${project}/tasks/${task_id}` as '/' })
  const select = (index: number) => setParams({ step: index === step ? undefined : index }, { replace: true })
  const retryFrom = async (from_step: number) => {
    setRetryError(undefined)
    try {
      openTask((await api.tasks.retry(project, id, { from_step })).id)
    } catch (error) {
      setRetryError(error)
    }
  }

  if (!live.task) {
    const isGone = live.error instanceof APIError && live.error.status === 404
    return (
      <div className={fullHeight}>
        <div className="p-5">
          {isGone ? (
            <Missing
              noun="Task"
              reason="It may have been removed with its agent, or belong to another project."
              error={live.error}
              retry={() => window.location.reload()}
              back={<ButtonLink {...paths.tasks(project)}>All tasks</ButtonLink>}
            />
          ) : live.error !== undefined ? (
            <ErrorBox error={live.error} retry={() => window.location.reload()} />
          ) : (
            <p className="text-sm text-soft" role="status">
              Loading the task…
            </p>
          )}
        </div>
      </div>
    )
  }
  const isOpen = live.task.finished_at === null
  return (
    // On a telephone all of it scrolls: beside a question, what is below it would have no room.
    <div className={`${fullHeight} max-sm:overflow-y-auto`}>
      <Announcer live={live} />
      <TaskHeader live={live} agentName={agent.data?.name} onRetried={openTask} />
      {live.approvals.length > 0 && (
        <div
          className="shrink-0 space-y-3 overflow-y-auto border-b sm:max-h-[60%] md:max-h-[45%] border-line p-3 md:px-5"
          tabIndex={0}
          role="region"
          aria-label="Waiting for you"
        >
          {live.approvals.map((approval) => (
            <ApprovalCard key={approval.id} project={project} approval={approval} onResolved={() => live.refresh()} />
          ))}
        </div>
      )}
      {isOpen && live.task.wait?.tool_call_ids !== undefined && (
        <OpenToolCalls project={project} task={live.task} onResolved={() => live.refresh()} />
      )}
      {isInTree(live.task) && <TaskTree project={project} task={live.task} />}
      {isOpen && live.task.wait?.reason === 'input' && <MessageBox live={live} />}
      {isOpen && live.task.wait?.reason === 'credential' && <CredentialBox live={live} />}
      <div className="flex shrink-0 flex-wrap items-center gap-2 border-b border-line px-3 py-2 md:px-5">
        <Choices
          label="View"
          value={view}
          options={views}
          onChange={(next) => setParams({ view: next }, { replace: true })}
        />
        {view === 'waterfall' && (
          <Choices
            label="Scale"
            value={span ? undefined : (scales.find((name) => name === params.scale) ?? 'task')}
            options={[
              ['task', 'Whole task'],
              ['sight', 'In view'],
              ['gaps', 'Without gaps'],
            ]}
            onChange={(scale) => setParams({ scale, span: undefined }, { replace: true })}
          />
        )}
        {view === 'waterfall' && (
          <WaterfallZoom
            task={live.task}
            selected={step === undefined ? undefined : live.steps.get(step)}
            span={span}
            onSpan={setSpan}
          />
        )}
        {(view === 'waterfall' || view === 'transcript') && (
          <label className="inline-flex min-h-7 cursor-pointer items-center gap-1.5 text-xs">
            <input
              type="checkbox"
              checked={params.failures === true}
              onChange={({ target }) => setParams({ failures: target.checked || undefined }, { replace: true })}
            />
            Failures only
          </label>
        )}
        {(view === 'waterfall' || view === 'transcript') && (
          <TypedSearch
            label="Text in steps"
            className="max-md:!w-auto max-md:min-w-32 max-md:flex-1 md:!w-44"
            value={text ?? ''}
            commit={(find) => setParams({ find: find || undefined }, { replace: true })}
          />
        )}
        {filter.only !== undefined && (
          <span className="inline-flex items-center gap-2 text-xs text-soft" role="status">
            {formatCount(filter.found.length)}{' '}
            {filter.isPart
              ? `among the newest ${formatCount(filter.searched)} of ${formatCount(live.stepCount)} steps`
              : `of ${formatCount(live.stepCount)} steps`}
            {filter.isPart && (
              <Button size="small" onClick={filter.searchOlder} disabled={filter.isSearching}>
                {filter.isSearching ? 'Searching…' : 'Search older'}
              </Button>
            )}
          </span>
        )}
      </div>
      {(live.error ?? retryError) !== undefined && (
        <div className="shrink-0 p-3">
          <ErrorBox error={retryError ?? live.error} />
        </div>
      )}
      <div className="flex min-h-0 flex-1 max-sm:min-h-3/5 max-sm:shrink-0">
        <div className="flex min-h-0 min-w-0 flex-1 flex-col">
          {filter.only?.length === 0 && !filter.isSearching && (view === 'waterfall' || view === 'transcript') ? (
            <EmptyState title={text === undefined ? 'No step has failed' : 'No matching steps'}>
              <p>{filter.isPart ? 'Among those that were searched.' : 'All steps were looked at.'}</p>
            </EmptyState>
          ) : (
            <>
              {view === 'transcript' && <Transcript live={live} only={filter.only} selected={step} onSelect={select} />}
              {view === 'waterfall' && (
                <Waterfall
                  live={live}
                  only={filter.only}
                  scale={scales.find((name) => name === params.scale) ?? 'task'}
                  span={span}
                  onSpan={setSpan}
                  selected={step}
                  onSelect={select}
                />
              )}
            </>
          )}
          {view === 'logs' && <LogsView live={live} />}
          {view === 'events' && <EventsView live={live} />}
          {view === 'attempts' && <AttemptsView live={live} />}
        </div>
        {step !== undefined && (
          <StepInspector
            live={live}
            index={step}
            retryReason={mayNot ?? retryReason(live.task)}
            onRetry={() => void retryFrom(step)}
            onClose={() => setParams({ step: undefined }, { replace: true })}
          />
        )}
      </div>
    </div>
  )
}

function useTaskLive(project: string, id: string): TaskLive {
  const live = useMemo(() => new TaskLive(api, project, id), [project, id])
  useEffect(() => {
    void live.start()
    return () => live.stop()
  }, [live])
  useSyncExternalStore(live.subscribe, live.snapshot)
  const { connection } = live
  useOwnStream(
    live.isWatching,
    connection === 'open' ? 'live' : connection === 'connecting' ? connection : 'reconnecting',
  )
  return live
}

/** Tells in words, once each, how the task goes on, to who does not see it; what it writes is not read out. */
function Announcer({ live }: { live: TaskLive }) {
  const status = live.task?.status
  const before = useRef(status)
  const [text, setText] = useState('')
  useEffect(() => {
    if (status === undefined || status === before.current) return
    before.current = status
    setText(
      status === 'running'
        ? 'The task is running.'
        : status === 'waiting'
          ? 'The task waits.'
          : `The task is ${status}.`,
    )
  }, [status])
  return (
    <p role="status" aria-live="polite" className="sr-only">
      {text}
    </p>
  )
}
