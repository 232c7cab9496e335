import { ago, zoneName } from '../../format.ts'
import { useTimeZone } from '../../ui/time.tsx'

/** Due times in words, in the zone of Preferences, and in the schedule's own where that says something else. */
export function RunTimes({ runs, time_zone, label }: { runs: readonly string[]; time_zone: string; label: string }) {
  const [zone] = useTimeZone()
  const mine = zoneName(zone)
  return (
    <ol aria-label={label} className="divide-y divide-line">
      {runs.map((at) => {
        const here = moment(at, mine)
        const there = moment(at, time_zone)
        const [day, time] = there.split(', ') as [string, string]
        const theirs = here.startsWith(day) ? time : there
        return (
          <li key={at} className="flex flex-wrap items-baseline justify-between gap-x-4 py-1.5">
            <time dateTime={at}>
              {here}
              {there !== here && (
                <span className="text-soft">
                  {' '}
                  · {theirs} in {placeOf(time_zone)}
                </span>
              )}
            </time>
            <span className="text-sm text-soft">{ago(at)}</span>
          </li>
        )
      })}
    </ol>
  )
}

/** Day and time of day, as people say them. */
export function moment(at: string, timeZone: string): string {
  return new Intl.DateTimeFormat('en-GB', {
    timeZone,
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
  }).format(new Date(at))
}

function placeOf(time_zone: string): string {
  return time_zone.split('/').at(-1)!.replaceAll('_', ' ')
}
