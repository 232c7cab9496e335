import { EgressError } from './egress-error.ts'
import type { EgressPurpose } from './egress-rules.ts'
import type { EgressStream } from './egress-stream.ts'
import type { Egress } from './safe-fetch.ts'

export interface EgressFetchOptions {
  purpose: EgressPurpose
  /** Headers added to every request, read for each one; headers of the caller take precedence. */
  headers?: () => Record<string, string>
  /** Time limit of a request with its response, read for each one. */
  timeout_ms?: () => number
  /** Maximum size of a response, read for each request. */
  bytesMax?: () => number
  /** Aborts every request. */
  signal?: AbortSignal
  /** Called with each response once its headers are there. */
  onAnswer?: (answer: EgressStream) => void
}

/** The `fetch` that libraries accept. */
export type EgressFetch = (url: string | URL, init?: RequestInit) => Promise<Response>

/**
 * The guarded egress as WHATWG's `fetch`, for libraries that implement a protocol (decision D104). Differences: redirects
 * are not followed, so the library sends each hop as a request that is checked; bodies are text or bytes; failures are
 * `EgressRefused`, `EgressError` or the signal's reason rather than a `TypeError`.
 */
export function egressFetch(egress: Pick<Egress, 'open'>, options: EgressFetchOptions): EgressFetch {
  const { purpose, onAnswer } = options
  return async (url, init = {}) => {
    const signals = [options.signal, init.signal].filter((signal) => signal instanceof AbortSignal)
    const headers = { ...lowercase(options.headers?.() ?? {}), ...Object.fromEntries(new Headers(init.headers)) }
    const answer = await egress.open(url, {
      purpose,
      method: init.method ?? 'GET',
      headers,
      ...(init.body != null && { body: plainBody(init.body) }),
      ...(signals.length > 0 && { signal: AbortSignal.any(signals) }),
      ...(options.timeout_ms && { timeout_ms: options.timeout_ms() }),
      ...(options.bytesMax && { bytesMax: options.bytesMax() }),
    })
    onAnswer?.(answer)
    return asResponse(answer)
  }
}

/** Statuses of a `Response` that must not have a body. */
const bodiless = new Set([204, 205, 304])

async function asResponse(answer: EgressStream): Promise<Response> {
  const { status, headers, body, use } = answer
  if (status >= 200 && status <= 599 && !bodiless.has(status)) return new Response(body, { status, headers })
  await body.cancel()
  if (bodiless.has(status)) return new Response(null, { status, headers })
  throw new EgressError('bad_answer', `the answer has the status ${status}`, { network: use() })
}

function plainBody(body: NonNullable<RequestInit['body']>): string | Uint8Array {
  if (typeof body === 'string' || body instanceof Uint8Array) return body
  if (body instanceof URLSearchParams) return body.toString()
  throw new TypeError('the body of a request must be text or bytes')
}

function lowercase(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}
