import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { ApprovalCard } from './approval-card.tsx'
import { paths } from '../../paths.ts'
import { ButtonLink } from '../../ui/button.tsx'
import { Choices } from '../../ui/forms/choices.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { PageHeader } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
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
      <PageHeader
        title="Approvals"
        actions={<CopyAsCurl path={`/api/v1/projects/${project}/approvals`} query={{ status }} />}
      />
      <div className="mb-4">
        <Choices
          label="State"
          value={status}
          options={states}
          onChange={(next) => setParams({ status: next, offset: undefined })}
        />
      </div>
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
        <Pager
          noun="approvals"
          offset={offset}
          limit={pageSize}
          total={list.data.total}
          go={(to) => setParams({ offset: to || undefined })}
        />
      )}
    </div>
  )
}
