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

/** Why a webhook is disabled: a request, a response 410, or days of failures (decision D97). */
export const disabledReasons = ['requested', 'gone', 'failing'] as const

/** How long deliveries are also signed with the previous secret (decision D96). */
export const secretOverlap_hours = 24

const filters = Type.Unsafe<Record<string, unknown[]>>(
  boundedJson(
    {
      type: 'object',
      additionalProperties: { type: 'array', items: {}, maxItems: 64 },
      description:
        'Allowed values of members of an event\'s data, such as `{"severity": ["high", "critical"]}`. An event without the member is delivered.',
    },
    bounds.webhook_filters_bytes,
  ),
)
const url = Type.String({
  minLength: 1,
  maxLength: bounds.webhook_url,
  description: 'An https URL with port 443, 80, or 1024 and above.',
})
const events = Type.Array(Choice(subscriptions), {
  minItems: 1,
  maxItems: bounds.webhook_events,
  description: 'Event names; `task.*` means all events that begin with `task.`.',
})
const secret = Type.Unsafe<string>({
  type: 'string',
  minLength: 1,
  maxLength: bounds.webhook_secret,
  'x-secret': true,
  description: 'Secret that signs deliveries. After `whsec_`, the rest is base64 of the bytes.',
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
        'Why the webhook is disabled. `requested`: by a request. `gone`: the receiver responded 410. `failing`: all deliveries failed for 5 days.',
    }),
  ),
  disabled_at: Nullable(Timestamp),
  failing_since: Nullable({
    ...Timestamp,
    description: 'First failure since the last successful delivery; null if there is none.',
  }),
  previous_secret_expires_at: Nullable({
    ...Timestamp,
    description:
      'Until then deliveries are also signed with the previous secret; null if only the current one is used.',
  }),
}
const Webhook = Named('Webhook', Type.Object(fields))

/** Number of latest deliveries that the list of webhooks counts. */
export const recentDeliveries = 50

const recent = (description: string) => Type.Integer({ minimum: 0, maximum: recentDeliveries, description })

const ListedWebhook = Named(
  'ListedWebhook',
  Type.Object({
    ...fields,
    recent_deliveries: Type.Object(
      {
        delivered: recent('Delivered.'),
        failed: recent('Failed permanently.'),
        pending: recent('Waiting for their next attempt.'),
        last_at: Nullable({
          ...Timestamp,
          description: 'When the latest delivery was created; null if there is none.',
        }),
        last_status: Nullable(
          Choice(['pending', 'delivered', 'failed'], { description: 'Status of the latest delivery.' }),
        ),
      },
      { description: `The latest ${recentDeliveries} deliveries by status.` },
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

/** Path parameter for a webhook of the organization. */
export const webhookParameter = { description: 'The webhook.', example: example.id }

/** Members that operations on one webhook share. */
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
  description: 'Subscribes a URL to events of all projects of the organization. The secret is never returned.',
  scope: 'projects:write',
  // The specification requires the secret, so clients generate it if a person gives none.
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
  description: 'Webhooks of the organization. The filters `…_after` are inclusive, `…_before` exclusive.',
  scope: 'projects:read',
  extension: true,
  query: pageQuery({
    search: Type.Optional(Type.String({ maxLength: bounds.search, description: 'Part of the URL. Case-insensitive.' })),
    status: Type.Optional(Choice(webhookStates, { description: 'Only webhooks in this state.' })),
    agent_id: Type.Optional(
      Type.String({
        maxLength: 64,
        description:
          'Only webhooks that may get events of this agent, according to their events and to their filters on `id`, `name`, `agent_id` and `project_id`.',
      }),
    ),
    sort: Defaulted(
      Choice(['url', 'created_at', 'updated_at'], { default: 'created_at', description: 'Member to sort by.' }),
    ),
    order: Defaulted(Choice(['asc', 'desc'], { default: 'desc', description: 'Sort direction.' })),
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
  description: `Given members replace, absent members stay. Pending deliveries are sent to the new URL. After a change of \`secret\`, deliveries are also signed with the previous one for ${secretOverlap_hours} hours. \`disabled\` ends pending deliveries as failed; \`active\` delivers events from now on.`,
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
  description: 'Nothing more is sent to it, except a request in progress. Its deliveries can no longer be read.',
  scope: 'projects:write',
  revisioned: true,
  responses: [
    {
      status: 200,
      description: 'The webhook is deleted.',
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
  description: `Without \`secret\` the service generates one; only this response contains it (and its repetition for the same \`Idempotency-Key\`). For ${secretOverlap_hours} hours, deliveries are signed with both secrets, then only with the new one. After a second rotation within that time, the oldest secret is no longer used.`,
  scope: 'projects:write',
  revisioned: true,
  body: Type.Object({ secret: Type.Optional(secret) }),
  body_example: {},
  body_optional: true,
  responses: [
    {
      status: 200,
      description: 'The new secret if the service generated it, and how long the previous one is used too.',
      schema: Named(
        'RotatedSecret',
        Confirmation({
          webhook_id: Type.String(),
          secret: Type.Optional(
            Type.String({ description: 'The new secret if the service generated it. It is never shown again.' }),
          ),
          previous_secret_expires_at: Nullable({
            ...Timestamp,
            description:
              'Until then deliveries are also signed with the previous secret; null if only the new one is used.',
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
