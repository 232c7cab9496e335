import Type from 'typebox'
import { defineOperation, type Operation } from '../core/operation.ts'
import { Choice, Confirmation, Named, Nullable, Timestamp } from '../core/schemas.ts'
import { InvitationToken, recentSignIn_minutes } from './users.ts'

const common = { error_format: 'agents', tag: 'Single sign-on', scope: null, extension: true } as const
const open = { ...common, credentials: [], bucket: 'login' } as const
const own = { ...common, credentials: ['session'], bucket: 'sessions', personal: true } as const

const provider = { provider: { description: 'The identity provider, by its name.', example: 'okta' } }
const page = { status: 200, media_type: 'text/html' } as const

/** Maximum number of identities that a user may link. */
export const identitiesMax = 20

const SsoProvider = Named(
  'SsoProvider',
  Type.Object({
    name: Type.String({ description: 'The name in paths.' }),
    label: Type.String({ description: 'The display name.' }),
    url: Type.String({ description: 'The URL that a browser opens to sign in.' }),
  }),
)
const providerExample = {
  name: 'okta',
  label: 'Okta',
  url: 'https://cadre.example.com/api/v1/auth/sso/okta',
}

export const listSsoProviders = defineOperation({
  ...open,
  id: 'listSsoProviders',
  command: 'sso list',
  sdk: 'sso.list',
  method: 'GET',
  path: '/api/v1/auth/sso',
  summary: 'List identity providers',
  description: 'The providers that the operator configured for sign-in (`CADRE_SSO_<NAME>_…`).',
  responses: [
    {
      status: 200,
      description: 'The providers, by name.',
      schema: Named('SsoProviderList', Type.Object({ providers: Type.Array(SsoProvider) })),
      example: { providers: [providerExample] },
    },
  ],
  problems: [],
})

export const startSso = defineOperation({
  ...open,
  id: 'startSso',
  without_command: 'a browser opens this page',
  sdk: 'sso.startUrl',
  sdk_note: 'Returns the URL to open in a browser.',
  method: 'GET',
  path: '/api/v1/auth/sso/{provider}',
  summary: 'Sign in with an identity provider',
  description:
    "Send a browser here. It is redirected to the provider, and from there to this service's callback. An encrypted cookie holds the " +
    'state of the attempt for 10 minutes. Browsers get pages, also for errors.',
  params: provider,
  query: Type.Object({
    return_to: Type.Optional(
      Type.String({
        maxLength: 1024,
        description: 'Path and query of this service to open after sign-in. Anything else counts as `/`.',
      }),
    ),
    invitation: Type.Optional(InvitationToken),
    prompt: Type.Optional(
      Choice(['login', 'select_account'], {
        description: 'Asks the provider to make the user sign in again, or choose an account.',
      }),
    ),
  }),
  responses: [
    {
      status: 303,
      description: 'A redirect to the provider.',
      headers: { Location: 'The sign-in page of the provider.' },
    },
  ],
  problems: ['sso_provider_not_found', 'bad_gateway', 'gateway_timeout'],
})

export const finishSso = defineOperation({
  ...open,
  id: 'finishSso',
  tolerant: true,
  without_command: 'the identity provider redirects a browser to this page',
  sdk: 'sso.callbackUrl',
  sdk_note: 'Returns the redirect URI to register at the provider.',
  method: 'GET',
  path: '/api/v1/auth/sso/{provider}/callback',
  summary: 'Complete a sign-in at an identity provider',
  description:
    'The redirect URI to register at the provider. Works once, and only in the browser that started the attempt. Signs in the user ' +
    'who is linked with the identity. If there is none, an account is created if the operator allows it or with an ' +
    'invitation. An existing account with the same e-mail address is linked only if both sides have verified the address ' +
    'and the user enters its password on a page.',
  params: provider,
  query: Type.Object({
    code: Type.Optional(Type.String({ maxLength: 8192, 'x-secret': true })),
    state: Type.Optional(Type.String({ maxLength: 1024 })),
    iss: Type.Optional(Type.String({ maxLength: 2048 })),
    error: Type.Optional(Type.String({ maxLength: 1024 })),
    error_description: Type.Optional(Type.String({ maxLength: 8192 })),
  }),
  responses: [
    {
      status: 303,
      description: 'The user is signed in, or the identity is linked.',
      headers: {
        Location: '`return_to` of the start.',
        'Set-Cookie': 'The session: `cadre_session`, HttpOnly, SameSite=Lax, 30 days.',
      },
    },
    { ...page, description: 'A page that redirects the browser, or asks for the password of the account to link.' },
  ],
  problems: [
    'sso_provider_not_found',
    'insufficient_permissions',
    'invitation_not_found',
    'resource_conflict',
    'bad_gateway',
    'gateway_timeout',
  ],
})

const identityFields = {
  id: Type.String(),
  provider: Nullable(Type.String({ description: 'Name of the provider; null if it is no longer configured.' })),
  issuer: Type.String({ description: 'Issuer URL of the identity provider.' }),
  subject: Type.String({ description: 'Identifier of the account at the provider.' }),
  email: Nullable(Type.String({ description: 'E-mail address at the provider at the last sign-in, verified or not.' })),
  created_at: Timestamp,
  last_sign_in_at: Timestamp,
}
const Identity = Named('Identity', Type.Object(identityFields))
const identityExample = {
  id: 'ident_01jcm3x5v8f9a2b4c6d8e0g2h4',
  provider: 'okta',
  issuer: 'https://example.okta.com',
  subject: '00u1a2b3c4D5E6F7g8h9',
  email: 'ada@example.com',
  created_at: '2026-11-20T09:30:00.000Z',
  last_sign_in_at: '2026-11-20T09:30:00.000Z',
}

export const listIdentities = defineOperation({
  ...own,
  id: 'listIdentities',
  without_command: 'only a browser session may do this, and the command line has a key or a token',
  sdk: 'sso.listIdentities',
  method: 'GET',
  path: '/api/v1/auth/identities',
  summary: 'List the ways to sign in',
  description: 'The linked identities of the current user, and whether the user has a password.',
  responses: [
    {
      status: 200,
      description: 'The ways to sign in.',
      schema: Named(
        'IdentityList',
        Type.Object({
          identities: Type.Array(Identity, { maxItems: identitiesMax }),
          has_password: Type.Boolean(),
        }),
      ),
      example: { identities: [identityExample], has_password: true },
    },
  ],
  problems: [],
})

export const linkIdentity = defineOperation({
  ...own,
  id: 'linkIdentity',
  unaudited: 'only redirects to the provider; the callback writes identity.linked',
  without_command: 'only a browser session may do this, and the command line has a key or a token',
  sdk: 'sso.link',
  method: 'POST',
  path: '/api/v1/auth/sso/{provider}/link',
  summary: 'Link an account at an identity provider',
  description:
    'Starts to link an account at the provider with the current user: open `authorization_url` in the same browser. Requires ' +
    `the password, or a sign-in within the last ${recentSignIn_minutes} minutes. A user may link ${identitiesMax} identities.`,
  params: provider,
  idempotent: false,
  body: Type.Object({
    current_password: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1024,
        'x-secret': true,
        description: 'The password of the current user.',
      }),
    ),
    return_to: Type.Optional(Type.String({ maxLength: 1024, description: 'Path of this service to open afterwards.' })),
  }),
  body_example: { current_password: 'seven grey herons' },
  body_optional: true,
  responses: [
    {
      status: 200,
      description: 'The URL to open in the browser.',
      schema: Named('SsoAuthorization', Type.Object({ authorization_url: Type.String() })),
      example: { authorization_url: 'https://example.okta.com/oauth2/v1/authorize?client_id=cadre' },
      headers: { 'Set-Cookie': 'The encrypted state of the attempt, for 10 minutes.' },
    },
  ],
  problems: ['sso_provider_not_found', 'bad_gateway', 'gateway_timeout'],
})

export const unlinkIdentity = defineOperation({
  ...own,
  id: 'unlinkIdentity',
  audit: 'identity.unlinked',
  without_command: 'only a browser session may do this, and the command line has a key or a token',
  sdk: 'sso.unlink',
  method: 'DELETE',
  path: '/api/v1/auth/identities/{identity_id}',
  summary: 'Unlink an account at an identity provider',
  description:
    'The identity can no longer sign in. Its sessions stay open. A user without a password cannot unlink the ' +
    'last identity.',
  params: { identity_id: { description: 'The identity.', example: identityExample.id } },
  responses: [
    {
      status: 200,
      description: 'The identity is no longer linked.',
      schema: Confirmation({ identity_id: Type.String() }),
      example: { message: 'Identity unlinked', identity_id: identityExample.id },
    },
  ],
  problems: ['identity_not_found', 'resource_conflict'],
})

/** Signing in with identity providers by OpenID Connect (decisions S3, D64). */
export const ssoOperations: Operation[] = [
  listSsoProviders,
  startSso,
  finishSso,
  listIdentities,
  linkIdentity,
  unlinkIdentity,
] as Operation[]
