import {
  EgressError,
  EgressRefused,
  type Egress,
  type EgressAnswer,
  type EgressErrorCode,
} from '../../../platform/egress/safe-fetch.ts'
import { ToolError, type ToolCallContext } from '../tool.ts'

/** A request of a tool. */
export interface ToolRequest {
  method: string
  url: string
  headers: Record<string, string>
  body?: string | undefined
  /** At most 60, the timeout of the egress guard. */
  timeout_seconds?: number | undefined
  /** Whether the request may take effect even without a response: true unless it is `safe` or `keyed`. */
  isUnsafe: boolean
}

/**
 * Sends a tool's request through the egress guard (decision D104), with the task's trace and, unless it is a GET or
 * HEAD, the idempotency key of the call. A response of any status is returned.
 * @throws ToolError, `uncertain` if something was sent and no response came; the signal's reason
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

/** Converts an error of the egress guard to a `ToolError`; returns any other error unchanged. */
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

/** Failures before the first byte of the request, although a handshake may have sent some bytes. */
const nothingSent: ReadonlySet<EgressErrorCode> = new Set([
  'dns_failed',
  'connect_failed',
  'connect_timed_out',
  'tls_failed',
])
