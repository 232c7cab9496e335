import { useQuery } from '@tanstack/react-query'
import { useAgentNames } from '../../agents/agent-names.ts'
import { logTime, type TimeZone } from '../../format.ts'
import { usePathIds } from '../../task-parts/links.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { lineTones } from './line-tones.ts'
import { placeOf } from './log-place.ts'
import type { LogStore } from './log-store.ts'
import type { LogLine } from '../../task-parts/types.ts'

/** Lines on either side. */
const side_lines = 5

/** What was logged just before and after a line, also what does not match the filters. */
export function LinesAround({ store, line, zone }: { store: LogStore; line: LogLine; zone: TimeZone }) {
  const { project } = usePathIds()
  const { data, error } = useQuery({
    queryKey: ['log lines around', project, store.filter.agent, placeOf(line)],
    queryFn: () => store.around(line, side_lines),
    staleTime: Infinity,
  })
  const lines = data ? [...data.before, line, ...data.after] : []
  const isOfAll = store.filter.agent === undefined
  const names = useAgentNames(project, isOfAll ? lines.map(({ agent_id }) => agent_id) : [])
  if (error) return <ErrorBox error={error} />
  return (
    <ol aria-label="Lines around it" aria-busy={!data} className="mt-2 min-h-55 border-l-2 border-line pl-2">
      {lines.map((one, at) => (
        <li
          key={`${at} ${placeOf(one)}`}
          aria-current={one === line ? 'true' : undefined}
          className={`flex gap-3 leading-5 ${lineTones[one.level]} ${one === line ? 'bg-accent-soft font-medium' : ''}`}
        >
          <time dateTime={one.timestamp} className="shrink-0 text-soft tabular-nums max-sm:hidden">
            {logTime(one.timestamp, zone)}
          </time>
          <span className="w-11 shrink-0">{one.level}</span>
          {isOfAll && <span className="w-32 shrink-0 truncate max-sm:hidden">{names.get(one.agent_id ?? '')}</span>}
          <span className="truncate">{one.message}</span>
        </li>
      ))}
    </ol>
  )
}
