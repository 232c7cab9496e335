import type { ErrorFormat } from '../core/operation.ts'
import type { Json } from './openapi-types.ts'
import { problems } from '../core/problems.ts'

/** Schemas of error bodies, one per error format, with their parts (spec 7.1, decisions D21, D26, D29). */
export const errorSchemas = {
  Error: envelopeSchema('An error, with a lowercase code.', 'agents', [
    { type: 'string' },
    { type: 'object', additionalProperties: true },
    { type: 'array', items: { $ref: '#/components/schemas/FieldIssue' } },
  ]),
  ProjectError: envelopeSchema('An error, with an uppercase code.', 'control', [
    { type: 'string' },
    { type: 'object', additionalProperties: true },
  ]),
  OAuthError: {
    type: 'object',
    description: 'An error in the form of RFC 6749, section 5.2.',
    required: ['error'],
    properties: {
      error: { type: 'string', description: 'Machine-readable error code.' },
      error_description: { type: 'string', description: 'Human-readable message.' },
      retry_after: { type: 'integer', minimum: 1, description: 'Seconds to wait before a retry, with 429.' },
    },
  },
  FieldIssue: {
    type: 'object',
    description: 'What is wrong with one field.',
    required: ['field', 'message', 'code'],
    properties: {
      field: { type: 'string', description: 'Path of the field: `config.temperature`, `scopes[1]`.' },
      message: { type: 'string' },
      code: {
        type: 'string',
        enum: [
          'required',
          'too_short',
          'too_long',
          'out_of_range',
          'invalid_format',
          'invalid_choice',
          'unknown_field',
        ],
      },
      min: { type: 'number' },
      max: { type: 'number' },
      provided: { description: 'The value that was sent, cut to 100 characters. Absent for secrets.' },
    },
  },
} as const satisfies Record<string, Json>

/** Name of an error format's schema in `components.schemas`. */
export function errorSchemaOf(format: ErrorFormat): 'Error' | 'ProjectError' | 'OAuthError' {
  if (format === 'oauth') return 'OAuthError'
  return format === 'control' || format === 'page' ? 'ProjectError' : 'Error'
}

function envelopeSchema(description: string, format: 'agents' | 'control', details: Json[]): Json {
  const codes = [...new Set(Object.values(problems).map((problem) => problem[format]))].toSorted()
  return {
    type: 'object',
    description,
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['code', 'message', 'request_id', 'timestamp'],
        properties: {
          code: { type: 'string', description: 'Machine-readable error code.', 'x-extensible-enum': codes },
          message: { type: 'string', description: 'Human-readable message.' },
          details: { description: 'Details of the error.', anyOf: details },
          request_id: { type: 'string', description: 'The value of the header `X-Request-ID`.' },
          timestamp: { type: 'string', format: 'date-time' },
          required_scopes: { type: 'array', items: { type: 'string' }, description: 'Missing scopes.' },
          retry_after: { type: 'integer', minimum: 1, description: 'Seconds to wait before a retry.' },
        },
      },
    },
  }
}
