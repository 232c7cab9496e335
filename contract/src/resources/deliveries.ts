import Type from 'typebox'
import { eventNames, moreEventNames, taskEventNames, testEventName } from '../events/events.ts'
import { bounds } from '../core/limits.ts'
import { defineOperation, type Operation } from '../core/operation.ts'
import {
  Choice,
  Confirmation,
  cursorParameter,
  Named,
  Nullable,
  PageCursorPagination,
  pagePaginationExample,
  pageQuery,
  Timestamp,
  TimestampInput,
} from '../core/schemas.ts'
import { ofWebhook } from './webhooks.ts'

/** States of a delivery: it waits for its next attempt, it was taken, or it was given up. */
export const deliveryStates = ['pending', 'delivered', 'failed'] as const

/** Why a delivery was given up. */
export const deliveryFailures = ['attempts_exhausted', 'webhook_disabled', 'gone'] as const

/** Everything that a webhook can be sent. */
export const deliveredEvents = [...eventNames, ...moreEventNames, ...taskEventNames, testEventName] as const

const shared = {
  id: Type.String(),
  event_id: Type.String({
    description: 'The `webhook-id` of every attempt: the same however often the event is delivered.',
  }),
  event: Choice(deliveredEvents),
  status: Choice(deliveryStates),
  failure: Nullable(
    Choice(deliveryFailures, {
      description:
        'Why it was given up: all attempts failed, the webhook was disabled, or it answered 410; null otherwise.',
    }),
  ),
  is_redelivery: Type.Boolean({
    description: 'A redelivery: its failures do not count towards disabling the webhook.',
  }),
  is_test: Type.Boolean({ description: 'Made by a test of the webhook: no other webhook got it.' }),
  last_response_status: Nullable(Type.Integer({ description: 'Null where there was no answer yet.' })),
  next_attempt_at: Nullable({ ...Timestamp, description: 'When it is due; null unless it is pending.' }),
  created_at: Timestamp,
  finished_at: Nullable({ ...Timestamp, description: 'When it was taken or given up.' }),
}

const Delivery = Named(
  'Delivery',
  Type.Object({ ...shared, attempts: Type.Integer({ minimum: 0, description: 'All that were made.' }) }),
)

const Headers = Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: { type: 'string' } })

const DeliveryAttempt = Named(
  'DeliveryAttempt',
  Type.Object({
    attempt: Type.Integer({ minimum: 1 }),
    at: Timestamp,
    duration_ms: Type.Integer({ minimum: 0 }),
    request: Type.Object({
      url: Type.String(),
      headers: { ...Headers, description: 'The signature is shortened.' },
    }),
    response: Nullable(
      Type.Object(
        {
          status: Type.Integer(),
          headers: Headers,
          body: Type.String({ description: 'As text; the first KiB.' }),
        },
        { description: 'Null where there was none.' },
      ),
    ),
    error: Nullable(
      Type.String({ description: 'Why there was no answer, or what was wrong with it; null after a success.' }),
    ),
  }),
)

const DeliveryWithAttempts = Named(
  'DeliveryWithAttempts',
  Type.Object({
    ...shared,
    payload: Nullable(
      Type.String({ description: 'The body of every attempt, byte for byte; null where the event is no longer kept.' }),
    ),
    attempts: Type.Array(DeliveryAttempt, { description: 'All that were made, the first one first.' }),
  }),
)

const example = {
  id: 'dlv_01jcm3x5v8f9a2b4c6d8e0g2h4',
  event_id: 'evt_01jcm3x5v8f9a2b4c6d8e0g2h4',
  event: 'agent.failed',
  status: 'delivered',
  failure: null,
  attempts: 1,
  is_redelivery: false,
  is_test: false,
  last_response_status: 204,
  next_attempt_at: null,
  created_at: '2026-11-20T09:30:00.000Z',
  finished_at: '2026-11-20T09:30:00.112Z',
}
const pendingExample = {
  ...example,
  status: 'pending',
  attempts: 0,
  last_response_status: null,
  next_attempt_at: '2026-11-20T09:30:00.000Z',
  finished_at: null,
}
const attemptExample = {
  attempt: 1,
  at: '2026-11-20T09:30:00.021Z',
  duration_ms: 91,
  request: {
    url: 'https://hooks.example.com/cadre',
    headers: {
      'content-type': 'application/json',
      'webhook-id': example.event_id,
      'webhook-timestamp': '1795167000',
      'webhook-signature': 'v1,K5oZfzN9…',
    },
  },
  response: { status: 204, headers: { date: 'Fri, 20 Nov 2026 09:30:00 GMT' }, body: '' },
  error: null,
}
const payloadExample =
  '{"event":"agent.failed","timestamp":"2026-11-20T09:30:00.000Z","data":{"agent":{"id":"agent_01jcm3x5v8f9a2b4c6d8e0g2h4","name":"support","project_id":"proj_42","status":"error"},"task":null,"error":{"code":"provider_refused","message":"The provider refuses the credentials."}}}'

const one = {
  ...ofWebhook,
  path: `${ofWebhook.path}/deliveries/{delivery_id}`,
  params: { ...ofWebhook.params, delivery_id: { description: 'The delivery.', example: example.id } },
} as const

export const testWebhook = defineOperation({
  ...ofWebhook,
  path: `${ofWebhook.path}/test`,
  id: 'testWebhook',
  audit: 'webhook.tested',
  command: 'webhooks trigger',
  sdk: 'webhooks.test',
  method: 'POST',
  summary: 'Test a webhook',
  description: `Sends \`${testEventName}\`, or a sample of the event that is named, to this webhook alone, whatever it subscribed to or filters. Signed, repeated and listed like every delivery; its failures count nowhere. Identifiers in a sample name nothing. The webhook must be active.`,
  scope: 'projects:write',
  body: Type.Object({
    event: Type.Optional(Choice(deliveredEvents, { default: testEventName, description: 'A sample of which event.' })),
  }),
  body_example: { event: 'agent.failed' },
  body_optional: true,
  responses: [
    { status: 202, description: 'The delivery.', schema: Delivery, example: { ...pendingExample, is_test: true } },
  ],
  problems: ['webhook_not_found'],
})

export const listDeliveries = defineOperation({
  ...ofWebhook,
  path: `${ofWebhook.path}/deliveries`,
  id: 'listDeliveries',
  command: 'deliveries list',
  sdk: 'webhooks.listDeliveries',
  method: 'GET',
  summary: 'List deliveries of a webhook',
  description: 'Its deliveries, sent, pending or failed, the newest first, for 30 days.',
  scope: 'projects:read',
  query: pageQuery({
    status: Type.Optional(Choice(deliveryStates, { description: 'Only deliveries in this state.' })),
    event: Type.Optional(Choice(deliveredEvents, { description: 'Only deliveries of this event.' })),
    created_after: Type.Optional(TimestampInput),
    created_before: Type.Optional(TimestampInput),
    ...cursorParameter,
  }),
  responses: [
    {
      status: 200,
      description: 'A page of deliveries.',
      schema: Named(
        'DeliveryList',
        Type.Object({ deliveries: Type.Array(Delivery), pagination: PageCursorPagination }),
      ),
      example: { deliveries: [example], pagination: { ...pagePaginationExample, next_cursor: null } },
    },
  ],
  problems: ['webhook_not_found', 'invalid_query'],
})

export const getDelivery = defineOperation({
  ...one,
  id: 'getDelivery',
  command: 'deliveries get',
  sdk: 'webhooks.getDelivery',
  method: 'GET',
  summary: 'Read a delivery',
  description: 'What was sent, and what every attempt came to.',
  scope: 'projects:read',
  responses: [
    {
      status: 200,
      description: 'The delivery with its attempts.',
      schema: DeliveryWithAttempts,
      example: { ...example, payload: payloadExample, attempts: [attemptExample] },
    },
  ],
  problems: ['webhook_not_found', 'delivery_not_found'],
})

export const redeliverDelivery = defineOperation({
  ...one,
  path: `${one.path}/redeliver`,
  id: 'redeliverDelivery',
  audit: 'webhook.redelivered',
  command: 'deliveries redeliver',
  sdk: 'webhooks.redeliver',
  method: 'POST',
  summary: 'Deliver again',
  description:
    'Sends the event again, under the same identifier, signed with the current secret, and as often as a new one where that fails. One that is pending already is due at once. The webhook must be active.',
  scope: 'projects:write',
  responses: [
    {
      status: 202,
      description: 'The delivery as it is now.',
      schema: Delivery,
      example: { ...pendingExample, attempts: 1, is_redelivery: true, last_response_status: 503 },
    },
  ],
  problems: ['webhook_not_found', 'delivery_not_found'],
})

export const recoverDeliveries = defineOperation({
  ...ofWebhook,
  path: `${ofWebhook.path}/recover`,
  id: 'recoverDeliveries',
  audit: 'webhook.recovered',
  command: 'deliveries recover',
  sdk: 'webhooks.recover',
  method: 'POST',
  summary: 'Deliver again what failed',
  description: `Everything that was given up at that moment or later is delivered again, the oldest first, as by redelivering each; at most ${bounds.recovered_deliveries} with one request. The webhook must be active.`,
  scope: 'projects:write',
  body: Type.Object({
    since: { ...TimestampInput, description: `ISO 8601, at most ${bounds.recover_days} days ago.` },
  }),
  body_example: { since: '2026-11-19' },
  responses: [
    {
      status: 202,
      description: 'How many are due again.',
      schema: Named(
        'RecoveredDeliveries',
        Confirmation({
          webhook_id: Type.String(),
          recovered: Type.Integer({ minimum: 0 }),
          has_more: Type.Boolean({ description: 'Whether others are left for another request.' }),
        }),
      ),
      example: {
        message: '118 deliveries are due again',
        webhook_id: ofWebhook.params.webhook_id.example,
        recovered: 118,
        has_more: false,
      },
    },
  ],
  problems: ['webhook_not_found'],
})

export const deliveryOperations: Operation[] = [
  testWebhook,
  listDeliveries,
  getDelivery,
  redeliverDelivery,
  recoverDeliveries,
] as Operation[]
