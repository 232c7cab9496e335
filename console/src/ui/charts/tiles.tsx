import { Link, type LinkProps } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { formatShare, plural } from '../../format.ts'
import { condensed, piecesOf } from './trend.ts'

export interface TileProps {
  label: string
  value: ReactNode
  /** What it is of, where the label does not say it. */
  hint?: string
  /** The same of the period before, to tell the change. */
  before?: { now: number; was: number; text: string; isGoodUp?: boolean; isShare?: boolean } | undefined
  /** Values over time, the oldest first; null: nothing is known, and the line has a gap. */
  trend?: readonly (number | null)[] | undefined
  tone?: 'bad' | 'warn' | undefined
  link?: LinkProps
}

/** Figures in a row: one design wherever there are any. `note` is of all of them. */
export function Tiles({ children, label, note }: { children: ReactNode; label?: string; note?: string | undefined }) {
  const tiles = (
    <dl
      aria-label={label}
      className="grid grid-cols-2 gap-px overflow-hidden max-sm:[&>:last-child:nth-child(odd)]:col-span-2 rounded-lg border border-line bg-panel sm:grid-cols-[repeat(auto-fit,minmax(7rem,1fr))]"
    >
      {children}
    </dl>
  )
  return (
    <div className="mb-4">
      {tiles}
      {note !== undefined && <p className="mt-1.5 text-xs text-soft">{note}</p>}
    </div>
  )
}

/** What is said once for figures of which none has one of the period before. */
export const nothingToCompare = 'There is no data of the previous period to compare with.'

/** One figure: what it is, how much, how that stands to before, and how it went. */
export function Tile({ label, value, hint, before, trend, tone, link }: TileProps) {
  const color = tone === 'bad' ? 'text-bad' : tone === 'warn' ? 'text-warn' : 'text-text'
  return (
    <div className="relative flex min-w-0 flex-col bg-panel px-4 py-3 outline max-lg:px-3 outline-line" title={hint}>
      <dt className="truncate text-sm text-soft">
        {link ? (
          <Link {...link} className="text-soft no-underline after:absolute after:inset-0 hover:text-text">
            {label}
          </Link>
        ) : (
          label
        )}
      </dt>
      <dd
        className={`text-xl leading-8 font-semibold tracking-tight whitespace-nowrap tabular-nums sm:max-lg:text-lg ${color}`}
      >
        {value}
      </dd>
      {before && <Change {...before} />}
      {trend && trend.some((one) => one !== null && one > 0) && (
        <dd className="mt-auto pt-2" aria-hidden>
          <Trend values={trend} />
        </dd>
      )}
    </div>
  )
}

/** How a figure stands to that of the period before, in an arrow and words; a share in percentage points. */
function Change({ now, was, text, isGoodUp, isShare = false }: NonNullable<TileProps['before']>) {
  const by = was === 0 ? undefined : (now - was) / was
  const points = Math.round(Math.abs(now - was) * 100)
  const isSame = now === was || (isShare && points === 0) || (by !== undefined && Math.abs(by) < 0.005)
  const isGood = isGoodUp === undefined ? undefined : now > was === isGoodUp
  const tone = isSame || isGood === undefined ? 'text-soft' : isGood ? 'text-good' : 'text-bad'
  return (
    <dd className="truncate text-xs text-soft" title={`Previous period: ${text}`}>
      {isSame ? (
        'no change'
      ) : (
        <>
          <span className={tone}>
            {now > was ? '↑' : '↓'} {isShare ? plural(points, 'point') : by !== undefined && formatShare(Math.abs(by))}
          </span>{' '}
          from {text}
        </>
      )}
    </dd>
  )
}

const height = 24
/** A small line has so many points at most: more would be a smear. */
const pointsMax = 48

/** A small line, from zero to its largest value, broken where nothing is known. */
function Trend({ values }: { values: readonly (number | null)[] }) {
  const shown = condensed(values, pointsMax)
  const most = Math.max(...shown.map((value) => value ?? 0))
  const step = 100 / Math.max(1, shown.length - 1)
  const x = (at: number): string => (at * step).toFixed(1)
  const pieces = piecesOf(shown).map(({ from, values }) => ({
    from: x(from),
    to: x(from + values.length - 1),
    line: values
      .map((value, nth) => `${x(from + nth)} ${(height - 1 - (value / most) * (height - 3)).toFixed(1)}`)
      .join('L'),
  }))
  return (
    <svg viewBox={`0 0 100 ${height}`} preserveAspectRatio="none" className="block h-6 w-full">
      <path
        d={pieces.map(({ from, to, line }) => `M${from} ${height}L${line}L${to} ${height}Z`).join('')}
        fill="var(--accent)"
        fillOpacity={0.1}
      />
      <path
        // One value that stands alone is a dot.
        d={pieces.map(({ from, to, line }) => `M${line}${from === to ? 'h0.01' : ''}`).join('')}
        fill="none"
        stroke="var(--accent)"
        strokeWidth={1.5}
        strokeLinecap="round"
        strokeLinejoin="round"
        vectorEffect="non-scaling-stroke"
      />
    </svg>
  )
}
