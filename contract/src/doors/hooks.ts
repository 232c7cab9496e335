import { defineOperation } from '../core/operation.ts'
import { receiptExample, TriggerReceipt } from './trigger-deliveries.ts'
import { triggerBounds } from './trigger-sources.ts'

/**
 * What senders post to. It is in the OpenAPI document and not among `operations`: its bodies are the senders' own, it takes no
 * credential of the service, and its rate window is the trigger's.
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
  description: 'Answered once the delivery is kept.',
  foreign_body: 'As its source sends it, with the signature that the trigger asks for.',
  body_bytes: triggerBounds.body_bytes,
  responses: [
    {
      status: 202,
      description: 'The delivery is kept; Slack is answered 200.',
      schema: TriggerReceipt,
      example: receiptExample,
    },
  ],
  problems: ['trigger_not_found', 'unauthorized', 'rate_limit_exceeded', 'validation_error', 'queue_full'],
})
