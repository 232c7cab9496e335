import { tagDescriptions } from '../operations.ts'
import { errorSchemas } from './openapi-errors.ts'
import { headerComponents } from './openapi-headers.ts'
import { describeOperation, parameterComponents } from './openapi-operation.ts'
import { SchemaWriter } from './openapi-schemas.ts'
import type { Json, OpenApiDocument } from './openapi-types.ts'
import type { Operation } from '../core/operation.ts'
import { scopeDescriptions } from '../core/scopes.ts'

/** Facts for the document beside the operations. */
export interface OpenApiOptions {
  version: string
  /** Address of the service: scheme, host and port, without a trailing slash. */
  server_url: string
}

/** The OpenAPI 3.0.3 document of these operations (spec 4.5, decision D103). Deterministic. */
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

Send an API key as \`X-API-Key\` or \`Authorization: Bearer\`, or an OAuth 2.0 access token as \`Authorization: Bearer\`. Every response has an \`X-Request-ID\`; error bodies repeat it and have a machine-readable \`code\`. Unknown members and query parameters are refused with 400, and the error names the nearest known one; a resource may be sent back as it was read. An oversized body and a wrong \`Content-Type\` also give 400, because this API does not use 413 and 415 for them. Clients must ignore unknown members of responses: within this version, members are only added.`

const securitySchemes: Json = {
  ApiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'X-API-Key',
    description: 'An API key: `cadre_` and 32 hexadecimal characters.',
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
  Lease: {
    type: 'http',
    scheme: 'bearer',
    description: "The token of a worker's lease on a task, from `claimWork`. It expires with the lease.",
  },
}

function tagsOf(operations: readonly Operation[]): OpenApiDocument['tags'] {
  const used = new Set(operations.map(({ tag }) => tag))
  const ordered = [...Object.keys(tagDescriptions).filter((tag) => used.delete(tag)), ...used]
  return ordered.map((name) => ({ name, description: tagDescriptions[name] ?? name }))
}

/** The components that `users` refers to. */
function usedOnly(components: Record<string, Json>, kind: string, users: unknown): Record<string, Json> {
  const text = JSON.stringify(users)
  return Object.fromEntries(
    Object.entries(components).filter(([name]) => text.includes(`"#/components/${kind}/${name}"`)),
  )
}

function sorted(members: Record<string, Json>): Record<string, Json> {
  return Object.fromEntries(Object.entries(members).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
