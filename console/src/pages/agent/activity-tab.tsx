import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { AuditEntry } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { permissionsQuery } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchState } from '../../search-state.ts'
import { CopyId } from '../../ui/copy.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Panel } from '../../ui/page.tsx'
import { Pager } from '../../ui/pager.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Time } from '../../ui/time.tsx'
import { changesOf } from '../settings/audit/changes.ts'
import { ChangesTable } from '../settings/audit/changes-table.tsx'
import { meaningOf } from '../settings/audit/meaning.ts'
import { actorName } from '../settings/audit/names.ts'
import type { TabProps } from './tab.ts'
import { AdminsOnly } from '../parts/admins-only.tsx'

/** As the audit log has it, so that an entry is on the same page there. */
const pageSize = 50

/** Who did what to it, from the audit log. */
export function ActivityTab({ agent }: TabProps) {
  const [search, change] = useSearchState<{ offset?: number | string | undefined }>()
  const offset = Number(search.offset ?? 0)
  const { data: permissions } = useQuery(permissionsQuery)
  const mayRead = permissions?.scopes.includes('admin')
  const { data, error, refetch } = useQuery({
    queryKey: ['audit', agent.id, offset],
    enabled: mayRead === true,
    queryFn: () => api.audit.list({ target: agent.id, limit: pageSize, offset }).page({ offset }),
    placeholderData: keepPreviousData,
  })
  if (mayRead === false)
    return (
      <Panel title="Activity">
        <AdminsOnly title="Owners and administrators see the activity" />
      </Panel>
    )
  return (
    <Panel title="Activity">
      <ErrorBox error={error} retry={() => void refetch()} />
      {!data && !error && <Skeleton />}
      {data?.total === 0 && <EmptyState title="No changes yet" />}
      <ul>
        {data?.items.map((entry) => (
          <Entry key={entry.id} {...entry} offset={offset} />
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

/** What was done to the agent, after the name of who did it. */
const actionLabels: Partial<Record<string, string>> = {
  'agent.created': 'created the agent',
  'agent.launched': 'launched the agent',
  'agent.paused': 'paused the agent',
  'agent.restarted': 'restarted the agent',
  'agent.rolled_back': 'rolled the agent back',
  'agent.started': 'started the agent',
  'agent.stopped': 'stopped the agent',
  'agent.updated': 'changed the agent',
}

function Entry({ offset, ...entry }: AuditEntry & { offset: number }) {
  const { id, at, action, request_id, target, before, after } = entry
  const changes = changesOf(before, after)
  return (
    <li className="border-b border-line px-4 py-2">
      <div className="flex flex-wrap items-center gap-x-3">
        <span className="w-32 text-sm text-soft">
          <Time at={at} />
        </span>
        <span>
          <span className="font-medium">{actorName(entry)}</span>{' '}
          <Link {...paths.audit({ target, panel: id, ...(offset === 0 ? {} : { offset }) })} title={action}>
            {actionLabels[action] ?? (meaningOf(action) || action)}
          </Link>
        </span>
        {request_id !== null && <CopyId id={request_id} short />}
      </div>
      {before !== null && changes.length > 0 && (
        <details>
          <summary className="min-h-6 text-sm text-soft">
            What changed: {changes.map(({ member }) => member).join(', ')}
          </summary>
          <ChangesTable changes={changes} />
        </details>
      )}
    </li>
  )
}
