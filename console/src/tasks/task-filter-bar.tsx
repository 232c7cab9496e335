import { X } from 'lucide-react'
import { TabLinks } from '../ui/tabs.tsx'
import { paths } from '../paths.ts'
import { IconButton } from '../ui/button.tsx'
import { FilterSelect } from '../ui/field.tsx'
import { formatDateTime } from './format.ts'
import { states, type Period, type TaskFilter } from './task-filter.ts'
import type { TaskStatus } from './types.ts'

/** Views that most people come for; any other is kept as a bookmark, for the address says all of it. */
const views = [
  { id: 'all', label: 'All', search: {} },
  { id: 'running', label: 'Running', search: { status: 'running' } },
  { id: 'waiting', label: 'Waiting', search: { status: 'waiting' } },
  { id: 'failed', label: 'Failed in 24 h', search: { status: 'failed', since: '24h' } },
] as const

interface TaskFilterBar {
  project: string
  filter: TaskFilter
  agents: readonly { id: string; name: string }[]
}

/** Which tasks are shown: common views as links, and every choice by itself. */
export function TaskFilterBar({ project, filter, agents }: TaskFilterBar) {
  const { agent, status, since, from, until, isOldestFirst, choose } = filter
  const current = views.find(
    ({ search }) =>
      agent === undefined &&
      (from ?? until) === undefined &&
      ('status' in search ? search.status : undefined) === status &&
      ('since' in search ? search.since : undefined) === since,
  )
  return (
    <>
      <TabLinks
        label="Views of tasks"
        current={current?.id ?? ''}
        tabs={views.map(({ id, label, search }) => ({ id, label, link: paths.tasks(project, search) }))}
      />
      <div className="mb-3 grid grid-cols-2 gap-2 sm:flex sm:flex-wrap" role="search" aria-label="Filter tasks">
        <FilterSelect
          label="Status"
          value={status ?? ''}
          onChange={({ target }) => choose({ status: (target.value || undefined) as TaskStatus })}
        >
          <option value="">Any status</option>
          {states.map((state) => (
            <option key={state}>{state}</option>
          ))}
        </FilterSelect>
        <FilterSelect
          label="Agent"
          value={agent ?? ''}
          onChange={({ target }) => choose({ agent: target.value || undefined })}
          className="max-w-64"
        >
          <option value="">Any agent</option>
          {agent !== undefined && !agents.some(({ id }) => id === agent) && <option value={agent}>{agent}</option>}
          {agents.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </FilterSelect>
        <FilterSelect
          label="Created"
          value={since ?? ''}
          onChange={({ target }) =>
            choose({
              since: (target.value || undefined) as Period,
              created_after: undefined,
              created_before: undefined,
            })
          }
        >
          <option value="">{(from ?? until) === undefined ? 'At any time' : 'Between two moments'}</option>
          <option value="1h">In the last hour</option>
          <option value="24h">In the last 24 hours</option>
          <option value="7d">In the last 7 days</option>
          <option value="30d">In the last 30 days</option>
        </FilterSelect>
        <FilterSelect
          label="Order"
          value={isOldestFirst ? 'created_at' : ''}
          onChange={({ target }) => choose({ sort: target.value === '' ? undefined : 'created_at' })}
        >
          <option value="">Newest first</option>
          <option value="created_at">Oldest first</option>
        </FilterSelect>
        {(from ?? until) !== undefined && (
          <span className="col-span-2 inline-flex min-h-8 items-center gap-1 rounded-md border border-line bg-accent-soft pl-2.5 text-sm">
            <span>
              Created {from !== undefined && `from ${formatDateTime(from)} `}
              {until !== undefined && `until ${formatDateTime(until)}`}
            </span>
            <IconButton
              label="Tasks of any time"
              onClick={() => choose({ created_after: undefined, created_before: undefined })}
            >
              <X size={14} aria-hidden />
            </IconButton>
          </span>
        )}
      </div>
    </>
  )
}
