import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { defineOperation, type Operation } from '../core/operation.ts'
import { Choice, Confirmation, Named, Nullable, Timestamp } from '../core/schemas.ts'
import { scopes } from '../core/scopes.ts'

const common = { error_format: 'agents', tag: 'Sessions', credentials: ['token', 'session'] } as const

const shared = {
  id: Type.String(),
  created_at: Timestamp,
  expires_at: Timestamp,
  ip_address: Type.String(),
  user_agent: Type.String(),
}

/** The session that makes a request: a cookie sign-in or an OAuth grant (spec 2.6, decision D63). */
export const SessionInfo = Named(
  'Session',
  Type.Object({ ...shared, user_id: Type.String(), scopes: Type.Array(Choice(scopes)) }),
)
const SessionListItem = Named(
  'SessionListItem',
  Type.Object({
    ...shared,
    is_current: Type.Boolean(),
    last_activity: Timestamp,
    app: Nullable({
      ...Type.Object({
        client_id: Type.String(),
        name: Type.String(),
        scopes: Type.Array(Choice(scopes)),
        resource: Nullable({
          ...Type.String(),
          description: 'The address that its access is for, such as an MCP endpoint; null for the API.',
        }),
      }),
      description: 'The OAuth app with access, and its scopes; null for a session of the user.',
    }),
  }),
)

const sharedExample = {
  id: 'sess_01jcm3x5v8f9a2b4c6d8e0g2h4',
  created_at: '2026-11-20T09:30:00.000Z',
  expires_at: '2026-12-20T09:30:00.000Z',
  ip_address: '203.0.113.7',
  user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0',
}
export const sessionExample = {
  ...sharedExample,
  user_id: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  scopes: ['projects:read', 'agents:read'],
}

export const getSession = defineOperation({
  ...common,
  id: 'getSession',
  command: 'sessions current',
  sdk: 'sessions.current',
  personal: true,
  method: 'GET',
  path: '/api/v1/auth/session',
  summary: 'Read the current session',
  description: 'The session that makes the request: a cookie sign-in, or the grant of an OAuth app.',
  scope: null,
  bucket: 'general',
  responses: [{ status: 200, description: 'The session.', schema: SessionInfo, example: sessionExample }],
  problems: [],
})

export const listSessions = defineOperation({
  ...common,
  id: 'listSessions',
  command: 'sessions list',
  sdk: 'sessions.list',
  personal: true,
  method: 'GET',
  path: '/api/v1/auth/sessions',
  summary: 'List sessions',
  description: 'Every cookie session of the user and every OAuth app with access, latest activity first.',
  scope: null,
  bucket: 'sessions',
  query: Type.Object({
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: bounds.page_limit,
        description: 'Maximum number of sessions. Default: all.',
      }),
    ),
    offset: Type.Optional(
      Type.Integer({ minimum: 0, maximum: bounds.offset, description: 'Number of sessions to skip.' }),
    ),
  }),
  responses: [
    {
      status: 200,
      description: 'The sessions.',
      schema: Named('SessionList', Type.Object({ sessions: Type.Array(SessionListItem) })),
      example: {
        sessions: [{ ...sharedExample, is_current: true, last_activity: '2026-11-20T09:31:00.000Z', app: null }],
      },
    },
  ],
  problems: [],
})

export const deleteSession = defineOperation({
  ...common,
  id: 'deleteSession',
  audit: 'session.ended',
  command: 'sessions delete',
  sdk: 'sessions.delete',
  personal: true,
  method: 'DELETE',
  path: '/api/v1/auth/sessions/{session_id}',
  params: { session_id: { description: 'The session.', example: sharedExample.id } },
  summary: 'End a session',
  description:
    'Takes effect with the next request of the session. An app needs the consent of the user again. The current session may be ended too.',
  scope: 'any_write',
  bucket: 'sessions',
  responses: [
    {
      status: 200,
      description: 'The session has ended.',
      schema: Confirmation({ session_id: Type.String() }),
      example: { message: 'Session revoked', session_id: sharedExample.id },
    },
  ],
  problems: ['session_not_found'],
})

export const deleteSessions = defineOperation({
  ...common,
  id: 'deleteSessions',
  audit: 'user.sessions_ended',
  command: 'sessions delete-others',
  sdk: 'sessions.deleteOthers',
  personal: true,
  method: 'DELETE',
  path: '/api/v1/auth/sessions',
  summary: 'End all other sessions',
  description: 'Every session but the one that makes the request.',
  scope: 'any_write',
  bucket: 'sessions',
  responses: [
    {
      status: 200,
      description: 'The sessions have ended.',
      schema: Confirmation({ revoked_count: Type.Integer({ minimum: 0 }) }),
      example: { message: 'All other sessions revoked', revoked_count: 3 },
    },
  ],
  problems: [],
})

export const sessionOperations: Operation[] = [getSession, listSessions, deleteSessions, deleteSession] as Operation[]
