import Type from 'typebox'
import { retention_days } from '../core/limits.ts'
import { defineOperation, type Operation } from '../core/operation.ts'
import {
  Choice,
  Named,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  Timestamp,
} from '../core/schemas.ts'
import { queuedTaskExample } from '../tasks/tasks.ts'
import { filteredReasons, triggerDeliveryStates, triggerOutcomes, type FilteredReason } from './trigger-sources.ts'
import { ofTrigger } from './triggers.ts'

const reason = Nullable(
  Choice(filteredReasons, {
    description:
      'Why the delivery started no task. `filter`: it does not match the filter. `paused`: the trigger was paused. `ping`: the sender only tested the address. `own_message`: the app itself sent the message. `automatic_reply`: the mail is an automatic reply. Null if the delivery was accepted.',
  }),
)

const shared = {
  id: Type.String(),
  status: Choice(triggerDeliveryStates),
  reason,
  task_id: Nullable(Type.String({ description: 'The task that the delivery started or sent a message to.' })),
  thread_id: Nullable(Type.String()),
  sender_id: Nullable(Type.String({ description: 'The identifier that the sender gave the delivery.' })),
  duplicates: Type.Integer({ minimum: 0, description: 'How often the sender repeated the delivery.' }),
  bytes: Type.Integer({ minimum: 0, description: 'Size of the body.' }),
  is_test: Type.Boolean({ description: 'Whether a test of the trigger created the delivery.' }),
  replay_of: Nullable(Type.String({ description: 'The delivery that this one replays.' })),
  created_at: Timestamp,
}
const TriggerDelivery = Named('TriggerDelivery', Type.Object(shared))
const WholeTriggerDelivery = Named(
  'WholeTriggerDelivery',
  Type.Object({
    ...shared,
    headers: Type.Unsafe<Record<string, string>>({
      type: 'object',
      additionalProperties: { type: 'string' },
      description: 'The headers as received, without signatures, tokens and other credentials.',
    }),
    payload: Type.String({ description: 'The body as text.' }),
  }),
)

const example = {
  id: 'tdlv_01jcm3x5v8f9a2b4c6d8e0g2h4',
  status: 'accepted',
  reason: null,
  task_id: queuedTaskExample.id,
  thread_id: null,
  sender_id: '72d3162e-cc78-11e3-81ab-4c9367dc0958',
  duplicates: 0,
  bytes: 52,
  is_test: false,
  replay_of: null,
  created_at: '2026-11-20T09:30:00.000Z',
}

const one = {
  ...ofTrigger,
  path: `${ofTrigger.path}/deliveries/{delivery_id}`,
  params: { ...ofTrigger.params, delivery_id: { description: 'The delivery.', example: example.id } },
} as const

/** The response to a sender. */
export const TriggerReceipt = Named(
  'TriggerReceipt',
  Type.Object({
    delivery_id: Type.String({ description: 'The delivery; for a repeated one, the first delivery.' }),
    task_id: Nullable(Type.String()),
    status: Choice(triggerOutcomes),
  }),
)
export const receiptExample = { delivery_id: example.id, task_id: example.task_id, status: 'accepted' }

export const testTrigger = defineOperation({
  ...ofTrigger,
  path: `${ofTrigger.path}/test`,
  id: 'testTrigger',
  audit: 'trigger.tested',
  command: 'triggers test',
  sdk: 'triggers.test',
  method: 'POST',
  summary: 'Test a trigger',
  description:
    'Handles a sample as if the source had just sent it, without a signature, and even if it is a duplicate. It creates a real task of the calling user. With `preview`, nothing is stored or started, and the response shows what would happen.',
  scope: 'agents:write',
  bucket: 'tasks.create',
  body: Type.Object({
    sample: Type.Unsafe<unknown>({ 'x-verbatim': true, description: 'The body of the delivery: any JSON.' }),
    headers: Type.Optional(
      Type.Unsafe<Record<string, string>>({
        type: 'object',
        additionalProperties: { type: 'string', maxLength: 1000 },
        maxProperties: 50,
        description: 'The headers of the delivery, such as `{"x-github-event": "issues"}`.',
      }),
    ),
    preview: Type.Optional(Type.Boolean({ default: false, description: 'Whether to only show what would happen.' })),
  }),
  body_example: {
    sample: { action: 'opened', issue: { number: 7, title: 'The door squeaks' } },
    headers: { 'x-github-event': 'issues' },
    preview: true,
  },
  responses: [
    {
      status: 200,
      description: 'What happened, or what would happen.',
      schema: Named(
        'TriggerTest',
        Type.Object({
          delivery_id: Nullable(Type.String()),
          task_id: Nullable(Type.String()),
          status: Choice(triggerDeliveryStates),
          reason,
          input: Type.Unsafe<unknown>({ description: 'The input of the task; null if no task is created.' }),
          thread_key: Nullable(Type.String()),
        }),
      ),
      example: {
        delivery_id: null,
        task_id: null,
        status: 'accepted',
        reason: null as FilteredReason | null,
        input: 'Sort this issue into one of our areas: The door squeaks',
        thread_key: 'octocat/door#7',
      },
    },
  ],
  problems: ['project_not_found', 'trigger_not_found', 'agent_not_running', 'queue_full'],
})

export const listTriggerDeliveries = defineOperation({
  ...ofTrigger,
  path: `${ofTrigger.path}/deliveries`,
  id: 'listTriggerDeliveries',
  command: 'triggers deliveries',
  sdk: 'triggers.listDeliveries',
  method: 'GET',
  summary: 'List deliveries of a trigger',
  description: `Authenticated deliveries to the address of the trigger, newest first. They are kept for ${retention_days.trigger_deliveries} days.`,
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({
    status: Type.Optional(Choice(triggerDeliveryStates, { description: 'Only deliveries with this status.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of deliveries.',
      schema: Named(
        'TriggerDeliveryList',
        Type.Object({ deliveries: Type.Array(TriggerDelivery), pagination: OffsetPagination }),
      ),
      example: { deliveries: [example], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found', 'trigger_not_found'],
})

export const getTriggerDelivery = defineOperation({
  ...one,
  id: 'getTriggerDelivery',
  command: 'triggers delivery',
  sdk: 'triggers.getDelivery',
  method: 'GET',
  summary: 'Read a delivery of a trigger',
  description: 'The delivery with its headers and body.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  responses: [
    {
      status: 200,
      description: 'The delivery.',
      schema: WholeTriggerDelivery,
      example: {
        ...example,
        headers: { 'content-type': 'application/json', 'x-github-event': 'issues' },
        payload: '{"action":"opened","issue":{"number":7,"title":"…"}}',
      },
    },
  ],
  problems: ['project_not_found', 'trigger_not_found', 'delivery_not_found'],
})

export const replayTriggerDelivery = defineOperation({
  ...one,
  path: `${one.path}/replay`,
  id: 'replayTriggerDelivery',
  audit: 'trigger.replayed',
  command: 'triggers replay',
  sdk: 'triggers.replay',
  method: 'POST',
  summary: 'Replay a delivery',
  description:
    'Handles the same headers and body again, with the current filter and input of the trigger, even if the trigger is paused. Creates a new delivery that is not a duplicate; its task belongs to the calling user.',
  scope: 'agents:write',
  bucket: 'tasks.create',
  responses: [
    {
      status: 202,
      description: 'The new delivery.',
      schema: TriggerReceipt,
      example: { ...receiptExample, delivery_id: 'tdlv_01jcm3x5v8f9a2b4c6d8e0g2h5' },
    },
  ],
  problems: ['project_not_found', 'trigger_not_found', 'delivery_not_found', 'agent_not_running', 'queue_full'],
})

export const triggerDeliveryOperations: Operation[] = [
  testTrigger,
  listTriggerDeliveries,
  getTriggerDelivery,
  replayTriggerDelivery,
] as Operation[]
