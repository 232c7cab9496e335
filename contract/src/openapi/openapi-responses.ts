import { errorSchemaOf } from './openapi-errors.ts'
import { headersOf } from './openapi-headers.ts'
import { failuresByStatus, requiredScopes } from './openapi-problems.ts'
import type { SchemaWriter } from './openapi-schemas.ts'
import type { Failure, Json } from './openapi-types.ts'
import type { Operation, OperationResponse } from '../core/operation.ts'

/** The successful responses of an operation, by status. */
export function successes(operation: Operation, schemas: SchemaWriter): Json {
  const statuses = new Set(operation.responses.map(({ status }) => status))
  return Object.fromEntries(
    [...statuses].map((status) => {
      const answers = operation.responses.filter((response) => response.status === status)
      // A status with two media types would be ambiguous for generated clients, so a JSON schema wins. A stream is
      // requested by `Accept`.
      const typed = answers.some(({ schema }) => schema) ? answers.filter(({ schema }) => schema) : answers
      const content = Object.assign({}, ...typed.map((answer) => contentOf(answer, schemas))) as Json
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

/** The error responses of an operation, by status, as references to components in `shared`. */
export function failures(operation: Operation, shared: Record<string, Json>): Json {
  const answers: Json = {}
  for (const [status, kinds] of failuresByStatus(operation)) {
    const name = share(shared, operation, status, kinds, failure(operation, status, kinds))
    answers[status] = { $ref: `#/components/responses/${name}` }
  }
  // Some public operations have no 4xx except that the HTTP server rejects oversized headers.
  if (!Object.keys(answers).some((status) => status.startsWith('4'))) {
    answers[431] = { description: 'The request headers are too large. The response has no body.' }
  }
  // An operation without a 2xx response gets a default response.
  if (operation.responses.every(({ status }) => status >= 300)) {
    const schema = { $ref: `#/components/schemas/${errorSchemaOf(operation.error_format)}` }
    answers.default = {
      description: 'Any other error, with the same schema.',
      content: { 'application/json': { schema } },
    }
  }
  return answers
}

function failure(operation: Operation, status: number, kinds: Failure[]): Json {
  const examples = kinds.map(({ name, summary, value }) => [name, { summary, value }])
  return {
    description: [...new Set(kinds.map(({ summary }) => summary))].join(' Or: '),
    headers: headersOf(operation, status),
    content: {
      'application/json': {
        schema: { $ref: `#/components/schemas/${errorSchemaOf(operation.error_format)}` },
        examples: Object.fromEntries(examples),
      },
    },
  }
}

/**
 * Adds a response to the components and returns its name, which is made of error format, status, codes and the field
 * of its example.
 */
function share(
  shared: Record<string, Json>,
  operation: Operation,
  status: number,
  kinds: Failure[],
  response: Json,
): string {
  const shows = {
    400: kinds.map(shownField).filter((field) => field !== undefined),
    403: requiredScopes(operation),
    429: [operation.bucket],
  }[status]
  const audience = operation.credentials.length > 0 ? [] : [operation.bucket ? 'limited' : 'public']
  const codes = kinds.map(({ name }) => name)
  const name = [errorSchemaOf(operation.error_format), status, ...codes, ...(shows ?? []), ...audience]
    .join('.')
    .replaceAll(/[^\w.-]/g, '_')
  if (shared[name] && JSON.stringify(shared[name]) !== JSON.stringify(response)) {
    throw new Error(`Two different responses are named ${name}.`)
  }
  shared[name] = response
  return name
}

/** The field that an example reports. */
function shownField({ value }: Failure): string | undefined {
  const { details } = (value['error'] ?? {}) as { details?: unknown }
  const [first = details] = Array.isArray(details) ? (details as unknown[]) : []
  return (first as { field?: string } | undefined)?.field
}
