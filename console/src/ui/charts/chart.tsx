import { useEffect, useId, useRef, useState, type KeyboardEvent, type PointerEvent, type ReactNode } from 'react'
import { axisTime, exactTime, formatShort, zoneName, zoneOffset_ms } from '../../format.ts'
import { useSearchState } from '../../search-state.ts'
import { Button } from '../button.tsx'
import { ChartTable } from './chart-table.tsx'
import { ticksUpTo, timeLabels, type Tick } from './chart-ticks.ts'
import { usePreference, zoneBesideUtc } from '../../preferences.ts'

/** Colors of the theme that a chart draws with. */
export type ChartColor =
  | '--accent'
  | '--info'
  | '--warn'
  | '--bad'
  | '--good'
  | '--soft'
  | `--series-${number}`
  | `--chart-${'good' | 'bad' | 'quiet'}`

interface Values {
  label: string
  /** One for each time; null: nothing is known, and the chart has a gap. */
  values: readonly (number | null)[]
  color: ChartColor
}

/** What a chart draws: bars on top of each other, lines, a band between two lines. */
export interface Drawing {
  bars?: readonly Values[]
  lines?: readonly (Values & { isDashed?: boolean })[]
  band?: { label: string; low: readonly (number | null)[]; high: readonly (number | null)[]; color: ChartColor }
  /** Levels that are drawn across, such as a budget. */
  levels?: readonly { label: string; value: number; color: ChartColor }[]
  /** Moments in seconds since 1970 that are marked, such as a new version. */
  marks?: readonly { at: number; label: string }[]
}

export interface ChartProps extends Drawing {
  title: string
  /** Seconds since 1970, rising, evenly apart. */
  times: readonly number[]
  format?: (value: number) => string
  /** Marks of the axis of values up to the largest; without it round numbers. */
  axis?: ((most: number) => Tick[]) | undefined
  /** The point under the cursor, which charts side by side share; null: none. */
  cursor?: number | null
  setCursor?: (index: number | null) => void
  /** What a click, or Enter, on a point opens. */
  open?: ((index: number) => void) | undefined
  height_px?: number
}

/** Room for the marks of values, where these need no more; and what a character of them takes. */
const leftMin_px = 52
const character_px = 6.4
const right_px = 10
const top_px = 8
const bottom_px = 22

/**
 * Values over time. The cursor is moved by the pointer or, once the chart has the focus, by the arrow keys; what it points at is written
 * below in words, and Enter or a click opens that moment. The same values are a table where the address says so.
 */
export function Chart({
  title,
  times,
  bars = [],
  lines = [],
  band,
  levels = [],
  marks = [],
  format = formatShort,
  axis,
  height_px = 180,
  open,
  ...shared
}: ChartProps) {
  const box = useRef<HTMLDivElement>(null)
  const [width, setWidth] = useState(0)
  const [own, setOwn] = useState<number | null>(null)
  const [zone] = usePreference('time_zone')
  const [search, change] = useSearchState<{ table?: string | undefined }>()
  const name = title.toLowerCase().replaceAll(/\W+/g, '-')
  const isTable = search.table === name
  const help = useId()
  const cursor = shared.setCursor ? (shared.cursor ?? null) : own
  const setCursor = shared.setCursor ?? setOwn
  useEffect(() => {
    const element = box.current
    if (!element) return
    const watch = new ResizeObserver(() => setWidth(element.clientWidth))
    watch.observe(element)
    setWidth(element.clientWidth)
    return () => watch.disconnect()
  }, [isTable])

  const step = times.length > 1 ? times[1]! - times[0]! : 3600
  const stacked = times.map((_, at) => bars.reduce((sum, { values }) => sum + (values[at] ?? 0), 0))
  const most = Math.max(
    0,
    ...stacked,
    ...lines.flatMap(({ values }) => values.map((value) => value ?? 0)),
    ...(band?.high.map((value) => value ?? 0) ?? []),
    ...levels.map(({ value }) => value),
  )
  const ticks = axis?.(most) ?? ticksUpTo(most).map((at) => ({ at, label: format(at) }))
  const top = Math.max(ticks.at(-1)?.at ?? 1, most)
  const left_px = Math.max(leftMin_px, 12 + character_px * Math.max(...ticks.map(({ label }) => label.length)))
  const inner = Math.max(1, width - left_px - right_px)
  const slot = inner / Math.max(1, times.length)
  const x = (at: number): number => left_px + (at + 0.5) * slot
  const y = (value: number): number => top_px + (height_px - top_px - bottom_px) * (1 - value / top)
  const labels = timeLabels(times, {
    step,
    slot_px: slot,
    offset: (at) => zoneOffset_ms(at * 1000, zone) / 1000,
  })

  const indexAt = ({ clientX, currentTarget }: PointerEvent<SVGElement>): number => {
    const place = clientX - currentTarget.getBoundingClientRect().left - left_px
    return Math.max(0, Math.min(times.length - 1, Math.floor(place / slot)))
  }
  const onKey = (event: KeyboardEvent): void => {
    const last = times.length - 1
    const next = {
      ArrowLeft: Math.max(0, (cursor ?? last + 1) - 1),
      ArrowRight: Math.min(last, (cursor ?? -1) + 1),
      Home: 0,
      End: last,
    }[event.key]
    if (event.key === 'Enter' && cursor !== null && open) open(cursor)
    else if (event.key === 'Escape') setCursor(null)
    else if (next === undefined) return
    else setCursor(next)
    event.preventDefault()
  }

  return (
    <div className="px-3 pt-3 pb-2">
      {isTable ? (
        <ChartTable
          title={title}
          times={times}
          columns={[
            ...bars,
            ...(band
              ? [
                  { label: `${band.label}, low`, values: band.low },
                  { label: `${band.label}, high`, values: band.high },
                ]
              : []),
            ...lines,
          ]}
          format={format}
          height_px={height_px}
        />
      ) : (
        <div
          ref={box}
          role="group"
          aria-label={`${title}: a chart`}
          aria-describedby={help}
          tabIndex={0}
          onKeyDown={onKey}
          className="rounded"
          style={{ height: height_px }}
        >
          {width > 0 && (
            <svg
              width={width}
              height={height_px}
              aria-hidden
              onPointerMove={(event) => setCursor(indexAt(event))}
              onPointerLeave={() => setCursor(null)}
              onClick={() => cursor !== null && open?.(cursor)}
              className={open ? 'cursor-pointer' : ''}
            >
              {ticks.map(({ at, label }) => (
                <g key={at}>
                  <line x1={left_px} x2={width - right_px} y1={y(at)} y2={y(at)} stroke="var(--line)" />
                  <text x={left_px - 8} y={y(at) + 4} textAnchor="end" className="fill-(--soft) text-[11px]">
                    {label}
                  </text>
                </g>
              ))}
              {labels.at.map((index) =>
                x(index) < width - 24 ? (
                  <text
                    key={index}
                    x={x(index)}
                    y={height_px - 6}
                    textAnchor="middle"
                    className="fill-(--soft) text-[11px] tabular-nums"
                  >
                    {axisTime(times[index]! * 1000, zone, labels.unit)}
                  </text>
                ) : null,
              )}
              {band && <path d={bandPath(band.low, band.high, x, y)} fill={`var(${band.color})`} fillOpacity={0.18} />}
              {times.map((at, index) => {
                let below = 0
                return bars.map(({ label, values, color }) => {
                  const value = values[index] ?? 0
                  if (value <= 0) return null
                  const base = y(below)
                  below += value
                  return (
                    <rect
                      key={`${at} ${label}`}
                      x={left_px + index * slot + Math.min(2, slot * 0.15)}
                      width={Math.max(1, slot - 2 * Math.min(2, slot * 0.15))}
                      y={Math.min(y(below), base - 1)}
                      height={Math.max(1, base - y(below))}
                      rx={slot > 8 ? 1.5 : 0}
                      fill={`var(${color})`}
                    />
                  )
                })
              })}
              {lines.map(({ label, values, color, isDashed }) => (
                <g key={label}>
                  <path
                    d={linePath(values, x, y)}
                    fill="none"
                    stroke={`var(${color})`}
                    strokeWidth={1.75}
                    strokeLinejoin="round"
                    strokeDasharray={isDashed ? '4 4' : undefined}
                  />
                  {values.map((value, at) =>
                    value != null && values[at - 1] == null && values[at + 1] == null ? (
                      <circle key={at} cx={x(at)} cy={y(value)} r={2.5} fill={`var(${color})`} />
                    ) : null,
                  )}
                </g>
              ))}
              {levels.map(({ label, value, color }) => (
                <g key={label}>
                  <line
                    x1={left_px}
                    x2={width - right_px}
                    y1={y(value)}
                    y2={y(value)}
                    stroke={`var(${color})`}
                    strokeDasharray="6 4"
                  />
                  <text x={width - right_px} y={y(value) - 4} textAnchor="end" className="fill-(--soft) text-[11px]">
                    {label}
                  </text>
                </g>
              ))}
              {placed(
                marks.map(({ at, label }) => ({ at, label, place: left_px + ((at - (times[0] ?? 0)) / step) * slot })),
                [left_px, width - right_px],
              ).map(({ at, label, place }) => {
                const isLate = place > width - 64
                return (
                  <g key={`${at} ${label}`}>
                    <line
                      x1={place}
                      x2={place}
                      y1={top_px}
                      y2={height_px - bottom_px}
                      stroke="var(--soft)"
                      strokeDasharray="2 3"
                    />
                    <text
                      x={place + (isLate ? -4 : 4)}
                      y={top_px + 9}
                      textAnchor={isLate ? 'end' : 'start'}
                      className="fill-(--soft) text-[11px]"
                    >
                      {label}
                    </text>
                  </g>
                )
              })}
              {cursor !== null && cursor < times.length && (
                <line
                  x1={x(cursor)}
                  x2={x(cursor)}
                  y1={top_px}
                  y2={height_px - bottom_px}
                  stroke="var(--edge)"
                  data-crosshair
                />
              )}
              <rect x={0} y={0} width={width} height={height_px} fill="transparent" />
            </svg>
          )}
        </div>
      )}
      <div className="mt-1 flex items-start gap-2">
        <p
          id={help}
          aria-live="polite"
          className="flex min-h-6 flex-1 flex-wrap items-center gap-x-4 text-xs text-soft"
        >
          {cursor !== null && times[cursor] !== undefined && (
            <span className="font-medium text-text">{exactTime(times[cursor] * 1000, zone)}</span>
          )}
          {bars.map(({ label, values, color }) => (
            <Key key={label} color={color} shape="bar">
              {label}
              {valuesText(values, cursor, format)}
            </Key>
          ))}
          {band && (
            <Key color={band.color} shape="band">
              {band.label}
              {cursor !== null &&
                (band.high[cursor] == null
                  ? ': nothing'
                  : `: ${format(band.low[cursor] ?? 0)} to ${format(band.high[cursor])}`)}
            </Key>
          )}
          {lines.map(({ label, values, color, isDashed }) => (
            <Key key={label} color={color} shape={isDashed ? 'dashes' : 'line'}>
              {label}
              {valuesText(values, cursor, format)}
            </Key>
          ))}
        </p>
        <ZoneSwitch />
        <Button
          kind="ghost"
          size="small"
          aria-pressed={isTable}
          aria-label={`${isTable ? 'Chart' : 'Table'} of ${title}`}
          onClick={() => change({ table: isTable ? undefined : name }, { replace: true })}
        >
          {isTable ? 'Chart' : 'Table'}
        </Button>
      </div>
    </div>
  )
}

/** Labels of marks that are nearer than this would overlap. */
const mark_px = 30

/** Marks within the chart, from left to right; those that are near share one label at the last of them. */
function placed<Mark extends { label: string; place: number }>(marks: readonly Mark[], [from, to]: [number, number]) {
  const shown = marks.filter(({ place }) => place >= from && place <= to).toSorted((a, b) => a.place - b.place)
  let first: Mark | undefined
  return shown.map((mark, nth) => {
    first ??= mark
    const next = shown[nth + 1]
    if (next && next.place - mark.place < mark_px) return { ...mark, label: '' }
    const label = first === mark ? mark.label : `${first.label}–${mark.label}`
    first = undefined
    return { ...mark, label }
  })
}

/** The zone of the times, and the way to the other one; where they are the same there is no other. */
function ZoneSwitch() {
  const [zone, setZone] = usePreference('time_zone')
  const next = zone === 'UTC' ? zoneBesideUtc() : 'UTC'
  const [name, other] = [zoneName(zone), zoneName(next)]
  if (name === other) return <span className="px-2 text-xs leading-6 text-soft">{name}</span>
  return (
    <Button
      kind="ghost"
      size="small"
      title={`Show times in ${other}`}
      aria-label={`Times are in ${name}: show them in ${other}`}
      onClick={() => setZone(next)}
    >
      {name}
    </Button>
  )
}

function valuesText(values: Values['values'], cursor: number | null, format: (value: number) => string): string {
  if (cursor === null) return ''
  const value = values[cursor]
  return value == null ? ': nothing' : `: ${format(value)}`
}

const shapes = {
  bar: { width: 10, height: 10, rx: 2, opacity: 1 },
  band: { width: 12, height: 10, rx: 2, opacity: 0.3 },
  line: { width: 14, height: 2, rx: 1, opacity: 1 },
  dashes: { width: 14, height: 2, rx: 1, opacity: 0.6 },
}

function Key({ color, shape, children }: { color: ChartColor; shape: keyof typeof shapes; children: ReactNode }) {
  const { opacity, ...size } = shapes[shape]
  return (
    <span className="inline-flex items-center gap-1.5">
      <svg width={size.width} height={size.height} aria-hidden>
        <rect {...size} fill={`var(${color})`} fillOpacity={opacity} />
      </svg>
      <span>{children}</span>
    </span>
  )
}

type Place = (value: number) => number

/** A line through what is known; it is broken where nothing is. */
function linePath(values: Values['values'], x: Place, y: Place): string {
  return values
    .map((value, at) =>
      value == null ? '' : `${values[at - 1] == null ? 'M' : 'L'}${x(at).toFixed(1)} ${y(value).toFixed(1)}`,
    )
    .join('')
}

/** The area between two lines, in pieces where nothing is known between them. */
function bandPath(low: Values['values'], high: Values['values'], x: Place, y: Place): string {
  const pieces: number[][] = []
  high.forEach((value, at) => {
    if (value == null || low[at] == null) return
    if (at > 0 && high[at - 1] != null && pieces.length > 0) pieces.at(-1)!.push(at)
    else pieces.push([at])
  })
  return pieces
    .map((piece) => {
      // One that stands alone is as wide as a hair.
      const points = piece.length === 1 ? [piece[0]! - 0.15, piece[0]! + 0.15] : piece
      const known = (values: Values['values'], at: number): number => values[Math.round(at)] ?? 0
      const up = points.map((at) => `${x(at).toFixed(1)} ${y(known(high, at)).toFixed(1)}`)
      const down = points.toReversed().map((at) => `${x(at).toFixed(1)} ${y(known(low, at)).toFixed(1)}`)
      return `M${[...up, ...down].join('L')}Z`
    })
    .join('')
}
