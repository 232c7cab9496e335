import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { cadre as api } from '../api/client.ts'

/** Agents whose names are read; those of others are shown as ids. */
const agentsMost = 100

/** The agents of a project, for names and choices. */
export function useAgents(project: string) {
  return useQuery({
    queryKey: ['agents', project, 'names'],
    queryFn: () => api.agents.list(project, { limit: agentsMost }).page(),
    staleTime: 60_000,
  })
}

export function useAgentNames(project: string): Map<string, string> {
  const { data } = useAgents(project)
  return useMemo(() => new Map(data?.items.map(({ id, name }) => [id, name])), [data])
}
