import { useQuery } from '@tanstack/react-query'
import type { ModelProvider } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { permissionsQuery } from '../../api/queries.ts'

/** The providers of models that agents of a project may use. */
export function useModelProviders(project_id: string) {
  const { data: permissions } = useQuery(permissionsQuery)
  const maySee = permissions?.permissions.organizations.read === true
  const providers = useQuery({
    queryKey: ['model-providers'],
    queryFn: () => api.modelProviders.list(),
    select: ({ model_providers }) => usableIn(project_id, model_providers),
    enabled: maySee,
    staleTime: 30_000,
  })
  return { providers, isKnown: permissions !== undefined, maySee }
}

/** Those that a project may use: of two with one name, the organization's. */
function usableIn(project_id: string, all: readonly ModelProvider[]): ModelProvider[] {
  const id = project_id.startsWith('proj_') ? project_id : `proj_${project_id}`
  const enabled = all.filter(({ own }) => !own?.projects || own.projects.includes(id))
  const owned = new Set(enabled.filter(({ own }) => own !== null).map(({ name }) => name))
  return enabled.filter(({ name, own }) => own !== null || !owned.has(name))
}
