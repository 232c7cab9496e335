import { useQueries, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Fragment } from 'react'
import { agentStates } from '#contract/resources/agent-lifecycle.ts'
import { agentCountQuery } from '../../agents/agent-queries.ts'
import { api } from '../../api/client.ts'
import { projectQuery, statusQuery, useProjectId } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchState } from '../../search-state.ts'
import { inputText } from '../../task-parts/input-words.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Facts, PageHeader, Panel } from '../../ui/page.tsx'
import { Status } from '../../ui/status.tsx'
import { formatCost, formatCount, formatDuration } from '../../format.ts'
import { Time } from '../../ui/time.tsx'
import { AllAgentsDialog } from './all-agents-dialog.tsx'
import { Waiting } from './waiting.tsx'

/** What the address may ask about, and what is then done to every agent. */
const panels: Record<string, 'pause' | 'start'> = { 'pause-all': 'pause', 'resume-all': 'start' }

/** A project at a glance: what works, what waits for a person, what it spent. */
export default function HomePage() {
  const project_id = useProjectId()
  const queries = useQueryClient()
  const [search, change] = useSearchState<{ panel?: string | undefined }>()
  const asked = panels[search.panel ?? '']
  const project = useQuery(projectQuery(project_id))
  const counts = useQueries({ queries: agentStates.map((status) => agentCountQuery(project_id, { status })) })
  const total = counts.reduce((sum, { data }) => sum + (data ?? 0), 0)
  const isCounted = counts.every(({ data }) => data !== undefined)
  const count = (state: (typeof agentStates)[number]): number => counts[agentStates.indexOf(state)]?.data ?? 0
  const failed = project.error ?? counts.find(({ error }) => error)?.error
  return (
    <>
      <PageHeader
        title={project.data?.name ?? 'Home'}
        actions={
          <>
            <CopyAsCurl path={`/api/v1/projects/${project_id}`} />
            <Button
              reason={count('running') > 0 ? undefined : 'No agent is running'}
              onClick={() => change({ panel: 'pause-all' })}
            >
              Pause all
            </Button>
            <Button
              reason={count('paused') > 0 ? undefined : 'No agent is paused'}
              onClick={() => change({ panel: 'resume-all' })}
            >
              Resume all
            </Button>
          </>
        }
      />
      <ErrorBox error={failed} retry={() => void queries.invalidateQueries({ queryKey: ['project', project_id] })} />
      {isCounted && total === 0 && (
        <div className="mb-4 flex flex-wrap items-center justify-between gap-3 rounded-lg border border-accent bg-accent-soft p-4">
          <p>
            <strong>Nothing works here yet.</strong> A first agent and a first task take less than a minute.
          </p>
          <ButtonLink kind="primary" {...paths.start(project_id)}>
            First steps
          </ButtonLink>
        </div>
      )}
      <div className="grid grid-cols-1 items-start gap-4 lg:grid-cols-2">
        <Panel
          title="Agents"
          actions={<Link {...paths.agents(project_id)}>All {isCounted ? formatCount(total) : ''}</Link>}
        >
          <ul className="grid grid-cols-2 sm:grid-cols-3">
            {agentStates.map((state) => (
              <li key={state}>
                <Link
                  {...paths.agents(project_id, { status: state })}
                  className="block p-4 text-text no-underline hover:bg-quiet hover:text-text"
                >
                  <span className="mb-1 block text-xl font-semibold tabular-nums">{formatCount(count(state))}</span>
                  <Status state={state} />
                </Link>
              </li>
            ))}
          </ul>
        </Panel>
        <Waiting project_id={project_id} errors={count('error')} />
        <RecentTasks project_id={project_id} />
        <div className="space-y-4">
          <Spent project_id={project_id} />
          <ServiceStatus />
        </div>
      </div>
      {asked && <AllAgentsDialog project_id={project_id} action={asked} close={() => change({ panel: undefined })} />}
    </>
  )
}

function RecentTasks({ project_id }: { project_id: string }) {
  const { data, error, refetch } = useQuery({
    queryKey: ['project', project_id, 'tasks', 'recent'],
    queryFn: () => api.tasks.list(project_id, { limit: 8 }).page(),
  })
  return (
    <Panel title="Latest tasks" actions={<Link {...paths.tasks(project_id)}>All</Link>}>
      <ErrorBox error={error} retry={() => void refetch()} />
      {data?.items.length === 0 && (
        <p className="p-4 text-soft">
          None yet. <Link {...paths.start(project_id)}>Send the first one</Link>.
        </p>
      )}
      <ul>
        {data?.items.map(({ id, status, input, created_at, started_at, finished_at }) => (
          <li key={id} data-row={id} className="border-b border-line last:border-0">
            <Link
              {...paths.task(project_id, id)}
              className="flex items-center gap-3 px-4 py-2 text-text no-underline hover:bg-quiet hover:text-text"
            >
              <Status state={status} />
              <span className="min-w-0 flex-1 truncate">{inputText(input)}</span>
              <span className="text-sm text-soft tabular-nums max-sm:hidden">
                {started_at && finished_at ? formatDuration(Date.parse(finished_at) - Date.parse(started_at)) : ''}
              </span>
              <span className="text-sm text-soft">
                <Time at={created_at} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function Spent({ project_id }: { project_id: string }) {
  const { data, error } = useQuery({
    queryKey: ['project', project_id, 'usage', 'sum'],
    queryFn: async () => (await api.usage.get(project_id, { limit: 1 }).page()).body.total,
    staleTime: 60_000,
  })
  return (
    <Panel title="Spent in 30 days" actions={<Link {...paths.usage(project_id)}>Usage and limits</Link>}>
      <div className="p-4">
        <ErrorBox error={error} />
        {data && (
          <Facts>
            <dt>Cost</dt>
            <dd className="tabular-nums">
              {formatCost(data.cost_usd)}
              {data.unpriced_calls > 0 && (
                <span className="text-soft"> and {formatCount(data.unpriced_calls)} calls without a known price</span>
              )}
            </dd>
            <dt>Tokens</dt>
            <dd className="tabular-nums">
              {formatCount(data.input_tokens)} in, {formatCount(data.output_tokens)} out
            </dd>
            <dt>Calls</dt>
            <dd className="tabular-nums">{formatCount(data.calls)}</dd>
          </Facts>
        )}
      </div>
    </Panel>
  )
}

function ServiceStatus() {
  const { data, error } = useQuery({ ...statusQuery, refetchInterval: 30_000 })
  return (
    <Panel title="Service">
      <div className="p-4">
        <ErrorBox error={error} />
        {data && (
          <Facts>
            <dt>State</dt>
            <dd>
              <Status state={data.status === 'operational' ? 'active' : 'error'} label={data.status} />
            </dd>
            <dt>Version</dt>
            <dd>{data.version}</dd>
            {Object.entries(data.checks).map(([name, state]) => (
              <Fragment key={name}>
                <dt>{name}</dt>
                <dd>{state}</dd>
              </Fragment>
            ))}
          </Facts>
        )}
      </div>
    </Panel>
  )
}
