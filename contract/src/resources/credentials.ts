import Type from 'typebox'
import { bounds } from '../core/limits.ts'
import { anyCredential, defineOperation, type Operation } from '../core/operation.ts'
import {
  Choice,
  Confirmation,
  Named,
  Nullable,
  OffsetPagination,
  offsetPaginationExample,
  offsetQuery,
  projectParameter,
  Timestamp,
} from '../core/schemas.ts'
import { credentialGrants, credentialStates, tokenStates, credentialTypes } from './credential-states.ts'

const name = Type.String({
  minLength: 1,
  maxLength: bounds.credential_name,
  pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
  description: 'Letters, digits and _. Tools refer to it by `${credentials.NAME}`. Unique in the project.',
})
const value = Type.Unsafe<string>({
  type: 'string',
  minLength: 1,
  maxLength: bounds.credential_value,
  'x-secret': true,
  description: 'The secret. It is stored encrypted and never returned.',
})

const hostPattern = Type.String({
  minLength: 1,
  maxLength: bounds.credential_host,
  pattern: '^(\\*\\.)?[A-Za-z0-9.-]+(:[0-9]{1,5})?$|^\\[[0-9A-Fa-f:.]+\\](:[0-9]{1,5})?$',
  description: 'A host, or `*.` and a host, without a scheme or a path. A port may follow.',
})
const allowed_hosts = Type.Array(hostPattern, {
  minItems: 1,
  maxItems: bounds.credential_hosts,
  description:
    'Hosts that the value may be sent to: a host (`api.example.com`) or its subdomains (`*.example.com`), on one port (`localhost:8080`) or on any.',
})

/** A URL of an issuer or an MCP server. */
const address = (description: string) =>
  Type.String({ minLength: 1, maxLength: bounds.credential_url, format: 'http-url', description })
const clientId = Type.String({
  minLength: 1,
  maxLength: bounds.credential_client_id,
  pattern: '^[\\x20-\\x7e]+$',
  description: 'The client id of this service at the issuer.',
})
const clientSecret = Type.Unsafe<string>({
  type: 'string',
  minLength: 1,
  maxLength: bounds.credential_value,
  'x-secret': true,
  description: 'The client secret. It is stored encrypted and never returned. A public client has none.',
})
const scopes = Type.Array(
  Type.String({ minLength: 1, maxLength: bounds.credential_scope, pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$' }),
  { maxItems: bounds.credential_scopes, description: 'Scopes to request from the issuer.' },
)
const oauthMembers = {
  issuer: Type.Optional(
    address('URL of the issuer. Its metadata has the endpoints (RFC 8414, OpenID Connect Discovery).'),
  ),
  authorization_endpoint: Type.Optional(
    address('The authorization endpoint. Use it with `token_endpoint` instead of `issuer`.'),
  ),
  token_endpoint: Type.Optional(address('The token endpoint. Use it instead of `issuer`.')),
  mcp_url: Type.Optional(
    address('URL of an MCP server. The service discovers its issuer (RFC 9728) and registers itself there (RFC 7591).'),
  ),
  client_id: Type.Optional(clientId),
  client_secret: Type.Optional(clientSecret),
  scopes: Type.Optional(scopes),
  grant: Type.Optional(
    Choice(credentialGrants, {
      description:
        '`authorization_code` needs a person who authorizes the service; `mcp_url` supports only this grant.',
    }),
  ),
}

const Credential = Named(
  'Credential',
  Type.Object({
    id: Type.String(),
    project_id: Type.String({ description: "`proj_` and the project's number." }),
    name: Type.String(),
    type: Choice(credentialTypes),
    allowed_hosts: Nullable(
      Type.Array(Type.String(), {
        description:
          'Hosts that the value may be sent to. Empty: none, until a tool that uses it is registered. Null: any host, for credentials from before hosts were required.',
      }),
    ),
    status: Type.Optional(
      Choice(credentialStates, {
        description:
          'For type `oauth2`: `connected`, or why calls wait for it: a person must connect it (`needs_authorization`), or its last renewal failed (`failing`). For any type: `unreadable` if it was encrypted with another `CADRE_SECRET_KEY`.',
      }),
    ),
    error: Type.Optional(
      Nullable(
        Type.Object(
          { code: Type.String(), message: Type.String() },
          { description: 'The error of the last renewal, or that the stored value cannot be decrypted.' },
        ),
      ),
    ),
    grant: Type.Optional(Choice(credentialGrants)),
    issuer: Type.Optional(Type.String()),
    authorization_endpoint: Type.Optional(Type.String()),
    token_endpoint: Type.Optional(Type.String()),
    mcp_url: Type.Optional(Type.String()),
    client_id: Type.Optional(
      Type.String({
        description: 'The client id. With `mcp_url` it is set when the service is registered at the issuer.',
      }),
    ),
    scopes: Type.Optional(Type.Array(Type.String())),
    expires_at: Type.Optional(Nullable(Timestamp)),
    connected_at: Type.Optional(Nullable(Timestamp)),
    used_by: Type.Array(Type.Object({ tool_id: Type.String(), name: Type.String() }), {
      description: 'Tools whose headers or URLs use it, by name.',
    }),
    created_by: Type.String(),
    created_at: Timestamp,
    updated_at: Timestamp,
  }),
)
const example = {
  id: 'cred_01jcm3x5v8f9a2b4c6d8e0g2h4',
  project_id: 'proj_42',
  name: 'WEATHER_KEY',
  type: 'secret' as const,
  allowed_hosts: ['api.weather.example'],
  used_by: [{ tool_id: 'tool_01jcm3x5v8f9a2b4c6d8e0g2h4', name: 'weather' }],
  created_by: 'user_01jcm3x5v8f9a2b4c6d8e0g2h4',
  created_at: '2026-11-20T09:30:00.000Z',
  updated_at: '2026-11-20T09:30:00.000Z',
}

const common = { error_format: 'agents', tag: 'Credentials', credentials: anyCredential, extension: true } as const
const ofProject = {
  ...common,
  path: '/api/v1/projects/{project_id}/credentials',
  params: { project_id: projectParameter },
} as const
const one = {
  ...common,
  path: '/api/v1/projects/{project_id}/credentials/{credential_id}',
  params: { project_id: projectParameter, credential_id: { description: 'The credential.', example: example.id } },
} as const

export const createCredential = defineOperation({
  ...ofProject,
  id: 'createCredential',
  audit: 'credential.created',
  command: 'credentials create',
  sdk: 'credentials.create',
  method: 'POST',
  summary: 'Create a credential',
  description:
    'Stores a credential for tools of the project, whose headers and URLs refer to it by `${credentials.NAME}`. A `secret` has a ' +
    '`value`. An `oauth2` credential is an access token that the service gets from an issuer and renews: give `issuer` ' +
    'or the endpoints, with `client_id` and `grant`; or only `mcp_url`. The credential is sent only to its `allowed_hosts`: a tool with a URL ' +
    'on another host is refused at its registration and at each call. Default: the host of `mcp_url`, or else the hosts ' +
    'of the first tool that is registered with the credential.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({
    name,
    type: Type.Optional(Choice(credentialTypes, { default: 'secret' })),
    // Secrets are the most common type, so the command line asks for the value.
    value: Type.Optional(Type.Unsafe<string>({ ...value, 'x-asked-without': 'type' })),
    allowed_hosts: Type.Optional(allowed_hosts),
    ...oauthMembers,
  }),
  body_example: { name: example.name, value: 'a-secret-of-yours', allowed_hosts: example.allowed_hosts },
  responses: [
    {
      status: 201,
      description: 'The credential without its value.',
      schema: Credential,
      example: { ...example, used_by: [] },
    },
  ],
  problems: ['project_not_found', 'resource_conflict'],
})

export const listCredentials = defineOperation({
  ...ofProject,
  id: 'listCredentials',
  command: 'credentials list',
  sdk: 'credentials.list',
  method: 'GET',
  summary: 'List credentials',
  description: 'Credentials of the project, newest first, without their values.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  query: offsetQuery({
    status: Type.Optional(Choice(tokenStates, { description: 'Only credentials of type `oauth2` in this state.' })),
  }),
  responses: [
    {
      status: 200,
      description: 'A page of credentials.',
      schema: Named(
        'CredentialList',
        Type.Object({ credentials: Type.Array(Credential), pagination: OffsetPagination }),
      ),
      example: { credentials: [example], pagination: offsetPaginationExample },
    },
  ],
  problems: ['project_not_found'],
})

export const getCredential = defineOperation({
  ...one,
  id: 'getCredential',
  command: 'credentials get',
  sdk: 'credentials.get',
  sdk_note: 'Returns name and state, never the secret or token.',
  method: 'GET',
  summary: 'Read a credential',
  description: 'One credential of the project without its value.',
  scope: 'agents:read',
  bucket: 'tasks.read',
  responses: [{ status: 200, description: 'The credential without its value.', schema: Credential, example }],
  problems: ['project_not_found', 'credential_not_found'],
})

export const updateCredential = defineOperation({
  ...one,
  id: 'updateCredential',
  audit: 'credential.updated',
  command: 'credentials update',
  sdk: 'credentials.update',
  method: 'PUT',
  summary: 'Update a credential',
  description:
    'Changes the given members. Calls that start after the change use them. For an `oauth2` credential, `client_id`, ' +
    '`client_secret` and `scopes` can change; another client or other scopes invalidate its tokens. A new host in `allowed_hosts` requires ' +
    '`value` (or `client_secret`) too, so that a stored secret cannot be sent to another host; otherwise, tokens that a person authorized are invalidated.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  body: Type.Object({
    name: Type.Optional(name),
    value: Type.Optional(value),
    allowed_hosts: Type.Optional(allowed_hosts),
    client_id: Type.Optional(clientId),
    client_secret: Type.Optional(clientSecret),
    scopes: Type.Optional(scopes),
  }),
  body_example: { value: 'another-secret-of-yours' },
  responses: [{ status: 200, description: 'The credential without its value.', schema: Credential, example }],
  problems: ['project_not_found', 'credential_not_found', 'resource_conflict'],
})

export const deleteCredential = defineOperation({
  ...one,
  id: 'deleteCredential',
  audit: 'credential.deleted',
  command: 'credentials delete',
  sdk: 'credentials.delete',
  method: 'DELETE',
  summary: 'Delete a credential',
  description: 'From now on, calls of tools that use it fail.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  responses: [
    {
      status: 200,
      description: 'The credential is deleted.',
      schema: Confirmation({ credential_id: Type.String() }),
      example: { message: 'Credential deleted', credential_id: example.id },
    },
  ],
  problems: ['project_not_found', 'credential_not_found'],
})

export const authorizeCredential = defineOperation({
  ...one,
  path: `${one.path}/authorize`,
  id: 'authorizeCredential',
  audit: 'credential.authorization_requested',
  command: 'credentials authorize',
  sdk: 'credentials.authorize',
  sdk_note: 'Open the URL in a browser that is signed in to this service as the same user.',
  method: 'POST',
  summary: 'Start to connect a credential',
  description:
    'Returns the URL at the issuer that a person opens to authorize this service. The issuer redirects the browser to this service, ' +
    'where it must be signed in as the user who started; other users are refused. Only for type `oauth2` with the grant ' +
    '`authorization_code`.',
  scope: 'agents:write',
  bucket: 'tasks.action',
  idempotent: false,
  responses: [
    {
      status: 200,
      description: 'The URL for the person to open.',
      schema: Named(
        'CredentialAuthorization',
        Type.Object({
          url: Type.String({ description: 'The authorization URL of the issuer, with PKCE and state.' }),
          expires_at: Timestamp,
        }),
      ),
      example: {
        url: 'https://id.example.com/authorize?response_type=code&client_id=cadre&code_challenge_method=S256',
        expires_at: '2026-11-20T09:40:00.000Z',
      },
    },
  ],
  problems: ['project_not_found', 'credential_not_found', 'resource_conflict', 'bad_gateway', 'gateway_timeout'],
})

/** Path of the redirect URI for issuers, below the public address of the service. */
export const credentialCallbackPath = '/api/v1/credentials/callback'

export const finishCredentialAuthorization = defineOperation({
  error_format: 'agents',
  tag: 'Credentials',
  extension: true,
  credentials: [],
  scope: null,
  bucket: 'login',
  id: 'finishCredentialAuthorization',
  tolerant: true,
  without_command: 'the issuer redirects a browser to this page',
  sdk: 'credentials.callbackUrl',
  sdk_note: 'Returns the redirect URI to register at the issuer.',
  method: 'GET',
  path: credentialCallbackPath,
  summary: 'Complete the connection of a credential',
  description:
    'The redirect URI to register at issuers. Works once, within 10 minutes, and only in a browser with a session of the user who ' +
    'started. Other users are refused; a browser without a session is asked to sign in first.',
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
      description: 'A redirect to the sign-in page, which leads back here.',
      headers: { Location: 'The sign-in page.' },
    },
    { status: 200, media_type: 'text/html', description: 'A page that says that the credential is connected.' },
  ],
  problems: ['insufficient_permissions', 'resource_conflict', 'bad_gateway', 'gateway_timeout'],
})

/** Path of the client metadata document of this service, below its public address. */
export const credentialClientPath = '/api/v1/credentials/client'

export const getCredentialClient = defineOperation({
  error_format: 'agents',
  tag: 'Credentials',
  extension: true,
  credentials: [],
  scope: null,
  bucket: 'docs',
  id: 'getCredentialClient',
  tolerant: true,
  without_command: 'a document that authorization servers read',
  sdk: 'credentials.client',
  sdk_note: 'Its URL is the `client_id` of this service at issuers that accept client metadata documents.',
  method: 'GET',
  path: credentialClientPath,
  summary: 'Read the client metadata of this service',
  description: 'The client metadata document of this service as an OAuth client of other issuers.',
  responses: [
    {
      status: 200,
      description: 'The metadata (RFC 7591 §2).',
      schema: Named(
        'CredentialClient',
        Type.Object({
          client_id: Type.String(),
          client_name: Type.String(),
          client_uri: Type.String(),
          redirect_uris: Type.Array(Type.String()),
          grant_types: Type.Array(Type.String()),
          response_types: Type.Array(Type.String()),
          token_endpoint_auth_method: Type.String(),
        }),
      ),
      example: {
        client_id: 'https://cadre.example.com/api/v1/credentials/client',
        client_name: 'Cadre',
        client_uri: 'https://cadre.example.com',
        redirect_uris: ['https://cadre.example.com/api/v1/credentials/callback'],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      },
    },
  ],
  problems: [],
})

export const credentialOperations: Operation[] = [
  createCredential,
  listCredentials,
  getCredential,
  updateCredential,
  deleteCredential,
  authorizeCredential,
  finishCredentialAuthorization,
  getCredentialClient,
] as Operation[]
