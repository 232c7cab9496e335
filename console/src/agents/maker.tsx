import { useQuery } from '@tanstack/react-query'
import type { AgentVersion } from '#sdk/types.ts'
import { api } from '../api/client.ts'
import { userQuery } from '../api/queries.ts'

/** Entries of the audit log that are searched for the names of those who changed an agent. */
const searched = 100

/** Who made a version: by name where the audit log or the session knows it, else by identifier. */
export function Maker({ of, version }: { of: string; version: Pick<AgentVersion, 'created_by'> }) {
  const { created_by } = version
  const user = useQuery(userQuery)
  const audit = useQuery({
    queryKey: ['audit', of, 'makers'],
    queryFn: () => api.audit.list({ target: of, limit: searched }).page(),
    staleTime: 60_000,
    retry: false,
  })
  const named = audit.data?.items.find(({ actor }) => actor?.id === created_by)?.actor?.name
  const name = created_by === user.data?.id ? user.data.name : named
  return name === undefined || name === null ? (
    <code title={created_by}>{created_by}</code>
  ) : (
    <span title={created_by}>{name}</span>
  )
}
