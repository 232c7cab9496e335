import { Link, type LinkProps } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { formatShare } from '../../format.ts'

export interface TileProps {
  label: string
  value: ReactNode
  /** What it is of, where the label does not say it. */
  hint?: string
  /** The same of the period before, to tell the change. */
  before?: { now: number; was: number; text: string; isGoodUp?: boolean } | undefined
  /** Values over time, the oldest first. */
  trend?: readonly number[] | undefined
  tone?: 'bad' | 'warn' | undefined
  link?: LinkProps
}

/** Figures in a row: one design wherever there are any. */
export function Tiles({ children, label }: { children: ReactNode; label?: string }) {
  return (
    <dl
      aria-label={label}
      className="mb-4 grid grid-cols-2 gap-px overflow-hidden max-sm:[&>:last-child:nth-child(odd)]:col-span-2 rounded-lg border border-line bg-panel sm:grid-cols-[repeat(auto-fit,minmax(8.5rem,1fr))]"
    >
      {children}
    </dl>
  )
}

/** One figure: what it is, how much, how that stands to before, and how it went. */
export function Tile({ label, value, hint, before, trend, tone, link }: TileProps) {
  const color = tone === 'bad' ? 'text-bad' : tone === 'warn' ? 'text-warn' : 'text-text'
  return (
    <div className="relative flex min-w-0 flex-col bg-panel px-4 py-3 outline outline-line" title={hint}>
      <dt className="truncate text-sm text-soft">
        {link ? (
          <Link {...link} className="text-soft no-underline after:absolute after:inset-0 hover:text-text">
            {label}
          </Link>
        ) : (
          label
        )}
      </dt>
      <dd className={`text-xl leading-8 font-semibold tracking-tight tabular-nums ${color}`}>{value}</dd>
      {before && <Change {...before} />}
      {trend && trend.some((one) => one > 0) && (
        <dd className="mt-auto pt-2" aria-hidden>
          <Trend values={trend} />
        </dd>
      )}
    </div>
  )
}

/** How a figure stands to that of the period before, in an arrow and words. */
function Change({ now, was, text, isGoodUp }: NonNullable<TileProps['before']>) {
  const by = was === 0 ? undefined : (now - was) / was
  const isSame = now === was || (by !== undefined && Math.abs(by) < 0.0005)
  const isGood = isGoodUp === undefined ? undefined : now > was === isGoodUp
  const tone = isSame || isGood === undefined ? 'text-soft' : isGood ? 'text-good' : 'text-bad'
  return (
    <dd className="truncate text-xs text-soft" title={`Previous period: ${text}`}>
      {isSame ? (
        'as before'
      ) : by === undefined ? (
        'nothing before'
      ) : (
        <>
          <span className={tone}>
            {now > was ? '↑' : '↓'} {formatShare(Math.abs(by))}
          </span>{' '}
          from {text}
        </>
      )}
    </dd>
  )
}

const height = 24

/** A small line, from zero to its largest value. */
function Trend({ values }: { values: readonly number[] }) {
  const most = Math.max(...values)
  const step = 100 / Math.max(1, values.length - 1)
  const points = values.map(
    (value, at) => `${(at * step).toFixed(1)} ${(height - 1 - (value / most) * (height - 3)).toFixed(1)}`,
  )
  return (
    <svg viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" className="block h-6 w-full">
      <path d={`M0 ${height}L${points.join('L')}L100 ${height}Z`} fill="var(--accent)" fillOpacity={0.1} />
      <path
        d={`M${points.join('L')}`}
        fill="none"
        stroke="var(--accent)"
        strokeWidth={1.5}
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  )
}
