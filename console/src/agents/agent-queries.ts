import { queryOptions } from '@tanstack/react-query'
import { cadre } from '../api/client.ts'

/** Agents of one state, for a number alone. */
export const agentCountQuery = (project_id: string, status?: Parameters<typeof cadre.agents.list>[1]) =>
  queryOptions({
    queryKey: ['project', project_id, 'agents', 'count', status ?? {}],
    queryFn: async () => (await cadre.agents.list(project_id, { ...status, limit: 1 }).page()).total,
  })
