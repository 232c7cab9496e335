import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { api } from '../api/client.ts'

/** Versions that are marked on charts, the newest. */
const marked = 20

/** When an agent got its versions, for charts of it; nothing without an agent. */
export function useVersionMarks(project_id: string, agent_id: string | undefined) {
  const { data } = useQuery({
    queryKey: ['project', project_id, 'agents', agent_id, 'versions', 'marks'],
    enabled: agent_id !== undefined,
    queryFn: () => api.agents.listVersions(project_id, agent_id!, { limit: marked }).page(),
  })
  return useMemo(
    () =>
      (data?.items ?? [])
        .filter(({ version }) => version > 0)
        .map(({ version, created_at }) => ({ at: Date.parse(created_at) / 1000, label: `v${version}` })),
    [data],
  )
}
