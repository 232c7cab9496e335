import Type from 'typebox'
import { auditActions } from './audit.ts'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  Choice,
  FreeObject,
  Named,
  Nullable,
  OffsetPagination,
  offsetQuery,
  Timestamp,
  TimestampInput,
} from '../core/schemas.ts'

const common = {
  method: 'GET',
  error_format: 'agents',
  tag: 'Audit log',
  credentials: anyCredential,
  // Reading the log changes nothing, so the read scope is enough. `administrators` limits it to owners and admins.
  scope: 'organizations:read',
  administrators: true,
  extension: true,
  problems: [],
} as const

const credentialKinds = ['api_key', 'token', 'session', 'lease'] as const

/** An entry of the audit log. */
const AuditEntry = Named(
  'AuditEntry',
  Type.Object({
    id: Type.String({ description: 'Later entries have later identifiers.' }),
    at: Timestamp,
    actor: Nullable(
      Type.Object(
        {
          id: Type.String(),
          name: Type.Optional(
            Type.String({ description: 'The current name; absent if the account or app no longer exists.' }),
          ),
        },
        {
          description: 'The user or OAuth app that acted; null if the caller is unknown or the service acted.',
        },
      ),
    ),
    action: Type.String({ description: `The action: ${Object.keys(auditActions).slice(0, 3).join(', ')}, …` }),
    target: Nullable(Type.String({ description: 'The identifier of the resource that the action changed.' })),
    credential: Nullable(
      Type.Object(
        { kind: Choice(credentialKinds), id: Type.String() },
        {
          description:
            'The credential of the request: an API key, a grant of an OAuth app, a session, or the lease of a worker.',
        },
      ),
    ),
    ip: Nullable(Type.String({ description: 'The IP address of the request.' })),
    user_agent: Nullable(Type.String()),
    request_id: Nullable(
      Type.String({ description: 'The request id, as in the response and in the log of the service.' }),
    ),
    before: Nullable({
      ...FreeObject,
      description: 'The changed members before the change; for a deletion, the whole resource.',
    }),
    after: Nullable({
      ...FreeObject,
      description: 'The changed members after the change; for a creation, the whole resource.',
    }),
    detail: { ...FreeObject, description: 'Further facts, such as the project or a reason.' },
  }),
)

const example = {
  id: 'aud_01jcm3x5v8f9a2b4c6d8e0g2h4',
  at: '2026-11-20T09:30:00.000Z',
  actor: { id: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4', name: 'Ada Lovelace' },
  action: 'agent.updated',
  target: 'agent_01jcm3x5v8f9a2b4c6d8e0g2h4',
  credential: { kind: 'api_key', id: 'key_01jcm3x5v8f9a2b4c6d8e0g2h4' },
  ip: '203.0.113.7',
  user_agent: 'curl/8.5.0',
  request_id: 'req_5v8f9a2b4c6d8e0g2h4jkmnp',
  before: {
    config: { environment_variables: { TOKEN: '[redacted]' }, temperature: 0.2 },
    metadata: { version: '1.0.3' },
  },
  after: {
    config: { environment_variables: { TOKEN: '[redacted]' }, temperature: 0.4 },
    metadata: { version: '1.0.4' },
  },
  detail: { project_id: 'proj_42' },
}

const text = (description: string) => Type.Optional(Type.String({ maxLength: 100, description }))

const filters = {
  actor: text('Only actions of this user or OAuth app.'),
  action: Type.Optional(
    Type.String({
      maxLength: 100,
      pattern: '^[a-z_]+\\.[a-z_]*$',
      description: 'Only this action; `agent.` selects all actions that begin with it.',
    }),
  ),
  target: text('Only actions on the resource with this identifier.'),
  credential_id: text('Only actions of this key, grant or session.'),
  request_id: text('Only actions of this request.'),
  ip: text('Only actions from this IP address.'),
  start_time: Type.Optional(TimestampInput),
  end_time: Type.Optional(TimestampInput),
}

const whose =
  'The log belongs to the current organization. An action that concerns a person, such as signing in, is in the log of every ' +
  'organization that the person is a member of at that time. `start_time` is inclusive, `end_time` exclusive.'

export const listAuditEntries = defineOperation({
  ...common,
  id: 'listAuditEntries',
  command: 'audit list',
  sdk: 'audit.list',
  path: '/api/v1/auth/audit',
  summary: 'Read the audit log',
  description: `Who did what, with which credential and from which address; newest first. ${whose}`,
  bucket: 'general',
  query: offsetQuery(filters, bounds.log_limit, bounds.log_limit_default),
  responses: [
    {
      status: 200,
      description: 'A page of entries.',
      schema: Named('AuditEntryList', Type.Object({ entries: Type.Array(AuditEntry), pagination: OffsetPagination })),
      example: { entries: [example], pagination: { total: 1, limit: 100, offset: 0, has_more: false } },
    },
  ],
})

export const exportAuditEntries = defineOperation({
  ...common,
  id: 'exportAuditEntries',
  command: 'audit export',
  sdk: 'audit.export',
  sdk_note: 'Streams one JSON object per line.',
  path: '/api/v1/auth/audit/export',
  summary: 'Export the audit log',
  description:
    'All matching entries up to the time of the request, oldest first, as one JSON object per line with the members of the list. ' +
    'A response that is cut off is incomplete; repeat the request. The response counts as an open stream of the credential ' +
    `until it ends. ${whose}`,
  bucket: 'audit.export',
  query: Type.Object(filters),
  responses: [
    {
      status: 200,
      description: 'The entries, one per line.',
      media_type: 'application/x-ndjson',
      example: `${JSON.stringify(example)}\n`,
      headers: { 'Content-Disposition': 'Suggests a file name.' },
    },
  ],
})

export const auditOperations: Operation[] = [listAuditEntries, exportAuditEntries] as Operation[]
