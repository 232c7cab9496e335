import {
  EgressError,
  EgressRefused,
  type Egress,
  type EgressAnswer,
  type EgressErrorCode,
} from '../../../platform/egress/safe-fetch.ts'
import { ToolError, type ToolCallContext } from '../tool.ts'

/** A request that a tool makes. */
export interface ToolRequest {
  method: string
  url: string
  headers: Record<string, string>
  body?: string | undefined
  /** At most 60, the bound of the way out. */
  timeout_seconds?: number | undefined
  /** Whether it may have taken effect although no answer came: so with everything that is neither safe nor keyed. */
  isUnsafe: boolean
}

/**
 * Sends a tool's request through the guarded way out (decision D104), with the key of the call where it is no GET, and
 * with the task's trace. Any answer is an answer, whatever its status. Throws `ToolError`, `uncertain` where something
 * was sent and no answer came; and the signal's reason.
 */
export async function sendToolRequest(
  egress: Egress,
  request: ToolRequest,
  { idempotency_key, traceparent, signal, party }: ToolCallContext,
): Promise<EgressAnswer> {
  const { method, url, body, timeout_seconds, isUnsafe } = request
  const given = new Set(Object.keys(request.headers).map((name) => name.toLowerCase()))
  const added = {
    ...(method === 'GET' || method === 'HEAD' ? {} : { 'idempotency-key': idempotency_key }),
    ...(traceparent === undefined ? {} : { traceparent }),
  }
  const headers = { ...request.headers }
  for (const [name, value] of Object.entries(added)) if (!given.has(name)) headers[name] = value
  try {
    return await egress.fetch(url, {
      purpose: 'tool',
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      ...(timeout_seconds === undefined ? {} : { timeout_ms: timeout_seconds * 1000 }),
      // Of one project alone: some servers take a connection for its user.
      ...(isUnsafe ? {} : { keptFor: `project ${party.project_id}` }),
      signal,
    })
  } catch (error) {
    throw asToolError(error, isUnsafe)
  }
}

/** What a failure of the way out is to a tool; anything else is itself. */
export function asToolError(error: unknown, isUnsafe: boolean): unknown {
  if (error instanceof EgressRefused) {
    const uncertain = isUnsafe && error.sent
    return new ToolError('request_refused', `The request was refused: ${error.message}.`, { uncertain, cause: error })
  }
  if (!(error instanceof EgressError)) return error
  const uncertain = isUnsafe && error.network.bytes_out > 0 && !nothingSent.has(error.code)
  const message = `The request failed: ${error.message}.`
  return new ToolError(error.code, message, { uncertain, network: error.network, cause: error })
}

/** Failures before the first byte of the request, although a handshake may have sent some. */
const nothingSent: ReadonlySet<EgressErrorCode> = new Set([
  'dns_failed',
  'connect_failed',
  'connect_timed_out',
  'tls_failed',
])
