import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { formatCost, formatDuration, totalTokens } from '../../format.ts'
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
  // Times and costs of the first hundred, as bars of one time.
  const tasks = useQuery({
    queryKey: ['project', project, 'tasks', 'of tree', task.root_task_id, task.last_sequence],
    queryFn: async () => (await api.tasks.list(project, { root_task_id: task.root_task_id, limit: 100 }).page()).items,
    placeholderData: (before) => before,
  })
  const known = new Map((tasks.data ?? []).map((one) => [one.id, one]))
  const from = Math.min(...[...known.values()].map(({ created_at }) => Date.parse(created_at)))
  const to = Math.max(...[...known.values()].map(endOf), from + 1)
  // As large as the smallest tree.
  if (!data) return <div className="h-[5.8125rem] shrink-0 border-b border-line" />
  return (
    <details className="shrink-0 border-b border-line px-3 py-2 text-sm md:px-5" open>
      <summary className="cursor-pointer text-xs font-medium text-soft">Delegated tasks</summary>
      <ul aria-label="Tree of tasks" className="mt-1 max-h-40 overflow-y-auto">
        <TreeNode project={project} node={data.task} current={task.id} known={known} from={from} to={to} />
      </ul>
    </details>
  )
}

/** When a task ended, in milliseconds since 1970; now where it has not. */
function endOf({ finished_at }: Task): number {
  return finished_at === null ? Date.now() : Date.parse(finished_at)
}

interface Bars {
  known: ReadonlyMap<string, Task>
  from: number
  to: number
}

/** When a task of the tree ran, beside the others, and what it took. */
function Bar({ task, from, to }: { task: Task; from: number; to: number }) {
  const begin = Date.parse(task.started_at ?? task.created_at)
  const place = (at: number): number => (100 * (at - from)) / Math.max(1, to - from)
  return (
    <>
      <span className="relative h-3 min-w-24 flex-1 max-sm:hidden" aria-hidden>
        <span
          className={`absolute top-0.5 h-2 min-w-[3px] rounded-sm ${task.status === 'failed' ? 'bg-bad' : 'bg-accent'} ${task.finished_at === null ? 'bar-open' : ''}`}
          style={{ left: `${place(begin)}%`, width: `${place(endOf(task)) - place(begin)}%` }}
        />
      </span>
      <span className="w-52 shrink-0 text-right font-mono text-xs text-soft tabular-nums">
        {totalTokens(task.usage)} · {formatCost(task.usage.cost_usd)} · {formatDuration(endOf(task) - begin)}
      </span>
    </>
  )
}

function TreeNode({ project, node, current, ...bars }: { project: string; node: Node; current: string } & Bars) {
  const task = bars.known.get(node.id)
  const name = node.agent_name ?? node.agent_id
  return (
    <li>
      <span className="flex min-h-7 items-center gap-2">
        {node.id === current ? (
          <strong aria-current="true">{name}</strong>
        ) : (
          <Link {...paths.task(project, node.id)}>{name}</Link>
        )}
        <TaskBadge task={{ status: node.status, wait: null, cancel_requested_at: null }} />
        {task && <Bar task={task} from={bars.from} to={bars.to} />}
      </span>
      {node.children.length > 0 && (
        <ul className="border-l border-line pl-4">
          {node.children.map((child) => (
            <TreeNode key={child.id} project={project} node={child} current={current} {...bars} />
          ))}
        </ul>
      )}
    </li>
  )
}
