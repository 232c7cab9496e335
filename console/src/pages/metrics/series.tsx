import { useMemo } from 'react'
import type { AgentMetrics } from '../../../../sdk/src/types.ts'
import { Panel } from '../../ui/page.tsx'
import { exactTime, useTimeZone } from '../../ui/time.tsx'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Chart, type Line } from './chart.tsx'
import { seconds } from './figures.tsx'

type Point = AgentMetrics['metrics']['time_series'][number]

interface SeriesProps {
  now: readonly Point[]
  before: readonly Point[] | undefined
  isTable: boolean
  cursor: number | null
  setCursor: (index: number | null) => void
  open: (index: number) => void
}

const whole = (value: number): string => (Number.isInteger(value) ? String(value) : '')
const percent = (value: number): string => `${(value * 100).toFixed(value < 0.1 ? 1 : 0)} %`

/** Points of a period as charts that share a cursor, or as a table. */
export function Series({ now, before, isTable, ...cursor }: SeriesProps) {
  const times = useMemo(() => now.map(({ timestamp }) => Date.parse(timestamp) / 1000), [now])
  const charts = useMemo(() => {
    const line = (label: string, points: readonly Point[], of: (point: Point) => number | null): Line => ({
      label,
      values: points.map(of),
      color: '--accent',
    })
    const old = (of: (point: Point) => number | null): Line[] =>
      before ? [{ ...line('the period before', before, of), color: '--soft', isDashed: true }] : []
    const completed = ({ tasks_completed }: Point) => tasks_completed
    // Where nothing ended there is no time to draw.
    const time = ({ tasks_completed, avg_response_time }: Point) =>
      tasks_completed > 0 || avg_response_time > 0 ? avg_response_time : null
    return [
      { title: 'Tasks completed', lines: [line('completed', now, completed), ...old(completed)], format: whole },
      { title: 'Average time of a task', lines: [line('average', now, time), ...old(time)], format: seconds },
      {
        title: 'Processors and memory',
        lines: [
          line('processors', now, ({ cpu_usage }) => cpu_usage),
          { ...line('memory', now, ({ memory_usage }) => memory_usage), color: '--warn' as const },
        ],
        format: percent,
      },
    ]
  }, [now, before])
  if (isTable) return <SeriesTable now={now} before={before} />
  return (
    <div className="grid grid-cols-1 gap-4 xl:grid-cols-2">
      {charts.map((chart) => (
        <Panel key={chart.title} title={chart.title} className="min-w-0">
          <Chart {...chart} {...cursor} times={times} />
        </Panel>
      ))}
    </div>
  )
}

function SeriesTable({ now, before }: { now: readonly Point[]; before: readonly Point[] | undefined }) {
  const [zone] = useTimeZone()
  const rows = now.map((point, index) => ({ point, old: before?.[index] })).toReversed()
  type Row = (typeof rows)[number]
  const columns: Column<Row>[] = [
    { id: 'time', header: 'Time', cell: ({ point }) => exactTime(point.timestamp, zone) },
    { id: 'completed', header: 'Completed', align: 'right', cell: ({ point }) => point.tasks_completed },
    ...(before
      ? [
          {
            id: 'completed_before',
            header: 'Completed before',
            align: 'right' as const,
            cell: ({ old }: Row) => old?.tasks_completed ?? '–',
          },
        ]
      : []),
    {
      id: 'average_time',
      header: 'Average time',
      align: 'right',
      cell: ({ point }) => seconds(point.avg_response_time),
    },
    ...(before
      ? [
          {
            id: 'average_before',
            header: 'Average before',
            align: 'right' as const,
            cell: ({ old }: Row) => (old ? seconds(old.avg_response_time) : '–'),
          },
        ]
      : []),
    { id: 'processors', header: 'Processors', align: 'right', cell: ({ point }) => percent(point.cpu_usage) },
    { id: 'memory', header: 'Memory', align: 'right', cell: ({ point }) => percent(point.memory_usage) },
  ]
  return <DataTable label="Points over time" columns={columns} rows={rows} keyOf={({ point }) => point.timestamp} />
}
