import { useQuery } from '@tanstack/react-query'
import { api } from '../../api/client.ts'

/** How many messages of before are shown: a page of the API. */
const shownMessages = 100

/** Begins a conversation with an agent. */
export async function newThread(project_id: string, agent_id: string): Promise<string> {
  const { id } = await api.threads.create(project_id, { agent_id, metadata: { origin: 'playground' } })
  return id
}

/** The newest messages of a conversation that was begun before this page was opened, and how many older ones there are. */
export function useEarlier(project_id: string, thread_id: string | undefined, isWanted: boolean) {
  return useQuery({
    queryKey: ['project', project_id, 'thread', thread_id, 'messages'],
    enabled: thread_id !== undefined && isWanted,
    staleTime: Infinity,
    queryFn: async () => {
      const page = async (offset: number) =>
        await api.threads.messages(project_id, thread_id!, { limit: shownMessages }).page({ offset })
      const first = await page(0)
      const older = Math.max(0, first.total - shownMessages)
      const { items } = older > 0 ? await page(older) : first
      return { messages: items, older }
    },
  })
}
