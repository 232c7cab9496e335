import { useQuery } from '@tanstack/react-query'
import { api } from '../../api/client.ts'
import type { Task } from '../../task-parts/types.ts'
import { ToolCallCard } from '../tool-calls/tool-call-card.tsx'

/** Calls of tools on your side that a task waits for, each with a form for its result. */
export function OpenToolCalls({ project, task, onResolved }: { project: string; task: Task; onResolved: () => void }) {
  const ids = task.wait?.tool_call_ids ?? []
  const { data } = useQuery({
    queryKey: ['project', project, 'tasks', task.id, 'tool-calls', task.last_sequence],
    queryFn: () => api.toolCalls.list(project, { task_id: task.id, limit: 100 }).page(),
    placeholderData: (before) => before,
  })
  const open = (data?.items ?? []).filter(({ id }) => ids.includes(id))
  if (open.length === 0) return null
  return (
    <div
      className="max-h-[60%] md:max-h-[45%] shrink-0 space-y-3 overflow-y-auto border-b border-line p-3 md:px-5"
      tabIndex={0}
      role="region"
      aria-label="Tool calls that wait for a result"
    >
      {open.map((call) => (
        <ToolCallCard key={call.id} project={project} call={call} onResolved={onResolved} />
      ))}
    </div>
  )
}
