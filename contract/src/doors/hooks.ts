import { defineOperation } from '../core/operation.ts'
import { receiptExample, TriggerReceipt } from './trigger-deliveries.ts'
import { triggerBounds } from './trigger-sources.ts'

/**
 * The endpoint that senders post to. It is in the OpenAPI document but not among `operations`: senders define the
 * bodies, it needs no credential of the service, and its rate limit is counted per trigger.
 */
export const receiveDelivery = defineOperation({
  error_format: 'agents',
  tag: 'Triggers',
  credentials: [],
  scope: null,
  bucket: null,
  extension: true,
  id: 'receiveDelivery',
  tolerant: true,
  path: '/hooks/{secret}',
  params: { secret: { description: 'The secret part of the address of a trigger.', example: 'qTn0yY4hq2E3r5b1' } },
  method: 'POST',
  summary: 'Deliver to a trigger',
  description: 'Responds when the delivery is stored.',
  foreign_body: 'The body as its source sends it, with the signature that the trigger requires.',
  body_bytes: triggerBounds.body_bytes,
  responses: [
    {
      status: 202,
      description: 'The delivery is stored. Slack gets status 200.',
      schema: TriggerReceipt,
      example: receiptExample,
    },
  ],
  problems: ['trigger_not_found', 'unauthorized', 'rate_limit_exceeded', 'validation_error', 'queue_full'],
})
