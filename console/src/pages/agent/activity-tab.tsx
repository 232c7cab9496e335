import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { cadre } from '../../api/client.ts'
import { useSearchState } from '../../search-state.ts'
import { CopyId } from '../../ui/copy.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Panel } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Time } from '../../ui/time.tsx'
import type { TabProps } from './tab.ts'

const pageSize = 50

/** Who did what to it, from the audit log. */
export function ActivityTab({ agent }: TabProps) {
  const [search, change] = useSearchState<{ offset?: number | string | undefined }>()
  const offset = Number(search.offset ?? 0)
  const { data, error, refetch } = useQuery({
    queryKey: ['audit', agent.id, offset],
    queryFn: () => cadre.audit.list({ target: agent.id, limit: pageSize, offset }).page({ offset }),
    placeholderData: keepPreviousData,
  })
  return (
    <Panel title="Who changed it">
      <ErrorBox error={error} retry={() => void refetch()} />
      {!data && !error && <Skeleton />}
      {data?.total === 0 && <EmptyState title="Nobody has changed it yet" />}
      <ul>
        {data?.items.map(({ id, at, actor, action, request_id }) => (
          <li key={id} className="flex flex-wrap items-center gap-x-3 border-b border-line px-4 py-2">
            <span className="w-32 text-sm text-soft">
              <Time at={at} />
            </span>
            <span className="font-medium">{actor?.name ?? 'The service'}</span>
            <code>{action}</code>
            {request_id !== null && <CopyId id={request_id} short />}
          </li>
        ))}
      </ul>
      {data && data.total > 0 && (
        <Pager
          noun="entries"
          offset={offset}
          limit={pageSize}
          total={data.total}
          go={(offset) => change({ offset: offset || undefined })}
        />
      )}
    </Panel>
  )
}
