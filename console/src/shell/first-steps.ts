import { useQuery } from '@tanstack/react-query'
import { api } from '../api/client.ts'

/** Whether a task of the project has completed: then its first steps are done, and leave the menu. True until it is known, so that the menu of most projects does not move. */
export function useIsStarted(project_id: string | undefined): boolean {
  const { data } = useQuery({
    queryKey: ['project', project_id, 'tasks', 'first steps'],
    enabled: project_id !== undefined,
    queryFn: async () => (await api.tasks.list(project_id!, { status: 'completed', limit: 1 }).page()).items.length > 0,
    staleTime: ({ state }) => (state.data === true ? Infinity : 30_000),
  })
  return data !== false
}
