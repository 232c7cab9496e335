import { ago, dueTime, zoneName } from '../../format.ts'
import { usePreference } from '../../preferences.ts'

/** Due times in words, in the zone of Preferences, and in the schedule's own where that says something else. */
export function RunTimes({ runs, time_zone, label }: { runs: readonly string[]; time_zone: string; label: string }) {
  const [zone] = usePreference('time_zone')
  usePreference('date_form')
  const mine = zoneName(zone)
  return (
    <ol aria-label={label} className="divide-y divide-line">
      {runs.map((at) => {
        const here = dueTime(at, mine)
        const there = dueTime(at, time_zone)
        const theirs = here.day === there.day ? there.time : `${there.day}, ${there.time}`
        return (
          <li key={at} className="flex flex-wrap items-baseline justify-between gap-x-4 py-1.5">
            <time dateTime={at}>
              {here.day}, {here.time}
              {(there.day !== here.day || there.time !== here.time) && (
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

function placeOf(time_zone: string): string {
  return time_zone.split('/').at(-1)!.replaceAll('_', ' ')
}
