import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '../../api/client.ts'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { Choices } from '../../ui/forms/choices.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { PageHeader } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { paths } from '../../paths.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { useSearchState } from '../../search-state.ts'
import { usePathIds } from '../../task-parts/links.tsx'
import { WhenSettled } from '../../ui/skeleton.tsx'
import { useAgentNames } from '../../agents/agent-names.ts'
import { ToolCallCard } from './tool-call-card.tsx'

const states = [
  ['pending', 'Pending'],
  ['claimed', 'Claimed'],
  ['completed', 'Done'],
  ['failed', 'Failed'],
] as const
const pageSize = 20

/** Calls of tools on your side: what waits for a process, or for a person. */
export function ToolCallsPage() {
  const { project } = usePathIds()
  const [search, setSearch] = useSearchState<{ status: string; offset: number }>()
  const queries = useQueryClient()
  const status = states.find(([name]) => name === search.status)?.[0] ?? 'pending'
  const offset = typeof search.offset === 'number' ? search.offset : 0
  const list = useQuery({
    // Beside tasks: what the project's stream says of those is news for these.
    queryKey: ['project', project, 'tasks', 'tool-calls', status, offset],
    queryFn: () => api.toolCalls.list(project, { status, limit: pageSize, offset }).page(),
    placeholderData: keepPreviousData,
  })
  const calls = list.data?.items ?? []
  const agents = useAgentNames(
    project,
    calls.map(({ agent_id }) => agent_id),
  )

  return (
    <div className="w-full max-w-4xl">
      <PageHeader
        title="Tool calls"
        actions={<CopyAsCurl path={`/api/v1/projects/${project}/tool-calls`} query={{ status }} />}
      />
      <div className="mb-4">
        <Choices
          label="State"
          value={status}
          options={states}
          onChange={(next) => setSearch({ status: next, offset: undefined })}
        />
      </div>
      {list.error && <ErrorBox error={list.error} retry={() => void list.refetch()} />}
      {list.data && calls.length === 0 && (
        <EmptyState
          title={status === 'pending' ? 'No pending tool calls' : 'No tool calls'}
          actions={<ButtonLink {...paths.newTool(project, { kind: 'client' })}>Create a client tool</ButtonLink>}
        >
          <p>
            Tools of kind <code>client</code> are called by your own processes. Their calls wait here until a process
            claims them, or a person gives the result.
          </p>
          <p>
            To serve a tool from a shell: <code className="break-all">cadre tools serve --exec refund=./refund.sh</code>
          </p>
        </EmptyState>
      )}
      {calls.length > 0 && (
        <WhenSettled>
          <ul className="space-y-3">
            {calls.map((call) => (
              <li key={call.id} data-row={call.id}>
                <ToolCallCard
                  project={project}
                  call={call}
                  agent={agents.get(call.agent_id)}
                  hasTaskLink
                  onResolved={() => void queries.invalidateQueries({ queryKey: ['project', project, 'tasks'] })}
                />
              </li>
            ))}
          </ul>
        </WhenSettled>
      )}
      {list.data && list.data.total > pageSize && (
        <Pager
          noun="tool calls"
          offset={offset}
          limit={pageSize}
          total={list.data.total}
          go={(to) => setSearch({ offset: to || undefined })}
        />
      )}
    </div>
  )
}
