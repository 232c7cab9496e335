import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { useVersionMarks } from '../../agents/version-marks.ts'
import { AgentPicker } from '../../agents/agent-picker.tsx'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Checkbox, FilterSelect } from '../../ui/forms/field.tsx'
import { zoneName } from '../../format.ts'
import { useSearchText } from '../../search-state.ts'
import { Options } from '../parts/options.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import { Figures, FiguresSkeleton, MoreFigures } from './figures.tsx'
import { intervalOf, metricsQuery, secondsOf, type Metrics } from './metrics-query.ts'
import { intervalRefusal, intervals, ranges, type IntervalName, type RangeName } from './periods.ts'
import { Series } from './series.tsx'
import { usePreference } from '../../preferences.ts'
import { ZonePicker } from '../../ui/forms/zone-picker.tsx'

const rangeLabels = Object.fromEntries(Object.entries(ranges).map(([name, { label }]) => [name, label]))
const intervalLabels: Record<IntervalName, string> = {
  '1m': 'a minute',
  '5m': '5 minutes',
  '15m': '15 minutes',
  '1h': 'an hour',
  '1d': 'a day',
}
const pointLabels = Object.fromEntries(
  Object.entries(intervalLabels).map(([name, label]) => [name, `A point for ${label}`]),
)
/** How a project, or one of its agents, fared: figures and charts of a period, against the one before it. */
export default function MetricsPage() {
  const project_id = useProjectId()
  const navigate = useNavigate()
  const [params, setParams] = useSearchText()
  const [zone, setZone] = usePreference('time_zone')
  const [cursor, setCursor] = useState<number | null>(null)
  const agent_id = params.agent
  const range: RangeName =
    params.range !== undefined && Object.hasOwn(ranges, params.range) ? (params.range as RangeName) : '24h'
  const wanted = params.interval as IntervalName | undefined
  const interval =
    wanted !== undefined && Object.hasOwn(intervals, wanted) && !intervalRefusal(range, wanted)
      ? wanted
      : intervalOf(range)
  const isCompared = params.compare === 'yes'
  const isTable = params.view === 'table'
  const metrics = useQuery(metricsQuery(project_id, { agent_id, range, interval }))
  const period = metrics.data?.period
  const resources = useQuery({
    queryKey: ['project', project_id, 'metrics', 'resources', agent_id, period],
    enabled: agent_id !== undefined && period !== undefined,
    queryFn: async () => (await api.agents.metrics(project_id, agent_id!, period)).metrics.time_series,
  })
  const queued = useQuery({
    queryKey: ['project', project_id, 'tasks', 'queued', agent_id],
    queryFn: async () => {
      const query = { status: 'queued', limit: 1 } as const
      const list =
        agent_id === undefined ? api.tasks.list(project_id, query) : api.tasks.listOfAgent(project_id, agent_id, query)
      return (await list.page()).total
    },
  })
  const marks = useVersionMarks(project_id, agent_id)
  const refused = useMemo(
    () =>
      Object.fromEntries(Object.keys(intervals).map((name) => [name, intervalRefusal(range, name as IntervalName)])),
    [range],
  )
  const openTasks = (index: number): void => {
    const point = metrics.data?.now.time_series[index]
    if (!point) return
    const until = new Date(Date.parse(point.timestamp) + secondsOf(interval) * 1000).toISOString()
    void navigate(paths.tasks(project_id, { agent: agent_id, finished_after: point.timestamp, finished_before: until }))
  }
  const isEmpty =
    metrics.data !== undefined &&
    [metrics.data.now, metrics.data.before].every((of) => hasNothing(of) && of.usage.calls === 0) &&
    queued.data === 0
  return (
    <PageFrame
      title="Metrics"
      lead="Task outcomes, durations and usage. Click a point to see its tasks."
      path={`/api/v1/projects/${project_id}/metrics`}
      query={{ ...(period ?? { interval }), ...(agent_id === undefined ? {} : { agent_id }) }}
    >
      <div className="mb-4 flex flex-wrap items-center gap-2">
        <AgentPicker
          project_id={project_id}
          label="Agent"
          any="All agents"
          value={agent_id}
          onChange={(agent) => setParams({ agent })}
          className="sm:!w-56"
        />
        <FilterSelect
          label="Range"
          value={range}
          onChange={(event) => setParams({ range: event.target.value, interval: undefined })}
        >
          <Options of={rangeLabels} />
        </FilterSelect>
        <FilterSelect
          label="A point for"
          value={interval}
          className="sm:!w-52"
          onChange={(event) => setParams({ interval: event.target.value })}
        >
          <Options of={pointLabels} refused={refused} />
        </FilterSelect>
        <ZonePicker label="Time zone" value={zone} onChange={setZone} hasLocal className="sm:!w-52" />
        <Checkbox
          label="Compare with the previous period"
          checked={isCompared}
          onChange={(event) => setParams({ compare: event.target.checked ? 'yes' : undefined })}
        />
        <Checkbox
          label="Show as a table"
          checked={isTable}
          onChange={(event) => setParams({ view: event.target.checked ? 'table' : undefined })}
        />
      </div>
      {metrics.isPending && <MetricsSkeleton />}
      <ErrorBox error={metrics.error} retry={() => void metrics.refetch()} />
      {metrics.data && isEmpty && (
        <EmptyState
          title="Nothing happened in this period"
          actions={
            <>
              <ButtonLink
                kind="primary"
                {...paths.playground(project_id, agent_id === undefined ? {} : { agent: agent_id })}
              >
                Run a task
              </ButtonLink>
              {range !== '30d' && (
                <ButtonLink {...paths.metrics(project_id, { ...params, range: '30d', interval: undefined })}>
                  Last 30 days
                </ButtonLink>
              )}
            </>
          }
        >
          <p>Tasks, their durations, tokens and cost are drawn here over time, beside those of the period before.</p>
        </EmptyState>
      )}
      {metrics.data && !isEmpty && <Figures now={metrics.data.now} before={metrics.data.before} />}
      {metrics.data && !isEmpty && (
        <MoreFigures
          now={metrics.data.now}
          before={metrics.data.before}
          minutes={ranges[range].seconds / 60}
          queued={queued.data}
        />
      )}
      {metrics.data && !isEmpty && hasNothing(metrics.data.now) && (
        <p className="mb-3 text-soft">
          No tasks finished in this period.{' '}
          <Link {...paths.playground(project_id, agent_id === undefined ? {} : { agent: agent_id })}>Run a task</Link>,
          or choose a longer range.
        </p>
      )}
      {metrics.data && !isEmpty && (
        <Series
          now={metrics.data.now.time_series}
          before={isCompared ? metrics.data.before.time_series : undefined}
          resources={resources.data}
          marks={marks}
          isTable={isTable}
          cursor={cursor}
          setCursor={setCursor}
          open={openTasks}
        />
      )}
      {metrics.data && !isEmpty && (
        <p className="mt-3 text-sm text-soft">
          Times are in {zoneName(zone)}. A point stands for {intervalLabels[interval]}.
        </p>
      )}
    </PageFrame>
  )
}

function hasNothing({ tasks }: Metrics): boolean {
  return tasks.completed + tasks.failed + tasks.canceled === 0
}

/** As large as what comes. */
function MetricsSkeleton() {
  return (
    <div role="status" aria-label="Loading metrics">
      <FiguresSkeleton />
      <div className="mb-4 h-[5.9rem] animate-pulse rounded-lg bg-quiet max-sm:h-72" />
      <div className="grid grid-cols-1 gap-4 xl:grid-cols-2">
        {[0, 1, 2, 3].map((nth) => (
          <div key={nth} className="h-[17.1rem] animate-pulse rounded-lg bg-quiet" />
        ))}
      </div>
    </div>
  )
}
