import { createHash } from 'node:crypto'
import { retention_days } from '#contract/core/limits.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import {
  sourceDefinitions,
  triggerBounds,
  type FilteredReason,
  type triggerOutcomes,
} from '#contract/doors/trigger-sources.ts'
import type { Context } from '../../context.ts'
import { requireInput } from '../../engine/tools/data-schema.ts'
import { judgeInput } from '../../engine/tools/schemas/schema-judge.ts'
import { newId } from '../../platform/ids.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { requireRoom, requireWorking } from '../../resources/tasks/tasks.queries.ts'
import { findWaiting } from '../ag-ui/runs.queries.ts'
import { deleteDoorThread, insertDoorThread } from '../door-keys.queries.ts'
import { findThread, insertDelivery, nameThread, takeKey } from './deliveries.queries.ts'
import { asText, matches, valueAt, type DeliveryView } from './paths.ts'
import { markOf, renderInput, renderThreadKey, shortened } from './render.ts'
import {
  findAgentOf,
  holdTrigger,
  lockAgent,
  noteDelivery,
  triggerNotFound,
  type TriggerRow,
} from './triggers.queries.ts'
import type { Received } from './verify.ts'

/** On whose behalf a delivery is accepted. */
export interface TakenBy {
  user_id: string
  /** The credential whose budgets the task uses: the trigger, or the credential of the person who replays. */
  credential_id: string
  request_id: string
  /** Name of the sender's client. */
  client: string
}

/** An authenticated and parsed delivery. */
export interface Delivery extends Received {
  id: string
  parsed: unknown
}

/** Options of accepting a delivery. */
export interface Taking {
  /** Whether to accept a delivery even if it is a duplicate or the trigger is paused. */
  isAgain: boolean
  is_test?: boolean
  replay_of?: string
}

/** Result of a delivery. */
export interface Taken {
  delivery_id: string
  task_id: string | null
  status: (typeof triggerOutcomes)[number]
}

/** The decision on a delivery before anything is stored. */
export interface Decided {
  reason: FilteredReason | null
  view: DeliveryView
  thread_key: string | null
}

/** Decides whether a delivery starts a task, and with what input. Pure. */
export function decide(trigger: TriggerRow, delivery: Delivery, { isAgain }: Pick<Taking, 'isAgain'>): Decided {
  const { id, name, source } = trigger
  const view: DeliveryView = {
    body: delivery.parsed,
    headers: delivery.headers,
    delivery: { id: delivery.id, received_at: new Date().toISOString() },
    trigger: { id, name, source },
  }
  const reason =
    trigger.status === 'paused' && !isAgain
      ? 'paused'
      : (reasonOfSource(trigger, view) ?? (matches(trigger.filter, view) ? null : 'filter'))
  return { reason, view, thread_key: renderThreadKey(trigger.thread_key, view) }
}

/**
 * Why the source's deliveries are ignored: tests of the address, messages of the agent itself, and automatic replies.
 */
function reasonOfSource({ source }: TriggerRow, view: DeliveryView): FilteredReason | null {
  const { body, headers } = view
  if (source === 'github' && headers['x-github-event'] === 'ping') return 'ping'
  if (source === 'slack' && isOwnMessage(body)) return 'own_message'
  if (source === 'email' && isObject(body) && body['is_automatic'] === true) return 'automatic_reply'
  return null
}

/** Whether a Slack event is about an action of the app itself, by app id or by the user of its bot. */
function isOwnMessage(body: unknown): boolean {
  if (!isObject(body) || !isObject(body['event'])) return false
  const { event, api_app_id, authorizations } = body
  const profile = isObject(event['bot_profile']) ? event['bot_profile'] : {}
  const apps = [event['app_id'], profile['app_id']]
  if (typeof api_app_id === 'string' && apps.includes(api_app_id)) return true
  const bots = Array.isArray(authorizations)
    ? authorizations.filter((one) => isObject(one) && one['is_bot'] === true)
    : []
  return typeof event['user'] === 'string' && bots.some((one) => isObject(one) && one['user_id'] === event['user'])
}

/** The key that detects duplicates of a delivery, and how long it is valid. */
export function keyOf(trigger: TriggerRow, { body }: Received, view: DeliveryView) {
  const path = trigger.dedupe ?? sourceDefinitions[trigger.source].dedupe
  const sender_id = path === null ? '' : shortened(asText(valueAt(view, path)))
  if (sender_id !== '')
    return { key: `id:${sender_id}`, sender_id, seconds: retention_days.trigger_deliveries * 86_400 }
  const key = `bytes:${createHash('sha256').update(body).digest('hex')}`
  return { key, sender_id: null, seconds: triggerBounds.same_bytes_hours * 3600 }
}

/**
 * Validates the input object of a delivery in the schema thread, before the transaction, because validation may be
 * slow.
 */
export async function judgeDelivery(sql: Sql, trigger: TriggerRow, delivery: Delivery, taking: Taking): Promise<void> {
  if (!isObject(trigger.input)) return
  const { reason, view } = decide(trigger, delivery, taking)
  if (reason !== null) return
  const agent = await findAgentOf(sql, trigger)
  if (!agent) return
  await judgeInput(agent.config, renderInput(trigger.input, view, markOf(delivery.id)), { ...trigger, ...agent })
}

/**
 * Accepts a delivery in the caller's transaction, which stores the delivery together with its task or message. A
 * duplicate is recognized by its key and starts nothing. Throws 404 if the trigger was deleted, 409
 * `agent_not_running` if the agent accepts no tasks, 429 if too many tasks are queued, and 400 if the input is
 * invalid for the agent. Then nothing is stored, so that the sender can retry.
 */
export async function takeDelivery(
  tx: Sql,
  { engine }: Pick<Context, 'engine'>,
  trigger: TriggerRow,
  delivery: Delivery,
  by: TakenBy,
  taking: Taking,
): Promise<Taken & { decided: Decided; input: unknown }> {
  const agent = await lockAgent(tx, trigger.agent_id)
  if (!agent || !(await holdTrigger(tx, trigger.id))) throw triggerNotFound(trigger.id)
  const decided = decide(trigger, delivery, taking)
  const { key, sender_id, seconds } = keyOf(trigger, delivery, decided.view)
  if (!taking.isAgain) {
    const earlier = await takeKey(tx, { trigger_id: trigger.id, key, delivery_id: delivery.id, seconds })
    if (earlier) {
      await noteDelivery(tx, trigger.id, { status: 'duplicate', task_id: null })
      return { delivery_id: earlier.id, task_id: earlier.task_id, status: 'duplicate', decided, input: null }
    }
  }
  const status = decided.reason === null ? 'accepted' : 'filtered'
  const input = status === 'accepted' ? renderInput(trigger.input, decided.view, markOf(delivery.id)) : null
  const started = input === null ? null : await give(tx, engine, { trigger, agent, decided, input, by })
  const task_id = started?.task_id ?? null
  await insertDelivery(tx, {
    ...{ id: delivery.id, trigger_id: trigger.id, project_id: trigger.project_id, status, reason: decided.reason },
    ...{ task_id, thread_id: started?.thread_id ?? null, sender_id },
    ...{ is_test: taking.is_test ?? false, replay_of: taking.replay_of ?? null },
    ...{ headers: keptHeaders(trigger, delivery.headers), body: delivery.body },
  })
  await noteDelivery(tx, trigger.id, { status, task_id })
  return { delivery_id: delivery.id, task_id, status, decided, input }
}

interface Given {
  trigger: TriggerRow
  agent: NonNullable<Awaited<ReturnType<typeof lockAgent>>>
  decided: Decided
  input: string | Record<string, unknown>
  by: TakenBy
}

/**
 * Sends a message to the task that waits in the delivery's thread, if the trigger has the action `message`; otherwise
 * starts a task.
 */
async function give(
  tx: Sql,
  engine: Context['engine'],
  { trigger, agent, decided, input, by }: Given,
): Promise<{ task_id: string; thread_id: string | null }> {
  requireWorking(agent)
  const thread_id = decided.thread_key === null ? null : await threadOf(tx, trigger, decided.thread_key, by)
  if (trigger.action === 'message' && thread_id !== null && typeof input === 'string') {
    const waiting = await findWaiting(tx, thread_id, ['input'])
    const sent = waiting && (await engine.sendMessage(tx, waiting.id, { content: input, user_id: by.user_id }))
    // A task that has ended in the meantime cannot read the message.
    if (sent?.outcome === 'sent') return { task_id: waiting!.id, thread_id }
  }
  requireInput(agent.config, input)
  await requireRoom(tx, agent)
  const { priority, timeout_seconds, budget, metadata } = trigger
  const id = newId('task')
  const door = { kind: `trigger:${trigger.id}`, client: by.client }
  await engine.enqueue(tx, {
    ...{ id, agent, thread_id, input, priority, timeout_seconds, budget, metadata: { ...metadata, door } },
    ...{ created_by: by.user_id, credential_id: by.credential_id, request_id: by.request_id },
  })
  return { task_id: id, thread_id }
}

/** The thread of a key; created on first use. */
async function threadOf(tx: Sql, trigger: TriggerRow, key: string, by: TakenBy): Promise<string> {
  const { id: trigger_id, project_id, agent_id } = trigger
  const known = await findThread(tx, trigger_id, key)
  if (known !== undefined) return known
  const id = newId('thread')
  await insertDoorThread(tx, { id, project_id, agent_id, created_by: by.user_id })
  const thread_id = await nameThread(tx, { trigger_id, key, thread_id: id })
  // Another delivery created it at the same time.
  if (thread_id !== id) await deleteDoorThread(tx, id)
  return thread_id
}

/** Headers that authenticate a request. They are not stored, so that a reader of a delivery cannot forge one. */
const provingHeaders = ['authorization', 'proxy-authorization', 'cookie', 'webhook-signature', 'x-hub-signature']

/** The headers for storage, without those that authenticate. */
export function keptHeaders(
  { source, hmac }: Pick<TriggerRow, 'source' | 'hmac'>,
  headers: Readonly<Record<string, string>>,
): Record<string, string> {
  const { template, token } = sourceDefinitions[source]
  const left = new Set([...provingHeaders, template?.header, token?.header, hmac?.header.toLowerCase()])
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !left.has(name)))
}
