import { alternativesOf } from '../core/scopes.ts'
import { buckets, type Bucket } from '../core/limits.ts'
import { requiredScopes } from './openapi-problems.ts'
import { failures, successes } from './openapi-responses.ts'
import type { SchemaWriter } from './openapi-schemas.ts'
import type { Json } from './openapi-types.ts'
import { isIdempotent, type Operation, type OperationCallback } from '../core/operation.ts'

/** Headers that requests may carry, by the name of the component. */
export const parameterComponents: Record<string, Json> = {
  IdempotencyKey: {
    name: 'Idempotency-Key',
    in: 'header',
    description: 'Makes a repeated request harmless: within 24 hours the same key gives the same answer.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
    example: 'order-1042',
  },
  IfMatch: {
    name: 'If-Match',
    in: 'header',
    description: 'The `ETag` that was read. Where the resource has changed since, the answer is 412.',
    schema: { type: 'string' },
    example: '"3"',
  },
  OrganizationID: {
    name: 'X-Organization-ID',
    in: 'header',
    description: 'For sessions of people in several organizations: which one is meant.',
    schema: { type: 'string' },
    example: 'org_01jcm3x5v8f9a2b4c6d8e0g2h4',
  },
}

/** Describes one operation: what it takes, everything that it may answer, who may call it and how often. */
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
        // The signature is what tells who it is from.
        security: [],
      }
      return [name, { [url]: { post } }]
    }),
  )
}

function securityOf(operation: Operation): Json[] {
  // A token needs one of these; keys and sessions have no scopes in OpenAPI 3.0.
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
  const role = administrators ? ' Only for owners and administrators of the organization.' : ''
  const access = credentials.length === 0 ? 'Public.' : `${scopeText(scope)}${role}`
  if (!bucket) return access
  const { hour, minute, per }: Bucket = buckets[bucket]
  const limits = [hour && `${hour} requests an hour`, minute && `${minute} a minute`].filter(Boolean).join(' and ')
  return `${access} At most ${limits.replace(/^(\d+) a minute$/, '$1 requests a minute')} for each ${perText[per]}.`
}

function scopeText(scope: Operation['scope']): string {
  if (scope === null) return 'Any credential will do.'
  if (scope === 'any_write') return 'Needs any scope that may write.'
  const alternatives = alternativesOf(scope)
  if (alternatives) return `Needs the scope ${alternatives.map((one) => `\`${one}\``).join(' or ')}.`
  return `Needs the scope \`${scope}\`.`
}
