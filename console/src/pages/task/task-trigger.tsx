import { doorNames, doors as facts } from '#contract/core/doors.ts'
import { Link } from '@tanstack/react-router'
import { paths } from '../../paths.ts'
import type { Task } from '../../task-parts/types.ts'

/** Member of a task's metadata that names the task whose input was edited for it. */
export const editedFrom = 'edited_from'

/** Protocols that tasks come by, as `metadata.door.kind` names them. */
export const doors: Record<string, string> = {
  'openai.chat': 'OpenAI Chat Completions',
  'openai.responses': 'OpenAI Responses',
  ...Object.fromEntries(doorNames.filter((name) => name !== 'openai').map((name) => [name, facts[name].title])),
}

/** What made a task: a schedule, the retry or the edit of another one, a trigger, another protocol, or a request. */
export function TaskTrigger({ project, task }: { project: string; task: Task }) {
  if (task.schedule_id !== null)
    return (
      <Link {...paths.schedule(project, task.schedule_id)} title={task.schedule_id}>
        Schedule
      </Link>
    )
  const edited = task.metadata[editedFrom]
  const earlier = task.retried_from ?? (typeof edited === 'string' && edited.startsWith('task_') ? edited : null)
  if (earlier === null) return <Origin project={project} task={task} />
  return (
    <Link {...paths.task(project, earlier)} title={earlier}>
      {task.retried_from === null ? 'Edit of a task' : 'Retry of a task'}
    </Link>
  )
}

function Origin({ project, task }: { project: string; task: Task }) {
  const { kind, client } = doorOf(task)
  const trigger = /^trigger:(trig_\w+)$/.exec(kind)?.[1]
  if (trigger !== undefined)
    return (
      <Link {...paths.trigger(project, trigger)} title={trigger}>
        Trigger
      </Link>
    )
  const by = `By ${task.created_by}${client === '' ? '' : `, with ${client}`}`
  return <span title={by}>{doors[kind] ?? 'API request'}</span>
}

/** What the service noted of the request that made a task; empty where it came by the API. */
function doorOf({ metadata }: Task): { kind: string; client: string } {
  const door = metadata['door'] as { kind?: unknown; client?: unknown } | null | undefined
  return { kind: textOf(door?.kind), client: textOf(door?.client) }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
