import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api } from '../../api/client.ts'
import { axisTime, formatCost } from '../../format.ts'
import { Chart, type ChartColor, type Drawing } from '../../ui/charts/chart.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Panel } from '../../ui/page.tsx'
import { monthOf } from './forecast.ts'

type Group = 'agent' | 'model' | 'tool' | 'api_key'

/** What calls without a group are called. */
const without: Record<Group, string> = { agent: 'no agent', model: 'tools', tool: 'models', api_key: 'no key' }

/** What was spent over time, by group, with the budgets that bound it; and what the month comes to. */
export function UsageChart({ project, group, days }: { project: string; group: Group; days: number }) {
  const interval = days === 1 ? '1h' : '1d'
  const series = useQuery({
    queryKey: ['usage', project, 'series', group, days],
    queryFn: () =>
      api.usage.series(project, { group_by: group, interval, start_time: before(days - (days === 1 ? 0 : 1)) }),
  })
  const month = useQuery({
    queryKey: ['usage', project, 'series', 'month'],
    queryFn: () => api.usage.series(project, { group_by: 'agent', interval: '1d', start_time: before(38) }),
    staleTime: 60_000,
  })
  const budgets = useQuery({
    queryKey: ['budgets', project],
    queryFn: () => api.budgets.list(project, { limit: 100 }).page(),
  })
  const bars = useMemo(
    () =>
      (series.data?.series ?? []).map(({ group: key, name, points }, nth) => ({
        label: key === null ? 'others' : (name ?? (key === '' ? without[group] : key)),
        values: points.map(({ cost_usd }) => cost_usd),
        color: `--series-${key === null ? 8 : (nth % 7) + 1}` as ChartColor,
      })),
    [series.data, group],
  )
  const times = series.data?.series[0]?.points.map(({ timestamp }) => Date.parse(timestamp) / 1000) ?? []
  const levelsOf = (period: 'day' | 'hour' | 'month'): NonNullable<Drawing['levels']> =>
    (budgets.data?.items ?? []).flatMap(({ period: of, scope, max_cost_usd }) =>
      of === period && scope === 'project' && max_cost_usd !== null
        ? [{ label: `budget ${formatCost(max_cost_usd)}`, value: max_cost_usd, color: '--bad' as const }]
        : [],
    )
  const sums = useMemo(() => {
    const costs = new Map<number, number>()
    for (const { points } of month.data?.series ?? [])
      for (const { timestamp, cost_usd } of points) {
        const at = Date.parse(timestamp) / 1000
        costs.set(at, (costs.get(at) ?? 0) + cost_usd)
      }
    return monthOf(
      [...costs].map(([at, cost_usd]) => ({ at, cost_usd })),
      Date.now(),
    )
  }, [month.data])
  const ends = sums.forecast.at(-1) ?? 0
  const limits = levelsOf('month').map(({ value }) => value)
  const limit = limits.length > 0 ? Math.min(...limits) : undefined
  return (
    <>
      <ErrorBox error={series.error ?? month.error} retry={() => void series.refetch()} />
      <div className="mb-4 grid grid-cols-1 gap-4 xl:grid-cols-[2fr_1fr]">
        <Panel title={interval === '1d' ? 'Cost by day' : 'Cost by hour'} className="min-w-0">
          <div className="min-h-56">
            {times.length > 0 && (
              <Chart
                title="Cost over time"
                times={times}
                bars={bars}
                levels={levelsOf(interval === '1d' ? 'day' : 'hour')}
                format={formatCost}
              />
            )}
            {series.data && times.length === 0 && <p className="p-4 text-soft">No usage in this period.</p>}
          </div>
        </Panel>
        <Panel
          title={`${new Date().toLocaleString('en', { month: 'long', timeZone: 'UTC' })} so far`}
          className="min-w-0"
        >
          <div className="min-h-56">
            <Chart
              title="The month so far"
              times={sums.times}
              lines={[
                { label: 'spent', values: sums.spent, color: '--accent' },
                {
                  label: 'forecast at the rate of the last 7 days',
                  values: sums.forecast,
                  color: '--soft',
                  isDashed: true,
                },
              ]}
              levels={levelsOf('month')}
              format={formatCost}
            />
          </div>
          <p className="border-t border-line px-4 py-2 text-sm text-soft">
            About <strong className="text-text">{formatCost(ends)}</strong> by{' '}
            {axisTime((sums.times.at(-1) ?? 0) * 1000, 'UTC', 'day')}
            {limit !== undefined && (
              <span className={ends > limit ? 'text-bad' : ''}>
                , {ends > limit ? `over the budget of ${formatCost(limit)}` : `of ${formatCost(limit)}`}
              </span>
            )}
          </p>
        </Panel>
      </div>
    </>
  )
}

/** The beginning of the day (UTC) that was so many days ago, or the moment a day ago. */
function before(days: number): string {
  return new Date(Date.now() - Math.max(1, days) * 86_400_000).toISOString()
}
