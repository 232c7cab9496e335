import { useQuery } from '@tanstack/react-query'
import { api } from '../../api/client.ts'
import { permissionsQuery } from '../../api/queries.ts'

/** The providers of models, which owners and admins may see. */
export function useModelProviders() {
  const { data: permissions } = useQuery(permissionsQuery)
  const isAdmin = permissions?.scopes.includes('admin') === true
  const providers = useQuery({
    queryKey: ['model-providers'],
    queryFn: () => api.modelProviders.list(),
    enabled: isAdmin,
    staleTime: 30_000,
  })
  return { providers, isKnown: permissions !== undefined, isAdmin }
}
