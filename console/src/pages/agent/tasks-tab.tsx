import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { taskStates } from '#contract/tasks/task-lifecycle.ts'
import type { Task } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import { useSearchState } from '../../search-state.ts'
import { titleOf } from '../../task-parts/input-text.ts'
import { ButtonLink } from '../../ui/button.tsx'
import type { Column } from '../../ui/data-table.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { FilterSelect } from '../../ui/forms/field.tsx'
import { Panel } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { Status } from '../../ui/status.tsx'
import { formatDuration } from '../../format.ts'
import { Time } from '../../ui/time.tsx'
import type { TabProps } from './tab.ts'

const pageSize = 25
type Search = { status?: string; offset?: number | string }

/** The tasks that it was given, the newest first. */
export function TasksTab({ project_id, agent }: TabProps) {
  const [search, change] = useSearchState<Search>()
  const status = taskStates.find((state) => state === search.status)
  const offset = Number(search.offset ?? 0)
  const query = { limit: pageSize, offset, ...(status ? { status } : {}) }
  const tasks = useQuery({
    queryKey: ['project', project_id, 'tasks', 'of agent', agent.id, query],
    queryFn: () => api.tasks.listOfAgent(project_id, agent.id, query).page({ offset }),
    placeholderData: keepPreviousData,
  })
  const columns: Column<Task>[] = [
    {
      id: 'input',
      header: 'Task',
      isWide: true,
      cell: ({ id, input }) => (
        <Link {...paths.task(project_id, id)} className="text-text no-underline hover:underline">
          {titleOf({ input })}
        </Link>
      ),
    },
    { id: 'status', header: 'State', cell: ({ status }) => <Status state={status} /> },
    { id: 'steps', header: 'Steps', align: 'right', cell: ({ usage }) => usage.steps },
    {
      id: 'duration',
      header: 'Duration',
      align: 'right',
      cell: ({ started_at, finished_at }) =>
        started_at && finished_at ? formatDuration(Date.parse(finished_at) - Date.parse(started_at)) : '–',
    },
    { id: 'created', header: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
  ]
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center gap-2">
        <FilterSelect
          label="State"
          value={status ?? ''}
          onChange={(event) => change({ status: event.target.value || undefined, offset: undefined })}
        >
          <option value="">Any state</option>
          {taskStates.map((state) => (
            <option key={state}>{state}</option>
          ))}
        </FilterSelect>
        <ButtonLink kind="primary" {...paths.playground(project_id, { agent: agent.id })}>
          Run a task
        </ButtonLink>
      </div>
      <Panel>
        <PagedTable
          label="Tasks of the agent"
          noun="tasks"
          query={tasks}
          columns={columns}
          keyOf={({ id }) => id}
          offset={offset}
          limit={pageSize}
          go={(offset) => change({ offset: offset || undefined })}
          empty={
            <EmptyState title={status ? `No task is ${status}` : 'No tasks yet'}>
              <p>Tasks are stored before the API responds, so they survive crashes and dropped connections.</p>
            </EmptyState>
          }
        />
      </Panel>
    </>
  )
}
