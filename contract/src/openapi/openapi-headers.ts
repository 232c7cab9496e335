import { rateWindows_seconds } from '../core/limits.ts'
import { isIdempotent, type Operation } from '../core/operation.ts'
import type { Json } from './openapi-types.ts'

const text = (description: string, example: string): Json => ({ description, schema: { type: 'string' }, example })
const number = (description: string, example: number): Json => ({
  description,
  schema: { type: 'integer', minimum: 0 },
  example,
})

/** Headers of answers, by name (decisions D4, D5, D20, D88, D89, D98, D99). */
export const headerComponents: Record<string, Json> = {
  'X-Request-ID': text('Identifies this request; errors repeat it.', 'req_9f2c4e6a8b0d1f3g5h7j9k2m'),
  'X-Response-Time': text('Time that the service took, in whole milliseconds.', '12ms'),
  'X-RateLimit-Limit': number('Requests that the governing window admits.', 100),
  'X-RateLimit-Remaining': number('Requests that are left in it.', 87),
  'X-RateLimit-Reset': number('Unix time in seconds at which it ends.', 1_795_167_060),
  'RateLimit-Policy': text(
    'The governing window, as the IETF draft has it: its name (`burst` of a minute, `hour`), requests `q`, and seconds `w`.',
    `"burst";q=100;w=${rateWindows_seconds.burst}`,
  ),
  RateLimit: text('Requests `r` that are left in it, and seconds `t` until it ends.', '"burst";r=87;t=42'),
  'X-RateLimit-Limit-Requests': number('Requests that the general hour admits.', 1000),
  'X-RateLimit-Remaining-Requests': number('Requests that are left in it.', 987),
  'X-RateLimit-Reset-Requests': number('Unix time in seconds at which it ends.', 1_795_168_800),
  'X-RateLimit-Limit-Tokens': number('Language-model tokens that the hour admits.', 1_000_000),
  'X-RateLimit-Remaining-Tokens': number('Language-model tokens that are left in it.', 998_400),
  'X-RateLimit-Reset-Tokens': number('Unix time in seconds at which it ends.', 1_795_168_800),
  'Retry-After': number('Whole seconds to wait before trying again.', 17),
  'WWW-Authenticate': text('The scheme by which to authenticate.', 'Bearer realm="cadre"'),
  ETag: text('The revision of the resource, for `If-Match`.', '"3"'),
  'Idempotency-Replayed': text('`true` where the answer was kept from an earlier request with the same key.', 'true'),
}

const always = ['X-Request-ID', 'X-Response-Time']
const window = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'RateLimit-Policy', 'RateLimit']
const rates = Object.keys(headerComponents).filter((name) => name.includes('RateLimit'))

/** Headers that an answer of this status carries; those the operation adds come with their own description. */
export function headersOf(operation: Operation, status: number, added: Record<string, string> = {}): Json {
  const names = [...always, ...rateHeaders(operation, status)]
  if (status === 429 || status === 503 || (status === 409 && isIdempotent(operation))) names.push('Retry-After')
  if (status === 401) names.push('WWW-Authenticate')
  if (operation.revisioned && status < 300 && operation.method !== 'DELETE') names.push('ETag')
  if (isIdempotent(operation) && status < 300) names.push('Idempotency-Replayed')
  return {
    ...Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
    ...Object.fromEntries(
      Object.entries(added)
        .filter(([name]) => !names.includes(name))
        .map(addedHeader),
    ),
  }
}

function addedHeader([name, description]: [string, string]): [string, Json] {
  const known = name in headerComponents
  return [name, known ? { $ref: `#/components/headers/${name}` } : { description, schema: { type: 'string' } }]
}

/** Before authentication no windows are known (decision D88); public operations count addresses. */
function rateHeaders({ bucket, credentials }: Operation, status: number): string[] {
  if (status === 401) return []
  if (credentials.length > 0) return rates
  return bucket ? window : []
}
