import { useQuery, useQueryClient } from '@tanstack/react-query'
import type { Operations } from '#sdk/contract.ts'
import { api } from '../../api/client.ts'

export type TestCase = Operations['getTestCase']['result']

/** The test cases of an agent, the newest first: an agent has 200 at most. */
export function useTestCases(project_id: string, agent_id: string | undefined) {
  return useQuery({
    queryKey: keyOf(project_id, agent_id),
    queryFn: () => api.testCases.list(project_id, agent_id!, { limit: 100 }).toArray({ max: 200 }),
    enabled: agent_id !== undefined,
  })
}

/** Reads the test cases of an agent again, after one of them was changed. */
export function useRefreshTestCases(project_id: string, agent_id: string): () => Promise<void> {
  const queries = useQueryClient()
  return () => queries.invalidateQueries({ queryKey: keyOf(project_id, agent_id) })
}

function keyOf(project_id: string, agent_id: string | undefined) {
  return ['project', project_id, 'test-cases', agent_id]
}
