import { formatCount } from '../../format.ts'
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { curlOf } from '../../ui/copy-as-curl.tsx'
import { ApprovalCard } from './approval-card.tsx'
import { paths } from '../../paths.ts'
import { Button, ButtonLink } from '../../ui/button.tsx'
import { Choices } from '../../ui/choices.tsx'
import { CopyButton } from '../../ui/copy.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { useSearchState } from '../../search-state.ts'
import { usePathIds } from '../../task-parts/links.tsx'
import { useAgentNames } from '../../agents/agent-names.ts'
import type { Approval } from '../../task-parts/types.ts'

const states = [
  ['pending', 'Waiting'],
  ['approved', 'Approved'],
  ['rejected', 'Denied'],
  ['expired', 'Expired'],
] as const
const pageSize = 20

/** What agents ask people for, to be answered where one is. */
export function ApprovalsPage() {
  const { project } = usePathIds()
  const [params, setParams] = useSearchState<{ status: string; offset: number }>()
  const queries = useQueryClient()
  const status = states.find(([name]) => name === params.status)?.[0] ?? 'pending'
  const offset = typeof params.offset === 'number' ? params.offset : 0
  const [answered, setAnswered] = useState<Approval[]>([])
  const key = ['project', project, 'approvals', status, offset]
  const list = useQuery({
    queryKey: key,
    queryFn: () => api.approvals.list(project, { status, limit: pageSize, offset }).page(),
    placeholderData: keepPreviousData,
  })
  const approvals = list.data?.items ?? []
  const agents = useAgentNames(
    project,
    approvals.map(({ agent_id }) => agent_id),
  )

  return (
    <div className="w-full max-w-4xl">
      <header className="mb-4 flex flex-wrap items-center gap-3">
        <h1>Approvals</h1>
        <Choices
          label="State"
          value={status}
          options={states}
          onChange={(next) => setParams({ status: next, offset: undefined })}
        />
        <span className="inline-flex items-center text-xs text-soft md:ml-auto">
          curl
          <CopyButton
            text={() => curlOf('GET', `/api/v1/projects/${project}/approvals?status=${status}`)}
            label="Copy as curl"
          />
        </span>
      </header>
      <p role="status" className={answered.length === 0 ? 'sr-only' : 'mb-3 text-sm text-soft'}>
        {answered.length > 0 &&
          `${answered.at(-1)!.tool} was ${answered.at(-1)!.status === 'approved' ? 'approved' : 'denied'}.`}
      </p>
      {list.error && <ErrorBox error={list.error} retry={() => void list.refetch()} />}
      {list.data && approvals.length === 0 && (
        <EmptyState
          title={status === 'pending' ? 'No pending approvals' : 'No approvals'}
          actions={<ButtonLink {...paths.agents(project)}>Open agents</ButtonLink>}
        >
          <p>
            An agent asks before it calls a tool whose policy is <code>ask</code>, and after a crash, about a call whose
            outcome is unknown.
          </p>
          <p>
            To try it: give an agent <code>{'"tool_policies": {"http_request": "ask"}'}</code>.
          </p>
        </EmptyState>
      )}
      <ul className="space-y-3">
        {approvals.map((approval) => (
          <li key={approval.id} data-row={approval.id}>
            <ApprovalCard
              project={project}
              approval={approval}
              agent={agents.get(approval.agent_id)}
              hasTaskLink
              onResolved={(done) => {
                setAnswered([...answered, done])
                void queries.invalidateQueries({ queryKey: ['project', project, 'approvals'] })
              }}
            />
          </li>
        ))}
      </ul>
      {list.data && list.data.total > pageSize && (
        <nav aria-label="Pages" className="mt-4 flex items-center gap-3 text-sm">
          <Button
            onClick={() => setParams({ offset: Math.max(0, offset - pageSize) || undefined })}
            disabled={offset === 0}
          >
            Newer
          </Button>
          <span className="text-soft">
            {offset + 1}–{offset + approvals.length} of {formatCount(list.data.total)}
          </span>
          <Button
            onClick={() => setParams({ offset: offset + pageSize })}
            disabled={offset + pageSize >= list.data.total}
          >
            Older
          </Button>
        </nav>
      )}
    </div>
  )
}
