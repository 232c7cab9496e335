import Type from 'typebox'
import { eventNames } from './events.ts'
import { bounds } from './limits.ts'
import { anyCredential, defineOperation, type Operation } from './operation.ts'
import { boundedJson, Choice, FreeObject, Named, Timestamp } from './schemas.ts'

const filters = Type.Unsafe<Record<string, unknown[]>>(
  boundedJson(
    {
      type: 'object',
      additionalProperties: { type: 'array', items: {}, maxItems: 64 },
      description:
        'For each member of an event\'s data: the values that are delivered, such as `{"severity": ["high", "critical"]}`.',
    },
    bounds.webhook_filters_bytes,
  ),
)

const example = {
  id: 'wh_01jcm3x5v8f9a2b4c6d8e0g2h4',
  url: 'https://hooks.example.com/cadre',
  events: ['agent.failed', 'error.occurred'],
  filters: { severity: ['high', 'critical'] },
  status: 'active',
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:30:00.000Z',
}

export const createWebhook = defineOperation({
  id: 'createWebhook',
  method: 'POST',
  path: '/api/v1/webhooks',
  family: 'B',
  tag: 'Webhooks',
  summary: 'Register a webhook',
  description: 'Subscribes an address to events of all projects of the organization. The secret is never returned.',
  credentials: anyCredential,
  scope: 'projects:write',
  bucket: 'general',
  body: Type.Object({
    url: Type.String({ minLength: 1, maxLength: bounds.webhook_url, description: 'https; port 443, 80 or from 1024.' }),
    events: Type.Array(Choice(eventNames), { minItems: 1, maxItems: bounds.webhook_events }),
    secret: Type.Unsafe<string>({
      type: 'string',
      minLength: 1,
      maxLength: bounds.webhook_secret,
      'x-secret': true,
      description: 'Signs deliveries. `whsec_` and base64 stands for those bytes.',
    }),
    filters: Type.Optional(filters),
  }),
  body_example: {
    url: example.url,
    events: example.events,
    secret: 'whsec_c2VjcmV0LW9mLXRoZS13ZWJob29rLXJlY2VpdmVy',
    filters: example.filters,
  },
  responses: [
    {
      status: 201,
      description: 'The webhook.',
      schema: Named(
        'Webhook',
        Type.Object({
          id: Type.String(),
          url: Type.String(),
          events: Type.Array(Choice(eventNames)),
          filters: FreeObject,
          status: Choice(['active', 'disabled']),
          created_at: Timestamp,
          updated_at: Timestamp,
        }),
      ),
      example,
    },
  ],
  problems: [],
})

export const webhookOperations: Operation[] = [createWebhook] as Operation[]
