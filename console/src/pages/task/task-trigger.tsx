import { Link } from '@tanstack/react-router'
import { paths } from '../../paths.ts'
import type { Task } from '../../task-parts/types.ts'

/** Member of a task's metadata that names the task whose input was edited for it. */
export const editedFrom = 'edited_from'

/** What made a task: a schedule, the retry or the edit of another one, or a request. */
export function TaskTrigger({ project, task }: { project: string; task: Task }) {
  if (task.schedule_id !== null) return <span title={task.schedule_id}>Schedule</span>
  const edited = task.metadata[editedFrom]
  const earlier = task.retried_from ?? (typeof edited === 'string' && edited.startsWith('task_') ? edited : null)
  if (earlier === null) return <span title={`By ${task.created_by}`}>API request</span>
  return (
    <Link {...paths.task(project, earlier)} title={earlier}>
      {task.retried_from === null ? 'Edit of a task' : 'Retry of a task'}
    </Link>
  )
}
