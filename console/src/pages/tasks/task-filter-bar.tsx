import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { AgentPicker } from '../../agents/agent-picker.tsx'
import { IconButton } from '../../ui/button.tsx'
import { FilterSelect } from '../../ui/forms/field.tsx'
import { TypedSearch } from '../../ui/forms/typed-search.tsx'
import { exactTime } from '../../format.ts'
import { anyTime, states, type Period, type TaskFilter } from './task-filter.ts'
import { doors } from '../task/task-trigger.tsx'
import { TaskViews } from './task-views.tsx'
import type { TaskStatus } from '../../task-parts/types.ts'
import { usePreference } from '../../preferences.ts'

const periodNames: Record<Period, string> = {
  '1h': 'in the last hour',
  '24h': 'in the last 24 hours',
  '7d': 'in the last 7 days',
  '30d': 'in the last 30 days',
}

interface TaskFilterBar {
  project: string
  filter: TaskFilter
}

/** Which tasks are shown: common views as links, and single filters. */
export function TaskFilterBar({ project, filter }: TaskFilterBar) {
  const { agent, status, door, error, since, ended, created, finished, isOldestFirst, choose } = filter
  const isBetween = [created, finished].some(({ from, until }) => (from ?? until) !== undefined)
  const [zone] = usePreference('time_zone')
  return (
    <>
      <TaskViews project={project} search={filter.words} />
      <div className="mb-3 grid grid-cols-2 gap-2 sm:flex sm:flex-wrap" role="search" aria-label="Filter tasks">
        <TypedSearch
          label="Part of the input, or task ID"
          className="col-span-2 sm:!w-60"
          value={filter.search ?? ''}
          commit={(q) => choose({ q: q === '' ? undefined : q }, true)}
        />
        <FilterSelect
          label="State"
          value={status ?? ''}
          onChange={({ target }) => choose({ status: (target.value || undefined) as TaskStatus })}
        >
          <option value="">Any state</option>
          {states.map((state) => (
            <option key={state}>{state}</option>
          ))}
        </FilterSelect>
        <AgentPicker
          project_id={project}
          label="Agent"
          any="Any agent"
          value={agent}
          onChange={(agent) => choose({ agent })}
          className="sm:!w-48"
        />
        <FilterSelect
          label="Trigger"
          value={door ?? ''}
          onChange={({ target }) => choose({ door: target.value || undefined })}
        >
          <option value="">Any trigger</option>
          {door !== undefined && doors[door] === undefined && <option value={door}>{door}</option>}
          {Object.entries(doors).map(([kind, name]) => (
            <option key={kind} value={kind}>
              {name}
            </option>
          ))}
        </FilterSelect>
        <FilterSelect
          label="Time"
          value={since === undefined ? (ended === undefined ? '' : `ended ${ended}`) : `since ${since}`}
          onChange={({ target }) => {
            const [kind, period] = target.value.split(' ') as ['since' | 'ended' | '', Period | undefined]
            choose({ ...anyTime, ...(kind === '' ? {} : { [kind]: period }) })
          }}
        >
          <option value="">{isBetween ? 'Between two moments' : 'Any time'}</option>
          {Object.entries({ since: 'Created', ended: 'Ended' }).map(([kind, name]) => (
            <optgroup key={kind} label={name}>
              {Object.entries(periodNames).map(([period, words]) => (
                <option key={period} value={`${kind} ${period}`}>{`${name} ${words}`}</option>
              ))}
            </optgroup>
          ))}
        </FilterSelect>
        <FilterSelect
          label="Order"
          value={isOldestFirst ? 'created_at' : ''}
          onChange={({ target }) => choose({ sort: target.value === '' ? undefined : 'created_at' })}
        >
          <option value="">Newest first</option>
          <option value="created_at">Oldest first</option>
        </FilterSelect>
        {error !== undefined && (
          <Chip remove="Tasks with any error" onRemove={() => choose({ error: undefined })}>
            Error <code>{error}</code>
          </Chip>
        )}
        {isBetween && (
          <Chip remove="Tasks of any time" onRemove={() => choose(anyTime)}>
            {Object.entries({ Created: created, Ended: finished })
              .filter(([, { from, until }]) => (from ?? until) !== undefined)
              .map(
                ([name, { from, until }]) =>
                  `${name}${from === undefined ? '' : ` from ${exactTime(from, zone)}`}${until === undefined ? '' : ` until ${exactTime(until, zone)}`}`,
              )
              .join(', ')}
          </Chip>
        )}
      </div>
    </>
  )
}

/** A filter that a link leads to, and that is only taken away here. */
function Chip({ children, remove, onRemove }: { children: ReactNode; remove: string; onRemove: () => void }) {
  return (
    <span className="col-span-2 inline-flex min-h-8 items-center gap-1 rounded-md border border-line bg-accent-soft pl-2.5 text-sm">
      <span className="min-w-0 break-words">{children}</span>
      <IconButton label={remove} onClick={onRemove}>
        <X size={14} aria-hidden />
      </IconButton>
    </span>
  )
}
