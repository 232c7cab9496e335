import { buckets, type Bucket } from './limits.ts'
import { isIdempotent, type Operation, type OperationResponse } from './operation.ts'
import { errorSchemaOf } from './openapi-errors.ts'
import { headersOf } from './openapi-headers.ts'
import { problemExample, problemsByStatus, requiredScopes } from './openapi-problems.ts'
import type { SchemaWriter } from './openapi-schemas.ts'
import type { Json } from './openapi-types.ts'
import { problems, type ProblemKind } from './problems.ts'

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
    responses: { ...successes(operation, schemas), ...failures(operation, shared) },
    security: securityOf(operation),
    'x-required-scopes': requiredScopes(operation),
    'x-rate-limit': rateLimitOf(operation),
    ...(operation.extension ? { 'x-extension': true } : {}),
  }
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
  const mediaType = operation.family === 'O' ? 'application/x-www-form-urlencoded' : 'application/json'
  const example = operation.body_example
  return {
    required: !operation.body_optional,
    content: { [mediaType]: { schema: schemas.write(operation.body), ...(example === undefined ? {} : { example }) } },
  }
}

function successes(operation: Operation, schemas: SchemaWriter): Json {
  const statuses = new Set(operation.responses.map(({ status }) => status))
  return Object.fromEntries(
    [...statuses].map((status) => {
      const answers = operation.responses.filter((response) => response.status === status)
      const content = Object.assign({}, ...answers.map((answer) => contentOf(answer, schemas))) as Json
      const headers = headersOf(operation, status, Object.assign({}, ...answers.map((answer) => answer.headers ?? {})))
      const description = answers.map((answer) => answer.description).join(' Or: ')
      return [status, { description, headers, ...(Object.keys(content).length > 0 ? { content } : {}) }]
    }),
  )
}

function contentOf({ schema, example, media_type }: OperationResponse, schemas: SchemaWriter): Json {
  if (!schema && !media_type) return {}
  const body = {
    schema: schema ? schemas.write(schema) : { type: 'string' },
    ...(example === undefined ? {} : { example }),
  }
  return { [media_type ?? 'application/json']: body }
}

function failures(operation: Operation, shared: Record<string, Json>): Json {
  const answers: Json = {}
  for (const [status, kinds] of problemsByStatus(operation)) {
    const response = failure(operation, status, kinds)
    // Which fields may be wrong differs by operation; every other answer serves many as one component.
    if (status === 400) answers[status] = response
    else answers[status] = { $ref: `#/components/responses/${share(shared, operation, status, kinds, response)}` }
  }
  // Public operations have no error of the caller's but one: the HTTP layer refuses oversized headers on its own.
  if (!Object.keys(answers).some((status) => status.startsWith('4'))) {
    answers[431] = { description: 'The headers of the request are too large. Answered without a body.' }
  }
  return answers
}

function failure(operation: Operation, status: number, kinds: ProblemKind[]): Json {
  const examples = kinds.map((kind) => [
    kind,
    { summary: problems[kind].message, value: problemExample(operation, kind) },
  ])
  return {
    description: [...new Set(kinds.map((kind) => problems[kind].message))].join(' Or: '),
    headers: headersOf(operation, status),
    content: {
      'application/json': {
        schema: { $ref: `#/components/schemas/${errorSchemaOf[operation.family]}` },
        examples: Object.fromEntries(examples),
      },
    },
  }
}

/** Puts an answer among the components; its name tells its family, its status, its codes and what its example shows. */
function share(
  shared: Record<string, Json>,
  operation: Operation,
  status: number,
  kinds: ProblemKind[],
  response: Json,
): string {
  const shows = status === 403 ? requiredScopes(operation) : status === 429 ? [operation.bucket] : []
  const audience = operation.credentials.length > 0 ? [] : [operation.bucket ? 'limited' : 'public']
  const name = [errorSchemaOf[operation.family], status, ...kinds, ...shows, ...audience].join('.').replaceAll(':', '_')
  if (shared[name] && JSON.stringify(shared[name]) !== JSON.stringify(response))
    throw new Error(`Two answers are named ${name}.`)
  shared[name] = response
  return name
}

function securityOf(operation: Operation): Json[] {
  const schemes = { api_key: { ApiKey: [] }, token: { OAuth2: requiredScopes(operation) }, session: { Session: [] } }
  return operation.credentials.map((kind) => schemes[kind])
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

const perText = { credential: 'credential', address: 'address', client_and_address: 'client and address' }

function accessText({ credentials, scope, bucket }: Operation): string {
  const access =
    credentials.length === 0
      ? 'Public.'
      : scope === null
        ? 'Any credential will do.'
        : scope === 'any_write'
          ? 'Needs any scope that may write.'
          : `Needs the scope \`${scope}\`.`
  if (!bucket) return access
  const { hour, minute, per }: Bucket = buckets[bucket]
  const limits = [hour && `${hour} requests an hour`, minute && `${minute} a minute`].filter(Boolean).join(' and ')
  return `${access} At most ${limits.replace(/^(\d+) a minute$/, '$1 requests a minute')} for each ${perText[per]}.`
}
