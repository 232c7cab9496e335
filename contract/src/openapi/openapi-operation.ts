import { alternativesOf } from '../core/scopes.ts'
import { buckets, type Bucket } from '../core/limits.ts'
import { requiredScopes } from './openapi-problems.ts'
import { failures, successes } from './openapi-responses.ts'
import type { SchemaWriter } from './openapi-schemas.ts'
import type { Json } from './openapi-types.ts'
import { isIdempotent, type Operation, type OperationCallback } from '../core/operation.ts'

/** Request headers, by component name. */
export const parameterComponents: Record<string, Json> = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      'Makes a retry safe: for 24 hours, a request with the same key gets the same response and has no further effect.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
    example: 'order-1042',
  },
  IfMatch: {
    name: 'If-Match',
    in: 'header',
    description: 'The `ETag` of the resource as it was read. If the resource has changed since, the response is 412.',
    schema: { type: 'string' },
    example: '"3"',
  },
  OrganizationID: {
    name: 'X-Organization-ID',
    in: 'header',
    description: 'The organization to act in, for cookie sessions of users with several organizations.',
    schema: { type: 'string' },
    example: 'org_01jcm3x5v8f9a2b4c6d8e0g2h4',
  },
}

/** Describes one operation: parameters, body, all responses, access and rate limit. */
export function describeOperation(operation: Operation, schemas: SchemaWriter, shared: Record<string, Json>): Json {
  const parameters = [
    ...pathParameters(operation),
    ...queryParameters(operation, schemas),
    ...headerParameters(operation),
  ]
  return {
    operationId: operation.id,
    tags: [operation.tag],
    summary: operation.summary,
    description: `${operation.description}\n\n${accessText(operation)}`,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(operation.body ? { requestBody: requestBody(operation, schemas) } : {}),
    ...(operation.upload ? { requestBody: uploadBody(operation.upload, schemas) } : {}),
    ...(operation.foreign_body ? { requestBody: foreignBody(operation.foreign_body) } : {}),
    responses: { ...successes(operation, schemas), ...failures(operation, shared) },
    ...(operation.callbacks ? { callbacks: callbacksOf(operation, operation.callbacks, schemas) } : {}),
    security: securityOf(operation),
    'x-required-scopes': requiredScopes(operation),
    'x-rate-limit': rateLimitOf(operation),
    ...(operation.extension ? { 'x-extension': true } : {}),
  }
}

function foreignBody(description: string): Json {
  return { description, required: true, content: { '*/*': { schema: {} } } }
}

function pathParameters({ params = {} }: Operation): Json[] {
  return Object.entries(params).map(([name, { description, example }]) => ({
    name,
    in: 'path',
    required: true,
    description,
    schema: { type: 'string' },
    example,
  }))
}

function queryParameters({ query }: Operation, schemas: SchemaWriter): Json[] {
  if (!query) return []
  const required: readonly string[] = query.required ?? []
  return Object.entries(query.properties).map(([name, source]) => {
    const { description, ...schema } = schemas.write(source)
    return { name, in: 'query', required: required.includes(name), ...(description ? { description } : {}), schema }
  })
}

function headerParameters(operation: Operation): Json[] {
  const names = [
    ...(isIdempotent(operation) ? ['IdempotencyKey'] : []),
    ...(operation.revisioned && operation.method !== 'GET' && operation.params ? ['IfMatch'] : []),
    ...(operation.credentials.includes('session') ? ['OrganizationID'] : []),
  ]
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }))
}

function requestBody(operation: Operation, schemas: SchemaWriter): Json {
  const mediaType = operation.error_format === 'oauth' ? 'application/x-www-form-urlencoded' : 'application/json'
  const example = operation.body_example
  return {
    required: !operation.body_optional,
    content: { [mediaType]: { schema: schemas.write(operation.body), ...(example === undefined ? {} : { example }) } },
  }
}

function uploadBody(upload: NonNullable<Operation['upload']>, schemas: SchemaWriter): Json {
  const content = Object.entries(upload).map(([media_type, schema]) => [media_type, { schema: schemas.write(schema) }])
  return { required: true, content: Object.fromEntries(content) }
}

function callbacksOf({ tag }: Operation, callbacks: Record<string, OperationCallback>, schemas: SchemaWriter): Json {
  return Object.fromEntries(
    Object.entries(callbacks).map(([name, { url, id, summary, description, headers, body, example, responses }]) => {
      const post = {
        operationId: id,
        tags: [tag],
        summary,
        description,
        parameters: Object.entries(headers).map(([header, more]) => ({
          name: header,
          in: 'header',
          required: true,
          description: more.description,
          schema: { type: 'string' },
          example: more.example,
        })),
        requestBody: { required: true, content: { 'application/json': { schema: schemas.write(body), example } } },
        responses: Object.fromEntries(
          Object.entries(responses).map(([status, meaning]) => [status, { description: meaning }]),
        ),
        // The signature authenticates the sender.
        security: [],
      }
      return [name, { [url]: { post } }]
    }),
  )
}

function securityOf(operation: Operation): Json[] {
  // Any of these scopes is enough for a token. OpenAPI 3.0 has no scopes for keys and sessions.
  const tokens = (operation.scope && alternativesOf(operation.scope)?.map((scope) => [scope])) ?? [
    requiredScopes(operation),
  ]
  const schemes = {
    api_key: [{ ApiKey: [] }],
    token: tokens.map((OAuth2) => ({ OAuth2 })),
    session: [{ Session: [] }],
    lease: [{ Lease: [] }],
  }
  return operation.credentials.flatMap((kind): Json[] => schemes[kind])
}

function rateLimitOf({ bucket }: Operation): Json {
  if (!bucket) return { limits: [] }
  const { hour, minute, per }: Bucket = buckets[bucket]
  const limits = [
    ...(hour === undefined ? [] : [{ requests: hour, window_seconds: 3600 }]),
    ...(minute === undefined ? [] : [{ requests: minute, window_seconds: 60 }]),
  ]
  return { bucket, limits, per }
}

const perText = {
  credential: 'credential',
  address: 'address',
  client_and_address: 'client and address',
  trigger: 'trigger',
}

function accessText({ credentials, scope, administrators, bucket }: Operation): string {
  const role = administrators ? ' Only for owners and admins of the organization.' : ''
  const access = credentials.length === 0 ? 'Public.' : `${scopeText(scope)}${role}`
  if (!bucket) return access
  const { hour, minute, per }: Bucket = buckets[bucket]
  const limits = [hour && `${hour} requests per hour`, minute && `${minute} per minute`].filter(Boolean).join(' and ')
  return `${access} At most ${limits.replace(/^(\d+) per minute$/, '$1 requests per minute')} for each ${perText[per]}.`
}

function scopeText(scope: Operation['scope']): string {
  if (scope === null) return 'Accepts any credential.'
  if (scope === 'any_write') return 'Requires any scope that allows writing.'
  const alternatives = alternativesOf(scope)
  if (alternatives) return `Requires the scope ${alternatives.map((one) => `\`${one}\``).join(' or ')}.`
  return `Requires the scope \`${scope}\`.`
}
