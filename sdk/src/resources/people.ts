import { call, list, once, raw, url } from '../operation.ts'

const auth = '/api/v1/auth'

export const apiKeyMethods = {
  /** Create an API key. Its secret is in this answer only. */
  create: once('createApiKey', 'POST', `${auth}/api-keys`, 'body'),
  /** List API keys. */
  list: list('listApiKeys', 'GET', `${auth}/api-keys`, 'api_keys'),
  /** Read an API key. */
  get: call('getApiKey', 'GET', `${auth}/api-keys/{key_id}`),
  /** Update an API key. */
  update: call('updateApiKey', 'PUT', `${auth}/api-keys/{key_id}`, 'body'),
  /** Give an API key a new secret. */
  rotate: once('rotateApiKey', 'POST', `${auth}/api-keys/{key_id}/rotate`, 'body'),
  /** Read what an API key is used for. */
  activity: call('getApiKeyActivity', 'GET', `${auth}/api-keys/{key_id}/activity`),
  /** Revoke an API key. */
  delete: call('deleteApiKey', 'DELETE', `${auth}/api-keys/{key_id}`),
}

export const organizationMethods = {
  /** Read the current organization. */
  get: call('getOrganization', 'GET', `${auth}/organization`),
  /** Rename the current organization. */
  update: call('updateOrganization', 'PUT', `${auth}/organization`, 'body'),
  /** Create an organization. */
  create: call('createOrganization', 'POST', `${auth}/organizations`, 'body'),
  /** Leave an organization. */
  leave: call('leaveOrganization', 'POST', `${auth}/organization/leave`, 'body'),
  /** List the API keys of all members. */
  listApiKeys: list('listOrganizationApiKeys', 'GET', `${auth}/organization/api-keys`, 'api_keys'),
  /** Revoke the API key of any member. */
  revokeApiKey: call('revokeOrganizationApiKey', 'DELETE', `${auth}/organization/api-keys/{key_id}`),
}

export const memberMethods = {
  /** List members. */
  list: list('listMembers', 'GET', `${auth}/members`, 'members'),
  /** Read a member. */
  get: call('getMember', 'GET', `${auth}/members/{user_id}`),
  /** Change a member's role. */
  update: call('updateMember', 'PUT', `${auth}/members/{user_id}`, 'body'),
  /** Remove a member. */
  remove: call('removeMember', 'DELETE', `${auth}/members/{user_id}`),
}

export const invitationMethods = {
  /** Create an invitation. The link is in this response only. */
  create: once('createInvitation', 'POST', `${auth}/invitations`, 'body'),
  /** List invitations. */
  list: list('listInvitations', 'GET', `${auth}/invitations`, 'invitations'),
  /** Accept an invitation. */
  accept: call('acceptInvitation', 'POST', `${auth}/invitations/accept`, 'body'),
  /** Revoke an invitation. */
  revoke: call('revokeInvitation', 'DELETE', `${auth}/invitations/{invitation_id}`),
}

export const userMethods = {
  /** Read the current user. */
  get: call('getUser', 'GET', `${auth}/user`),
  /** Update the current user. */
  update: call('updateUser', 'PUT', `${auth}/user`, 'body'),
  /** Read what the credential may do. */
  permissions: call('getPermissions', 'GET', `${auth}/permissions`),
  /** Read where the limits of the credential stand. */
  limits: call('getRateLimits', 'GET', `${auth}/limits`),
  /** List what limits refused. */
  refusals: list('listRateLimitRefusals', 'GET', `${auth}/limits/refusals`, 'refusals'),
  /** Sign in. */
  login: once('login', 'POST', `${auth}/login`, 'body'),
  /** Sign out. */
  logout: once('logout', 'POST', `${auth}/logout`),
  /** Make an account. */
  signup: once('signup', 'POST', `${auth}/signup`, 'body'),
  /** Change the password. */
  changePassword: call('changePassword', 'PUT', `${auth}/password`, 'body'),
}

export const sessionMethods = {
  /** Read the current session. */
  current: call('getSession', 'GET', `${auth}/session`),
  /** List sessions. */
  list: call('listSessions', 'GET', `${auth}/sessions`),
  /** End all other sessions. */
  deleteOthers: call('deleteSessions', 'DELETE', `${auth}/sessions`),
  /** End a session. */
  delete: call('deleteSession', 'DELETE', `${auth}/sessions/{session_id}`),
}

export const ssoMethods = {
  /** List identity providers. */
  list: call('listSsoProviders', 'GET', `${auth}/sso`),
  /** Sign in with an identity provider: where a browser goes to. */
  startUrl: url('startSso', 'GET', `${auth}/sso/{provider}`),
  /** Come back from an identity provider: the redirect URI to register there. */
  callbackUrl: url('finishSso', 'GET', `${auth}/sso/{provider}/callback`),
  /** List the ways to sign in. */
  listIdentities: call('listIdentities', 'GET', `${auth}/identities`),
  /** Link an account at an identity provider. */
  link: once('linkIdentity', 'POST', `${auth}/sso/{provider}/link`, 'body'),
  /** Unlink an account at an identity provider. */
  unlink: call('unlinkIdentity', 'DELETE', `${auth}/identities/{identity_id}`),
}

export const auditMethods = {
  /** Read the audit log. */
  list: list('listAuditEntries', 'GET', `${auth}/audit`, 'entries'),
  /** Export the audit log: a response with one JSON object a line, to be read as it comes. */
  export: raw('exportAuditEntries', 'GET', `${auth}/audit/export`, 'query'),
}
