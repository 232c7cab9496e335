import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import type { AgentMetrics } from '#sdk/types.ts'
import { useNewestAgents } from '../../agents/agent-names.ts'
import { AgentPicker } from '../../agents/agent-picker.tsx'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Checkbox, FilterSelect } from '../../ui/field.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { zoneName } from '../../format.ts'
import { useTimeZone } from '../../ui/time.tsx'
import { useSearchText } from '../../search-state.ts'
import { Options } from '../parts/options.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import { Figures } from './figures.tsx'
import { intervalRefusal, intervals, periodsOf, ranges, type IntervalName, type RangeName } from './periods.ts'
import { Series } from './series.tsx'

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
/** Figures of a period that still runs are asked for again. */
const refresh_ms = 30_000

/** How an agent fared: figures and lines of a period, against the one before it. */
export default function Metrics() {
  const project_id = useProjectId()
  const navigate = useNavigate()
  const [words, setWords] = useSearchText()
  const [zone, setZone] = useTimeZone()
  const [cursor, setCursor] = useState<number | null>(null)
  const agents = useNewestAgents(project_id)
  const agent_id = words.agent ?? agents.data?.[0]?.id
  const range: RangeName =
    words.range !== undefined && Object.hasOwn(ranges, words.range) ? (words.range as RangeName) : '24h'
  const wanted = words.interval as IntervalName | undefined
  const interval =
    wanted !== undefined && Object.hasOwn(intervals, wanted) && !intervalRefusal(range, wanted)
      ? wanted
      : ranges[range].interval
  const isCompared = words.compare === 'yes'
  const isTable = words.view === 'table'
  // The period moves on when it is read again, and stays where it is while a page is drawn.
  const metrics = useQuery({
    queryKey: ['project', project_id, 'metrics', agent_id, range, interval, isCompared],
    enabled: agent_id !== undefined,
    refetchInterval: refresh_ms,
    queryFn: async () => {
      const { current, previous } = periodsOf(range, interval, Date.now())
      const [now, before] = await Promise.all([
        api.agents.metrics(project_id, agent_id!, { ...current, interval }),
        isCompared ? api.agents.metrics(project_id, agent_id!, { ...previous, interval }) : undefined,
      ])
      return { now: now.metrics, before: before?.metrics, period: now.period }
    },
  })
  const refused = useMemo(
    () =>
      Object.fromEntries(Object.keys(intervals).map((name) => [name, intervalRefusal(range, name as IntervalName)])),
    [range],
  )
  const openTasks = (index: number): void => {
    const point = metrics.data?.now.time_series[index]
    if (!point) return
    const until = new Date(Date.parse(point.timestamp) + intervals[interval] * 1000).toISOString()
    void navigate(paths.tasks(project_id, { agent: agent_id, created_after: point.timestamp, created_before: until }))
  }
  return (
    <PageFrame
      title="Metrics"
      lead="Tasks, times and what an agent used, over time."
      path={`/api/v1/projects/${project_id}/agents/${agent_id ?? '{agent_id}'}/metrics`}
      query={metrics.data?.period ?? { interval }}
    >
      <div className="mb-4 flex flex-wrap items-center gap-2">
        <AgentPicker
          project_id={project_id}
          label="Agent"
          value={agent_id}
          onChange={(agent) => setWords({ agent })}
          className="sm:!w-56"
        />
        <FilterSelect
          label="Range"
          value={range}
          onChange={(event) => setWords({ range: event.target.value, interval: undefined })}
        >
          <Options of={rangeLabels} />
        </FilterSelect>
        <FilterSelect
          label="A point for"
          value={interval}
          className="sm:!w-52"
          onChange={(event) => setWords({ interval: event.target.value })}
        >
          <Options of={pointLabels} refused={refused} />
        </FilterSelect>
        <FilterSelect
          label="Time zone"
          value={zone}
          onChange={(event) => setZone(event.target.value as 'local' | 'UTC')}
        >
          <Options of={{ local: zoneName('local') === 'UTC' ? 'Local (UTC)' : zoneName('local'), UTC: 'UTC' }} />
        </FilterSelect>
        <Checkbox
          label="Compare with the period before"
          checked={isCompared}
          onChange={(event) => setWords({ compare: event.target.checked ? 'yes' : undefined })}
        />
        <Checkbox
          label="As a table"
          checked={isTable}
          onChange={(event) => setWords({ view: event.target.checked ? 'table' : undefined })}
        />
      </div>
      {(agents.isPending || (agent_id !== undefined && metrics.isPending)) && <Skeleton label="Loading metrics" />}
      <ErrorBox error={agents.error ?? metrics.error} retry={() => void (agents.error ? agents : metrics).refetch()} />
      {agents.data?.length === 0 && (
        <EmptyState title="No agent to measure">
          <p>
            Metrics are of agents: how many of their tasks ended well, how long they took, and what they used.{' '}
            <Link {...paths.newAgent(project_id)}>Create an agent</Link> and give it a task, and its lines begin here.
          </p>
        </EmptyState>
      )}
      {metrics.data && <Figures now={metrics.data.now} before={metrics.data.before} />}
      {metrics.data && hasNothing(metrics.data.now) && (
        <p className="mb-3 text-soft">
          Nothing ended in this time.{' '}
          <Link {...paths.playground(project_id, { agent: agent_id })}>Give the agent a task</Link>, or look at a longer
          range.
        </p>
      )}
      {metrics.data && (
        <Series
          now={metrics.data.now.time_series}
          before={metrics.data.before?.time_series}
          minutes={intervals[interval] / 60}
          isTable={isTable}
          cursor={cursor}
          setCursor={setCursor}
          open={openTasks}
        />
      )}
      {metrics.data && (
        <p className="mt-3 text-sm text-soft">
          Times are in {zoneName(zone)}. A point stands for {intervalLabels[interval]}.
        </p>
      )}
    </PageFrame>
  )
}

function hasNothing({ tasks }: AgentMetrics['metrics']): boolean {
  return tasks.completed + tasks.failed === 0
}
