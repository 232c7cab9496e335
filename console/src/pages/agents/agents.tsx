import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Columns3, Plus } from 'lucide-react'
import { useState } from 'react'
import { agentStates, type AgentState } from '../../../../contract/src/agent-lifecycle.ts'
import type { Agent } from '../../../../sdk/src/types.ts'
import { cadre } from '../../api/client.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchState } from '../../search-state.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { DataTable, type Column } from '../../ui/data-table.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Checkbox, FilterSelect } from '../../ui/field.tsx'
import { LiveBadge } from '../../ui/live-badge.tsx'
import { PageHeader, Panel } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { AgentSnippets } from './agent-snippets.tsx'
import { BulkBar, type Outcome } from './bulk-bar.tsx'

/** Agents on a page of the list. */
const pageSize = 50
const sorts = ['created_at', '-created_at', 'name', '-name'] as const
type Search = { status?: string; sort?: string; offset?: number | string; columns?: string }

/** The agents of a project. The service filters, sorts and pages, so ten thousand are as quick as ten. */
export default function AgentsPage() {
  const project_id = useProjectId()
  const [search, change] = useSearchState<Search>()
  const queries = useQueryClient()
  const [chosen, choose] = useState<Set<string>>(new Set())
  const [outcomes, setOutcomes] = useState<ReadonlyMap<string, Outcome>>(new Map())
  const status = agentStates.find((state) => state === search.status)
  const sort = sorts.find((known) => known === search.sort) ?? '-created_at'
  const offset = Number(search.offset ?? 0)
  const query = { limit: pageSize, offset, sort, ...(status ? { status } : {}) }
  const { data, error, refetch, isFetching } = useQuery({
    queryKey: ['project', project_id, 'agents', 'list', query],
    queryFn: () => cadre.agents.list(project_id, query).page({ offset }),
    placeholderData: keepPreviousData,
  })
  const hidden = new Set((search.columns ?? 'id,description').split(','))
  const columns = allColumns(project_id, outcomes).filter(({ id }) => !hidden.has(id))
  const isEmpty = data?.total === 0 && status === undefined

  return (
    <>
      <PageHeader
        title="Agents"
        actions={
          <>
            <LiveBadge />
            <CopyAsCurl path={`/api/v1/projects/${project_id}/agents`} query={query} />
            <ButtonLink kind="primary" {...paths.newAgent(project_id)}>
              <Plus size={14} aria-hidden /> New agent
            </ButtonLink>
          </>
        }
      />
      {!isEmpty && (
        <div className="mb-3 flex flex-wrap items-center gap-2">
          <FilterSelect
            label="State"
            value={status ?? ''}
            onChange={(event) => change({ status: event.target.value || undefined, offset: undefined })}
          >
            <option value="">Every state</option>
            {agentStates.map((state) => (
              <option key={state} value={state}>
                {state}
              </option>
            ))}
          </FilterSelect>
          <details className="relative">
            <summary className="inline-flex min-h-8 list-none items-center gap-1.5 rounded-md border border-line bg-panel px-2.5 hover:border-edge max-sm:min-h-10">
              <Columns3 size={14} aria-hidden /> Columns
            </summary>
            <div className="absolute z-20 mt-1 w-48 space-y-1 rounded-md border border-line bg-raised p-3 shadow-lg">
              {allColumns(project_id, outcomes)
                .filter(({ id }) => id !== 'name' && id !== 'result')
                .map(({ id, header }) => (
                  <Checkbox
                    key={id}
                    label={header}
                    checked={!hidden.has(id)}
                    onChange={() => {
                      const next = new Set(hidden)
                      if (!next.delete(id)) next.add(id)
                      change({ columns: [...next].filter(Boolean).join(',') || 'none' }, { replace: true })
                    }}
                  />
                ))}
            </div>
          </details>
        </div>
      )}
      {chosen.size > 0 && (
        <BulkBar
          project_id={project_id}
          agents={(data?.items ?? []).filter(({ id }) => chosen.has(id))}
          onOutcome={(id, outcome) => setOutcomes((before) => new Map(before).set(id, outcome))}
          onEnd={() => void queries.invalidateQueries({ queryKey: ['project', project_id, 'agents'] })}
          clear={() => {
            choose(new Set())
            setOutcomes(new Map())
          }}
        />
      )}
      <ErrorBox error={error} retry={() => void refetch()} />
      <Panel>
        {!data && !error && <Skeleton rows={8} />}
        {isEmpty && <NoAgents project_id={project_id} />}
        {data && !isEmpty && (
          <>
            {data.items.length === 0 ? (
              <EmptyState title={`No agent is ${status ?? 'here'}`}>
                <Button onClick={() => change({ status: undefined, offset: undefined })}>Show every state</Button>
              </EmptyState>
            ) : (
              <DataTable
                label="Agents"
                columns={columns}
                rows={data.items}
                keyOf={({ id }) => id}
                isBusy={isFetching}
                selection={{ chosen, change: choose, nameOf: ({ name }) => name }}
                sort={{
                  by: sort.replace('-', ''),
                  order: sort.startsWith('-') ? 'desc' : 'asc',
                  change: (by, order) => change({ sort: order === 'desc' ? `-${by}` : by, offset: undefined }),
                }}
              />
            )}
            <Pager
              offset={offset}
              limit={pageSize}
              total={data.total}
              noun="agents"
              go={(offset) => change({ offset: offset || undefined })}
            />
          </>
        )}
      </Panel>
    </>
  )
}

function allColumns(project_id: string, outcomes: ReadonlyMap<string, Outcome>): Column<Agent>[] {
  const columns: Column<Agent>[] = [
    {
      id: 'name',
      header: 'Name',
      sort: 'name',
      cell: ({ id, name }) => (
        <Link {...paths.agent(project_id, id)} className="font-medium text-text no-underline hover:underline">
          {name}
        </Link>
      ),
    },
    { id: 'status', header: 'State', cell: ({ status }) => <Status state={status satisfies AgentState} /> },
    { id: 'model', header: 'Model', cell: ({ config }) => <code>{config.model}</code> },
    { id: 'description', header: 'Description', isWide: true, cell: ({ description }) => description },
    { id: 'activity', header: 'Last activity', cell: ({ last_activity }) => <Time at={last_activity} /> },
    {
      id: 'created',
      header: 'Created',
      sort: 'created_at',
      cell: ({ created_at }) => <Time at={created_at} />,
    },
    { id: 'id', header: 'Id', cell: ({ id }) => <CopyId id={id} short /> },
  ]
  if (outcomes.size === 0) return columns
  const result: Column<Agent> = {
    id: 'result',
    header: 'Result',
    cell: ({ id }) => {
      const outcome = outcomes.get(id)
      if (!outcome) return null
      return <Status state={outcome.isGood ? 'completed' : 'failed'} label={outcome.text} />
    },
  }
  return [...columns.slice(0, 2), result, ...columns.slice(2)]
}

function NoAgents({ project_id }: { project_id: string }) {
  return (
    <EmptyState
      title="No agents yet"
      actions={
        <>
          <ButtonLink kind="primary" {...paths.newAgent(project_id)}>
            Make the first agent
          </ButtonLink>
          <ButtonLink {...paths.start(project_id)}>First steps</ButtonLink>
        </>
      }
    >
      <p>
        An agent is a model with instructions, tools and limits, and a state that you can see and change. It works on
        the tasks that it is given, one after the other or several at once.
      </p>
      <AgentSnippets project_id={project_id} />
    </EmptyState>
  )
}
