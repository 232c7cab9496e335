import { useMemo } from 'react'
import type { AgentMetrics } from '#sdk/types.ts'
import { exactTime, formatCost, formatCount, formatShare, formatShort, formatSize } from '../../format.ts'
import { Chart, type Drawing, type ChartProps } from '../../ui/charts/chart.tsx'
import { durationTicks } from '../../ui/charts/chart-ticks.ts'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Panel } from '../../ui/page.tsx'
import { seconds } from './figures.tsx'
import type { MetricPoint } from './metrics-query.ts'
import { usePreference } from '../../preferences.ts'

interface SeriesProps {
  now: readonly MetricPoint[]
  before: readonly MetricPoint[] | undefined
  /** What the processes of an agent used; a project has none. */
  resources: AgentMetrics['metrics']['time_series'] | undefined
  marks: NonNullable<Drawing['marks']>
  isTable: boolean
  cursor: number | null
  setCursor: (index: number | null) => void
  open: (index: number) => void
}

const whole = (value: number): string => (Number.isInteger(value) ? formatShort(value) : '')

// Where nothing ended there is no time to draw or to tell.
const timed = ({ completed, failed }: MetricPoint): boolean => completed + failed > 0
const p50 = (point: MetricPoint): number | null => (timed(point) ? point.p50_response_time : null)
const p95 = (point: MetricPoint): number | null => (timed(point) ? point.p95_response_time : null)

/** Bars of the tasks of each state. */
export function endedBars(points: readonly MetricPoint[]): NonNullable<Drawing['bars']> {
  return [
    { label: 'completed', values: points.map(({ completed }) => completed), color: '--chart-good' },
    { label: 'failed', values: points.map(({ failed }) => failed), color: '--chart-bad' },
    { label: 'canceled', values: points.map(({ canceled }) => canceled), color: '--chart-quiet' },
  ]
}

/** Points of a period as charts that share a crosshair, or as a table. */
export function Series({ now, before, resources, marks, isTable, ...shared }: SeriesProps) {
  const times = useMemo(() => now.map(({ timestamp }) => Date.parse(timestamp) / 1000), [now])
  const charts = useMemo(() => {
    const old = (of: (point: MetricPoint) => number | null): NonNullable<Drawing['lines']> =>
      before ? [{ label: 'previous period', values: before.map(of), color: '--soft', isDashed: true }] : []
    const bar = (label: string, of: (point: MetricPoint) => number, color: '--accent' | '--info' = '--accent') => [
      { label, values: now.map(of), color },
    ]
    const drawn: (Drawing & Pick<ChartProps, 'title' | 'format' | 'axis'>)[] = [
      {
        title: 'Finished tasks',
        bars: endedBars(now),
        lines: old(({ completed, failed, canceled }) => completed + failed + canceled),
        format: whole,
      },
      {
        title: 'Task duration',
        band: { label: 'p50 to p95', low: now.map(p50), high: now.map(p95), color: '--accent' },
        lines: [{ label: 'p95', values: now.map(p95), color: '--accent' }, ...old(p95)],
        format: seconds,
        axis: durationTicks,
      },
      {
        title: 'Cost',
        bars: bar('US dollars', ({ cost_usd }) => cost_usd),
        lines: old(({ cost_usd }) => cost_usd),
        format: formatCost,
      },
      {
        title: 'Tokens',
        bars: bar('in and out', ({ tokens }) => tokens, '--info'),
        lines: old(({ tokens }) => tokens),
        format: formatShort,
      },
    ]
    if (resources && resources.length === now.length)
      drawn.push(
        {
          title: 'CPU and memory',
          lines: [
            { label: 'processors', values: resources.map(({ cpu_usage }) => cpu_usage), color: '--accent' },
            { label: 'memory', values: resources.map(({ memory_usage }) => memory_usage), color: '--warn' },
          ],
          format: formatShare,
        },
        {
          title: 'Model traffic',
          bars: [
            { label: 'from models', values: resources.map(({ network_in }) => network_in), color: '--accent' },
            { label: 'to models', values: resources.map(({ network_out }) => network_out), color: '--warn' },
          ],
          format: formatSize,
        },
      )
    return drawn
  }, [now, before, resources])
  if (isTable) return <SeriesTable now={now} before={before} />
  return (
    <div className="grid grid-cols-1 gap-4 xl:grid-cols-2">
      {charts.map((chart) => (
        <Panel key={chart.title} title={chart.title} className="min-w-0">
          <Chart {...chart} {...shared} times={times} marks={marks} />
        </Panel>
      ))}
    </div>
  )
}

function SeriesTable({ now, before }: Pick<SeriesProps, 'now' | 'before'>) {
  const [zone] = usePreference('time_zone')
  const rows = now.map((point, index) => ({ point, old: before?.[index] })).toReversed()
  type Row = (typeof rows)[number]
  const column = (id: string, header: string, text: (point: MetricPoint) => string): Column<Row> => ({
    id,
    header,
    align: 'right',
    cell: ({ point, old }) => (
      <>
        {text(point)}
        {old && <span className="block text-xs text-soft">was {text(old)}</span>}
      </>
    ),
  })
  const time = (of: (point: MetricPoint) => number | null) => (point: MetricPoint) => {
    const value = of(point)
    return value === null ? '–' : seconds(value)
  }
  const columns: Column<Row>[] = [
    {
      id: 'time',
      header: 'Time',
      cell: ({ point }) => <span className="whitespace-nowrap">{exactTime(point.timestamp, zone)}</span>,
    },
    column('completed', 'Completed', ({ completed }) => formatCount(completed)),
    column('failed', 'Failed', ({ failed }) => formatCount(failed)),
    column('canceled', 'Canceled', ({ canceled }) => formatCount(canceled)),
    column('p50', 'p50', time(p50)),
    column('p95', 'p95', time(p95)),
    column('calls', 'Calls', ({ calls }) => formatCount(calls)),
    column('tokens', 'Tokens', ({ tokens }) => formatCount(tokens)),
    column('cost', 'Cost', ({ cost_usd }) => formatCost(cost_usd)),
  ]
  return <DataTable label="Points over time" columns={columns} rows={rows} keyOf={({ point }) => point.timestamp} />
}
