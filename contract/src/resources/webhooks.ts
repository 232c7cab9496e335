import Type from 'typebox'
import { subscriptions } from '../events/events.ts'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  boundedJson,
  Choice,
  Confirmation,
  Defaulted,
  FreeObject,
  Named,
  Nullable,
  PagePagination,
  pagePaginationExample,
  pageQuery,
  revisionHeader,
  Timestamp,
  TimestampInput,
} from '../core/schemas.ts'
import { webhookDelivery } from '../events/webhook-delivery.ts'

/** States of a webhook: only an active one gets events. */
export const webhookStates = ['active', 'disabled'] as const

/** Why a webhook is disabled: by a request, by an answer 410, or by days of failures (decision D97). */
export const disabledReasons = ['requested', 'gone', 'failing'] as const

/** How long the secret before the current one signs too (decision D96). */
export const secretOverlap_hours = 24

const filters = Type.Unsafe<Record<string, unknown[]>>(
  boundedJson(
    {
      type: 'object',
      additionalProperties: { type: 'array', items: {}, maxItems: 64 },
      description:
        'For each member of an event\'s data: the values that are delivered, such as `{"severity": ["high", "critical"]}`. An event without the member is delivered.',
    },
    bounds.webhook_filters_bytes,
  ),
)
const url = Type.String({
  minLength: 1,
  maxLength: bounds.webhook_url,
  description: 'https; port 443, 80 or from 1024.',
})
const events = Type.Array(Choice(subscriptions), {
  minItems: 1,
  maxItems: bounds.webhook_events,
  description: 'Names of events; `task.*` stands for all that begin so.',
})
const secret = Type.Unsafe<string>({
  type: 'string',
  minLength: 1,
  maxLength: bounds.webhook_secret,
  'x-secret': true,
  description: 'Signs deliveries. `whsec_` and base64 stands for those bytes.',
})

const registered = {
  id: Type.String(),
  url: Type.String(),
  events: Type.Array(Choice(subscriptions)),
  filters: FreeObject,
  status: Choice(webhookStates),
  created_at: Timestamp,
  updated_at: Timestamp,
}

const fields = {
  ...registered,
  disabled_reason: Nullable(
    Choice(disabledReasons, {
      description:
        'Why it is disabled: `requested` by a request, `gone` because it answered 410, `failing` because nothing reached it for 5 days.',
    }),
  ),
  disabled_at: Nullable(Timestamp),
  failing_since: Nullable({
    ...Timestamp,
    description: 'The first failure since it last took an event; null while it works.',
  }),
  previous_secret_expires_at: Nullable({
    ...Timestamp,
    description: 'Until then the secret before the current one signs too; null where none does.',
  }),
}
const Webhook = Named('Webhook', Type.Object(fields))

/** How many deliveries the list of webhooks sums up. */
export const recentDeliveries = 50

const recent = (description: string) => Type.Integer({ minimum: 0, maximum: recentDeliveries, description })

const ListedWebhook = Named(
  'ListedWebhook',
  Type.Object({
    ...fields,
    recent_deliveries: Type.Object(
      {
        delivered: recent('Taken.'),
        failed: recent('Given up.'),
        pending: recent('Waiting for an attempt.'),
        last_at: Nullable({ ...Timestamp, description: 'When the latest one was made; null where there is none.' }),
        last_status: Nullable(
          Choice(['pending', 'delivered', 'failed'], { description: 'How the latest one stands.' }),
        ),
      },
      { description: `What became of the latest ${recentDeliveries} deliveries.` },
    ),
  }),
)

const createdExample = {
  id: 'wh_01jcm3x5v8f9a2b4c6d8e0g2h4',
  url: 'https://hooks.example.com/cadre',
  events: ['agent.failed', 'error.occurred'],
  filters: { severity: ['high', 'critical'] },
  status: 'active',
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:30:00.000Z',
}
const example = {
  ...createdExample,
  disabled_reason: null,
  disabled_at: null,
  failing_since: null,
  previous_secret_expires_at: null,
}

const listedExample = {
  ...example,
  recent_deliveries: {
    delivered: 48,
    failed: 1,
    pending: 1,
    last_at: '2026-11-20T10:12:07.310Z',
    last_status: 'pending',
  },
}

const common = { error_format: 'control', tag: 'Webhooks', credentials: anyCredential, bucket: 'general' } as const

/** In paths: a webhook of the organization. */
export const webhookParameter = { description: 'The webhook.', example: example.id }

/** What operations on one webhook share. */
export const ofWebhook = {
  ...common,
  path: '/api/v1/webhooks/{webhook_id}',
  params: { webhook_id: webhookParameter },
  extension: true,
} as const

export const createWebhook = defineOperation({
  ...common,
  id: 'createWebhook',
  audit: 'webhook.created',
  command: 'webhooks create',
  sdk: 'webhooks.create',
  method: 'POST',
  path: '/api/v1/webhooks',
  summary: 'Register a webhook',
  description: 'Subscribes an address to events of all projects of the organization. No answer has the secret.',
  scope: 'projects:write',
  // The specification requires the secret, so clients make it where a person gives none.
  body: Type.Object({
    url,
    events,
    secret: Type.Unsafe<string>({ ...secret, 'x-made-by-command': true }),
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
      schema: Named('CreatedWebhook', Type.Object(registered)),
      example: createdExample,
      headers: revisionHeader,
    },
  ],
  callbacks: { event: webhookDelivery },
  problems: [],
})

export const listWebhooks = defineOperation({
  ...common,
  id: 'listWebhooks',
  command: 'webhooks list',
  sdk: 'webhooks.list',
  method: 'GET',
  path: '/api/v1/webhooks',
  summary: 'List webhooks',
  description: 'Webhooks of the organization. After means at that moment or later, before means strictly earlier.',
  scope: 'projects:read',
  extension: true,
  query: pageQuery({
    search: Type.Optional(
      Type.String({ maxLength: bounds.search, description: 'Part of the address, without regard to case.' }),
    ),
    status: Type.Optional(Choice(webhookStates, { description: 'Only webhooks in this state.' })),
    agent_id: Type.Optional(
      Type.String({
        maxLength: 64,
        description:
          'Only webhooks that may get events of this agent: by their events, and by their filters on `id`, `name`, `agent_id` and `project_id`.',
      }),
    ),
    sort: Defaulted(
      Choice(['url', 'created_at', 'updated_at'], { default: 'created_at', description: 'What to sort by.' }),
    ),
    order: Defaulted(Choice(['asc', 'desc'], { default: 'desc', description: 'In which direction.' })),
    created_after: Type.Optional(TimestampInput),
    created_before: Type.Optional(TimestampInput),
    updated_after: Type.Optional(TimestampInput),
    updated_before: Type.Optional(TimestampInput),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of webhooks.',
      schema: Named('WebhookList', Type.Object({ webhooks: Type.Array(ListedWebhook), pagination: PagePagination })),
      example: { webhooks: [listedExample], pagination: pagePaginationExample },
    },
  ],
  problems: ['invalid_query'],
})

export const getWebhook = defineOperation({
  ...ofWebhook,
  id: 'getWebhook',
  command: 'webhooks get',
  sdk: 'webhooks.get',
  method: 'GET',
  summary: 'Read a webhook',
  description: 'One webhook of the organization, without its secret.',
  scope: 'projects:read',
  revisioned: true,
  responses: [{ status: 200, description: 'The webhook.', schema: Webhook, example, headers: revisionHeader }],
  problems: ['webhook_not_found'],
})

export const updateWebhook = defineOperation({
  ...ofWebhook,
  id: 'updateWebhook',
  audit: 'webhook.updated',
  command: 'webhooks update',
  sdk: 'webhooks.update',
  method: 'PUT',
  summary: 'Update a webhook',
  description: `Given members replace, missing ones stay. What waits is sent to the new address. After another \`secret\` the one before it signs too for ${secretOverlap_hours} hours. \`disabled\` gives up what waits to be delivered; \`active\` begins anew with the next event.`,
  scope: 'projects:write',
  revisioned: true,
  body: Type.Object({
    url: Type.Optional(url),
    events: Type.Optional(events),
    filters: Type.Optional(Nullable(filters)),
    secret: Type.Optional(secret),
    status: Type.Optional(Choice(webhookStates)),
  }),
  body_example: { events: ['agent.failed', 'task.*'] },
  responses: [
    {
      status: 200,
      description: 'The webhook.',
      schema: Webhook,
      example: { ...example, events: ['agent.failed', 'task.*'], updated_at: '2026-11-20T10:00:00.000Z' },
      headers: revisionHeader,
    },
  ],
  problems: ['webhook_not_found'],
})

export const deleteWebhook = defineOperation({
  ...ofWebhook,
  id: 'deleteWebhook',
  audit: 'webhook.deleted',
  command: 'webhooks delete',
  sdk: 'webhooks.delete',
  method: 'DELETE',
  summary: 'Delete a webhook',
  description: 'Nothing more is sent to it, but for a request that is under way. Its deliveries can no longer be read.',
  scope: 'projects:write',
  revisioned: true,
  responses: [
    {
      status: 200,
      description: 'The webhook is gone.',
      schema: Confirmation({ webhook_id: Type.String() }),
      example: { message: 'Webhook deleted', webhook_id: example.id },
    },
  ],
  problems: ['webhook_not_found'],
})

export const rotateWebhookSecret = defineOperation({
  ...ofWebhook,
  path: `${ofWebhook.path}/rotate-secret`,
  id: 'rotateWebhookSecret',
  audit: 'webhook.secret_rotated',
  command: 'webhooks rotate-secret',
  sdk: 'webhooks.rotateSecret',
  method: 'POST',
  summary: 'Rotate the secret of a webhook',
  description: `Without \`secret\` a new one is made, and shown in this answer only (and once more to the same \`Idempotency-Key\`). Both secrets sign for ${secretOverlap_hours} hours; then only the new one does. A secret that was replaced before that time, by a second rotation, signs no more at once.`,
  scope: 'projects:write',
  revisioned: true,
  body: Type.Object({ secret: Type.Optional(secret) }),
  body_example: {},
  body_optional: true,
  responses: [
    {
      status: 200,
      description: 'The new secret, where none was given, and how long the one before it signs too.',
      schema: Named(
        'RotatedSecret',
        Confirmation({
          webhook_id: Type.String(),
          secret: Type.Optional(
            Type.String({ description: 'The new secret, where it was made here. It is never shown again.' }),
          ),
          previous_secret_expires_at: Nullable({
            ...Timestamp,
            description: 'Until then the secret before it signs too; null where none does.',
          }),
          updated_at: Timestamp,
        }),
      ),
      example: {
        message: 'Secret rotated',
        webhook_id: example.id,
        secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw3Vyo2yZ0Tmg=',
        previous_secret_expires_at: '2026-11-21T10:00:00.000Z',
        updated_at: '2026-11-20T10:00:00.000Z',
      },
      headers: revisionHeader,
    },
  ],
  problems: ['webhook_not_found'],
})

export const webhookOperations: Operation[] = [
  createWebhook,
  listWebhooks,
  getWebhook,
  updateWebhook,
  deleteWebhook,
  rotateWebhookSecret,
] as Operation[]
