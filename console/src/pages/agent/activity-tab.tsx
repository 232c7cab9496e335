import { useQuery } from '@tanstack/react-query'
import { cadre } from '../../api/client.ts'
import { CopyId } from '../../ui/copy.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Panel } from '../../ui/page.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Time } from '../../ui/time.tsx'
import type { TabProps } from './tab.ts'

/** Who did what to it, from the audit log. */
export function ActivityTab({ agent }: TabProps) {
  const { data, error, refetch } = useQuery({
    queryKey: ['audit', agent.id],
    queryFn: () => cadre.audit.list({ target: agent.id, limit: 50 }).page(),
  })
  return (
    <Panel title="Who changed it">
      <ErrorBox error={error} retry={() => void refetch()} />
      {!data && !error && <Skeleton />}
      {data?.items.length === 0 && <EmptyState title="Nobody has changed it yet" />}
      <ul>
        {data?.items.map(({ id, at, actor, action, request_id }) => (
          <li key={id} className="flex flex-wrap items-center gap-x-3 border-b border-line px-4 py-2 last:border-0">
            <span className="w-32 text-sm text-soft">
              <Time at={at} />
            </span>
            <span className="font-medium">{actor?.name ?? 'The service'}</span>
            <code>{action}</code>
            {request_id !== null && <CopyId id={request_id} short />}
          </li>
        ))}
      </ul>
    </Panel>
  )
}
