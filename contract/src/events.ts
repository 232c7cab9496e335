import type { AgentState } from './agent-lifecycle.ts'
import { projectId } from './project-id.ts'
import { taskEventTypes, type TaskEventType } from './task-lifecycle.ts'

/** Events of the specification that webhooks may subscribe to (spec 6). */
export const eventNames = [
  'project.created',
  'project.updated',
  'project.deleted',
  'agent.launched',
  'agent.completed',
  'agent.failed',
  'agent.stopped',
  'error.occurred',
] as const

export type EventName = (typeof eventNames)[number]

/** Kinds of a task's events that webhooks may subscribe to beside those of the specification. */
const taskEventGroups = ['task', 'approval', 'budget'] as const
type TaskEventGroup = (typeof taskEventGroups)[number]
export type TaskEventName = Extract<TaskEventType, `${TaskEventGroup}.${string}`>

/** Events of a task that webhooks may subscribe to. */
export const taskEventNames: readonly TaskEventName[] = taskEventTypes.filter((type): type is TaskEventName =>
  taskEventGroups.some((group) => type.startsWith(`${group}.`)),
)

/** What `POST /webhooks/{webhook_id}/test` sends where no other event is asked for. */
export const testEventName = 'webhook.test'

/** Everything that is written into the outbox. */
export type OutboxEventName = EventName | TaskEventName | typeof testEventName

/** What a webhook may subscribe to: an event, or all events of a task of one kind (`task.*`). */
export const subscriptions: readonly string[] = [
  ...eventNames,
  ...taskEventGroups.map((group) => `${group}.*`),
  ...taskEventNames,
]

/** The subscriptions that an event belongs to: its name, and `task.*` for `task.completed`. */
export function subscriptionsOf(event: OutboxEventName): string[] {
  const group = `${event.split('.', 1)[0]}.*`
  return subscriptions.includes(group) ? [event, group] : [event]
}

/** An agent as events carry it (decision D93). */
export function eventAgent(agent: { id: string; name: string; project_id: number; status: AgentState }) {
  const { id, name, project_id, status } = agent
  return { id, name, project_id: projectId(project_id), status }
}

/** How bad an `error.occurred` is (decision D94). */
export const severities = ['low', 'medium', 'high', 'critical'] as const
export type Severity = (typeof severities)[number]

/** `data` of `error.occurred` (spec 6). */
export interface ErrorOccurred {
  error: { code: string; message: string; severity: Severity; affected_resources: string[] }
  /** Who caused it, or owns what failed. */
  user_id: string
  /** The request that failed, or that started the task; null where there was none. */
  request_id: string | null
}
