import { queryOptions } from '@tanstack/react-query'
import type { Operations } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { intervals, periodsOf, ranges, type IntervalName, type RangeName } from './periods.ts'

export type Metrics = Operations['getProjectMetrics']['result']['metrics']
export type MetricPoint = Metrics['time_series'][number]

/** Figures of a period that still runs are asked for again. */
const refresh_ms = 30_000

/** How a project, or an agent of it, fared in a range that ends now, and in the one before it. */
export function metricsQuery(
  project_id: string,
  { agent_id, range, interval }: { agent_id?: string | undefined; range: RangeName; interval: IntervalName },
) {
  return queryOptions({
    queryKey: ['project', project_id, 'metrics', agent_id ?? null, range, interval],
    refetchInterval: refresh_ms,
    staleTime: 10_000,
    queryFn: async () => {
      const { current, previous } = periodsOf(range, interval, Date.now())
      const of = agent_id === undefined ? {} : { agent_id }
      const [now, before] = await Promise.all([
        api.projects.metrics(project_id, { ...current, ...of, interval }),
        api.projects.metrics(project_id, { ...previous, ...of, interval }),
      ])
      return { now: now.metrics, before: before.metrics, period: now.period }
    },
  })
}

/** The interval that shows a range well. */
export const intervalOf = (range: RangeName): IntervalName => ranges[range].interval

/** Seconds of an interval. */
export const secondsOf = (interval: IntervalName): number => intervals[interval]
