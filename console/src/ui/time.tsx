import { useSyncExternalStore } from 'react'
import { ago, clockTime, exactTime, forms, writeAs, zoneName, type Form, type TimeZone } from '../format.ts'
import { storedValue } from '../stored-value.ts'

const useKeptZone = storedValue('cadre.time_zone')

/** `local` or `UTC`, as this browser has chosen. */
export function useTimeZone(): [TimeZone, (zone: TimeZone) => void] {
  const [zone, keep] = useKeptZone()
  return [zone === 'UTC' ? 'UTC' : 'local', keep]
}

const useKeptForm = storedValue('cadre.form')
const formOf = (word: string | null): Form => (word !== null && Object.hasOwn(forms, word) ? (word as Form) : 'day')
writeAs(formOf(localStorage.getItem('cadre.form')))

/** How this browser writes dates and numbers, as its user has chosen. */
export function useForm(): [Form, (form: Form) => void] {
  const [word, keep] = useKeptForm()
  return [
    formOf(word),
    (next) => {
      writeAs(next)
      keep(next)
    },
  ]
}

const ticking = new Set<() => void>()
let minute = Date.now()
setInterval(() => {
  minute = Date.now()
  for (const tick of ticking) tick()
}, 15_000)

/**
 * A time in the zone of Preferences: how long ago (the full time is its title), in full (`exact`), or the time of day
 * (`clock`). A dash without a time.
 */
export function Time({
  at,
  form = 'ago',
  className = 'whitespace-nowrap',
}: {
  at: string | null | undefined
  form?: 'ago' | 'exact' | 'clock'
  className?: string
}) {
  const [zone] = useTimeZone()
  useForm()
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
    <time dateTime={at} title={`${full} ${zoneName(zone)}`} className={className}>
      {form === 'exact' ? full : form === 'clock' ? clockTime(at, zone) : ago(at, Math.max(now, Date.now()))}
    </time>
  )
}
