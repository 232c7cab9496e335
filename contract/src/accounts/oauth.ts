import Type from 'typebox'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  Choice,
  Confirmation,
  NameText,
  Named,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  Timestamp,
} from '../core/schemas.ts'
import { scopes } from '../core/scopes.ts'

/** Bounds of an app's registration (decision D77); lengths count code points. */
export const clientBounds = { name: 100, redirect_uris: 10, redirect_uri: 2048 } as const

/**
 * Bounds of apps that are known by the address of their metadata document: lengths count characters, `entries` the members of a
 * list, `kept` the documents of apps that no user has let in. The document itself has 5 KiB and 5 seconds.
 */
export const clientDocumentBounds = {
  address: 512,
  name: 100,
  redirect_uri: 2048,
  entries: 30,
  fresh_seconds: 3600,
  fresh_seconds_min: 300,
  fresh_seconds_max: 86_400,
  kept: 1000,
} as const

const protocol = { error_format: 'oauth', tag: 'OAuth', credentials: [], scope: null } as const
const scopeText = Type.String({ description: 'Scopes, separated by spaces.' })
const clientId = Type.String({ description: 'The app.' })
const clientSecret = Type.Optional(
  Type.String({
    'x-secret': true,
    description: 'Confidential apps: here, or by HTTP Basic authentication. Public apps have none.',
  }),
)
const redirectUri = Type.String({
  description: 'Exactly as registered; a native app may use any port of a loopback address.',
})

/** The grant type of devices (RFC 8628 §3.4). */
const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

const TokenResponse = Named(
  'TokenResponse',
  Type.Object({
    access_token: Type.String(),
    token_type: Choice(['Bearer']),
    expires_in: Type.Integer({ description: 'Seconds.' }),
    refresh_token: Type.String({
      description: 'Replaces the one that was used: presenting that again ends the grant.',
    }),
    scope: scopeText,
  }),
)

export const authorize = defineOperation({
  ...protocol,
  id: 'authorize',
  command: 'login',
  sdk: 'oauth.authorizeUrl',
  sdk_note: 'The address for a browser.',
  method: 'GET',
  path: '/oauth2/authorize',
  summary: 'Ask a user for access',
  description:
    "Send the user's browser here. They sign in and decide; then the browser comes back to `redirect_uri` with " +
    '`code`, `state` and `iss`, or with `error`. Public apps must use PKCE (S256), confidential ones may. An unknown app or ' +
    'redirect URI is answered here and never redirected.',
  bucket: 'oauth.authorize',
  query: Type.Object({
    client_id: clientId,
    redirect_uri: redirectUri,
    response_type: Choice(['code']),
    scope: scopeText,
    state: Type.String({ description: 'Given back as it is; protects the app from forged answers.' }),
    code_challenge: Type.Optional(Type.String({ description: 'PKCE: SHA-256 of the verifier, base64url.' })),
    code_challenge_method: Type.Optional(Choice(['S256'])),
    prompt: Type.Optional(
      Choice(['login', 'consent', 'none'], {
        description: 'To sign in anew, to be asked anew, or to fail where either is needed.',
      }),
    ),
    login_hint: Type.Optional(Type.String({ description: 'The e-mail address to sign in with, if it is known.' })),
  }),
  responses: [
    {
      status: 303,
      description: 'To the next page, or back to the app.',
      headers: { Location: 'Where the browser goes.' },
    },
  ],
  problems: [],
})

export const issueToken = defineOperation({
  ...protocol,
  id: 'issueToken',
  unaudited: 'is what a grant is for, whose making and end are recorded',
  command: 'login',
  sdk: 'oauth.token',
  method: 'POST',
  path: '/oauth2/token',
  summary: 'Exchange a code, or refresh',
  description:
    'A code works once and for a minute. A refresh token works once: each answer has a new one. One that is used ' +
    'twice may have been stolen, so the whole grant ends.',
  bucket: 'oauth.token',
  body: Type.Object({
    grant_type: Choice(['authorization_code', 'refresh_token', deviceGrant]),
    client_id: clientId,
    client_secret: clientSecret,
    code: Type.Optional(Type.String({ description: 'For `authorization_code`.' })),
    redirect_uri: Type.Optional(redirectUri),
    code_verifier: Type.Optional(Type.String({ description: 'PKCE.' })),
    refresh_token: Type.Optional(Type.String({ description: 'For `refresh_token`.' })),
    device_code: Type.Optional(
      Type.String({ description: 'Of a device. Until its user has decided, the answer is `authorization_pending`.' }),
    ),
    scope: Type.Optional(Type.String({ description: 'Fewer scopes for one access token.' })),
  }),
  body_example: {
    grant_type: 'refresh_token',
    client_id: 'my-app',
    client_secret: 'the secret',
    refresh_token: 'the refresh token',
  },
  responses: [
    {
      status: 200,
      description: 'Tokens.',
      schema: TokenResponse,
      example: {
        access_token: 'mF_9.B5f-4.1JqM',
        token_type: 'Bearer',
        expires_in: 3600,
        refresh_token: 'tGzv3JOkF0XG5Qx2TlKWIA',
        scope: 'read',
      },
    },
  ],
  problems: [],
  idempotent: false,
})

export const authorizeDevice = defineOperation({
  ...protocol,
  id: 'authorizeDevice',
  unaudited: 'changes nothing until a user has decided, which is recorded',
  command: 'login',
  sdk: 'oauth.authorizeDevice',
  extension: true,
  method: 'POST',
  path: '/oauth2/device',
  summary: 'Ask a user for access, from a device without a browser',
  description:
    'For native apps (RFC 8628). Show the user `user_code` and `verification_uri`, where they sign in and decide, and meanwhile ask ' +
    '`/oauth2/token` every five seconds, until it answers with tokens, `access_denied` or `expired_token`.',
  bucket: 'oauth.token',
  body: Type.Object({ client_id: clientId, client_secret: clientSecret, scope: scopeText }),
  body_example: { client_id: 'my-app', scope: 'read write' },
  responses: [
    {
      status: 200,
      description: 'What to show, and what to ask with.',
      schema: Named(
        'DeviceAuthorization',
        Type.Object({
          device_code: Type.String({ 'x-secret': true }),
          user_code: Type.String({ description: 'What the user types.' }),
          verification_uri: Type.String({ description: 'Where they type it.' }),
          verification_uri_complete: Type.String({ description: 'The same with the code in it, for a QR code.' }),
          expires_in: Type.Integer({ description: 'Seconds.' }),
        }),
      ),
      example: {
        device_code: 'Fr5xhqkbCiXqzhyDZPGn2MbmGJeqwzIlG7A6rzCzLxl',
        user_code: 'WDJB-MJHT',
        verification_uri: 'https://cadre.example.com/device',
        verification_uri_complete: 'https://cadre.example.com/device?user_code=WDJB-MJHT',
        expires_in: 600,
      },
    },
  ],
  problems: [],
  idempotent: false,
})

export const revokeToken = defineOperation({
  ...protocol,
  id: 'revokeToken',
  command: 'logout',
  sdk: 'oauth.revoke',
  method: 'POST',
  path: '/oauth2/revoke',
  summary: 'Revoke a token',
  description:
    "Ends the grant of an access or refresh token of the app's own. A token that is not known is answered alike.",
  bucket: 'oauth.revoke',
  body: Type.Object({
    token: Type.String({ description: 'An access or a refresh token.' }),
    client_id: clientId,
    client_secret: clientSecret,
    token_type_hint: Type.Optional(Choice(['access_token', 'refresh_token'])),
  }),
  body_example: { token: 'the token', client_id: 'my-app', client_secret: 'the secret' },
  responses: [
    {
      status: 200,
      description: 'It does not work any more.',
      schema: Confirmation({}),
      example: { message: 'Token revoked successfully' },
    },
  ],
  problems: [],
  idempotent: false,
})

const common = {
  error_format: 'agents',
  tag: 'OAuth',
  credentials: anyCredential,
  scope: 'admin',
  bucket: 'general',
  extension: true,
} as const
const one = {
  ...common,
  path: '/api/v1/auth/oauth-clients/{client_id}',
  params: { client_id: { description: 'The app, by its identifier.', example: 'client_01jcm3x5v8f9a2b4c6d8e0g2h4' } },
} as const

const clientFields = {
  client_id: Type.String(),
  name: Type.String(),
  redirect_uris: Type.Array(Type.String()),
  scopes: Type.Array(Choice(scopes), { description: 'What the app may ask users for.' }),
  confidential: Type.Boolean({ description: 'Whether it has a secret.' }),
  native: Type.Boolean({
    description: "Whether it runs on its user's machine: the port of a loopback redirect URI may vary.",
  }),
  created_at: Timestamp,
  updated_at: Nullable(Timestamp),
}
const OAuthClient = Named('OAuthClient', Type.Object(clientFields))
const OAuthClientWithSecret = Named(
  'OAuthClientWithSecret',
  Type.Object({
    ...clientFields,
    client_secret: Type.Optional(Type.String({ description: 'Of a confidential app. It is never shown again.' })),
  }),
)
const clientExample = {
  client_id: one.params.client_id.example,
  name: 'Dashboard',
  redirect_uris: ['https://dashboard.example.com/callback'],
  scopes: ['read'],
  confidential: true,
  native: false,
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: null,
}
const secretExample = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'

const clientName = NameText(clientBounds.name, 'What users are shown.')
const redirectUris = Type.Array(Type.String({ minLength: 1, maxLength: clientBounds.redirect_uri }), {
  minItems: 1,
  maxItems: clientBounds.redirect_uris,
  description: 'https URLs, http for loopback addresses only; compared exactly.',
})
const clientScopes = Type.Array(Choice(scopes), {
  minItems: 1,
  maxItems: scopes.length,
  description: 'What the app may ask users for.',
})

export const createOAuthClient = defineOperation({
  ...common,
  id: 'createOAuthClient',
  audit: 'oauth_client.created',
  command: 'oauth-clients create',
  sdk: 'oauth.createClient',
  sdk_note: 'Its secret is in this answer only.',
  method: 'POST',
  path: '/api/v1/auth/oauth-clients',
  summary: 'Register an OAuth app',
  description:
    'The secret of a confidential app is in this answer and nowhere else. Ignores `Idempotency-Key`, because the secret is not kept.',
  idempotent: false,
  body: Type.Object({
    name: clientName,
    redirect_uris: redirectUris,
    scopes: clientScopes,
    confidential: Type.Optional(
      Type.Boolean({ default: true, description: 'False for apps that cannot keep a secret.' }),
    ),
    native: Type.Optional(Type.Boolean({ default: false, description: "Runs on its user's machine." })),
  }),
  body_example: { name: clientExample.name, redirect_uris: clientExample.redirect_uris, scopes: clientExample.scopes },
  responses: [
    {
      status: 201,
      description: 'The app with its secret.',
      schema: OAuthClientWithSecret,
      example: { ...clientExample, client_secret: secretExample },
    },
  ],
  problems: [],
})

export const listOAuthClients = defineOperation({
  ...common,
  id: 'listOAuthClients',
  command: 'oauth-clients list',
  sdk: 'oauth.listClients',
  method: 'GET',
  path: '/api/v1/auth/oauth-clients',
  summary: 'List OAuth apps',
  description: 'The apps that the organization has registered, newest first.',
  query: offsetQuery({}),
  responses: [
    {
      status: 200,
      description: 'A page of apps.',
      schema: Named(
        'OAuthClientList',
        Type.Object({ oauth_clients: Type.Array(OAuthClient), pagination: OffsetPagination }),
      ),
      example: { oauth_clients: [clientExample], pagination: offsetPaginationExample },
    },
  ],
  problems: [],
})

export const getOAuthClient = defineOperation({
  ...one,
  id: 'getOAuthClient',
  command: 'oauth-clients get',
  sdk: 'oauth.getClient',
  method: 'GET',
  summary: 'Read an OAuth app',
  description: 'An app that the organization has registered.',
  responses: [{ status: 200, description: 'The app.', schema: OAuthClient, example: clientExample }],
  problems: ['oauth_client_not_found'],
})

export const updateOAuthClient = defineOperation({
  ...one,
  id: 'updateOAuthClient',
  audit: 'oauth_client.updated',
  command: 'oauth-clients update',
  sdk: 'oauth.updateClient',
  method: 'PUT',
  summary: 'Update an OAuth app',
  description: 'Changes what is given. New scopes and redirect URIs count for authorizations from now on.',
  body: Type.Object({
    name: Type.Optional(clientName),
    redirect_uris: Type.Optional(redirectUris),
    scopes: Type.Optional(clientScopes),
    rotate_secret: Type.Optional(Type.Boolean({ description: 'Replaces the secret of a confidential app at once.' })),
  }),
  body_example: { name: 'Dashboard (EU)', rotate_secret: false },
  responses: [
    {
      status: 200,
      description: 'The app; with its new secret, where it was replaced.',
      schema: OAuthClientWithSecret,
      example: { ...clientExample, name: 'Dashboard (EU)', updated_at: '2026-11-20T10:00:00.000Z' },
    },
  ],
  problems: ['oauth_client_not_found'],
})

export const deleteOAuthClient = defineOperation({
  ...one,
  id: 'deleteOAuthClient',
  audit: 'oauth_client.deleted',
  command: 'oauth-clients delete',
  sdk: 'oauth.deleteClient',
  method: 'DELETE',
  summary: 'Delete an OAuth app',
  description: 'Ends everything that users gave it. Takes effect with the next request, everywhere.',
  responses: [
    {
      status: 200,
      description: 'The app is gone.',
      schema: Confirmation({ client_id: Type.String() }),
      example: { message: 'OAuth client deleted', client_id: clientExample.client_id },
    },
  ],
  problems: ['oauth_client_not_found'],
})

/** The protocol, and the registration of apps that use it. */
export const oauthOperations: Operation[] = [
  authorize,
  issueToken,
  authorizeDevice,
  revokeToken,
  createOAuthClient,
  listOAuthClients,
  getOAuthClient,
  updateOAuthClient,
  deleteOAuthClient,
] as Operation[]
