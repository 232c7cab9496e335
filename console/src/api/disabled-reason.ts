import { useQuery } from '@tanstack/react-query'
import { permissionsQuery } from './queries.ts'

/** What a page lets people do, by the scope that it takes. */
const scopes = {
  organizations: 'organizations:write',
  projects: 'projects:write',
  agents: 'agents:write',
  tasks: 'tasks:write',
  approvals: 'approvals:write',
  tool_calls: 'tools:execute',
} as const

/** Why the one who looks cannot change what is of this kind; undefined where nothing is known against it. The service decides. */
export function useDisabledReason(kind: keyof typeof scopes): string | undefined {
  const { data } = useQuery(permissionsQuery)
  return data && !data.scopes.includes(scopes[kind])
    ? `It needs ${scopes[kind]}, which your role does not have: ask an owner or administrator`
    : undefined
}
