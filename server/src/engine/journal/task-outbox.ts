import type { Static, TSchema } from 'typebox'
import type { EventOf } from '#contract/events/event-payloads.ts'
import { subscriptionsOf, taskSubscriptions, type TaskEventName } from '#contract/events/events.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import { projectId } from '#contract/core/project-id.ts'
import { taskEventPayloads } from '#contract/events/task-event-payloads.ts'
import type { TaskEventType, TaskState } from '#contract/tasks/task-lifecycle.ts'
import { raw, type Fragment, type Sql } from '../../platform/postgres/database.ts'

/**
 * Of a webhook `w`: whether it is active and subscribed to any event of tasks. In the words of the index
 * `webhook_of_task_events`, which holds no other webhooks; a parameter would not be known to mean the same.
 */
export const hasTaskSubscription = raw(`w.status = 'active' and w.events && '{${taskSubscriptions.join()}}'::text[]`)

/**
 * What webhooks of an organization have subscribed to, and those that are pushed the events of a task, each once and in the order of
 * their names; null where no webhook gets events of tasks. An expression of `text[]`.
 */
export function subscriptionsIn({ fragment }: Pick<Sql, 'fragment'>, org_id: Fragment, task_id?: Fragment): Fragment {
  const pushed = task_id
    ? fragment`union all select 'task.*' from webhook w where w.push_task_id = ${task_id}`
    : fragment``
  return fragment`(select array_agg(distinct name) from (
    select unnest(w.events) as name from webhook w where w.org_id = ${org_id} and ${hasTaskSubscription} ${pushed}) names)`
}

/** A task as its events describe it, after they have happened. */
export interface PublishedTask {
  id: string
  project_id: number
  agent_id: string
  agent_version: number
  thread_id: string | null
  retried_from: string | null
  status: TaskState
  /** Undefined where the agent is gone. */
  agent_name: string | undefined
}

/** An event of a task with its place among them. */
interface JournalNotice {
  type: TaskEventType
  sequence: number
  data: Record<string, unknown>
}

/** Webhook events of a task, for the subscribed ones: the members that the contract names, cut to its bounds. */
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
  // The engine writes the members of its events as the contract names them; the tests hold them against each other.
  return { type, data: { ...data, truncated: cut.happened } } as EventOf<TaskEventName>
}

/** A value as its schema bounds it, and whether anything of it was cut or left out. */
export function fitted<T extends TSchema>(schema: T, value: unknown): { value: Static<T>; truncated: boolean } {
  const cut = { happened: false }
  // What does not fit is cut or null, as the schema allows.
  const fit_value = fit(schema, value, cut) as Static<T>
  return { value: fit_value, truncated: cut.happened }
}

/** The part of a schema that says what is kept of a value. */
interface Bounds {
  properties?: Record<string, object>
  items?: object
  maxItems?: number
  maxLength?: number
  'x-max-json-bytes'?: number
}

/** A value with the members that its schema names, its texts and lists cut to their bounds; `cut` notes whether any was. */
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

/** A text of at most so many code points. */
function cutText(text: string, max: number): string {
  return text.length <= max ? text : [...text.slice(0, 2 * max)].slice(0, max).join('')
}
