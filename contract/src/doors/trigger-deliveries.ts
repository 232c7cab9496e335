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
      'Why it started nothing: a condition of the filter did not hold, the trigger was paused, the sender only tried the address, the message was the own one of the app, or an automatic reply; null where it was accepted.',
  }),
)

const shared = {
  id: Type.String(),
  status: Choice(triggerDeliveryStates),
  reason,
  task_id: Nullable(Type.String({ description: 'The task that it started or answered.' })),
  thread_id: Nullable(Type.String()),
  sender_id: Nullable(Type.String({ description: 'The identifier that the sender gave it.' })),
  duplicates: Type.Integer({ minimum: 0, description: 'How often it came again.' }),
  bytes: Type.Integer({ minimum: 0, description: 'Of its body.' }),
  is_test: Type.Boolean({ description: 'Made by a test of the trigger.' }),
  replay_of: Nullable(Type.String({ description: 'The delivery that it replays.' })),
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
      description: 'As they came, without those that prove or authenticate.',
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

/** What a sender is answered. */
export const TriggerReceipt = Named(
  'TriggerReceipt',
  Type.Object({
    delivery_id: Type.String({ description: 'Of a repeated one that of the first.' }),
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
    'Takes a sample as if its source had sent it just now, without a proof and though it may have come before: its task is a real one, of the user who asks. With `preview` nothing is kept or started, and the answer tells what would be.',
  scope: 'agents:write',
  bucket: 'tasks.create',
  body: Type.Object({
    sample: Type.Unsafe<unknown>({ 'x-verbatim': true, description: 'The body of the delivery: any JSON.' }),
    headers: Type.Optional(
      Type.Unsafe<Record<string, string>>({
        type: 'object',
        additionalProperties: { type: 'string', maxLength: 1000 },
        maxProperties: 50,
        description: 'Its headers, such as `{"x-github-event": "issues"}`.',
      }),
    ),
    preview: Type.Optional(Type.Boolean({ default: false, description: 'Only tell what would become of it.' })),
  }),
  body_example: {
    sample: { action: 'opened', issue: { number: 7, title: 'The door squeaks' } },
    headers: { 'x-github-event': 'issues' },
    preview: true,
  },
  responses: [
    {
      status: 200,
      description: 'What became of it, or would.',
      schema: Named(
        'TriggerTest',
        Type.Object({
          delivery_id: Nullable(Type.String()),
          task_id: Nullable(Type.String()),
          status: Choice(triggerDeliveryStates),
          reason,
          input: Type.Unsafe<unknown>({ description: 'What the agent is asked; null where it is asked nothing.' }),
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
  description: `What came to its address and was genuine, the newest first, for ${retention_days.trigger_deliveries} days.`,
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({
    status: Type.Optional(Choice(triggerDeliveryStates, { description: 'Only deliveries of which this became.' })),
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
  description: 'With its headers and its body.',
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
    'Takes the same headers and body once more, by the filter and the input that the trigger has now, also while it is paused, though they came before. It is another delivery, and its task is one of the user who asks.',
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
