import { formatDuration, formatShare, formatShort, formatSize } from '../../format.ts'
import type { AgentMetrics } from '#sdk/types.ts'
import { change } from './periods.ts'

type Metrics = AgentMetrics['metrics']

/** Seconds as a span of time. */
export const seconds = (value: number): string => formatDuration(value * 1000)
export { formatShort as number, formatSize as bytes } from '../../format.ts'

const figures: { label: string; of: (metrics: Metrics) => number; format: (value: number) => string; hint?: string }[] =
  [
    { label: 'Tasks', of: ({ tasks }) => tasks.total, format: formatShort },
    {
      label: 'In progress',
      of: ({ tasks }) => tasks.in_progress,
      format: formatShort,
      hint: 'Not ended at the end of the period',
    },
    { label: 'Failed', of: ({ tasks }) => tasks.failed, format: formatShort },
    {
      label: 'Success',
      of: ({ tasks }) => tasks.success_rate,
      format: formatShare,
      hint: 'Of the tasks that ended',
    },
    { label: 'Average time', of: ({ performance }) => performance.avg_response_time, format: seconds },
    { label: 'p95', of: ({ performance }) => performance.p95_response_time, format: seconds },
    { label: 'p99', of: ({ performance }) => performance.p99_response_time, format: seconds },
    { label: 'Tokens a minute', of: ({ performance }) => performance.tokens_per_minute, format: formatShort },
    { label: 'Model calls a minute', of: ({ performance }) => performance.requests_per_minute, format: formatShort },
    {
      label: 'Processors',
      of: ({ resource_usage }) => resource_usage.cpu_usage,
      format: formatShare,
      hint: 'Of a worker, while the agent had tasks',
    },
    {
      label: 'Memory',
      of: ({ resource_usage }) => resource_usage.memory_usage,
      format: formatShare,
      hint: 'Of a worker, while the agent had tasks',
    },
    {
      label: 'Storage',
      of: ({ resource_usage }) => resource_usage.disk_usage,
      format: formatShare,
      hint: 'Of the 1 GiB that is an agent’s share',
    },
    {
      label: 'From models',
      of: ({ resource_usage }) => resource_usage.network_in,
      format: formatSize,
      hint: 'Received',
    },
    { label: 'To models', of: ({ resource_usage }) => resource_usage.network_out, format: formatSize, hint: 'Sent' },
  ]

/** Figures of a period, and how they stand to those of the one before. */
export function Figures({ now, before }: { now: Metrics; before: Metrics | undefined }) {
  return (
    <dl className="mb-4 grid grid-cols-2 gap-px overflow-hidden rounded-lg border border-line bg-line sm:grid-cols-4 xl:grid-cols-7">
      {figures.map(({ label, of, format, hint }) => (
        <div key={label} className="bg-panel p-3">
          <dt className="text-sm text-soft">{label}</dt>
          <dd className="text-lg font-semibold tabular-nums">{tasksEnded(now) || of(now) ? format(of(now)) : '–'}</dd>
          {hint && <dd className="text-xs text-soft">{hint}</dd>}
          {before && <dd className="text-sm text-soft">{against(of(now), of(before), format)}</dd>}
        </div>
      ))}
    </dl>
  )
}

function tasksEnded({ tasks }: Metrics): number {
  return tasks.total
}

function against(now: number, before: number, format: (value: number) => string): string {
  const by = change(now, before)
  if (by === undefined) return now === 0 ? 'as before' : 'nothing before'
  if (Math.abs(by) < 0.0005) return 'as before'
  return `${by > 0 ? '↑' : '↓'} ${formatShare(Math.abs(by))}, was ${format(before)}`
}
