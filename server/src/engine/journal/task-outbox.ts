import type { Static, TSchema } from 'typebox'
import type { EventOf } from '#contract/events/event-payloads.ts'
import { subscriptionsOf, taskSubscriptions, type TaskEventName } from '#contract/events/events.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { projectId } from '#contract/core/project-id.ts'
import { taskEventPayloads } from '#contract/events/task-event-payloads.ts'
import type { TaskEventType, TaskState } from '#contract/tasks/task-lifecycle.ts'
import { raw, type Fragment, type Sql } from '../../platform/postgres/database.ts'

/**
 * Whether a webhook `w` is active and subscribes to any event of tasks: the predicate of the index
 * `webhook_of_task_events`. It is a literal, because the planner cannot match a parameter with the predicate.
 */
export const hasTaskSubscription = raw(`w.status = 'active' and w.events && '{${taskSubscriptions.join()}}'::text[]`)

/**
 * An expression of type `text[]`: the subscriptions of an organization's webhooks to events of tasks, including those
 * for the events of one task, distinct and sorted; null for none.
 */
export function subscriptionsIn({ fragment }: Pick<Sql, 'fragment'>, org_id: Fragment, task_id?: Fragment): Fragment {
  const pushed = task_id
    ? fragment`union all select 'task.*' from webhook w where w.push_task_id = ${task_id}`
    : fragment``
  return fragment`(select array_agg(distinct name) from (
    select unnest(w.events) as name from webhook w where w.org_id = ${org_id} and ${hasTaskSubscription} ${pushed}) names)`
}

/** A task as its events describe it, after they happened. */
export interface PublishedTask {
  id: string
  project_id: number
  agent_id: string
  agent_version: number
  thread_id: string | null
  retried_from: string | null
  status: TaskState
  /** Undefined if the agent was deleted. */
  agent_name: string | undefined
}

/** An event of a task with its sequence. */
interface JournalNotice {
  type: TaskEventType
  sequence: number
  data: Record<string, unknown>
}

/** The webhook events of a task that webhooks subscribe to, with the members and bounds of the contract. */
export function taskOutbox(
  task: PublishedTask,
  subscriptions: readonly string[],
  events: readonly JournalNotice[],
): EventOf<TaskEventName>[] {
  return events.flatMap(({ type, sequence, data }) =>
    isPublished(type) && subscriptionsOf(type).some((name) => subscriptions.includes(name))
      ? [publicEvent(type, task, sequence, data)]
      : [],
  )
}

function isPublished(type: TaskEventType): type is TaskEventName {
  return Object.hasOwn(taskEventPayloads, type)
}

function publicEvent(
  type: TaskEventName,
  task: PublishedTask,
  sequence: number,
  own: JournalNotice['data'],
): EventOf<TaskEventName> {
  const { id, agent_id, agent_version, thread_id, retried_from, status, agent_name } = task
  const project_id = projectId(task.project_id)
  const whole = {
    ...own,
    task: { id, project_id, agent_id, agent_version, thread_id, retried_from, status },
    agent: { id: agent_id, name: agent_name, project_id },
    sequence,
    truncated: false,
  }
  const cut = { happened: false }
  const data = fit(taskEventPayloads[type], whole, cut) as object
  // The engine names the members of its events like the contract; tests compare the two.
  return { type, data: { ...data, truncated: cut.happened } } as EventOf<TaskEventName>
}

/** A value cut to the bounds of its schema, and whether anything was cut or left out. */
export function fitted<T extends TSchema>(schema: T, value: unknown): { value: Static<T>; truncated: boolean } {
  const cut = { happened: false }
  // `fit` cuts a value, or sets null where the schema allows it.
  const fit_value = fit(schema, value, cut) as Static<T>
  return { value: fit_value, truncated: cut.happened }
}

/** The parts of a schema that bound a value. */
interface Bounds {
  properties?: Record<string, object>
  items?: object
  maxItems?: number
  maxLength?: number
  'x-max-json-bytes'?: number
}

/**
 * A value with the members that its schema names, its texts and lists cut to their bounds. `cut` records whether any
 * was cut.
 */
function fit(schema: object, value: unknown, cut: { happened: boolean }): unknown {
  const bounds: Bounds = schema
  const { properties, items, maxItems = Infinity, maxLength = Infinity, 'x-max-json-bytes': bytes = Infinity } = bounds
  if (typeof value === 'string') {
    const text = cutText(value, maxLength)
    cut.happened ||= text !== value
    return text
  }
  if (Array.isArray(value)) {
    cut.happened ||= value.length > maxItems
    return items ? value.slice(0, maxItems).map((item) => fit(items, item, cut)) : value
  }
  if (!isObject(value)) return value
  if (Buffer.byteLength(JSON.stringify(value)) > bytes) {
    cut.happened = true
    return null
  }
  if (!properties) return value
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, member]) =>
      value[name] === undefined ? [] : [[name, fit(member, value[name], cut)]],
    ),
  )
}

/** Cuts a text to `max` code points. */
function cutText(text: string, max: number): string {
  return text.length <= max ? text : [...text.slice(0, 2 * max)].slice(0, max).join('')
}
