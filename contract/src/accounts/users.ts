import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import { Choice, Confirmation, NameText, Named, Nullable, Timestamp } from '../core/schemas.ts'
import { roles, scopes } from '../core/scopes.ts'
import { SessionInfo, sessionExample } from './sessions.ts'

const common = { error_format: 'agents', tag: 'Users' } as const

/** Labels that the operator sets; they do not change how the service behaves (decision D61). */
export const plans = ['free', 'team', 'enterprise'] as const
export type Plan = (typeof plans)[number]

/** Bounds of a password, in code points (decision D67). */
export const passwordLength = { min: 12, max: 128 } as const
export const emailMax = 254
/** For so many minutes after a sign-in, sensitive changes of the account need no password. */
export const recentSignIn_minutes = 15

const userFields = {
  id: Type.String(),
  name: Type.String(),
  avatar_url: Type.String({ description: 'Empty when there is none.' }),
  created_at: Timestamp,
  updated_at: Timestamp,
  email_verified: Type.Boolean(),
  plan: Choice(plans),
}
const User = Named('User', Type.Object(userFields))
/** An organization as a member sees it (decision D62). */
export const OrganizationMembership = Named(
  'OrganizationMembership',
  Type.Object({ id: Type.String(), name: Type.String(), role: Choice(roles), joined_at: Timestamp }),
)
const UserWithOrganizations = Named(
  'UserWithOrganizations',
  Type.Object({
    ...userFields,
    organizations: Type.Array(OrganizationMembership),
  }),
)

const userExample = {
  id: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  name: 'Ada Lovelace',
  avatar_url: '',
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:30:00.000Z',
  email_verified: false,
  plan: 'free',
}
export const organizationExample = {
  id: 'org_01jcm3x5v8f9a2b4c6d8e0g2h4',
  name: 'Analytical Engines',
  role: 'owner',
  joined_at: '2026-11-20T09:30:00.000Z',
}

export const getUser = defineOperation({
  ...common,
  id: 'getUser',
  command: 'user get',
  sdk: 'user.get',
  personal: true,
  method: 'GET',
  path: '/api/v1/auth/user',
  summary: 'Read the current user',
  description: 'The user that the credential acts for, with all their organizations.',
  credentials: anyCredential,
  scope: null,
  bucket: 'user',
  responses: [
    {
      status: 200,
      description: 'The user.',
      schema: UserWithOrganizations,
      example: { ...userExample, organizations: [organizationExample] },
    },
  ],
  problems: [],
})

export const updateUser = defineOperation({
  ...common,
  id: 'updateUser',
  audit: 'user.updated',
  command: 'user update',
  sdk: 'user.update',
  personal: true,
  method: 'PUT',
  path: '/api/v1/auth/user',
  summary: 'Update the current user',
  description: 'Changes the name, the avatar, or both.',
  credentials: anyCredential,
  scope: 'any_write',
  bucket: 'user',
  body: Type.Object({
    name: Type.Optional(NameText(bounds.user_name, 'Name of the user.')),
    avatar_url: Type.Optional(
      Nullable(
        Type.String({
          maxLength: bounds.avatar_url,
          pattern: '^([Hh][Tt][Tt][Pp][Ss]?://[^\\s]+)?$',
          description: 'An http or https URL; empty or null removes it.',
        }),
      ),
    ),
  }),
  body_example: { name: 'Ada King', avatar_url: 'https://example.com/ada.png' },
  responses: [
    {
      status: 200,
      description: 'The user, without organizations.',
      schema: User,
      example: { ...userExample, name: 'Ada King' },
    },
  ],
  problems: [],
})

const Access = Type.Object({ read: Type.Boolean(), write: Type.Boolean() })
const AccessWithDelete = Type.Object({ read: Type.Boolean(), write: Type.Boolean(), delete: Type.Boolean() })

export const getPermissions = defineOperation({
  ...common,
  id: 'getPermissions',
  command: 'user permissions',
  sdk: 'user.permissions',
  personal: true,
  method: 'GET',
  path: '/api/v1/auth/permissions',
  summary: 'Read what the credential may do',
  description:
    "The scopes of the credential, and the permissions that these scopes and the user's role allow together.",
  credentials: anyCredential,
  scope: null,
  bucket: 'general',
  responses: [
    {
      status: 200,
      description: 'Scopes and permissions.',
      schema: Named(
        'Permissions',
        Type.Object({
          scopes: Type.Array(Choice(scopes)),
          permissions: Type.Object({
            projects: AccessWithDelete,
            agents: AccessWithDelete,
            organizations: Access,
            api_keys: Access,
          }),
        }),
      ),
      example: {
        scopes: ['read'],
        permissions: {
          projects: { read: true, write: false, delete: false },
          agents: { read: true, write: false, delete: false },
          organizations: { read: true, write: false },
          api_keys: { read: false, write: false },
        },
      },
    },
  ],
  problems: [],
})

const SignedIn = Named('SignedIn', Type.Object({ user: User, session: SessionInfo }))
const email = Type.String({ minLength: 3, maxLength: emailMax, description: 'Case-insensitive.' })
/** A wide bound. The password rules check the length in code points of the normal form. */
const password = (description: string) => Type.String({ minLength: 1, maxLength: 1024, 'x-secret': true, description })
const sessionCookie = { 'Set-Cookie': 'The session: `cadre_session`, HttpOnly, SameSite=Lax, 30 days.' }

export const login = defineOperation({
  ...common,
  id: 'login',
  without_command: 'it creates a browser session; `cadre login` gets a token',
  sdk: 'user.login',
  method: 'POST',
  path: '/api/v1/auth/login',
  summary: 'Sign in',
  description:
    'Starts a cookie session. The error is the same for a wrong password and an unknown e-mail address. Failed attempts are limited to ' +
    '5 per account and IP address in 15 minutes, 20 per account in an hour, and 100 per IP address in an hour.',
  credentials: [],
  scope: null,
  bucket: 'login',
  body: Type.Object({ email, password: password('The password.') }),
  body_example: { email: 'ada@example.com', password: 'seven grey herons' },
  responses: [
    {
      status: 200,
      description: 'Signed in.',
      schema: SignedIn,
      example: { user: userExample, session: sessionExample },
      headers: sessionCookie,
    },
  ],
  problems: ['unauthorized', 'insufficient_permissions'],
  extension: true,
})

export const logout = defineOperation({
  ...common,
  id: 'logout',
  audit: 'user.signed_out',
  without_command: 'only a browser session may do this, and the command line has a key or a token',
  sdk: 'user.logout',
  personal: true,
  method: 'POST',
  path: '/api/v1/auth/logout',
  summary: 'Sign out',
  description: 'Ends the cookie session that makes the request.',
  credentials: ['session'],
  scope: null,
  bucket: 'sessions',
  idempotent: false,
  responses: [
    { status: 200, description: 'Signed out.', schema: Confirmation({}), example: { message: 'Signed out' } },
  ],
  problems: [],
  extension: true,
})

/** The secret in an invitation's link: 256 random bits, base64url. */
export const InvitationToken = Type.String({
  minLength: 1,
  maxLength: 128,
  'x-secret': true,
  description: "The last segment of the invitation's link.",
})

/** Fields of a new account. */
const account = {
  email: Type.String({ minLength: 3, maxLength: emailMax, format: 'email' }),
  password: password(
    `${passwordLength.min} to ${passwordLength.max} characters; not a common password, and not the e-mail address.`,
  ),
  name: NameText(bounds.user_name, 'Name of the user.'),
}
/** Fields of the sign-up page. */
export const NewAccount = Type.Object(account)

export const signup = defineOperation({
  ...common,
  id: 'signup',
  without_command: 'it creates a browser session; people sign up in the console',
  sdk: 'user.signup',
  method: 'POST',
  path: '/api/v1/auth/signup',
  summary: 'Create an account',
  description:
    'Creates a user with a new organization, and signs them in. Requires open sign-up ' +
    '(`CADRE_SIGNUP=open`) or an invitation. With an invitation the user joins its organization, and no ' +
    'new organization is created.',
  credentials: [],
  scope: null,
  bucket: 'login',
  body: Type.Object({ ...account, invitation: Type.Optional(InvitationToken) }),
  body_example: { email: 'ada@example.com', password: 'seven grey herons', name: 'Ada Lovelace' },
  responses: [
    {
      status: 201,
      description: 'The new user and session.',
      schema: SignedIn,
      example: { user: userExample, session: sessionExample },
      headers: sessionCookie,
    },
  ],
  problems: ['insufficient_permissions', 'resource_conflict', 'invitation_not_found'],
  extension: true,
})

export const changePassword = defineOperation({
  ...common,
  id: 'changePassword',
  audit: 'user.password_changed',
  without_command: 'only a browser session may do this, and the command line has a key or a token',
  sdk: 'user.changePassword',
  personal: true,
  method: 'PUT',
  path: '/api/v1/auth/password',
  summary: 'Change the password',
  description:
    'Ends all other sessions of the user: cookies and OAuth grants. An account without a password, which signs in with an ' +
    `identity provider, may set one within ${recentSignIn_minutes} minutes of signing in.`,
  credentials: ['session'],
  scope: null,
  bucket: 'sessions',
  body: Type.Object({
    current_password: Type.Optional(password('The current password; required if the account has one.')),
    new_password: password(
      `${passwordLength.min} to ${passwordLength.max} characters; not a common password, and not the e-mail address.`,
    ),
  }),
  body_example: { current_password: 'seven grey herons', new_password: 'eight white storks' },
  responses: [
    {
      status: 200,
      description: 'The password is changed.',
      schema: Confirmation({ revoked_count: Type.Integer({ minimum: 0 }) }),
      example: { message: 'Password changed', revoked_count: 2 },
    },
  ],
  problems: ['unauthorized'],
  extension: true,
})

export const userOperations: Operation[] = [
  getUser,
  updateUser,
  getPermissions,
  login,
  logout,
  signup,
  changePassword,
] as Operation[]
