import { useSyncExternalStore } from 'react'
import { keptWord } from '../kept-word.ts'

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
]
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const useKeptZone = keptWord('cadre.time_zone')

/** `local` or `UTC`, as this browser has chosen. */
export function useTimeZone(): ['local' | 'UTC', (zone: 'local' | 'UTC') => void] {
  const [zone, keep] = useKeptZone()
  return [zone === 'UTC' ? 'UTC' : 'local', keep]
}

/** The zone's name, as it stands beside a chart. */
export function zoneName(zone: 'local' | 'UTC'): string {
  return zone === 'UTC' ? 'UTC' : Intl.DateTimeFormat().resolvedOptions().timeZone
}

/** A moment in full, to the millisecond where `precise`. */
export function exactTime(at: string | number | Date, zone: 'local' | 'UTC', { precise = false } = {}): string {
  const date = new Date(at)
  return date.toLocaleString('en-GB', {
    ...(zone === 'UTC' ? { timeZone: 'UTC' } : {}),
    year: 'numeric',
    month: 'short',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    ...(precise ? { fractionalSecondDigits: 3 } : {}),
  })
}

/** How long ago, in words. */
export function ago(at: string | number | Date, now = Date.now()): string {
  const distance_ms = new Date(at).getTime() - now
  const [unit, size_ms] = units.find(([, size]) => Math.abs(distance_ms) >= size) ?? ['second', 1_000]
  return Math.abs(distance_ms) < 5_000 ? 'just now' : relative.format(Math.round(distance_ms / size_ms), unit)
}

const ticking = new Set<() => void>()
let minute = Date.now()
setInterval(() => {
  minute = Date.now()
  for (const tick of ticking) tick()
}, 15_000)

/** A moment: how long ago, and in full where one looks closer. A dash where there is none. */
export function Time({ at, exact = false }: { at: string | null | undefined; exact?: boolean }) {
  const [zone] = useTimeZone()
  const now = useSyncExternalStore(
    (tick) => {
      ticking.add(tick)
      return () => ticking.delete(tick)
    },
    () => minute,
  )
  if (at == null) return <span className="text-soft">–</span>
  const full = exactTime(at, zone)
  return (
    <time dateTime={at} title={`${full} ${zoneName(zone)}`} className="whitespace-nowrap">
      {exact ? full : ago(at, Math.max(now, Date.now()))}
    </time>
  )
}

/** A span of time as people read it: 840 ms, 3.2 s, 4 min 10 s. */
export function duration(ms: number | null | undefined): string {
  if (ms == null) return '–'
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}
