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

/** States of a delivery: it waits for an attempt, the receiver accepted it, or it failed permanently. */
export const deliveryStates = ['pending', 'delivered', 'failed'] as const

/** Why a delivery failed permanently. */
export const deliveryFailures = ['attempts_exhausted', 'webhook_disabled', 'gone'] as const

/** All events that a delivery may have. */
export const deliveredEvents = [...eventNames, ...moreEventNames, ...taskEventNames, testEventName] as const

const shared = {
  id: Type.String(),
  event_id: Type.String({
    description: 'Sent as `webhook-id` with every attempt; the same for redeliveries of the event.',
  }),
  event: Choice(deliveredEvents),
  status: Choice(deliveryStates),
  failure: Nullable(
    Choice(deliveryFailures, {
      description:
        'Why the delivery failed permanently: all attempts failed, the webhook was disabled, or the receiver responded 410 (`gone`). Null otherwise.',
    }),
  ),
  is_redelivery: Type.Boolean({
    description: 'Whether it is a redelivery, whose failures do not count towards disabling the webhook.',
  }),
  is_test: Type.Boolean({ description: 'Whether a test of the webhook created it. No other webhook gets the event.' }),
  last_response_status: Nullable(
    Type.Integer({ description: 'Status of the last response; null if there is none yet.' }),
  ),
  next_attempt_at: Nullable({
    ...Timestamp,
    description: 'Time of the next attempt; null unless the delivery is pending.',
  }),
  created_at: Timestamp,
  finished_at: Nullable({ ...Timestamp, description: 'When it was delivered or failed permanently.' }),
}

const Delivery = Named(
  'Delivery',
  Type.Object({ ...shared, attempts: Type.Integer({ minimum: 0, description: 'Number of attempts so far.' }) }),
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
      headers: { ...Headers, description: 'The request headers; the signature is shortened.' },
    }),
    response: Nullable(
      Type.Object(
        {
          status: Type.Integer(),
          headers: Headers,
          body: Type.String({ description: 'The first KiB as text.' }),
        },
        { description: 'The response; null if there was none.' },
      ),
    ),
    error: Nullable(
      Type.String({
        description: 'Why there was no response, or why the response is a failure; null after a success.',
      }),
    ),
  }),
)

const DeliveryWithAttempts = Named(
  'DeliveryWithAttempts',
  Type.Object({
    ...shared,
    payload: Nullable(
      Type.String({ description: 'The body of every attempt, byte for byte; null if the event is no longer stored.' }),
    ),
    attempts: Type.Array(DeliveryAttempt, { description: 'The attempts so far, oldest first.' }),
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
  description: `Sends \`${testEventName}\`, or a sample of the given event, only to this webhook, independent of its subscriptions and filters. It is signed, retried and listed like every delivery, but its failures do not count towards disabling the webhook. Identifiers in a sample do not exist. The webhook must be active.`,
  scope: 'projects:write',
  body: Type.Object({
    event: Type.Optional(
      Choice(deliveredEvents, { default: testEventName, description: 'The event to send a sample of.' }),
    ),
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
  description: 'Deliveries of the webhook, newest first. They are kept for 30 days.',
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
  description: 'The body of the delivery, and every attempt with its result.',
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
  summary: 'Redeliver a delivery',
  description:
    'Sends the event again with the same id, signed with the current secret, and retries it like a new delivery. If the delivery is still pending, it is due immediately. The webhook must be active.',
  scope: 'projects:write',
  responses: [
    {
      status: 202,
      description: 'The delivery after the change.',
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
  summary: 'Recover failed deliveries',
  description: `Redelivers every delivery that failed permanently at \`since\` or later, oldest first; up to ${bounds.recovered_deliveries} with one request. The webhook must be active.`,
  scope: 'projects:write',
  body: Type.Object({
    since: { ...TimestampInput, description: `ISO 8601, at most ${bounds.recover_days} days ago.` },
  }),
  body_example: { since: '2026-11-19' },
  responses: [
    {
      status: 202,
      description: 'The number of deliveries that are due again.',
      schema: Named(
        'RecoveredDeliveries',
        Confirmation({
          webhook_id: Type.String(),
          recovered: Type.Integer({ minimum: 0 }),
          has_more: Type.Boolean({ description: 'Whether more deliveries are left for another request.' }),
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
