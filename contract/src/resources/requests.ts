import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  Choice,
  Named,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  Timestamp,
} from '../core/schemas.ts'

/** Outcome of a request, by the first digit of its status. */
export const requestOutcomes = ['success', 'client_error', 'server_error'] as const

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
const kinds = ['api_key', 'token', 'session', 'lease'] as const
const text = (description: string) => Type.Optional(Type.String({ maxLength: 100, description }))

const RequestEntry = Named(
  'RequestEntry',
  Type.Object({
    request_id: Type.String({ description: 'The request id, as in the response and in the log of the service.' }),
    at: Timestamp,
    method: Type.String(),
    path: Type.String({ description: 'The path without its query.' }),
    status: Type.Integer({ description: 'Status of the response.' }),
    duration_ms: Type.Integer({ minimum: 0 }),
    ip: Type.String(),
    credential_kind: Choice(kinds),
    credential_id: Type.String(),
    credential_name: Nullable(
      Type.String({ description: 'Name of the key, app or user; null if it no longer exists.' }),
    ),
    rate_limit: Nullable(
      Type.Object({
        limit: Type.Integer({ description: 'Requests that the credential may make per hour.' }),
        remaining: Type.Integer({ description: 'Requests left after this one.' }),
      }),
    ),
  }),
)

const example = {
  request_id: 'req_5v8f9a2b4c6d8e0g2h4jkmnp',
  at: '2026-11-20T09:30:00.000Z',
  method: 'POST',
  path: '/api/v1/projects/proj_42/agents/agent_01jcm3x5v8f9a2b4c6d8e0g2h4/tasks',
  status: 201,
  duration_ms: 12,
  ip: '203.0.113.7',
  credential_kind: 'api_key' as const,
  credential_id: 'key_01jcm3x5v8f9a2b4c6d8e0g2h4',
  credential_name: 'checkout',
  rate_limit: { limit: 10_000, remaining: 9871 },
}

export const listRequests = defineOperation({
  id: 'listRequests',
  command: 'requests list',
  sdk: 'service.requests',
  method: 'GET',
  path: '/api/v1/requests',
  error_format: 'agents',
  tag: 'Utility',
  credentials: anyCredential,
  scope: 'admin',
  extension: true,
  summary: 'List recent requests',
  description:
    'For owners and admins: the newest 1,000 requests of the organization that the responding process has served since its start, newest first. Queries, bodies and credentials are not recorded, nor are successful reads with a browser session. The log of the service has all requests of all processes.',
  bucket: 'general',
  query: offsetQuery(
    {
      method: Type.Optional(Choice(methods)),
      outcome: Type.Optional(Choice(requestOutcomes, { description: 'Outcome by status: below 400, 4xx, 5xx.' })),
      path: text('Only requests whose path contains this text.'),
      credential_id: text('Only requests of this key, grant or session.'),
      request_id: text('Only the request with this id.'),
    },
    bounds.page_limit,
    bounds.page_limit_default,
  ),
  responses: [
    {
      status: 200,
      description: 'A page of requests.',
      schema: Named('RequestList', Type.Object({ requests: Type.Array(RequestEntry), pagination: OffsetPagination })),
      example: { requests: [example], pagination: offsetPaginationExample },
    },
  ],
  problems: [],
})

export const requestOperations: Operation[] = [listRequests] as Operation[]
