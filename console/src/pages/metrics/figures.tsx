import { formatCost, formatCount, formatDuration, formatShare, formatShort } from '../../format.ts'
import { nothingToCompare, Tile, Tiles } from '../../ui/charts/tiles.tsx'
import type { Metrics } from './metrics-query.ts'

/** Seconds as a span of time. */
export const seconds = (value: number): string => formatDuration(value * 1000)

/** As large as the figures of a period. */
export function FiguresSkeleton() {
  return <div className="mb-4 h-[7.75rem] animate-pulse rounded-lg bg-quiet max-sm:h-96" />
}

/** The figures of a period, each with how it stands to the period before and how it went. */
export function Figures({ now, before, note }: { now: Metrics; before: Metrics; note?: string }) {
  const ended = ({ tasks }: Metrics): number => tasks.completed + tasks.failed + tasks.canceled
  const judged = ({ tasks }: Metrics): number => tasks.completed + tasks.failed
  const dash = (of: Metrics, text: string): string => (judged(of) === 0 ? '–' : text)
  const isComparable = ended(before) > 0 || before.usage.calls > 0
  const of = (pick: (metrics: Metrics) => number, text: (value: number) => string, isGoodUp?: boolean) =>
    isComparable
      ? {
          now: pick(now),
          was: pick(before),
          text: text(pick(before)),
          ...(isGoodUp === undefined ? {} : { isGoodUp }),
        }
      : undefined
  const success = ({ tasks }: Metrics): number => tasks.success_rate
  const p95 = ({ performance }: Metrics): number => performance.p95_response_time
  const { time_series: points, usage } = now
  return (
    <Tiles label="Figures" note={isComparable ? note : nothingToCompare}>
      <Tile
        label="Finished tasks"
        value={formatCount(ended(now))}
        before={of(ended, formatCount)}
        trend={points.map(({ completed, failed, canceled }) => completed + failed + canceled)}
      />
      <Tile
        label="Success"
        hint="Completed, as a share of those that completed, failed or expired"
        value={dash(now, formatShare(success(now)))}
        before={
          judged(now) > 0 && judged(before) > 0
            ? {
                now: success(now),
                was: success(before),
                text: formatShare(success(before)),
                isGoodUp: true,
                isShare: true,
              }
            : undefined
        }
        tone={judged(now) > 0 && success(now) < 0.5 ? 'bad' : undefined}
        trend={points.map(({ completed, failed }) =>
          completed + failed === 0 ? null : completed / (completed + failed),
        )}
      />
      <Tile
        label="p95 duration"
        hint="95% of tasks finished within this time"
        value={dash(now, seconds(p95(now)))}
        before={judged(now) > 0 && judged(before) > 0 ? of(p95, seconds, false) : undefined}
        trend={points.map(({ completed, failed, p95_response_time }) =>
          completed + failed === 0 ? null : p95_response_time,
        )}
      />
      <Tile
        label="Cost"
        hint={
          usage.unpriced_calls > 0
            ? `And ${formatCount(usage.unpriced_calls)} calls of models without a known price`
            : 'Of model calls'
        }
        value={formatCost(usage.cost_usd)}
        before={of(({ usage }) => usage.cost_usd, formatCost)}
        trend={points.map(({ cost_usd }) => cost_usd)}
      />
      <Tile
        label="Tokens"
        hint="Input and output"
        value={formatShort(usage.tokens)}
        before={of(({ usage }) => usage.tokens, formatShort)}
        trend={points.map(({ tokens }) => tokens)}
      />
    </Tiles>
  )
}

/** Further figures of a period: how long tasks took, how much was asked of models, and what waits in the queue now. */
export function MoreFigures({
  now,
  before,
  minutes,
  queued,
}: {
  now: Metrics
  before: Metrics
  /** Of the period. */
  minutes: number
  /** Tasks that have not begun; undefined where that is not known yet. */
  queued: number | undefined
}) {
  const isTimed = now.tasks.completed + now.tasks.failed > 0 && before.tasks.completed + before.tasks.failed > 0
  const time = (pick: (of: Metrics['performance']) => number) => ({
    value: now.tasks.completed + now.tasks.failed === 0 ? '–' : seconds(pick(now.performance)),
    before: isTimed
      ? {
          now: pick(now.performance),
          was: pick(before.performance),
          text: seconds(pick(before.performance)),
          isGoodUp: false,
        }
      : undefined,
  })
  const rate = (pick: (of: Metrics['usage']) => number) => ({
    value: formatShort(pick(now.usage) / minutes),
    // Where nothing of the period before is known, the figures above say it.
    before:
      before.usage.calls > 0
        ? {
            now: pick(now.usage),
            was: pick(before.usage),
            text: formatShort(pick(before.usage) / minutes),
          }
        : undefined,
  })
  return (
    <Tiles label="More figures">
      <Tile label="Average duration" {...time(({ avg_response_time }) => avg_response_time)} />
      <Tile
        label="p99 duration"
        hint="99% of tasks finished within this time"
        {...time(({ p99_response_time }) => p99_response_time)}
      />
      <Tile label="Tokens per minute" hint="Input and output" {...rate(({ tokens }) => tokens)} />
      <Tile label="Calls per minute" hint="Of models and tools" {...rate(({ calls }) => calls)} />
      <Tile label="Queue" hint="Tasks that have not begun" value={queued === undefined ? '…' : formatCount(queued)} />
    </Tiles>
  )
}
