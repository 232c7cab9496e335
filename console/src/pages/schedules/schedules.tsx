import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { scheduleStates } from '#contract/tasks/schedule-lifecycle.ts'
import type { NewSchedule, Schedule } from '#sdk/types.ts'
import { useAgentNames } from '../../agents/agent-names.ts'
import { AgentPicker } from '../../agents/agent-picker.tsx'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { dueTime, formatCount, zoneName } from '../../format.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { Button } from '../../ui/button.tsx'
import { curlOf } from '../../ui/copy-as-curl.tsx'
import type { Column } from '../../ui/data-table.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { FilterSelect } from '../../ui/forms/field.tsx'
import { Panel } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { Options } from '../parts/options.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { cronWords } from './cron-description.ts'
import { ScheduleForm } from './schedule-form.tsx'
import { usePreference } from '../../preferences.ts'

const pageSize = 20

/** Agents that are given tasks by the clock. */
export default function Schedules() {
  const project_id = useProjectId()
  const [params, setParams] = useSearchText()
  const [zone] = usePreference('time_zone')
  const offset = Number(params.offset ?? 0)
  const status = scheduleStates.find((one) => one === params.status)
  const agent_id = params.agent
  const query = { limit: pageSize, offset, ...(status ? { status } : {}), ...(agent_id ? { agent_id } : {}) }
  const isFiltered = status !== undefined || agent_id !== undefined
  const queries = useQueryClient()
  const schedules = useQuery({
    queryKey: ['project', project_id, 'schedules', query],
    queryFn: () => api.schedules.list(project_id, query).page(query),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  })
  const names = useAgentNames(project_id, schedules.data?.items.map((one) => one.agent_id) ?? [])
  const close = () => {
    setParams({ panel: undefined })
    create.reset()
  }
  const create = useMutation({
    mutationFn: (body: NewSchedule) => api.schedules.create(project_id, body),
    onSuccess: ({ name }) => {
      tell(`${name} is set`)
      close()
      return queries.invalidateQueries({ queryKey: ['project', project_id, 'schedules'] })
    },
  })
  const mayNot = useDisabledReason('agents')
  const isEmpty = schedules.data?.total === 0 && !isFiltered
  // Filters come with the list: they would push what stands in its place while it loads.
  const isFilterable = schedules.data !== undefined && !isEmpty
  const add = (label: string) => (
    <Button kind="primary" reason={mayNot} onClick={() => setParams({ panel: 'new' })}>
      {label}
    </Button>
  )
  const columns: Column<Schedule>[] = [
    {
      id: 'name',
      header: 'Name',
      isWide: true,
      cell: ({ id, name }) => (
        <Link {...paths.schedule(project_id, id)} className="font-medium">
          {name}
        </Link>
      ),
    },
    {
      id: 'agent',
      header: 'Agent',
      cell: ({ agent_id: agent }) => (
        <Link {...paths.agent(project_id, agent)} className="whitespace-nowrap">
          {names.get(agent) ?? agent}
        </Link>
      ),
    },
    {
      id: 'runs',
      header: 'Runs',
      cell: ({ cron, time_zone }) => (
        <span title={`${cron}, ${time_zone}`} className="whitespace-nowrap">
          {cronWords(cron) ?? <code>{cron}</code>}
        </span>
      ),
    },
    {
      id: 'next',
      header: 'Next run',
      cell: ({ next_run_at }) =>
        next_run_at === null ? (
          <span className="text-soft">–</span>
        ) : (
          <time dateTime={next_run_at} className="whitespace-nowrap">
            {Object.values(dueTime(next_run_at, zoneName(zone))).join(', ')}
          </time>
        ),
    },
    {
      id: 'last',
      header: 'Last run',
      isExtra: true,
      cell: ({ last_run_at, last_task_id, last_error }) => (
        <span className="whitespace-nowrap">
          {last_task_id !== null ? (
            <Link {...paths.task(project_id, last_task_id)}>
              <Time at={last_run_at} />
            </Link>
          ) : (
            <span className="text-soft">not yet</span>
          )}
          {last_error && (
            <span title={last_error.message} className="ml-2">
              <Status state="error" label="skipped" tone="warn" />
            </span>
          )}
        </span>
      ),
    },
    {
      id: 'tasks',
      header: 'Tasks',
      isExtra: true,
      align: 'right',
      cell: ({ tasks_created }) => formatCount(tasks_created),
    },
    { id: 'state', header: 'State', cell: ({ status: state }) => <Status state={state} /> },
  ]
  return (
    <PageFrame
      title="Schedules"
      lead={`Tasks created at set times, exactly one per run. Times are in ${zoneName(zone)}.`}
      path={`/api/v1/projects/${project_id}/schedules`}
      query={query}
      actions={isEmpty ? undefined : add('New schedule')}
    >
      {isFilterable && (
        <div className="mb-3 flex flex-wrap gap-2">
          <AgentPicker
            project_id={project_id}
            label="Agent"
            value={agent_id}
            any="Any agent"
            className="!w-48"
            onChange={(agent) => setParams({ agent, offset: undefined })}
          />
          <FilterSelect
            label="State"
            value={status ?? ''}
            onChange={({ target }) => setParams({ status: target.value || undefined, offset: undefined })}
          >
            <Options of={{ '': 'Any state', active: 'Active', paused: 'Paused' }} />
          </FilterSelect>
        </div>
      )}
      <Panel key={schedules.data === undefined ? 'loading' : 'list'}>
        <PagedTable
          label="Schedules"
          noun="schedules"
          query={schedules}
          columns={columns}
          keyOf={({ id }) => id}
          offset={offset}
          limit={pageSize}
          go={(to) => setParams({ offset: to ? String(to) : undefined })}
          empty={
            isEmpty ? (
              <EmptyState
                title="Run agents on a schedule"
                actions={add('Create a schedule')}
                command={curlOf('POST', `/api/v1/projects/${project_id}/schedules`, {
                  body: { agent_id: 'agent_…', name: 'Daily report', cron: '30 7 * * 1-5', input: 'Sum up yesterday.' },
                })}
              >
                <p>
                  A schedule creates tasks at set times: a report every weekday at 07:30, or a check every 15 minutes.
                  Daylight saving, restarts and slow tasks are handled.
                </p>
              </EmptyState>
            ) : (
              <p className="p-4 text-soft">No matching schedules.</p>
            )
          }
        />
      </Panel>
      <Dialog title="New schedule" isOpen={params.panel === 'new'} close={close} width="max-w-3xl" refused={mayNot}>
        <ScheduleForm
          error={create.error}
          project_id={project_id}
          isBusy={create.isPending}
          submit={(body) => create.mutate(body)}
        />
      </Dialog>
    </PageFrame>
  )
}
