import { useMemo } from 'react'
import type { AgentMetrics } from '#sdk/types.ts'
import { Panel } from '../../ui/page.tsx'
import { exactTime, formatShare } from '../../format.ts'
import { useTimeZone } from '../../ui/time.tsx'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { Chart, type Line } from './chart.tsx'
import { bytes, number, seconds } from './figures.tsx'

type Point = AgentMetrics['metrics']['time_series'][number]

interface SeriesProps {
  now: readonly Point[]
  before: readonly Point[] | undefined
  /** Minutes that a point stands for. */
  minutes: number
  isTable: boolean
  cursor: number | null
  setCursor: (index: number | null) => void
  open: (index: number) => void
}

const whole = (value: number): string => (Number.isInteger(value) ? String(value) : '')

// Where nothing ended there is no time to draw or to tell.
const time = ({ tasks_completed, tasks_failed, avg_response_time }: Point): number | null =>
  tasks_completed + tasks_failed > 0 ? avg_response_time : null

/** Points of a period as charts that share a cursor, or as a table. */
export function Series({ now, before, minutes, isTable, ...cursor }: SeriesProps) {
  const times = useMemo(() => now.map(({ timestamp }) => Date.parse(timestamp) / 1000), [now])
  const charts = useMemo(() => {
    type Of = (point: Point) => number | null
    const line = (label: string, of: Of, color: Line['color'] = '--accent'): Line => ({
      label,
      values: now.map(of),
      color,
    })
    const old = (of: Of): Line[] =>
      before ? [{ label: 'the period before', values: before.map(of), color: '--soft', isDashed: true }] : []
    const completed: Of = ({ tasks_completed }) => tasks_completed
    const tokens: Of = ({ tokens }) => tokens / minutes
    const requests: Of = ({ requests }) => requests / minutes
    return [
      {
        title: 'Tasks that ended',
        lines: [
          line('completed', completed),
          line('failed', ({ tasks_failed }) => tasks_failed, '--bad'),
          ...old(completed),
        ],
        format: whole,
      },
      { title: 'Average time of a task', lines: [line('average', time), ...old(time)], format: seconds },
      { title: 'Tokens a minute', lines: [line('in and out', tokens), ...old(tokens)], format: number },
      { title: 'Model calls a minute', lines: [line('calls', requests), ...old(requests)], format: number },
      {
        title: 'Processors and memory',
        lines: [
          line('processors', ({ cpu_usage }) => cpu_usage),
          line('memory', ({ memory_usage }) => memory_usage, '--warn'),
        ],
        format: formatShare,
      },
      {
        title: 'Bytes from and to models',
        lines: [
          line('from models', ({ network_in }) => network_in),
          line('to models', ({ network_out }) => network_out, '--warn'),
        ],
        format: bytes,
      },
    ]
  }, [now, before, minutes])
  if (isTable) return <SeriesTable now={now} before={before} minutes={minutes} />
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

function SeriesTable({ now, before, minutes }: Pick<SeriesProps, 'now' | 'before' | 'minutes'>) {
  const [zone] = useTimeZone()
  const rows = now.map((point, index) => ({ point, old: before?.[index] })).toReversed()
  type Row = (typeof rows)[number]
  const column = (id: string, header: string, text: (point: Point) => string, isCompared = true): Column<Row> => ({
    id,
    header,
    align: 'right',
    cell: ({ point, old }) => (
      <>
        {text(point)}
        {isCompared && old && <span className="block text-xs text-soft">was {text(old)}</span>}
      </>
    ),
  })
  const timeOf = (point: Point): string => {
    const value = time(point)
    return value === null ? '–' : seconds(value)
  }
  const columns: Column<Row>[] = [
    {
      id: 'time',
      header: 'Time',
      cell: ({ point }) => <span className="whitespace-nowrap">{exactTime(point.timestamp, zone)}</span>,
    },
    column('completed', 'Completed', ({ tasks_completed }) => number(tasks_completed)),
    column('failed', 'Failed', ({ tasks_failed }) => number(tasks_failed)),
    column('average', 'Average time', timeOf),
    column('tokens', 'Tokens a minute', ({ tokens }) => number(tokens / minutes)),
    column('requests', 'Model calls a minute', ({ requests }) => number(requests / minutes)),
    column('processors', 'Processors', ({ cpu_usage }) => formatShare(cpu_usage), false),
    column('memory', 'Memory', ({ memory_usage }) => formatShare(memory_usage), false),
    column('from', 'From models', ({ network_in }) => bytes(network_in), false),
    column('to', 'To models', ({ network_out }) => bytes(network_out), false),
  ]
  return <DataTable label="Points over time" columns={columns} rows={rows} keyOf={({ point }) => point.timestamp} />
}
