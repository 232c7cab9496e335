import { useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { CircleCheck } from 'lucide-react'
import { useMemo } from 'react'
import { agentStates } from '#contract/resources/agent-lifecycle.ts'
import { useAgentNames } from '../../agents/agent-names.ts'
import { agentCountQuery } from '../../agents/agent-queries.ts'
import { api } from '../../api/client.ts'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { projectQuery, statusQuery, useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchState } from '../../search-state.ts'
import { titleOf } from '../../task-parts/input-text.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Chart } from '../../ui/charts/chart.tsx'
import { PageHeader, Panel } from '../../ui/page.tsx'
import { WhenSettled } from '../../ui/skeleton.tsx'
import { Status } from '../../ui/status.tsx'
import { formatCount, formatDuration, formatShort, asText, plural } from '../../format.ts'
import { Time } from '../../ui/time.tsx'
import { Figures, FiguresSkeleton } from '../metrics/figures.tsx'
import { metricsQuery, type Metrics } from '../metrics/metrics-query.ts'
import { endedBars } from '../metrics/series.tsx'
import { Allowances } from './allowances.tsx'
import { useLoaded } from '../../use-loaded.ts'
import { Waiting } from './waiting.tsx'

/** Groups of failures on this page; the list of tasks has all. */
const shownFailures = 6

const loadAllAgentsDialog = async () => (await import('./all-agents-dialog.tsx')).AllAgentsDialog

/** What the address may ask about, and what is then done to every agent. */
const panels: Record<string, 'pause' | 'start'> = { 'pause-all': 'pause', 'resume-all': 'start' }

/** A project at a glance: what works, what waits for a person, what it spent. */
export default function HomePage() {
  const project_id = useProjectId()
  const queries = useQueryClient()
  const [search, change] = useSearchState<{ panel?: string | undefined }>()
  const mayNot = useDisabledReason('agents')
  const asked = panels[search.panel ?? '']
  const AllAgentsDialog = useLoaded(loadAllAgentsDialog, asked !== undefined)
  const project = useQuery(projectQuery(project_id))
  const counts = useQueries({ queries: agentStates.map((status) => agentCountQuery(project_id, { status })) })
  const total = counts.reduce((sum, { data }) => sum + (data ?? 0), 0)
  const isCounted = counts.every(({ data }) => data !== undefined)
  const count = (state: (typeof agentStates)[number]): number => counts[agentStates.indexOf(state)]?.data ?? 0
  const failed = project.error ?? counts.find(({ error }) => error)?.error
  return (
    <>
      <PageHeader
        title={project.data?.name ?? 'Home'}
        actions={
          <>
            <CopyAsCurl path={`/api/v1/projects/${project_id}`} />
            {!(isCounted && total === 0) && (
              <>
                <Button
                  reason={mayNot ?? (count('running') > 0 ? undefined : 'No agent is running')}
                  onClick={() => change({ panel: 'pause-all' })}
                >
                  Pause all
                </Button>
                <Button
                  reason={mayNot ?? (count('paused') > 0 ? undefined : 'No agent is paused')}
                  onClick={() => change({ panel: 'resume-all' })}
                >
                  Resume all
                </Button>
              </>
            )}
          </>
        }
      >
        {!(isCounted && total === 0) && 'The last 24 hours, compared with the 24 hours before.'}
      </PageHeader>
      <ErrorBox error={failed} retry={() => void queries.invalidateQueries({ queryKey: ['project', project_id] })} />
      {isCounted && total === 0 && (
        <Panel>
          <EmptyState
            title="No agents yet"
            actions={
              <>
                <ButtonLink kind="primary" {...paths.start(project_id)}>
                  First steps
                </ButtonLink>
                <ButtonLink {...paths.newAgent(project_id)}>Create an agent</ButtonLink>
              </>
            }
          >
            <p>Create an agent and run a task in less than a minute.</p>
            <p>
              Then this page shows tasks by state and hour, what failed and why, what they cost, and what waits for you.
            </p>
          </EmptyState>
        </Panel>
      )}
      {isCounted && total > 0 && (
        <WhenSettled skeleton={<HomeSkeleton />}>
          <Overview project_id={project_id} errors={count('error')} />
        </WhenSettled>
      )}
      {!isCounted && <HomeSkeleton />}
      {isCounted && (
        <p className="mt-4 flex flex-wrap items-center gap-x-4 gap-y-2 text-sm text-soft">
          {total > 0 && <span>Agents:</span>}
          {agentStates
            .filter((state) => count(state) > 0)
            .map((state) => (
              <Link
                key={state}
                {...paths.agents(project_id, { status: state })}
                className="inline-flex items-center gap-1.5 text-soft no-underline hover:text-text"
              >
                <Status state={state} /> {formatCount(count(state))}
              </Link>
            ))}
          <span className="ml-auto">
            <ServiceLine />
          </span>
        </p>
      )}
      {asked && AllAgentsDialog && (
        <AllAgentsDialog project_id={project_id} action={asked} close={() => change({ panel: undefined })} />
      )}
    </>
  )
}

/** The last day in answers: what waits, how tasks ended, what failed and why, what was spent. */
function Overview({ project_id, errors }: { project_id: string; errors: number }) {
  const navigate = useNavigate()
  const { data, error, refetch } = useQuery(metricsQuery(project_id, { range: '24h', interval: '1h' }))
  const times = useMemo(() => data?.now.time_series.map(({ timestamp }) => Date.parse(timestamp) / 1000) ?? [], [data])
  return (
    <>
      <ErrorBox error={error} retry={() => void refetch()} />
      {data ? <Figures now={data.now} before={data.before} /> : <FiguresSkeleton />}
      <div className="grid grid-cols-1 items-start gap-4 xl:grid-cols-[3fr_2fr]">
        <div className="min-w-0 max-xl:contents xl:space-y-4">
          <Panel title="Tasks by state and hour" actions={<Link {...paths.metrics(project_id)}>Metrics</Link>}>
            {data ? (
              <Chart
                title="Tasks by state and hour"
                times={times}
                bars={endedBars(data.now.time_series)}
                format={(value) => (Number.isInteger(value) ? formatShort(value) : '')}
                height_px={200}
                open={(index) => {
                  const point = data.now.time_series[index]
                  if (!point) return
                  const finished_before = new Date(Date.parse(point.timestamp) + 3_600_000).toISOString()
                  void navigate(paths.tasks(project_id, { finished_after: point.timestamp, finished_before }))
                }}
              />
            ) : (
              <div className="h-62" />
            )}
          </Panel>
          <RecentTasks project_id={project_id} />
        </div>
        <div className="min-w-0 max-xl:contents xl:space-y-4">
          <div className="max-xl:order-first">
            <Waiting project_id={project_id} errors={errors} />
          </div>
          <Failures project_id={project_id} failures={data?.now.failures} />
          <Allowances project_id={project_id} />
        </div>
      </div>
    </>
  )
}

/** Failures of the last day, by agent and error. */
function Failures({ project_id, failures }: { project_id: string; failures: Metrics['failures'] | undefined }) {
  return (
    <Panel
      title="Failures in the last 24 hours"
      actions={
        <Link {...paths.tasks(project_id, { status: 'failed', ended: '24h' })} aria-label="All failed tasks">
          All
        </Link>
      }
    >
      {failures?.length === 0 && (
        <p className="flex items-center gap-2 p-4 text-soft">
          <CircleCheck size={16} aria-hidden className="text-good" /> No task failed.
        </p>
      )}
      <ul className="min-h-11">
        {failures?.slice(0, shownFailures).map((group) => (
          <li
            key={`${group.agent_id} ${group.code}`}
            data-row={`${group.agent_id} ${group.code}`}
            className="flex items-start gap-3 border-b border-line px-4 py-2.5 last:border-0"
          >
            <span className="min-w-7 shrink-0 text-right text-lg leading-6 font-semibold text-bad tabular-nums">
              {formatCount(group.count)}
            </span>
            <div className="min-w-0 flex-1">
              <Link
                {...paths.tasks(project_id, {
                  // A task that waited too long has expired, and has no error.
                  ...(group.code === 'expired' ? { status: 'expired' } : { status: 'failed', error: group.code }),
                  ended: '24h',
                  agent: group.agent_id,
                })}
                aria-label={`${plural(group.count, 'failed task')} of ${group.agent_name} with ${group.code}`}
                className="block truncate font-medium text-text no-underline first-letter:uppercase hover:underline"
              >
                {asText(group.code)}
              </Link>
              <p className="line-clamp-2 text-sm break-words text-soft">{group.message}</p>
              <p className="mt-0.5 text-sm text-soft">
                <Link {...paths.agent(project_id, group.agent_id)}>{group.agent_name}</Link> ·{' '}
                <Link {...paths.task(project_id, group.last_task_id)}>
                  newest <Time at={group.last_at} />
                </Link>
              </p>
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function RecentTasks({ project_id }: { project_id: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['project', project_id, 'tasks', 'recent'],
    queryFn: () => api.tasks.list(project_id, { limit: 6 }).page(),
  })
  const names = useAgentNames(project_id, data?.items.map(({ agent_id }) => agent_id) ?? [])
  return (
    <Panel
      title="Latest tasks"
      actions={
        <Link {...paths.tasks(project_id)} aria-label="All tasks">
          All
        </Link>
      }
    >
      <ErrorBox error={error} retry={() => void refetch()} />
      {data?.items.length === 0 && (
        <p className="p-4 text-soft">
          None yet. <Link {...paths.start(project_id)}>Send the first one</Link>.
        </p>
      )}
      <ul>
        {data?.items.map(({ id, agent_id, status, input, created_at, started_at, finished_at }) => (
          <li key={id} data-row={id} className="border-b border-line last:border-0">
            <Link
              {...paths.task(project_id, id)}
              className="flex items-center gap-3 px-4 py-2 text-text no-underline hover:bg-quiet hover:text-text"
            >
              <Status state={status} />
              <span className="min-w-0 flex-1 truncate">{titleOf({ input })}</span>
              <span className="max-w-40 truncate text-sm text-soft max-sm:hidden">{names.get(agent_id) ?? ''}</span>
              <span className="w-16 text-right text-sm text-soft tabular-nums max-sm:hidden">
                {started_at && finished_at ? formatDuration(Date.parse(finished_at) - Date.parse(started_at)) : ''}
              </span>
              <span className="text-sm text-soft">
                <Time at={created_at} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

/** Whether the service works, in a line: in words only where it does not. */
function ServiceLine() {
  const { data, error } = useQuery({ ...statusQuery, refetchInterval: 30_000 })
  if (error) return <ErrorBox error={error} />
  if (!data) return null
  const isWell = data.status === 'operational'
  const ill = Object.entries(data.checks).filter(([, state]) => state !== 'ok')
  return (
    <span className="inline-flex items-center gap-2">
      <Status state={isWell ? 'active' : 'error'} label={`Service ${data.status}`} />
      {!isWell && ill.map(([name, state]) => `${name}: ${state}`).join(', ')} version {data.version}
    </span>
  )
}

function HomeSkeleton() {
  return (
    <div role="status" aria-label="Loading">
      <FiguresSkeleton />
      <div className="grid grid-cols-1 gap-4 xl:grid-cols-[3fr_2fr]">
        <div className="h-80 animate-pulse rounded-lg bg-quiet" />
        <div className="h-80 animate-pulse rounded-lg bg-quiet" />
      </div>
    </div>
  )
}
