import Type, { type Static, type TObject } from 'typebox'
import { eventExamples } from './event-examples.ts'
import { eventPayloads } from './event-payloads.ts'
import type { OutboxEventName } from './events.ts'
import type { OperationCallback } from '../core/operation.ts'
import { Choice, Named, Timestamp } from '../core/schemas.ts'

const names = Object.keys(eventPayloads) as OutboxEventName[]

/** `agent.launched` as `AgentLaunchedEvent`: the name of its body among the schemas of the document. */
function bodyName(event: OutboxEventName): string {
  const words = event.split('.').map((word) => word[0]?.toUpperCase() + word.slice(1))
  return `${words.join('')}Event`
}

function bodyOf(event: OutboxEventName): TObject {
  const members = {
    event: Choice([event]),
    timestamp: Type.Unsafe<string>({ ...Timestamp, description: 'When it happened.' }),
    data: eventPayloads[event],
  }
  return Named(bodyName(event), Type.Object(members))
}

/** The body of a request to a webhook: exactly these members, of each event with its own `data` (decision D93). */
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

/** What a webhook is sent, for the document (decisions D93, D96 and D97). */
export const webhookDelivery: OperationCallback = {
  url: '{$request.body#/url}',
  id: 'deliverEvent',
  summary: 'An event is delivered',
  description:
    'Sent to the address of a webhook for every event that it has subscribed to: at least once, in no promised order. ' +
    'Any 2xx within 15 seconds is a success; everything else, also a redirect, is tried again later. 410 disables the webhook.',
  headers: {
    'webhook-id': {
      description: 'Of the event: the same in every attempt.',
      example: 'evt_01jcm3x5v8f9a2b4c6d8e0g2h4',
    },
    'webhook-timestamp': { description: 'Of the attempt, in seconds since 1970.', example: '1795167001' },
    'webhook-signature': {
      description:
        '`v1,` and base64 of HMAC-SHA256 over id, timestamp and body with dots between them, by the secret (Standard Webhooks 1.0). Two with a space between them for 24 hours after the secret was changed.',
      example: 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
    },
  },
  body: webhookBody,
  example: {
    event: 'error.occurred',
    timestamp: '2026-11-20T09:30:04.530Z',
    data: eventExamples['error.occurred'],
  },
  responses: { '2XX': 'Received.', 410: 'The receiver is gone: the webhook is disabled.' },
}
