import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { toolKindNames, toolKinds, toolStates } from '#contract/tools/tools.ts'
import type { ListedTool, ToolStatistics } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { formatCount } from '../../format.ts'
import { paths } from '../../paths.ts'
import { useSearchText } from '../../search-state.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Choices } from '../../ui/forms/choices.tsx'
import { curlOf } from '../../ui/copy-as-curl.tsx'
import type { Column } from '../../ui/data-table.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { FilterSelect } from '../../ui/forms/field.tsx'
import { Panel } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { Badge, Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { Options } from '../parts/options.tsx'
import { PageFrame } from '../parts/page-frame.tsx'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { safetyTones, safetyWords } from './tool-labels.ts'

const pageSize = 20

/** What agents can call, and how it does. */
export default function Tools() {
  const project_id = useProjectId()
  const [params, setParams] = useSearchText()
  const offset = Number(params.offset ?? 0)
  const kind = toolKinds.find((one) => one === params.kind)
  const status = toolStates.find((one) => one === params.status)
  const query = { limit: pageSize, offset, ...(kind ? { kind } : {}), ...(status ? { status } : {}) }
  const tools = useQuery({
    queryKey: ['project', project_id, 'tools', query],
    queryFn: () => api.tools.list(project_id, query).page(query),
    placeholderData: keepPreviousData,
    refetchInterval: 15_000,
  })
  const ids = tools.data?.items.map(({ id }) => id) ?? []
  // In a separate request: the list does not wait for it.
  const statistics = useToolStatistics(project_id, ids)
  const numbers = statistics.data
  const mayNot = useDisabledReason('agents')
  const isEmpty = tools.data?.total === 0 && kind === undefined && status === undefined
  // Filters come with the list: they would push what stands in its place while it loads.
  const isFilterable = tools.data !== undefined && !isEmpty
  const add = (label: string, search: object = {}, isPrimary = true) =>
    mayNot === undefined ? (
      <ButtonLink kind={isPrimary ? 'primary' : 'plain'} {...paths.newTool(project_id, search)}>
        {label}
      </ButtonLink>
    ) : (
      <Button kind={isPrimary ? 'primary' : 'plain'} reason={mayNot}>
        {label}
      </Button>
    )
  const columns: Column<ListedTool>[] = [
    {
      id: 'name',
      header: 'Name',
      isWide: true,
      cell: ({ id, name, description }) => (
        <>
          <Link {...paths.tool(project_id, id)} className="font-medium">
            {name}
          </Link>
          <span className="block truncate text-sm text-soft max-sm:whitespace-normal">{description}</span>
        </>
      ),
    },
    {
      id: 'kind',
      header: 'Kind',
      cell: ({ kind }) => <span className="whitespace-nowrap">{toolKindNames[kind]}</span>,
    },
    {
      id: 'safety',
      header: 'Safety',
      cell: ({ safety }) =>
        safety === null ? (
          <span className="whitespace-nowrap text-soft">by each tool</span>
        ) : (
          <span title={safetyWords[safety]}>
            <Badge tone={safetyTones[safety]}>{safety}</Badge>
          </span>
        ),
    },
    {
      id: 'state',
      header: 'State',
      cell: ({ status }) => <Status state={status} label={status === 'drifted' ? 'changed' : status} />,
    },
    {
      id: 'agents',
      header: 'Agents',
      cell: ({ id }) => <Agents project_id={project_id} of={numbers?.get(id)} />,
    },
    {
      id: 'calls',
      header: 'Calls, 24 h',
      isExtra: true,
      align: 'right',
      cell: ({ id }) => <Figure value={numbers?.get(id)?.calls} />,
    },
    {
      id: 'failures',
      header: 'Failed',
      align: 'right',
      cell: ({ id }) => {
        const { failures, last_failure } = numbers?.get(id) ?? {}
        if (!failures || !last_failure) return <Figure value={failures} />
        return (
          <Link
            {...paths.task(project_id, last_failure.task_id)}
            className="font-medium text-bad"
            title={`Last: ${last_failure.message}`}
          >
            {formatCount(failures)}
          </Link>
        )
      },
    },
    {
      id: 'last',
      header: 'Last used',
      isExtra: true,
      cell: ({ id }) => {
        const known = numbers?.get(id)
        if (!known) return <Figure value={undefined} />
        return known.last_used_at === null ? (
          <span className="text-soft">not yet</span>
        ) : (
          <Time at={known.last_used_at} />
        )
      },
    },
  ]
  return (
    <PageFrame
      title="Tools"
      lead="What agents of this project can call: an API, a server, or your own code."
      path={`/api/v1/projects/${project_id}/tools`}
      query={query}
      actions={isEmpty ? undefined : add('New tool')}
    >
      {isFilterable && (
        <div className="mb-3 flex flex-wrap items-center gap-2">
          <Choices
            label="Kind"
            value={kind ?? 'all'}
            options={[['all', 'All'], ...toolKinds.map((one) => [one, toolKindNames[one]] as const)]}
            onChange={(next) => setParams({ kind: next === 'all' ? undefined : next, offset: undefined })}
          />
          <FilterSelect
            label="State"
            value={status ?? ''}
            onChange={({ target }) => setParams({ status: target.value || undefined, offset: undefined })}
          >
            <Options of={{ '': 'Any state', active: 'Active', drifted: 'Changed' }} />
          </FilterSelect>
        </div>
      )}
      <ErrorBox
        error={statistics.error}
        title="Tool usage could not be loaded"
        retry={() => void statistics.refetch()}
      />
      <Panel key={tools.data === undefined ? 'loading' : 'list'}>
        <PagedTable
          label="Tools"
          noun="tools"
          query={tools}
          columns={columns}
          keyOf={({ id }) => id}
          offset={offset}
          limit={pageSize}
          go={(to) => setParams({ offset: to ? String(to) : undefined })}
          empty={
            isEmpty ? (
              <EmptyState
                title="Give agents tools"
                command={curlOf('POST', `/api/v1/projects/${project_id}/tools`, {
                  body: {
                    name: 'weather',
                    description: 'Reads the weather of a city.',
                    kind: 'http',
                    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
                    http: { method: 'GET', url: 'https://weather.example.com/{city}' },
                  },
                })}
                actions={
                  <>
                    {add('Create a tool')}
                    {add('Start from an example', { example: 'weather' }, false)}
                  </>
                }
              >
                <p>
                  A tool lets an agent act: read the weather, open an issue, refund a payment. Register an HTTP request,
                  an OpenAPI document, an MCP server, or a function in your own code. Then add it to the tools of an
                  agent.
                </p>
              </EmptyState>
            ) : (
              <p className="p-4 text-soft">No matching tools.</p>
            )
          }
        />
      </Panel>
    </PageFrame>
  )
}

/** Who uses these tools and how they did, by their identifiers. */
export function useToolStatistics(project_id: string, ids: readonly string[]) {
  return useQuery({
    queryKey: ['project', project_id, 'tools', 'statistics', ids],
    queryFn: async () => {
      const { statistics } = await api.tools.statistics(project_id, { tool_ids: ids.join(',') })
      return new Map(statistics.map((one) => [one.tool_id, one]))
    },
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
    refetchInterval: 30_000,
  })
}

function Figure({ value }: { value: number | undefined }) {
  return value === undefined ? <span className="text-soft">…</span> : formatCount(value)
}

/** Agents that have a tool: the first by name, and how many others there are. */
export function Agents({ project_id, of }: { project_id: string; of: ToolStatistics | undefined }) {
  if (!of) return <span className="text-soft">…</span>
  const [first] = of.agents
  if (!first) return <span className="text-soft">none</span>
  return (
    <span className="whitespace-nowrap" title={of.agents.map(({ name }) => name).join(', ')}>
      <Link {...paths.agent(project_id, first.id)}>{first.name}</Link>
      {of.agents_total > 1 && <span className="text-soft"> and {formatCount(of.agents_total - 1)} more</span>}
    </span>
  )
}
