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
  // Reading what others did is no change of the organization; who may do it at all, their role says.
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
            Type.String({ description: 'As it is now; missing where there is no account any more.' }),
          ),
        },
        {
          description: 'The user or the OAuth app that did it; null where the caller is unknown, or the service acted.',
        },
      ),
    ),
    action: Type.String({ description: `What was done: ${Object.keys(auditActions).slice(0, 3).join(', ')}, …` }),
    target: Nullable(Type.String({ description: 'The identifier of what it was done to.' })),
    credential: Nullable(
      Type.Object(
        { kind: Choice(credentialKinds), id: Type.String() },
        { description: 'What it was done with: a key, a grant of an OAuth app, or a session.' },
      ),
    ),
    ip: Nullable(Type.String({ description: 'The address that the request came from.' })),
    user_agent: Nullable(Type.String()),
    request_id: Nullable(
      Type.String({ description: 'As in the answer of the request, and in the log of the service.' }),
    ),
    before: Nullable({ ...FreeObject, description: 'Of what was changed what it was; of what was removed all of it.' }),
    after: Nullable({ ...FreeObject, description: 'Of what was changed what it is; of what was made all of it.' }),
    detail: { ...FreeObject, description: 'What the other members do not say, such as the project or a reason.' },
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
  actor: text('Only what this user or OAuth app did.'),
  action: Type.Optional(
    Type.String({
      maxLength: 100,
      pattern: '^[a-z_]+\\.[a-z_]*$',
      description: 'Only this action; `agent.` stands for all that begin so.',
    }),
  ),
  target: text('Only what was done to this.'),
  credential_id: text('Only what was done with this key, grant or session.'),
  request_id: text('Only what this request did.'),
  ip: text('Only what came from this address.'),
  start_time: Type.Optional(TimestampInput),
  end_time: Type.Optional(TimestampInput),
}

const whose =
  'The log is that of the current organization. What concerns a person rather than an organization, such as signing in, is in that of ' +
  'every organization that the person is a member of at the time. `start_time` is inclusive, `end_time` exclusive.'

export const listAuditEntries = defineOperation({
  ...common,
  id: 'listAuditEntries',
  command: 'audit list',
  sdk: 'audit.list',
  path: '/api/v1/auth/audit',
  summary: 'Read the audit log',
  description: `Who did what, with which credential and from where; the newest first. ${whose}`,
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
  sdk_note: 'A response with one JSON object a line, to be read as it comes.',
  path: '/api/v1/auth/audit/export',
  summary: 'Export the audit log',
  description:
    'All that match, one JSON object a line in the form of the list, the oldest first, up to the moment of the request. ' +
    'An answer that breaks off before its end is not complete: ask again. Counts as an open stream of the credential ' +
    `while it is read. ${whose}`,
  bucket: 'audit.export',
  query: Type.Object(filters),
  responses: [
    {
      status: 200,
      description: 'The entries, a line each.',
      media_type: 'application/x-ndjson',
      example: `${JSON.stringify(example)}\n`,
      headers: { 'Content-Disposition': 'Names a file to keep it in.' },
    },
  ],
})

export const auditOperations: Operation[] = [listAuditEntries, exportAuditEntries] as Operation[]
