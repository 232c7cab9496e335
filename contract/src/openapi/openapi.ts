import { errorSchemas } from './openapi-errors.ts'
import { headerComponents } from './openapi-headers.ts'
import { describeOperation, parameterComponents } from './openapi-operation.ts'
import { SchemaWriter } from './openapi-schemas.ts'
import type { Json, OpenApiDocument } from './openapi-types.ts'
import type { Operation } from '../core/operation.ts'
import { scopeDescriptions } from '../core/scopes.ts'

/** What the document tells beside the operations. */
export interface OpenApiOptions {
  version: string
  /** Where the service is reached: scheme, host and port, without a slash at the end. */
  server_url: string
}

/** What each group of operations is about; the order is the document's. */
export const tagDescriptions: Record<string, string> = {
  Projects: 'Isolated workspaces that hold agents.',
  Agents: 'Agents, their configuration, their life cycle, their logs and metrics.',
  Tasks: 'The work that agents do: durable, observable, and safe to cancel.',
  Files: 'What goes into tasks, and what comes out of them.',
  Threads: 'Conversations that tasks belong to.',
  Schedules: 'Tasks that come again and again, by cron and time zone.',
  Approvals: 'Questions to people about calls of tools, and their answers.',
  Tools: 'What agents of a project may call beside the built-in tools: HTTP requests, OpenAPI documents, MCP servers.',
  Credentials: 'Secrets that are put into the requests of tools on their way out. They are written, and never read.',
  'Test cases': 'Inputs that are kept to try an agent with, again and again, while it changes.',
  'Model providers': 'Where models come from, and whether it answers.',
  'Budgets and usage': 'Limits of what may be spent, and what was: calls, tokens and cost.',
  'API keys': 'Keys for programs, with scopes and expiry.',
  Organizations: 'Who works together: projects, agents and keys belong to an organization.',
  Members: 'The people in an organization, and their roles.',
  Invitations: 'Links by which people join an organization.',
  Users: 'The signed-in user, and what the credential at hand may do.',
  Sessions: 'Signing in and out, and the sessions that are open.',
  'Single sign-on': 'Signing in with identity providers, and connecting them with an account.',
  OAuth: 'Signing in with OAuth 2.0, by authorization code and refresh token.',
  'Audit log': 'Who did what in an organization, with which credential and from where.',
  Webhooks: 'Addresses that receive events.',
  Utility: 'The state of the service, and this document.',
}

/** The OpenAPI 3.0.3 description of these operations (spec 4.5, decision D103). The same input gives the same text. */
export function openApiDocument(operations: readonly Operation[], options: OpenApiOptions): OpenApiDocument {
  const schemas = new SchemaWriter()
  const responses: Record<string, Json> = {}
  const paths: OpenApiDocument['paths'] = {}
  for (const operation of operations) {
    const path = (paths[operation.path] ??= {})
    path[operation.method.toLowerCase()] = describeOperation(operation, schemas, responses)
  }
  return {
    openapi: '3.0.3',
    info: {
      title: 'Cadre',
      description: introduction,
      version: options.version,
      contact: { name: 'The operator of this service' },
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    servers: [{ url: options.server_url, description: 'This service.' }],
    tags: tagsOf(operations),
    security: [{ ApiKey: [] }, { OAuth2: [] }, { Session: [] }],
    paths,
    components: {
      securitySchemes,
      schemas: sorted({
        ...usedOnly(errorSchemas, 'schemas', { paths, responses, errorSchemas }),
        ...schemas.components,
      }),
      parameters: usedOnly(parameterComponents, 'parameters', paths),
      headers: usedOnly(headerComponents, 'headers', { paths, responses }),
      responses: sorted(responses),
    },
  }
}

const introduction = `Projects, agents, and the tasks that agents do: durable, observable, and yours to host.

Send an API key as \`X-API-Key\` or \`Authorization: Bearer\`, or an OAuth 2.0 access token as \`Authorization: Bearer\`. Every answer has an
\`X-Request-ID\`; errors repeat it, and say by their \`code\` what happened. Unknown members of answers must be ignored:
within this version members are only added.`

const securitySchemes: Json = {
  ApiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
    description: 'A key of the form `cadre_` and 32 hexadecimal characters.',
  },
  OAuth2: {
    type: 'oauth2',
    description: 'An access token, sent as `Authorization: Bearer`.',
    flows: {
      authorizationCode: {
        authorizationUrl: '/oauth2/authorize',
        tokenUrl: '/oauth2/token',
        refreshUrl: '/oauth2/token',
        scopes: scopeDescriptions,
      },
    },
  },
  Session: { type: 'apiKey', in: 'cookie', name: 'cadre_session', description: 'The cookie of a signed-in user.' },
}

function tagsOf(operations: readonly Operation[]): OpenApiDocument['tags'] {
  const used = new Set(operations.map(({ tag }) => tag))
  const ordered = [...Object.keys(tagDescriptions).filter((tag) => used.delete(tag)), ...used]
  return ordered.map((name) => ({ name, description: tagDescriptions[name] ?? name }))
}

/** Components that nothing refers to would be noise. */
function usedOnly(components: Record<string, Json>, kind: string, users: unknown): Record<string, Json> {
  const text = JSON.stringify(users)
  return Object.fromEntries(
    Object.entries(components).filter(([name]) => text.includes(`"#/components/${kind}/${name}"`)),
  )
}

function sorted(members: Record<string, Json>): Record<string, Json> {
  return Object.fromEntries(Object.entries(members).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
