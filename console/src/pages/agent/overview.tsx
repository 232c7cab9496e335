import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { Maker } from '../../agents/maker.tsx'
import { useVersionMarks } from '../../agents/version-marks.ts'
import { api } from '../../api/client.ts'
import { formatShort, plural } from '../../format.ts'
import { paths } from '../../paths.ts'
import { Chart } from '../../ui/charts/chart.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { NumberedText } from '../../ui/texts/numbered-text.tsx'
import { Facts, Panel } from '../../ui/page.tsx'
import { Time } from '../../ui/time.tsx'
import { Figures, FiguresSkeleton } from '../metrics/figures.tsx'
import { metricsQuery } from '../metrics/metrics-query.ts'
import { endedBars } from '../metrics/series.tsx'
import type { TabProps } from './tab.ts'

/** How it does, what it is, and its instructions. */
export function Overview({ project_id, agent }: TabProps) {
  const navigate = useNavigate()
  const { config } = agent
  const { data, error, refetch } = useQuery(
    metricsQuery(project_id, { agent_id: agent.id, range: '7d', interval: '1h' }),
  )
  const marks = useVersionMarks(project_id, agent.id)
  const versions = useQuery({
    queryKey: ['project', project_id, 'agents', agent.id, 'versions', 'newest'],
    queryFn: () => api.agents.listVersions(project_id, agent.id, { limit: 1 }).page(),
  })
  const newest = versions.data?.items[0]
  const points = data?.now.time_series ?? []
  return (
    <>
      <ErrorBox error={error} retry={() => void refetch()} />
      {data ? (
        <Figures now={data.now} before={data.before} note="The last 7 days, compared with the 7 days before." />
      ) : (
        <FiguresSkeleton />
      )}
      <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-[3fr_2fr]">
        <Panel
          title="Tasks in the last 7 days"
          actions={<Link {...paths.agent(project_id, agent.id, { tab: 'metrics' })}>Metrics</Link>}
        >
          <div className="min-h-56">
            {data && (
              <Chart
                title="Tasks in the last 7 days"
                times={points.map(({ timestamp }) => Date.parse(timestamp) / 1000)}
                bars={endedBars(points)}
                marks={marks}
                format={(value) => (Number.isInteger(value) ? formatShort(value) : '')}
                open={(index) => {
                  const point = points[index]
                  if (!point) return
                  const finished_before = new Date(Date.parse(point.timestamp) + 3_600_000).toISOString()
                  void navigate(
                    paths.tasks(project_id, { agent: agent.id, finished_after: point.timestamp, finished_before }),
                  )
                }}
              />
            )}
          </div>
          <p className="border-t border-line px-4 py-2 text-sm text-soft">
            {plural(agent.stats.total_tasks, 'task')} in total. Last activity <Time at={agent.last_activity} />.
          </p>
        </Panel>
        <Panel title="Details">
          <div className="p-4">
            <Facts>
              {config.runtime?.kind === 'remote' && (
                <>
                  <dt>Runs on</dt>
                  <dd>
                    your own workers, queue <code>{config.runtime.queue}</code>
                  </dd>
                </>
              )}
              <dt>Model</dt>
              <dd>
                <code>{config.model}</code>
              </dd>
              {config.fallback_models && config.fallback_models.length > 0 && (
                <>
                  <dt>Falls back to</dt>
                  <dd>
                    <code>{config.fallback_models.join(', ')}</code>
                  </dd>
                </>
              )}
              <dt>Tools</dt>
              <dd>{config.tools && config.tools.length > 0 ? <code>{config.tools.join(', ')}</code> : 'none'}</dd>
              <dt>Version</dt>
              <dd>
                {newest ? (
                  <Link {...paths.agent(project_id, agent.id, { tab: 'config' })}>
                    {newest.version === 0 ? 'original' : newest.version}
                  </Link>
                ) : (
                  '–'
                )}
                {newest && (
                  <span className="text-soft">
                    {' '}
                    by <Maker of={agent.id} version={newest} />, <Time at={newest.created_at} />
                  </span>
                )}
              </dd>
              <dt>Created</dt>
              <dd>
                <Time at={agent.created_at} form="exact" />
              </dd>
            </Facts>
          </div>
        </Panel>
        <Panel
          title="Instructions"
          className="lg:col-span-2"
          actions={<CopyButton text={config.system_prompt ?? ''} label="Copy the instructions" />}
        >
          {config.system_prompt ? (
            <NumberedText label="Text of the instructions" text={config.system_prompt} />
          ) : (
            <p className="p-4 text-soft">No instructions. The model gets only the input.</p>
          )}
        </Panel>
      </div>
    </>
  )
}
