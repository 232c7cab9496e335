import type { ErrorFormat } from '../core/operation.ts'
import type { Json } from './openapi-types.ts'
import { problems } from '../core/problems.ts'

/** The envelopes of errors, one an error format, and what they are made of (spec 7.1, decisions D21, D26, D29). */
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
      error: { type: 'string', description: 'Tells programs what happened.' },
      error_description: { type: 'string', description: 'Tells people what happened.' },
      retry_after: { type: 'integer', minimum: 1, description: 'Seconds to wait, with 429.' },
    },
  },
  FieldIssue: {
    type: 'object',
    description: 'What is wrong with one field.',
    required: ['field', 'message', 'code'],
    properties: {
      field: { type: 'string', description: 'Where it stands: `config.temperature`, `scopes[1]`.' },
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
      provided: { description: 'What was sent, cut at 100 characters; left out for secrets.' },
    },
  },
} as const satisfies Record<string, Json>

/** Name of the envelope of each error format, in `components.schemas`. */
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
          code: { type: 'string', description: 'Tells programs what happened.', 'x-extensible-enum': codes },
          message: { type: 'string', description: 'Tells people what happened.' },
          details: { description: 'More about it.', anyOf: details },
          request_id: { type: 'string', description: 'Also in the header `X-Request-ID`.' },
          timestamp: { type: 'string', format: 'date-time' },
          required_scopes: { type: 'array', items: { type: 'string' }, description: 'Scopes that are missing.' },
          retry_after: { type: 'integer', minimum: 1, description: 'Seconds to wait before trying again.' },
        },
      },
    },
  }
}
