import Type, { type Static, type TObject } from 'typebox'
import { eventExamples } from './event-examples.ts'
import { eventPayloads } from './event-payloads.ts'
import type { OutboxEventName } from './events.ts'
import type { OperationCallback } from '../core/operation.ts'
import { Choice, Named, Timestamp } from '../core/schemas.ts'

const names = Object.keys(eventPayloads) as OutboxEventName[]

/** Name of an event's body in the OpenAPI document: `AgentLaunchedEvent` for `agent.launched`. */
function bodyName(event: OutboxEventName): string {
  const words = event.split('.').map((word) => word[0]?.toUpperCase() + word.slice(1))
  return `${words.join('')}Event`
}

function bodyOf(event: OutboxEventName): TObject {
  const members = {
    event: Choice([event]),
    timestamp: Type.Unsafe<string>({ ...Timestamp, description: 'Time of the event.' }),
    data: eventPayloads[event],
  }
  return Named(bodyName(event), Type.Object(members))
}

/** Body of a request to a webhook: exactly these members; `data` depends on the event (decision D93). */
export const webhookBody = Named(
  'WebhookBody',
  Type.Unsafe<{ event: OutboxEventName; timestamp: string; data: Static<(typeof eventPayloads)[OutboxEventName]> }>({
    oneOf: names.map(bodyOf),
    discriminator: {
      propertyName: 'event',
      mapping: Object.fromEntries(names.map((name) => [name, `#/components/schemas/${bodyName(name)}`])),
    },
  }),
)

/** The request to a webhook, for the OpenAPI document (decisions D93, D96 and D97). */
export const webhookDelivery: OperationCallback = {
  url: '{$request.body#/url}',
  id: 'deliverEvent',
  summary: 'An event is delivered',
  description:
    'Sent to the URL of a webhook for every event that it has subscribed to: at least once, in no guaranteed order. ' +
    'A 2xx response within 15 seconds is a success. After any other result, including a redirect, the delivery is retried. 410 disables the webhook.',
  headers: {
    'webhook-id': {
      description: 'Id of the event, the same in every attempt.',
      example: 'evt_01jcm3x5v8f9a2b4c6d8e0g2h4',
    },
    'webhook-timestamp': { description: 'Time of the attempt, as Unix time in seconds.', example: '1795167001' },
    'webhook-signature': {
      description:
        '`v1,` and the base64 HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>` with the secret (Standard Webhooks 1.0). For 24 hours after a change of the secret: two signatures, separated by a space.',
      example: 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
    },
  },
  body: webhookBody,
  example: {
    event: 'error.occurred',
    timestamp: '2026-11-20T09:30:04.530Z',
    data: eventExamples['error.occurred'],
  },
  responses: { '2XX': 'Received.', 410: 'The receiver no longer exists. The webhook is disabled.' },
}
