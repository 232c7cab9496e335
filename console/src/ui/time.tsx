import { useSyncExternalStore } from 'react'
import { ago, clockTime, exactTime, zoneName } from '../format.ts'
import { usePreference } from '../preferences.ts'

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
  const [zone] = usePreference('time_zone')
  // A change of the form shows at once.
  usePreference('date_form')
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
