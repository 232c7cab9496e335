import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { APIError } from '../../../sdk/src/errors.ts'
import { cadre } from '../api/client.ts'

/** From this many names on, the newest agents are read as a list first; others are read one by one. */
const fewNames = 4

const none: ReadonlyMap<string, string> = new Map()

/** Names of the agents with these identifiers, however many agents there are; of one that is gone there is none. */
export function useAgentNames(
  project_id: string,
  identifiers: readonly (string | undefined)[],
): ReadonlyMap<string, string> {
  const ids = [...new Set(identifiers)].filter((id) => id !== undefined).sort()
  const { data } = useQuery({
    queryKey: ['agents', project_id, 'names', ids],
    queryFn: async () => {
      const names = new Map<string, string>()
      if (ids.length >= fewNames)
        for (const { id, name } of (await cadre.agents.list(project_id, { limit: 100 }).page()).items)
          names.set(id, name)
      const others = ids.filter((id) => !names.has(id))
      await Promise.all(
        others.map(async (id) => {
          try {
            names.set(id, (await cadre.agents.get(project_id, id)).name)
          } catch (error) {
            if (!(error instanceof APIError && error.status === 404)) throw error
          }
        }),
      )
      return names
    },
    enabled: ids.length > 0,
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  })
  return data ?? none
}

/** The two newest agents of a project: which one is shown where none is asked for, and whether there is another. */
export function useNewestAgents(project_id: string) {
  return useQuery({
    queryKey: ['project', project_id, 'agents', 'newest'],
    queryFn: async () => (await cadre.agents.list(project_id, { limit: 2 }).page()).items,
  })
}
