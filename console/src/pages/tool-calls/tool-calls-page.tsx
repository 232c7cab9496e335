import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { api } from '../../api/client.ts'
import { curlOf } from '../../ui/copy-as-curl.tsx'
import { Choices } from '../../ui/choices.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { paths } from '../../paths.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { formatCount } from '../../format.ts'
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
      <header className="mb-4 flex flex-wrap items-center gap-3">
        <h1>Tool calls</h1>
        <Choices
          label="State"
          value={status}
          options={states}
          onChange={(next) => setSearch({ status: next, offset: undefined })}
        />
        <span className="inline-flex items-center text-xs text-soft md:ml-auto">
          curl
          <CopyButton
            text={() => curlOf('GET', `/api/v1/projects/${project}/tool-calls?status=${status}`)}
            label="Copy as curl"
          />
        </span>
      </header>
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
        <nav aria-label="Pages" className="mt-4 flex items-center gap-3 text-sm">
          <Button
            onClick={() => setSearch({ offset: Math.max(0, offset - pageSize) || undefined })}
            disabled={offset === 0}
          >
            Newer
          </Button>
          <span className="text-soft">
            {offset + 1}–{offset + calls.length} of {formatCount(list.data.total)}
          </span>
          <Button
            onClick={() => setSearch({ offset: offset + pageSize })}
            disabled={offset + pageSize >= list.data.total}
          >
            Older
          </Button>
        </nav>
      )}
    </div>
  )
}
