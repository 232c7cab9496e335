import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { api } from '../../api/client.ts'
import { paths } from '../../paths.ts'
import { TaskBadge } from '../../task-parts/task-parts.tsx'
import type { Task } from '../../task-parts/types.ts'

type Node = Awaited<ReturnType<typeof api.tasks.tree>>['task']

/** Whether a task is part of a tree of tasks that agents gave each other. */
export function isInTree(task: Task): boolean {
  return task.depth > 0 || task.wait?.child_task_ids !== undefined || task.usage.total.steps > task.usage.steps
}

/** The tree that a task belongs to, from its root, with links to the others. */
export function TaskTree({ project, task }: { project: string; task: Task }) {
  const { data } = useQuery({
    queryKey: ['project', project, 'tasks', 'tree', task.root_task_id, task.last_sequence],
    queryFn: () => api.tasks.tree(project, task.root_task_id),
    placeholderData: (before) => before,
  })
  if (!data) return null
  return (
    <details className="shrink-0 border-b border-line px-3 py-2 text-sm md:px-5" open>
      <summary className="cursor-pointer text-xs font-medium text-soft">Delegated tasks</summary>
      <ul aria-label="Tree of tasks" className="mt-1 max-h-40 overflow-y-auto">
        <TreeNode project={project} node={data.task} current={task.id} />
      </ul>
    </details>
  )
}

function TreeNode({ project, node, current }: { project: string; node: Node; current: string }) {
  const name = node.agent_name ?? node.agent_id
  return (
    <li>
      <span className="inline-flex min-h-7 items-center gap-2">
        {node.id === current ? (
          <strong aria-current="true">{name}</strong>
        ) : (
          <Link {...paths.task(project, node.id)}>{name}</Link>
        )}
        <TaskBadge task={{ status: node.status, wait: null, cancel_requested_at: null }} />
      </span>
      {node.children.length > 0 && (
        <ul className="border-l border-line pl-4">
          {node.children.map((child) => (
            <TreeNode key={child.id} project={project} node={child} current={current} />
          ))}
        </ul>
      )}
    </li>
  )
}
