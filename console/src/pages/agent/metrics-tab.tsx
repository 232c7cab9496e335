import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Facts, Panel } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { formatDuration, formatShort } from '../../format.ts'
import type { TabProps } from './tab.ts'

/** How it did in the last 24 hours, in figures. */
export function MetricsTab({ project_id, agent }: TabProps) {
  const { data, error, refetch } = useQuery({
    queryKey: ['project', project_id, 'agents', 'metrics', agent.id],
    queryFn: () => api.agents.metrics(project_id, agent.id),
  })
  return (
    <Panel
      title="The last 24 hours"
      actions={<Link {...paths.metrics(project_id, { agent: agent.id })}>Charts and other periods</Link>}
    >
      <div className="p-4">
        <ErrorBox error={error} retry={() => void refetch()} />
        {!data && !error && <Skeleton />}
        {data && (
          <Facts>
            <dt>Tasks</dt>
            <dd className="tabular-nums">{data.metrics.tasks.total}</dd>
            <dt>Completed</dt>
            <dd className="tabular-nums">{data.metrics.tasks.completed}</dd>
            <dt>Failed</dt>
            <dd className="tabular-nums">{data.metrics.tasks.failed}</dd>
            <dt>Open</dt>
            <dd className="tabular-nums">{data.metrics.tasks.in_progress}</dd>
            <dt>Time: average, p95, p99</dt>
            <dd className="tabular-nums">
              {formatDuration(data.metrics.performance.avg_response_time * 1000)},{' '}
              {formatDuration(data.metrics.performance.p95_response_time * 1000)},{' '}
              {formatDuration(data.metrics.performance.p99_response_time * 1000)}
            </dd>
            <dt>Tokens a minute</dt>
            <dd className="tabular-nums">{formatShort(data.metrics.performance.tokens_per_minute)}</dd>
            <dt>Calls of models a minute</dt>
            <dd className="tabular-nums">{formatShort(data.metrics.performance.requests_per_minute)}</dd>
          </Facts>
        )}
      </div>
    </Panel>
  )
}
