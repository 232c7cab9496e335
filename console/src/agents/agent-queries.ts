import { queryOptions } from '@tanstack/react-query'
import { api } from '../api/client.ts'

/** An agent with its statistics, and the revision that a change names. */
export const agentQuery = (project_id: string, agent_id: string) =>
  queryOptions({
    queryKey: ['project', project_id, 'agents', 'one', agent_id],
    queryFn: async () => {
      const { data, etag } = await api.agents.get(project_id, agent_id).withResponse()
      return { agent: data, etag: etag ?? undefined }
    },
  })

/** Agents of one state, for a number alone. */
export const agentCountQuery = (project_id: string, status?: Parameters<typeof api.agents.list>[1]) =>
  queryOptions({
    queryKey: ['project', project_id, 'agents', 'count', status ?? {}],
    queryFn: async () => (await api.agents.list(project_id, { ...status, limit: 1 }).page()).total,
  })
