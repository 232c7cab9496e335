import Type from 'typebox'
import { ApiKey, apiKeyExample } from './api-keys.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  Confirmation,
  Defaulted,
  Named,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  Timestamp,
} from '../core/schemas.ts'

const common = {
  error_format: 'agents',
  tag: 'API keys',
  credentials: anyCredential,
  scope: 'admin',
  extension: true,
} as const

const OrganizationApiKey = Named(
  'OrganizationApiKey',
  Type.Object({
    ...ApiKey.properties,
    user: Type.Object(
      { id: Type.String(), name: Type.String(), email: Type.String() },
      { description: 'The owner of the key.' },
    ),
  }),
)
const owner = { id: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4', name: 'Ada Lovelace', email: 'ada@example.com' }

export const listOrganizationApiKeys = defineOperation({
  ...common,
  id: 'listOrganizationApiKeys',
  command: 'organization keys',
  sdk: 'organization.listApiKeys',
  method: 'GET',
  path: '/api/v1/auth/organization/api-keys',
  summary: 'List the API keys of all members',
  description: 'Every key of the current organization with its owner, newest first. For owners and admins.',
  bucket: 'api_keys.read',
  query: offsetQuery({
    active_only: Defaulted(Type.Boolean({ default: true, description: 'Whether to omit expired keys.' })),
    user_id: Type.Optional(Type.String({ maxLength: 64, description: 'Only keys of this member.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of keys.',
      schema: Named(
        'OrganizationApiKeyList',
        Type.Object({ api_keys: Type.Array(OrganizationApiKey), pagination: OffsetPagination }),
      ),
      example: { api_keys: [{ ...apiKeyExample, user: owner }], pagination: offsetPaginationExample },
    },
  ],
  problems: [],
})

export const revokeOrganizationApiKey = defineOperation({
  ...common,
  id: 'revokeOrganizationApiKey',
  audit: 'api_key.revoked',
  command: 'organization revoke-key',
  sdk: 'organization.revokeApiKey',
  method: 'DELETE',
  path: '/api/v1/auth/organization/api-keys/{key_id}',
  params: { key_id: { description: 'The key, by its identifier.', example: apiKeyExample.id } },
  summary: 'Revoke the API key of any member',
  description:
    'For owners and admins; an admin may also revoke the key of an owner. The key stops working with its next request.',
  bucket: 'api_keys.write',
  responses: [
    {
      status: 200,
      description: 'The key is revoked.',
      schema: Confirmation({ key_id: Type.String(), revoked_at: Timestamp }),
      example: { message: 'API key revoked', key_id: apiKeyExample.id, revoked_at: '2026-11-20T10:00:00.000Z' },
    },
  ],
  problems: ['api_key_not_found'],
})

export const organizationApiKeyOperations: Operation[] = [
  listOrganizationApiKeys,
  revokeOrganizationApiKey,
] as Operation[]
