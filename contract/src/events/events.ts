import type { AgentState } from '../resources/agent-lifecycle.ts'
import { projectId } from '../core/project-id.ts'
import { taskEventTypes, type TaskEventType } from '../tasks/task-lifecycle.ts'

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

/** Further events of a project that webhooks may subscribe to. */
export const moreEventNames = ['credential.expired'] as const

export type EventName = (typeof eventNames)[number] | (typeof moreEventNames)[number]

/** Kinds of a task's events that webhooks may subscribe to beside those of the specification. */
const taskEventGroups = ['task', 'approval', 'budget'] as const
type TaskEventGroup = (typeof taskEventGroups)[number]
/** Events of other kinds that webhooks may subscribe to, only by name. */
const singleTaskEvents = ['tool.requested', 'tool.resolved'] as const satisfies readonly TaskEventType[]
export type TaskEventName = Extract<TaskEventType, `${TaskEventGroup}.${string}`> | (typeof singleTaskEvents)[number]

/** Events of a task that webhooks may subscribe to. */
export const taskEventNames: readonly TaskEventName[] = taskEventTypes.filter(
  (type): type is TaskEventName =>
    taskEventGroups.some((group) => type.startsWith(`${group}.`)) || singleTaskEvents.some((single) => single === type),
)

/** The event that `POST /webhooks/{webhook_id}/test` sends by default. */
export const testEventName = 'webhook.test'

/** Every event that is written to the outbox. */
export type OutboxEventName = EventName | TaskEventName | typeof testEventName

/** Subscriptions to events of a task: by name, or all of one kind (`task.*`). */
export const taskSubscriptions: readonly (TaskEventName | `${TaskEventGroup}.*`)[] = [
  ...taskEventGroups.map((group) => `${group}.*` as const),
  ...taskEventNames,
]

/** Every subscription that a webhook may have. */
export const subscriptions: readonly (EventName | (typeof taskSubscriptions)[number])[] = [
  ...eventNames,
  ...moreEventNames,
  ...taskSubscriptions,
]

/** The subscriptions that an event belongs to: its name, and `task.*` for `task.completed`. */
export function subscriptionsOf(event: OutboxEventName): string[] {
  const group = `${event.split('.', 1)[0]}.*`
  return subscriptions.some((name) => name === group) ? [event, group] : [event]
}

/** An agent as events carry it (decision D93). */
export function eventAgent(agent: { id: string; name: string; project_id: number; status: AgentState }) {
  const { id, name, project_id, status } = agent
  return { id, name, project_id: projectId(project_id), status }
}

/** Severities of `error.occurred` (decision D94). */
export const severities = ['low', 'medium', 'high', 'critical'] as const
export type Severity = (typeof severities)[number]
/**
 * Maximum number of `error.occurred` events for responses with status 500, per organization, process and minute.
 * Further errors are only logged, so that a failing service does not flood webhooks.
 */
export const internalErrorEvents_per_minute = 10
