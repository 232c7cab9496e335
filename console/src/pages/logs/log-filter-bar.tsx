import { AgentPicker } from '../../agents/agent-picker.tsx'
import { control, FilterSelect } from '../../ui/forms/field.tsx'
import { TypedSearch } from '../../ui/forms/typed-search.tsx'
import { asFieldTime, levels, ofFieldTime, type LogWords, type Period } from './log-filter.ts'
import type { LogLine } from '../../task-parts/types.ts'
import { zoneName, type TimeZone } from '../../format.ts'

interface LogFilterBar {
  agent: string | undefined
  project: string
  filters: Partial<LogWords>
  /** Whether the fields of a period are in UTC. */
  zone: TimeZone
  change: (search: Partial<LogWords>, options?: { replace?: boolean }) => void
}

/** Which lines are shown. */
export function LogFilterBar({ project, agent, filters: search, zone, change }: LogFilterBar) {
  return (
    <div
      className="grid w-full grid-cols-2 gap-2 sm:flex sm:w-auto sm:flex-wrap"
      role="search"
      aria-label="Filter lines"
    >
      <AgentPicker
        project_id={project}
        label="Agent"
        any="All agents"
        value={agent}
        onChange={(agent) => change({ agent, at: undefined })}
        className="sm:!w-48"
      />
      <FilterSelect
        label="Level"
        value={levels.find((name) => name === search.level) ?? ''}
        onChange={({ target }) => change({ level: (target.value || undefined) as LogLine['level'] })}
      >
        <option value="">Any level</option>
        {levels.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </FilterSelect>
      <FilterSelect
        label="Time"
        value={search.since ?? ''}
        onChange={({ target }) => {
          const since = (target.value || undefined) as Period | undefined
          change(since === 'custom' ? { since } : { since, from: undefined, to: undefined })
        }}
      >
        <option value="">At any time</option>
        <option value="15m">Last 15 minutes</option>
        <option value="1h">Last hour</option>
        <option value="24h">Last 24 hours</option>
        <option value="7d">Last 7 days</option>
        <option value="custom">From … to …</option>
      </FilterSelect>
      {search.since === 'custom' &&
        (['from', 'to'] as const).map((end) => (
          <input
            key={end}
            type="datetime-local"
            step={1}
            aria-label={`${end === 'from' ? 'From' : 'To'}, ${zoneName(zone)}`}
            value={asFieldTime(search[end], zone)}
            onChange={({ target }) => change({ [end]: ofFieldTime(target.value, zone) }, { replace: true })}
            className={`${control} !w-auto min-h-8 max-sm:min-h-10`}
          />
        ))}
      <TypedSearch
        label="Text in the message"
        className="!w-44"
        value={String(search.q ?? '')}
        commit={(q) => change({ q: q || undefined }, { replace: true })}
      />
      <TypedSearch
        label="Task ID"
        className="!w-36"
        value={String(search.task ?? '')}
        commit={(task) => change({ task: task || undefined }, { replace: true })}
      />
    </div>
  )
}
