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
 * Bounds of apps that identify themselves by the URL of their metadata document. Lengths count characters, `entries`
 * the members of a list, * `kept` the stored documents of apps without a grant. The document may have 5 KiB and must
 * arrive within 5 seconds.
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
const clientId = Type.String({ description: 'The identifier of the app.' })
const clientSecret = Type.Optional(
  Type.String({
    'x-secret': true,
    description: 'Required for confidential apps, here or by HTTP Basic authentication. Public apps have none.',
  }),
)
const redirectUri = Type.String({
  description: 'Exactly as registered, except that a native app may use any port of a loopback address.',
})

/** Grant type of the device flow (RFC 8628 §3.4). */
const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

const TokenResponse = Named(
  'TokenResponse',
  Type.Object({
    access_token: Type.String(),
    token_type: Choice(['Bearer']),
    expires_in: Type.Integer({ description: 'Seconds.' }),
    refresh_token: Type.String({
      description: 'Replaces the refresh token that was used. Using the old one again ends the grant.',
    }),
    scope: scopeText,
  }),
)

export const authorize = defineOperation({
  ...protocol,
  id: 'authorize',
  command: 'login',
  sdk: 'oauth.authorizeUrl',
  sdk_note: 'Returns the URL to open in a browser.',
  method: 'GET',
  path: '/oauth2/authorize',
  summary: 'Ask a user for access',
  description:
    "Send the user's browser here. The user signs in and decides; then the browser is redirected to `redirect_uri` with " +
    '`code`, `state` and `iss`, or with `error`. Public apps must use PKCE (S256), confidential apps may. For an unknown app or ' +
    'redirect URI the service shows an error page and does not redirect.',
  bucket: 'oauth.authorize',
  query: Type.Object({
    client_id: clientId,
    redirect_uri: redirectUri,
    response_type: Choice(['code']),
    scope: scopeText,
    state: Type.String({ description: 'Returned unchanged; protects the app from forged responses.' }),
    code_challenge: Type.Optional(Type.String({ description: 'PKCE: SHA-256 of the verifier, base64url.' })),
    code_challenge_method: Type.Optional(Choice(['S256'])),
    prompt: Type.Optional(
      Choice(['login', 'consent', 'none'], {
        description:
          '`login`: sign in again. `consent`: ask for consent again. `none`: fail if either would be needed.',
      }),
    ),
    login_hint: Type.Optional(Type.String({ description: 'The e-mail address to sign in with, if it is known.' })),
  }),
  responses: [
    {
      status: 303,
      description: 'A redirect to the next page, or back to the app.',
      headers: { Location: 'The next page, or the redirect URI of the app.' },
    },
  ],
  problems: [],
})

export const issueToken = defineOperation({
  ...protocol,
  id: 'issueToken',
  unaudited: 'tokens belong to a grant, and the audit log records its creation and its end',
  command: 'login',
  sdk: 'oauth.token',
  method: 'POST',
  path: '/oauth2/token',
  summary: 'Exchange a code or a refresh token',
  description:
    'A code works once, within a minute. A refresh token works once; each response has a new one. A refresh token that is used ' +
    'twice may have been stolen, so the grant ends.',
  bucket: 'oauth.token',
  body: Type.Object({
    grant_type: Choice(['authorization_code', 'refresh_token', deviceGrant]),
    client_id: clientId,
    client_secret: clientSecret,
    code: Type.Optional(Type.String({ description: 'For `authorization_code`.' })),
    redirect_uri: Type.Optional(redirectUri),
    code_verifier: Type.Optional(Type.String({ description: 'The PKCE verifier of the code.' })),
    refresh_token: Type.Optional(Type.String({ description: 'For `refresh_token`.' })),
    device_code: Type.Optional(
      Type.String({
        description: 'For the device grant. Until the user has decided, the error is `authorization_pending`.',
      }),
    ),
    scope: Type.Optional(Type.String({ description: 'A subset of the granted scopes, for this access token.' })),
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
      description: 'The tokens.',
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
  unaudited: 'nothing changes until the user decides, and the audit log records that',
  command: 'login',
  sdk: 'oauth.authorizeDevice',
  extension: true,
  method: 'POST',
  path: '/oauth2/device',
  summary: 'Ask a user for access, from a device without a browser',
  description:
    'The device flow for native apps (RFC 8628). Show the user `user_code` and `verification_uri`, where they sign in and decide. Meanwhile poll ' +
    '`/oauth2/token` every five seconds until it returns tokens, `access_denied` or `expired_token`.',
  bucket: 'oauth.token',
  body: Type.Object({ client_id: clientId, client_secret: clientSecret, scope: scopeText }),
  body_example: { client_id: 'my-app', scope: 'read write' },
  responses: [
    {
      status: 200,
      description: 'The code to show, and the code to poll with.',
      schema: Named(
        'DeviceAuthorization',
        Type.Object({
          device_code: Type.String({ 'x-secret': true }),
          user_code: Type.String({ description: 'The code that the user types.' }),
          verification_uri: Type.String({ description: 'The page where the user types the code.' }),
          verification_uri_complete: Type.String({ description: 'The page with the code filled in, for a QR code.' }),
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
    'Ends the grant that an access or refresh token of the app belongs to. The response to an unknown token is the same.',
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
      description: 'The token no longer works.',
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
  scopes: Type.Array(Choice(scopes), { description: 'Scopes that the app may request.' }),
  confidential: Type.Boolean({ description: 'Whether the app has a secret.' }),
  native: Type.Boolean({
    description: "Whether the app runs on the user's machine. Then the port of a loopback redirect URI may vary.",
  }),
  created_at: Timestamp,
  updated_at: Nullable(Timestamp),
}
const OAuthClient = Named('OAuthClient', Type.Object(clientFields))
const OAuthClientWithSecret = Named(
  'OAuthClientWithSecret',
  Type.Object({
    ...clientFields,
    client_secret: Type.Optional(
      Type.String({ description: 'The secret of a confidential app. It is never shown again.' }),
    ),
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

const clientName = NameText(clientBounds.name, 'The name that users see.')
const redirectUris = Type.Array(Type.String({ minLength: 1, maxLength: clientBounds.redirect_uri }), {
  minItems: 1,
  maxItems: clientBounds.redirect_uris,
  description: 'https URLs; http only for loopback addresses. Compared exactly.',
})
const clientScopes = Type.Array(Choice(scopes), {
  minItems: 1,
  maxItems: scopes.length,
  description: 'Scopes that the app may request.',
})

export const createOAuthClient = defineOperation({
  ...common,
  id: 'createOAuthClient',
  audit: 'oauth_client.created',
  command: 'oauth-clients create',
  sdk: 'oauth.createClient',
  sdk_note: 'Only this response contains the secret.',
  method: 'POST',
  path: '/api/v1/auth/oauth-clients',
  summary: 'Register an OAuth app',
  description:
    'Only this response contains the secret of a confidential app. `Idempotency-Key` is ignored, because the secret is not stored.',
  idempotent: false,
  body: Type.Object({
    name: clientName,
    redirect_uris: redirectUris,
    scopes: clientScopes,
    confidential: Type.Optional(
      Type.Boolean({ default: true, description: 'False for apps that cannot keep a secret.' }),
    ),
    native: Type.Optional(Type.Boolean({ default: false, description: "Whether the app runs on the user's machine." })),
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
  description: 'Changes the given members. New scopes and redirect URIs apply to authorizations from now on.',
  body: Type.Object({
    name: Type.Optional(clientName),
    redirect_uris: Type.Optional(redirectUris),
    scopes: Type.Optional(clientScopes),
    rotate_secret: Type.Optional(
      Type.Boolean({ description: 'Replaces the secret of a confidential app immediately.' }),
    ),
  }),
  body_example: { name: 'Dashboard (EU)', rotate_secret: false },
  responses: [
    {
      status: 200,
      description: 'The app, with the new secret if it was replaced.',
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
  description: 'Ends all grants of the app. Its tokens stop working with their next request.',
  responses: [
    {
      status: 200,
      description: 'The app is deleted.',
      schema: Confirmation({ client_id: Type.String() }),
      example: { message: 'OAuth client deleted', client_id: clientExample.client_id },
    },
  ],
  problems: ['oauth_client_not_found'],
})

/** The OAuth endpoints, and the registration of apps. */
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
