import { useEffect, useRef, useState, type KeyboardEvent } from 'react'
import type uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { useShownTheme } from '../../shell/theme.ts'
import { exactTime } from '../../format.ts'
import { useTimeZone } from '../../ui/time.tsx'

export interface Line {
  label: string
  values: readonly (number | null)[]
  /** A custom property of the theme. */
  color: '--accent' | '--info' | '--warn' | '--bad' | '--soft'
  isDashed?: boolean
}

interface Chart {
  title: string
  /** Unix seconds, rising. */
  times: readonly number[]
  lines: readonly Line[]
  format: (value: number) => string
  /** The point under the cursor, which charts side by side share; null: none. */
  cursor: number | null
  setCursor: (index: number | null) => void
  open: (index: number) => void
}

const height_px = 190

/**
 * Lines over time. The cursor is moved by the pointer or, once the chart has the focus, by the arrow keys; what it points at is
 * written below in words, and Enter or a click opens that moment.
 */
export function Chart({ title, times, lines, format, cursor, setCursor, open }: Chart) {
  const box = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const latest = useRef({ setCursor, open })
  latest.current = { setCursor, open }
  const [zone] = useTimeZone()
  const theme = useShownTheme()
  const [isReady, setReady] = useState(false)

  useEffect(() => {
    const element = box.current
    if (!element) return
    let isOver = false
    const size = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: height_px }))
    void import('uplot').then(({ default: UPlot }) => {
      if (isOver) return
      const made = new UPlot(
        options(UPlot, element, lines, format, zone),
        [times, ...lines.map(({ values }) => values)] as never,
        element,
      )
      made.over.addEventListener('mousemove', () => latest.current.setCursor(made.cursor.idx ?? null))
      made.over.addEventListener('mouseleave', () => latest.current.setCursor(null))
      made.over.addEventListener('click', () => {
        if (made.cursor.idx != null) latest.current.open(made.cursor.idx)
      })
      plot.current = made
      size.observe(element)
      setReady(true)
    })
    return () => {
      isOver = true
      size.disconnect()
      plot.current?.destroy()
      plot.current = undefined
    }
  }, [times, lines, format, zone, theme])

  useEffect(() => {
    const made = plot.current
    if (!made) return
    if (cursor === null) made.setCursor({ left: -10, top: -10 }, false)
    else made.setCursor({ left: made.valToPos(times[cursor] ?? 0, 'x'), top: 0 }, false)
  }, [cursor, times, isReady])

  const move = (event: KeyboardEvent): void => {
    const last = times.length - 1
    const at = cursor ?? last
    const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last, PageUp: at - 10, PageDown: at + 10 }[
      event.key
    ]
    if (event.key === 'Escape') setCursor(null)
    else if (event.key === 'Enter' && cursor !== null) open(cursor)
    else if (next === undefined) return
    else setCursor(Math.max(0, Math.min(last, next)))
    event.preventDefault()
  }
  return (
    <div className="p-3">
      <div
        ref={box}
        tabIndex={0}
        role="group"
        aria-label={`${title}. Arrow keys move the cursor, Enter opens the tasks of that moment. The table has the same data.`}
        onKeyDown={move}
        onBlur={() => setCursor(null)}
        className="min-h-[190px] cursor-crosshair"
      />
      <p role="status" className="mt-1 flex min-h-5 flex-wrap gap-x-4 text-sm text-soft">
        {cursor === null ? (
          lines.map(({ label, color, isDashed }) => (
            <Key key={label} label={label} color={color} isDashed={isDashed ?? false} />
          ))
        ) : (
          <>
            <span className="text-text">{exactTime((times[cursor] ?? 0) * 1000, zone)}</span>
            {lines.map(({ label, values, color, isDashed }) => (
              <Key
                key={label}
                label={`${label}: ${values[cursor] == null ? 'nothing' : format(values[cursor] ?? 0)}`}
                color={color}
                isDashed={isDashed ?? false}
              />
            ))}
          </>
        )}
      </p>
    </div>
  )
}

function Key({ label, color, isDashed }: { label: string; color: string; isDashed: boolean }) {
  return (
    <span className="inline-flex items-center gap-1.5">
      <span
        aria-hidden
        className={`w-4 border-t-2 ${isDashed ? 'border-dashed' : ''}`}
        style={{ borderColor: `var(${color})` }}
      />
      {label}
    </span>
  )
}

function options(
  UPlot: typeof uPlot,
  element: HTMLElement,
  lines: readonly Line[],
  format: (value: number) => string,
  zone: 'local' | 'UTC',
): uPlot.Options {
  const style = getComputedStyle(element)
  const color = (name: string): string => style.getPropertyValue(name).trim()
  const axis = {
    stroke: color('--soft'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
    font: `11px ${style.fontFamily}`,
  }
  return {
    width: element.clientWidth,
    height: height_px,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
    ...(zone === 'UTC' ? { tzDate: (seconds: number) => UPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC') } : {}),
    scales: { y: { range: (_, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      { ...axis, size: 28, values: (_, ticks, _axis, _space, step) => ticks.map((at) => tickName(at, step, zone)) },
      { ...axis, size: 62, values: (_, ticks) => ticks.map(format) },
    ],
    series: [
      {},
      ...lines.map(({ label, values, color: name, isDashed }) => ({
        label,
        stroke: color(name),
        width: 1.5,
        ...(isDashed ? { dash: [4, 4] } : {}),
        // A line needs two points beside each other: one that stands alone is a dot.
        points: { size: 5, fill: color(name), filter: () => alone(values) },
      })),
    ],
  }
}

/** Points with nothing on either side. */
function alone(values: Line['values']): number[] {
  return values.flatMap((value, at) => (value != null && values[at - 1] == null && values[at + 1] == null ? [at] : []))
}

function tickName(at: number, step: number, zone: 'local' | 'UTC'): string {
  const whole = step >= 86_400
  return new Date(at * 1000).toLocaleString('en-GB', {
    ...(zone === 'UTC' ? { timeZone: 'UTC' } : {}),
    ...(whole ? { day: 'numeric', month: 'short' } : { hour: '2-digit', minute: '2-digit' }),
  })
}
