import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  Choice,
  Confirmation,
  Defaulted,
  FutureInput,
  Named,
  NameText,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  revisionHeader,
  Timestamp,
} from '../core/schemas.ts'
import { scopes } from '../core/scopes.ts'
import { QueueName } from '../resources/agents.ts'

const common = { error_format: 'agents', tag: 'API keys', credentials: anyCredential } as const
const one = {
  ...common,
  path: '/api/v1/auth/api-keys/{key_id}',
  params: { key_id: { description: 'The key, by its identifier.', example: 'key_01jcm3x5v8f9a2b4c6d8e0g2h4' } },
} as const

const shared = {
  id: Type.String(),
  name: Type.String(),
  description: Type.String(),
  scopes: Type.Array(Choice(scopes)),
  created_at: Timestamp,
  expires_at: Nullable(Timestamp),
  last_used: Nullable(Timestamp),
  queues: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Queues of remote work that the key may claim from. Absent if it may claim from all.',
    }),
  ),
}
const preview = {
  key_preview: Type.String({ description: 'The leading part of the key and `***`.' }),
  last_ip: Type.Optional(
    Type.String({ description: 'The IP address of the latest request. Earlier addresses are not stored.' }),
  ),
  updated_at: Type.Optional(Timestamp),
  previous_expires_at: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'When the previous secret stops working. Present after a rotation, while that secret still works.',
    }),
  ),
}

const CreatedKey = Named(
  'CreatedApiKey',
  Type.Object({ ...shared, key: Type.String({ description: 'The secret. It is never shown again.' }) }),
)
export const ApiKey = Named('ApiKey', Type.Object({ ...shared, ...preview }))
const ApiKeyWithUsage = Named(
  'ApiKeyWithUsage',
  Type.Object({
    ...shared,
    ...preview,
    usage_stats: Named(
      'ApiKeyUsage',
      Type.Object({
        total_requests: Type.Integer({ minimum: 0 }),
        requests_last_24h: Type.Integer({ minimum: 0 }),
        requests_last_7d: Type.Integer({ minimum: 0 }),
        requests_last_30d: Type.Integer({ minimum: 0 }),
      }),
    ),
  }),
)

const created = {
  id: one.params.key_id.example,
  name: 'ci',
  description: 'Deploys from the pipeline.',
  scopes: ['agents:read', 'agents:write'],
  created_at: '2026-11-20T09:30:00.000Z',
  expires_at: null,
  last_used: null,
}
const shown = { ...created, key_preview: 'cadre_1a2b3c4d***' }
export const apiKeyExample = shown

const scopeList = Type.Array(Choice(scopes), {
  minItems: 1,
  maxItems: bounds.api_key_scopes,
  description: 'Only scopes that the caller has.',
})
const queueList = Type.Array(QueueName, {
  minItems: 1,
  maxItems: bounds.work_queues,
  description: 'With `work:execute`: the queues that the key may claim from. Default: all queues.',
})
const keyName = NameText(bounds.api_key_name, 'What the key is for.')
const description = Type.String({ maxLength: bounds.api_key_description })

export const createApiKey = defineOperation({
  ...common,
  id: 'createApiKey',
  audit: 'api_key.created',
  command: 'keys create',
  sdk: 'apiKeys.create',
  sdk_note: 'Only this response contains the secret.',
  method: 'POST',
  path: '/api/v1/auth/api-keys',
  summary: 'Create an API key',
  description:
    'Only this response contains the secret. `Idempotency-Key` is ignored, because the secret is not stored.',
  scope: 'api_keys:write',
  bucket: 'api_keys.create',
  idempotent: false,
  body: Type.Object({
    name: keyName,
    description: Type.Optional(description),
    scopes: scopeList,
    queues: Type.Optional(queueList),
    expires_at: Type.Optional(FutureInput),
  }),
  body_example: { name: created.name, description: created.description, scopes: created.scopes },
  responses: [
    {
      status: 201,
      description: 'The key with its secret.',
      schema: CreatedKey,
      example: { ...created, key: 'cadre_1a2b3c4d5e6f708192a3b4c5d6e7f809' },
      headers: revisionHeader,
    },
  ],
  problems: ['insufficient_scope'],
})

export const listApiKeys = defineOperation({
  ...common,
  id: 'listApiKeys',
  command: 'keys list',
  sdk: 'apiKeys.list',
  method: 'GET',
  path: '/api/v1/auth/api-keys',
  summary: 'List API keys',
  description: "The caller's own keys in the current organization, newest first.",
  scope: 'api_keys:read',
  bucket: 'api_keys.read',
  query: offsetQuery({
    active_only: Defaulted(Type.Boolean({ default: true, description: 'Whether to omit expired keys.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of keys.',
      schema: Named('ApiKeyList', Type.Object({ api_keys: Type.Array(ApiKey), pagination: OffsetPagination })),
      example: { api_keys: [shown], pagination: offsetPaginationExample },
    },
  ],
  problems: [],
})

export const getApiKey = defineOperation({
  ...one,
  id: 'getApiKey',
  command: 'keys get',
  sdk: 'apiKeys.get',
  method: 'GET',
  summary: 'Read an API key',
  description: 'A key with its usage. Request counts have a resolution of one hour.',
  scope: 'api_keys:read',
  bucket: 'api_keys.read',
  revisioned: true,
  responses: [
    {
      status: 200,
      description: 'The key.',
      schema: ApiKeyWithUsage,
      example: {
        ...shown,
        last_used: '2026-11-20T09:31:00.000Z',
        last_ip: '203.0.113.7',
        usage_stats: { total_requests: 12, requests_last_24h: 2, requests_last_7d: 9, requests_last_30d: 12 },
      },
    },
  ],
  problems: ['api_key_not_found'],
})

export const updateApiKey = defineOperation({
  ...one,
  id: 'updateApiKey',
  audit: 'api_key.updated',
  command: 'keys update',
  sdk: 'apiKeys.update',
  method: 'PUT',
  summary: 'Update an API key',
  description: 'Changes the name, description, scopes or queues. The secret does not change.',
  scope: 'api_keys:write',
  bucket: 'api_keys.write',
  body: Type.Object({
    name: Type.Optional(keyName),
    description: Type.Optional(Nullable(description)),
    scopes: Type.Optional(scopeList),
    queues: Type.Optional(queueList),
  }),
  body_example: { name: 'ci-eu', scopes: ['agents:read'] },
  revisioned: true,
  responses: [
    {
      status: 200,
      description: 'The key.',
      schema: ApiKey,
      example: { ...shown, name: 'ci-eu', scopes: ['agents:read'], updated_at: '2026-11-20T10:00:00.000Z' },
    },
  ],
  problems: ['api_key_not_found', 'insufficient_scope'],
})

const RotatedKey = Named(
  'RotatedApiKey',
  Type.Object({
    ...shared,
    key: Type.String({ description: 'The new secret. It is never shown again.' }),
    updated_at: Timestamp,
    previous_expires_at: Nullable(
      Type.String({
        format: 'date-time',
        description: 'When the previous secret stops working; null if it no longer works.',
      }),
    ),
  }),
)

export const rotateApiKey = defineOperation({
  ...common,
  id: 'rotateApiKey',
  audit: 'api_key.rotated',
  command: 'keys rotate',
  sdk: 'apiKeys.rotate',
  method: 'POST',
  path: '/api/v1/auth/api-keys/{key_id}/rotate',
  params: one.params,
  summary: 'Rotate the secret of an API key',
  description:
    'Creates a new secret; identifier, name, scopes, expiry, usage and budgets do not change. The previous secret works for another ' +
    '`overlap_seconds`; secrets before it stop working. Revoking the key ends both. A key may rotate itself. Rotating another ' +
    'key requires all of its scopes. `Idempotency-Key` is ignored, because the secret is not stored.',
  scope: 'api_keys:write',
  bucket: 'api_keys.write',
  body: Type.Object({
    overlap_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: bounds.api_key_overlap_seconds,
        default: 86_400,
        description: 'How long the previous secret still works; 0 ends it immediately.',
      }),
    ),
  }),
  body_example: { overlap_seconds: 3600 },
  body_optional: true,
  responses: [
    {
      status: 200,
      description: 'The key with its new secret.',
      schema: RotatedKey,
      example: {
        ...created,
        last_used: '2026-11-20T09:31:00.000Z',
        updated_at: '2026-11-20T10:00:00.000Z',
        key: 'cadre_9f8e7d6c5b4a39281706f5e4d3c2b1a0',
        previous_expires_at: '2026-11-20T11:00:00.000Z',
      },
    },
  ],
  problems: ['api_key_not_found', 'insufficient_scope', 'resource_conflict'],
  idempotent: false,
  extension: true,
})

export const getApiKeyActivity = defineOperation({
  ...common,
  id: 'getApiKeyActivity',
  command: 'keys activity',
  sdk: 'apiKeys.activity',
  method: 'GET',
  path: '/api/v1/auth/api-keys/{key_id}/activity',
  params: one.params,
  summary: 'Read the activity of an API key',
  description:
    'Operations that the key called in the last 30 days, latest first, and the usage of its tasks in that time. Shows what would break ' +
    'if the key were revoked or lost a scope. Calls that its scopes did not allow are omitted. New calls appear after a few seconds.',
  scope: 'api_keys:read',
  bucket: 'api_keys.read',
  responses: [
    {
      status: 200,
      description: 'Operations and usage of the last 30 days.',
      schema: Named(
        'ApiKeyActivity',
        Type.Object({
          calls: Type.Array(
            Type.Object({
              operation: Type.String({ description: 'The `operationId`.' }),
              required_scope: Nullable(
                Choice(scopes, { description: 'The scope that the operation requires; null if any key may call it.' }),
              ),
              requests: Type.Integer({ minimum: 0 }),
              last_at: Timestamp,
            }),
          ),
          usage: Type.Object(
            {
              calls: Type.Integer({ minimum: 0, description: 'Calls of models and tools.' }),
              input_tokens: Type.Integer({ minimum: 0 }),
              output_tokens: Type.Integer({ minimum: 0 }),
              cost_usd: Type.Number({
                minimum: 0,
                description: 'Cost in US dollars of the calls whose price is known.',
              }),
            },
            { description: 'Usage of the tasks that the key created, in all projects.' },
          ),
        }),
      ),
      example: {
        calls: [
          {
            operation: 'createTask',
            required_scope: 'tasks:write',
            requests: 4102,
            last_at: '2026-11-20T09:31:00.000Z',
          },
        ],
        usage: { calls: 4102, input_tokens: 1_120_406, output_tokens: 83_925, cost_usd: 3.1874 },
      },
    },
  ],
  problems: ['api_key_not_found'],
  extension: true,
})

export const deleteApiKey = defineOperation({
  ...one,
  id: 'deleteApiKey',
  audit: 'api_key.revoked',
  command: 'keys delete',
  sdk: 'apiKeys.delete',
  method: 'DELETE',
  summary: 'Revoke an API key',
  description: 'The key stops working with its next request, on every server process.',
  scope: 'api_keys:write',
  bucket: 'api_keys.write',
  revisioned: true,
  responses: [
    {
      status: 200,
      description: 'The key is revoked.',
      schema: Confirmation({ key_id: Type.String(), revoked_at: Timestamp }),
      example: { message: 'API key revoked', key_id: created.id, revoked_at: '2026-11-20T10:00:00.000Z' },
    },
  ],
  problems: ['api_key_not_found'],
})

export const apiKeyOperations: Operation[] = [
  createApiKey,
  listApiKeys,
  getApiKey,
  updateApiKey,
  rotateApiKey,
  getApiKeyActivity,
  deleteApiKey,
] as Operation[]
