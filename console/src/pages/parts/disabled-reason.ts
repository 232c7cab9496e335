import { useQuery } from '@tanstack/react-query'
import { permissionsQuery } from '../../api/queries.ts'

/** Why the one who looks cannot change what is of this kind; undefined where nothing is known against it. The service decides. */
export function useDisabledReason(kind: 'projects' | 'agents'): string | undefined {
  const { data } = useQuery(permissionsQuery)
  return data && !data.permissions[kind].write
    ? `It needs ${kind}:write, which your role does not have: ask an owner or administrator`
    : undefined
}
