import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { useMemo, useState } from 'react'
import { agentStates } from '#contract/resources/agent-lifecycle.ts'
import { tagsOf } from '../../agents/tags.ts'
import type { Agent } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { useDisabledReason } from '../../api/disabled-reason.ts'
import { useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchState } from '../../search-state.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { PageHeader, Panel } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { agentColumns, hiddenAtFirst } from './agent-columns.tsx'
import { AgentSnippets } from './agent-snippets.tsx'
import { BulkBar, type Outcome } from './bulk-bar.tsx'
import { FilterBar, type AgentFilters } from './filter-bar.tsx'

/** Agents on a page of the list. */
const pageSize = 50
const sorts = ['created_at', '-created_at', 'name', '-name'] as const
type Search = AgentFilters & {
  sort?: string | undefined
  offset?: number | string | undefined
  columns?: string | undefined
}

/** The agents of a project. The service filters, sorts and pages, so ten thousand are as quick as ten. */
export default function AgentsPage() {
  const project_id = useProjectId()
  const [search, change] = useSearchState<Search>()
  const mayNot = useDisabledReason('agents')
  const queries = useQueryClient()
  /** As they were when they were chosen, or seen last. */
  const [chosen, choose] = useState<ReadonlyMap<string, Agent>>(new Map())
  const [outcomes, setOutcomes] = useState<ReadonlyMap<string, Outcome>>(new Map())
  const status = agentStates.find((state) => state === search.status)
  const sort = sorts.find((known) => known === search.sort) ?? '-created_at'
  const offset = Number(search.offset ?? 0)
  const { text, model, tag } = search
  const filters: AgentFilters = { text, status, model, tag }
  const narrowed = {
    ...(text === undefined ? {} : { search: String(text) }),
    ...(status ? { status } : {}),
    ...(model === undefined ? {} : { model: String(model) }),
    ...(tag === undefined ? {} : { tag: String(tag) }),
  }
  const query = { limit: pageSize, offset, sort, ...narrowed }
  const list = useQuery({
    queryKey: ['project', project_id, 'agents', 'list', query],
    queryFn: () => api.agents.list(project_id, query).page({ offset }),
    placeholderData: keepPreviousData,
  })
  const { data } = list
  const here = new Map(data?.items.map((agent) => [agent.id, agent]))
  /** A choice on this page; what was chosen on others stays. */
  const chooseHere = (ids: ReadonlySet<string>): void =>
    choose((before) => new Map([...before, ...here].filter(([id]) => (here.has(id) ? ids.has(id) : true))))
  const agent_ids = data?.items.map(({ id }) => id).join(',') ?? ''
  const statistics = useQuery({
    queryKey: ['project', project_id, 'agents', 'statistics', agent_ids],
    queryFn: () => api.agents.statistics(project_id, { agent_ids }),
    enabled: agent_ids !== '',
    placeholderData: keepPreviousData,
  })
  const byAgent = useMemo(
    () => new Map(statistics.data?.statistics.map((one) => [one.agent_id, one])),
    [statistics.data],
  )
  const hiddenText = search.columns ?? hiddenAtFirst
  const hidden = useMemo(() => new Set(hiddenText.split(',')), [hiddenText])
  const allColumns = useMemo(() => agentColumns(project_id, byAgent, outcomes), [project_id, byAgent, outcomes])
  const columns = useMemo(() => allColumns.filter(({ id }) => !hidden.has(id)), [allColumns, hidden])
  const isNarrowed = Object.keys(narrowed).length > 0
  const isEmpty = data?.total === 0 && !isNarrowed
  const showAll = (): void =>
    change({ text: undefined, status: undefined, model: undefined, tag: undefined, offset: undefined })

  return (
    <>
      <PageHeader
        title="Agents"
        actions={
          <>
            <CopyAsCurl path={`/api/v1/projects/${project_id}/agents`} query={query} />
            {!isEmpty && (
              <ButtonLink kind="primary" {...paths.newAgent(project_id)} reason={mayNot}>
                <Plus size={14} aria-hidden /> New agent
              </ButtonLink>
            )}
          </>
        }
      />
      {!isEmpty && (
        <FilterBar
          filters={filters}
          change={(filters, options) => change({ ...filters, offset: undefined }, options)}
          models={[...new Set(data?.items.map(({ config }) => config.model))].toSorted()}
          tags={[...new Set(data?.items.flatMap(tagsOf))].toSorted()}
          columns={allColumns}
          hidden={hidden}
          showColumns={(hidden) => change({ columns: hidden.join(',') || 'none' }, { replace: true })}
        />
      )}
      {chosen.size > 0 && (
        <BulkBar
          project_id={project_id}
          agents={[...chosen.values()].map((agent) => here.get(agent.id) ?? agent)}
          hidden={new Set([...chosen.keys()].filter((id) => !here.has(id)))}
          onOutcome={(id, outcome) => setOutcomes((before) => new Map(before).set(id, outcome))}
          onEnd={(deleted) => {
            choose((before) => new Map([...before].filter(([id]) => !deleted.includes(id))))
            void queries.invalidateQueries({ queryKey: ['project', project_id, 'agents'] })
          }}
          clear={() => {
            choose(new Map())
            setOutcomes(new Map())
          }}
        />
      )}
      <ErrorBox title="Figures" error={statistics.error} retry={() => void statistics.refetch()} />
      <Panel key={data === undefined ? 'loading' : 'list'}>
        <PagedTable
          label="Agents"
          noun="agents"
          query={list}
          columns={columns}
          keyOf={({ id }) => id}
          isBusy={list.isFetching}
          selection={{ chosen: new Set(chosen.keys()), change: chooseHere, nameOf: ({ name }) => name }}
          sort={{
            by: sort.replace('-', ''),
            order: sort.startsWith('-') ? 'desc' : 'asc',
            change: (by, order) => change({ sort: order === 'desc' ? `-${by}` : by, offset: undefined }),
          }}
          offset={offset}
          limit={pageSize}
          go={(offset) => change({ offset: offset || undefined })}
          skeletonRows={8}
          empty={
            isNarrowed ? (
              <EmptyState title="No matching agents" actions={<Button onClick={showAll}>Show all agents</Button>}>
                <p>Text matches names and descriptions. Model and tag must match exactly.</p>
              </EmptyState>
            ) : (
              <NoAgents project_id={project_id} refused={mayNot} />
            )
          }
        />
      </Panel>
    </>
  )
}

function NoAgents({ project_id, refused }: { project_id: string; refused: string | undefined }) {
  return (
    <EmptyState
      title="No agents yet"
      actions={
        <>
          <ButtonLink kind="primary" {...paths.newAgent(project_id)} reason={refused}>
            Create an agent
          </ButtonLink>
          <ButtonLink {...paths.start(project_id)}>First steps</ButtonLink>
        </>
      }
    >
      <p>
        An agent is a model with instructions, tools and limits. Give it tasks, watch it work, and pause it at any time.
      </p>
      <AgentSnippets project_id={project_id} />
    </EmptyState>
  )
}
