import Type from 'typebox'
import { defineOperation, type Operation } from '../core/operation.ts'
import { Choice, Confirmation, Named, Nullable, Timestamp } from '../core/schemas.ts'
import { InvitationToken, recentSignIn_minutes } from './users.ts'

const common = { error_format: 'agents', tag: 'Single sign-on', scope: null, extension: true } as const
const open = { ...common, credentials: [], bucket: 'login' } as const
const own = { ...common, credentials: ['session'], bucket: 'sessions', personal: true } as const

const provider = { provider: { description: 'The identity provider, by its name.', example: 'okta' } }
const page = { status: 200, media_type: 'text/html' } as const

/** Accounts at identity providers that one account here may be linked with. */
export const identitiesMax = 20

const SsoProvider = Named(
  'SsoProvider',
  Type.Object({
    name: Type.String({ description: 'As it stands in paths.' }),
    label: Type.String({ description: 'What people call it.' }),
    url: Type.String({ description: 'Where a browser goes to sign in with it.' }),
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
  description: 'The providers that people may sign in with, as the operator configured them (`CADRE_SSO_<NAME>_…`).',
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
  without_command: 'a page that a browser goes to',
  sdk: 'sso.startUrl',
  sdk_note: 'The address for a browser.',
  method: 'GET',
  path: '/api/v1/auth/sso/{provider}',
  summary: 'Sign in with an identity provider',
  description:
    "Send a browser here: it goes on to the provider, and comes back to this service's callback. What belongs to the " +
    'attempt is in an encrypted cookie for 10 minutes. A browser is answered by pages, also where something goes wrong.',
  params: provider,
  query: Type.Object({
    return_to: Type.Optional(
      Type.String({
        maxLength: 1024,
        description: 'The path of this service to go to in the end, with its query. Anything else counts as `/`.',
      }),
    ),
    invitation: Type.Optional(InvitationToken),
    prompt: Type.Optional(
      Choice(['login', 'select_account'], {
        description: 'Asks the provider to have its user sign in anew, or choose an account.',
      }),
    ),
  }),
  responses: [{ status: 303, description: 'To the provider.', headers: { Location: "The provider's address." } }],
  problems: ['sso_provider_not_found', 'bad_gateway', 'gateway_timeout'],
})

export const finishSso = defineOperation({
  ...open,
  id: 'finishSso',
  tolerant: true,
  without_command: 'a page that a browser comes back to',
  sdk: 'sso.callbackUrl',
  sdk_note: 'The redirect URI to register there.',
  method: 'GET',
  path: '/api/v1/auth/sso/{provider}/callback',
  summary: 'Come back from an identity provider',
  description:
    'The redirect URI to register at the provider. Works once, and only in the browser that began: it signs in the user ' +
    'linked with the identity at the provider. Without one, an account is created where the operator allows it, or with an ' +
    'invitation. Where there is an account with the same e-mail address, it is linked only if both sides know the address ' +
    'as verified, and after its password was given on a page.',
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
      description: 'Signed in, or linked.',
      headers: {
        Location: 'Where the browser goes on to: `return_to` of the beginning.',
        'Set-Cookie': 'The session: `cadre_session`, HttpOnly, SameSite=Lax, 30 days.',
      },
    },
    { ...page, description: 'A page: it takes the browser on, or asks for the password of an account to be linked.' },
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
  provider: Nullable(Type.String({ description: 'Its name; null where it is not configured any more.' })),
  issuer: Type.String({ description: 'The identity provider.' }),
  subject: Type.String({ description: 'The account there.' }),
  email: Nullable(Type.String({ description: 'The e-mail address there at the last sign-in, verified or not.' })),
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
  without_command: 'only a browser’s session may do it, and the command line has a key or a token',
  sdk: 'sso.listIdentities',
  method: 'GET',
  path: '/api/v1/auth/identities',
  summary: 'List the ways to sign in',
  description: 'The accounts at identity providers that sign the current user in, and whether a password does.',
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
  unaudited: 'only sends to the provider; the way back writes identity.linked',
  without_command: 'only a browser’s session may do it, and the command line has a key or a token',
  sdk: 'sso.link',
  method: 'POST',
  path: '/api/v1/auth/sso/{provider}/link',
  summary: 'Link an account at an identity provider',
  description:
    'Begins to link an account at the provider with the current user: send the same browser to `authorization_url`. Needs ' +
    `the password, or a sign-in of the last ${recentSignIn_minutes} minutes. A user may link ${identitiesMax}.`,
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
    return_to: Type.Optional(
      Type.String({ maxLength: 1024, description: 'The path of this service to go to in the end.' }),
    ),
  }),
  body_example: { current_password: 'seven grey herons' },
  body_optional: true,
  responses: [
    {
      status: 200,
      description: 'Where the browser has to go.',
      schema: Named('SsoAuthorization', Type.Object({ authorization_url: Type.String() })),
      example: { authorization_url: 'https://example.okta.com/oauth2/v1/authorize?client_id=cadre' },
      headers: { 'Set-Cookie': 'What belongs to the attempt, encrypted, for 10 minutes.' },
    },
  ],
  problems: ['sso_provider_not_found', 'bad_gateway', 'gateway_timeout'],
})

export const unlinkIdentity = defineOperation({
  ...own,
  id: 'unlinkIdentity',
  audit: 'identity.unlinked',
  without_command: 'only a browser’s session may do it, and the command line has a key or a token',
  sdk: 'sso.unlink',
  method: 'DELETE',
  path: '/api/v1/auth/identities/{identity_id}',
  summary: 'Unlink an account at an identity provider',
  description:
    'It no longer signs in. Sessions that began by it go on. The last way to sign in stays: without a password one ' +
    'identity is kept.',
  params: { identity_id: { description: 'The identity.', example: identityExample.id } },
  responses: [
    {
      status: 200,
      description: 'It is not linked any more.',
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
