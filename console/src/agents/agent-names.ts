import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query'
import { APIError } from '#sdk/errors.ts'
import { api } from '../api/client.ts'

/** From this many names on, the newest agents are read as a list first; others are read one by one. */
const fewNames = 4
/** How long a name is shown before it is read again. */
const fresh_ms = 60_000

const none: ReadonlyMap<string, string> = new Map()

/** Names of the agents with these identifiers, however many agents there are; of one that is gone there is none. */
export function useAgentNames(
  project_id: string,
  identifiers: readonly (string | undefined)[],
): ReadonlyMap<string, string> {
  const ids = [...new Set(identifiers)].filter((id) => id !== undefined).sort()
  const queries = useQueryClient()
  const { data } = useQuery({
    queryKey: ['agents', project_id, 'names', ids],
    queryFn: async () => {
      const names = new Map<string, string>()
      if (ids.length >= fewNames)
        for (const { id, name } of await queries.fetchQuery({
          queryKey: ['agents', project_id, 'newest names'],
          queryFn: async () => (await api.agents.list(project_id, { limit: 100 }).page()).items,
          staleTime: fresh_ms,
        }))
          names.set(id, name)
      const others = ids.filter((id) => !names.has(id))
      await Promise.all(
        others.map(async (id) => {
          const name = await queries.fetchQuery({
            queryKey: ['agents', project_id, 'name', id],
            queryFn: () => nameOf(project_id, id),
            staleTime: fresh_ms,
          })
          if (name !== null) names.set(id, name)
        }),
      )
      return names
    },
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
    staleTime: fresh_ms,
  })
  return data ?? none
}

async function nameOf(project_id: string, id: string): Promise<string | null> {
  try {
    return (await api.agents.get(project_id, id)).name
  } catch (error) {
    if (error instanceof APIError && error.status === 404) return null
    throw error
  }
}

/** The two newest agents of a project: which one is shown where none is asked for, and whether there is another. */
export function useNewestAgents(project_id: string) {
  return useQuery({
    queryKey: ['project', project_id, 'agents', 'newest'],
    queryFn: async () => (await api.agents.list(project_id, { limit: 2 }).page()).items,
  })
}
