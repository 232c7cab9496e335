import { useQuery } from '@tanstack/react-query'
import type { AgentVersion } from '#sdk/types.ts'
import { api } from '../api/client.ts'
import { permissionsQuery, userQuery } from '../api/queries.ts'

/** Entries of the audit log that are searched for the names of those who changed an agent, and members of the organization. */
const searched = 100

/** Who made a version: by name where the session, the members or, for administrators, the audit log know it, else by identifier. */
export function Maker({ of, version }: { of: string; version: Pick<AgentVersion, 'created_by'> }) {
  const { created_by } = version
  const user = useQuery(userQuery)
  const isOwn = created_by === user.data?.id
  const permissions = useQuery(permissionsQuery)
  const members = useQuery({
    queryKey: ['members', 'makers'],
    queryFn: () => api.members.list({ limit: searched }).page(),
    staleTime: 60_000,
    retry: false,
    enabled: user.data !== undefined && !isOwn,
  })
  const member = members.data?.items.find(({ user_id }) => user_id === created_by)?.name
  const audit = useQuery({
    queryKey: ['audit', of, 'makers'],
    queryFn: () => api.audit.list({ target: of, limit: searched }).page(),
    staleTime: 60_000,
    retry: false,
    // Former members are still in the log, which administrators read.
    enabled: members.data !== undefined && member === undefined && permissions.data?.scopes.includes('admin') === true,
  })
  const named = member ?? audit.data?.items.find(({ actor }) => actor?.id === created_by)?.actor?.name
  const name = isOwn ? user.data?.name : named
  return name === undefined || name === null ? (
    <code title={created_by}>{created_by}</code>
  ) : (
    <span title={created_by}>{name}</span>
  )
}
