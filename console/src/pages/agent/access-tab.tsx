import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { hasScope, roleAllows, type Requirement } from '#contract/core/scopes.ts'
import type { Member, Operations } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { permissionsQuery } from '../../api/queries.ts'
import { paths } from '../../paths.ts'
import { useSearchState } from '../../search-state.ts'
import type { Column } from '../../ui/data-table.tsx'
import { Panel } from '../../ui/page.tsx'
import { PagedTable } from '../../ui/paged-table.tsx'
import { Skeleton, WhenSettled } from '../../ui/skeleton.tsx'
import { Badge } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'

const pageSize = 20

/** Actions on an agent, and the permission that each needs. */
const rights = [
  ['view', 'agents:read'],
  ['run tasks', 'tasks:write'],
  ['manage', 'agents:write'],
] as const satisfies readonly (readonly [string, Requirement])[]

type Key = Operations['listApiKeys']['result']['api_keys'][number] & { user?: { id: string; name: string } }
type Search = { members?: number | string | undefined; keys?: number | string | undefined }

/**
 * Who may do what with it: by role, and by the scopes of keys. Every member of the organization can open every project.
 */
export function AccessTab() {
  const [search, change] = useSearchState<Search>()
  const memberOffset = Number(search.members ?? 0)
  const keyOffset = Number(search.keys ?? 0)
  const { data: permissions } = useQuery(permissionsQuery)
  const seesAll = permissions?.scopes.includes('admin')
  const members = useQuery({
    queryKey: ['members', 'access', memberOffset],
    queryFn: () => api.members.list({ limit: pageSize, offset: memberOffset }).page({ offset: memberOffset }),
    placeholderData: keepPreviousData,
  })
  const keys = useQuery({
    queryKey: ['api-keys', 'access', seesAll, keyOffset],
    queryFn: async (): Promise<{ items: Key[]; total: number }> => {
      const query = { limit: pageSize, offset: keyOffset }
      return seesAll
        ? api.organization.listApiKeys(query).page({ offset: keyOffset })
        : api.apiKeys.list(query).page({ offset: keyOffset })
    },
    enabled: permissions !== undefined,
    placeholderData: keepPreviousData,
  })
  return (
    <WhenSettled skeleton={<Skeleton />}>
      <div className="space-y-4">
        <Panel title="Members" actions={<Link {...paths.members()}>All members</Link>}>
          <PagedTable
            label="Members and what they may do with the agent"
            noun="members"
            query={members}
            columns={memberColumns}
            keyOf={({ user_id }) => user_id}
            offset={memberOffset}
            limit={pageSize}
            go={(offset) => change({ members: offset || undefined })}
          />
        </Panel>
        <Panel
          title={seesAll === false ? 'Your API keys' : 'API keys'}
          actions={<Link {...paths.keys()}>Your keys</Link>}
        >
          <p className="px-4 pt-3 text-sm text-soft">
            A key has the permissions of its scopes, and never more than its owner.
            {seesAll === false && ' Keys of others are shown to owners and administrators.'}
          </p>
          <PagedTable
            label="API keys and what they may do with the agent"
            noun="keys"
            query={keys}
            columns={keyColumns(seesAll === true)}
            keyOf={({ id }) => id}
            offset={keyOffset}
            limit={pageSize}
            go={(offset) => change({ keys: offset || undefined })}
          />
        </Panel>
      </div>
    </WhenSettled>
  )
}

function May({ allows }: { allows: (right: Requirement) => boolean }) {
  const held = rights.filter(([, right]) => allows(right))
  if (held.length === 0) return <span className="text-soft">none</span>
  return (
    <span className="inline-flex flex-wrap gap-1">
      {held.map(([description, right]) => (
        <Badge key={right} tone={right === 'agents:write' ? 'warn' : 'quiet'}>
          {description}
        </Badge>
      ))}
    </span>
  )
}

const memberColumns: Column<Member>[] = [
  { id: 'name', header: 'Name', cell: ({ name }) => <span className="font-medium">{name}</span> },
  { id: 'role', header: 'Role', cell: ({ role }) => role },
  { id: 'may', header: 'Permissions', cell: ({ role }) => <May allows={(right) => roleAllows(role, right)} /> },
]

const keyColumns = (seesAll: boolean): Column<Key>[] => [
  { id: 'name', header: 'Key', cell: ({ name }) => <span className="font-medium">{name}</span> },
  { id: 'preview', header: 'Begins with', cell: ({ key_preview }) => <code>{key_preview}</code> },
  ...(seesAll ? [{ id: 'user', header: 'Owner', cell: ({ user }: Key) => user?.name }] : []),
  { id: 'may', header: 'Permissions', cell: ({ scopes }) => <May allows={(right) => hasScope(scopes, right)} /> },
  {
    id: 'used',
    header: 'Last used',
    cell: ({ last_used }) => (last_used === null ? 'never' : <Time at={last_used} />),
  },
  {
    id: 'expires',
    header: 'Expires',
    cell: ({ expires_at }) => (expires_at === null ? 'never' : <Time at={expires_at} />),
  },
]
