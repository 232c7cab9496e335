import { rateWindows_seconds } from '../core/limits.ts'
import { isIdempotent, type Operation } from '../core/operation.ts'
import type { Json } from './openapi-types.ts'

const text = (description: string, example: string): Json => ({ description, schema: { type: 'string' }, example })
const number = (description: string, example: number): Json => ({
  description,
  schema: { type: 'integer', minimum: 0 },
  example,
})

/** Response headers by name (decisions D4, D5, D20, D88, D89, D98, D99). */
export const headerComponents: Record<string, Json> = {
  'X-Request-ID': text('Id of the request; error bodies contain it too.', 'req_9f2c4e6a8b0d1f3g5h7j9k2m'),
  'X-Response-Time': text('Processing time in whole milliseconds.', '12ms'),
  'X-RateLimit-Limit': number('Requests allowed in the limiting window: the one that is closest to its limit.', 100),
  'X-RateLimit-Remaining': number('Requests left in the limiting window.', 87),
  'X-RateLimit-Reset': number('Unix time in seconds at which the limiting window ends.', 1_795_167_060),
  'RateLimit-Policy': text(
    'The limiting window in the form of the IETF draft: its name (`burst` for a minute, or `hour`), allowed requests `q`, and length in seconds `w`.',
    `"burst";q=100;w=${rateWindows_seconds.burst}`,
  ),
  RateLimit: text('Requests left in the limiting window (`r`), and seconds until it ends (`t`).', '"burst";r=87;t=42'),
  'X-RateLimit-Limit-Requests': number('Requests allowed in the general hourly window.', 1000),
  'X-RateLimit-Remaining-Requests': number('Requests left in the general hourly window.', 987),
  'X-RateLimit-Reset-Requests': number('Unix time in seconds at which the general hourly window ends.', 1_795_168_800),
  'X-RateLimit-Limit-Tokens': number('Language-model tokens allowed in the hourly window.', 1_000_000),
  'X-RateLimit-Remaining-Tokens': number('Language-model tokens left in the hourly window.', 998_400),
  'X-RateLimit-Reset-Tokens': number('Unix time in seconds at which the hourly window of tokens ends.', 1_795_168_800),
  'Retry-After': number('Whole seconds to wait before a retry.', 17),
  'WWW-Authenticate': text('The authentication scheme.', 'Bearer realm="cadre"'),
  ETag: text('Revision of the resource, for `If-Match`.', '"3"'),
  'Idempotency-Replayed': text(
    '`true` if this is the stored response to an earlier request with the same key.',
    'true',
  ),
}

const always = ['X-Request-ID', 'X-Response-Time']
const window = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'RateLimit-Policy', 'RateLimit']
const rates = Object.keys(headerComponents).filter((name) => name.includes('RateLimit'))

/** Headers of a response with this status. `added` has descriptions of the operation's own headers. */
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

/** Before authentication the windows are unknown (decision D88). Public operations count requests per IP address. */
function rateHeaders({ bucket, credentials }: Operation, status: number): string[] {
  if (status === 401) return []
  if (credentials.length > 0) return rates
  return bucket ? window : []
}
