import { keepPreviousData, queryOptions, useQuery } from '@tanstack/react-query'
import { useParams } from '@tanstack/react-router'
import { api } from './client.ts'

/**
 * Keys of what is kept: `['project', project_id, 'agents' | 'tasks' | 'approvals' | …, …]` for what belongs to a project, so that its
 * stream can say what is old; other names for the rest.
 */
export const userQuery = queryOptions({ queryKey: ['user'], queryFn: () => api.user.get(), staleTime: 60_000 })

export const permissionsQuery = queryOptions({
  queryKey: ['permissions'],
  queryFn: () => api.user.permissions(),
  staleTime: 60_000,
})

/** Whether the service works, and its version. */
export const statusQuery = queryOptions({ queryKey: ['status'], queryFn: () => api.service.status() })

/** The projects of the switcher: as many as fit on a page of the API. */
export const projectsQuery = queryOptions({
  queryKey: ['projects', 'switcher'],
  queryFn: () => api.projects.list({ limit: 100 }).page(),
  staleTime: 30_000,
})

export const projectQuery = (project_id: string) =>
  queryOptions({ queryKey: ['project', project_id, 'self'], queryFn: () => api.projects.get(project_id) })

/** The project whose page is open. */
export function useProjectId(): string {
  const { project_id } = useParams({ strict: false })
  if (project_id === undefined) throw new Error('this page belongs to no project')
  return project_id
}

/** What waits for a person, or for a process of theirs, beside approvals: for the numbers in the navigation. */
export function useWaiting(project_id: string | undefined): { tool_calls: number; tools: number; credentials: number } {
  const one = { limit: 1 }
  return {
    tool_calls: useWaitingOf(project_id, 'tasks', 'tool-calls', (id) => [
      api.toolCalls.list(id, { status: 'pending', ...one }).page(),
    ]),
    tools: useWaitingOf(project_id, 'tools', 'waiting', (id) => [
      api.tools.list(id, { status: 'drifted', ...one }).page(),
    ]),
    credentials: useWaitingOf(project_id, 'credentials', 'waiting', (id) => [
      api.credentials.list(id, { status: 'needs_authorization', ...one }).page(),
      api.credentials.list(id, { status: 'failing', ...one }).page(),
    ]),
  }
}

/** The sum of some totals. Its key is below that of its resource: what a page changes there is counted again at once. */
function useWaitingOf(
  project_id: string | undefined,
  resource: string,
  name: string,
  pages: (project_id: string) => Promise<{ total: number }>[],
): number {
  const { data } = useQuery({
    queryKey: ['project', project_id, resource, name, 'count'],
    queryFn: async () => (await Promise.all(pages(project_id!))).reduce((sum, { total }) => sum + total, 0),
    enabled: project_id !== undefined,
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
  })
  return data ?? 0
}

/** Whether something waits for a person, for the number beside the inbox. */
export function usePendingApprovals(project_id: string | undefined): number {
  const { data } = useQuery({
    queryKey: ['project', project_id, 'approvals', 'count'],
    queryFn: async () => (await api.approvals.list(project_id!, { status: 'pending', limit: 1 }).page()).total,
    enabled: project_id !== undefined,
    placeholderData: keepPreviousData,
    // Where the page follows one task, nothing is heard of others.
    refetchInterval: 30_000,
  })
  return data ?? 0
}
