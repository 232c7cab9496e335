import { EgressError, EgressRefused } from '../../../platform/egress/safe-fetch.ts'
import { asToolError } from '../http/http-send.ts'
import { TooManyDefinitions } from './mcp-definitions.ts'
import type { Exchange } from './mcp-exchange.ts'
import { mcpTimes } from './mcp-session.ts'
import { unansweredCode } from './mcp-transport.ts'
import { ToolError } from '../tool.ts'

/** Maximum characters of a server's error message. */
const messageMax = 500

/**
 * Converts a failure to a `ToolError` for the caller. `isSent`: the call was sent. `isUnsafe`: the call may have taken
 * effect without a response. Such a call without a definite response has an `uncertain` error.
 */
export async function mcpFailure(
  error: unknown,
  exchange: Exchange,
  { isSent, isUnsafe }: { isSent: boolean; isUnsafe: boolean },
): Promise<ToolError> {
  if (error instanceof ToolError) return error
  const known = asToolError(exchange.failure ?? error, isUnsafe)
  if (known instanceof ToolError) return known
  if (error instanceof TooManyDefinitions)
    return new ToolError('bad_answer', `The response is too large: ${error.message}.`)

  const { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } = await import('@modelcontextprotocol/client')
  const uncertain = isUnsafe
  const cause = error
  if (error instanceof SdkHttpError) return statusFailure(error.status ?? 0, { isSent, isUnsafe, cause })
  if (error instanceof SdkError) {
    if (error.code === SdkErrorCode.RequestTimeout) {
      return new ToolError('timed_out', `The server did not answer within ${mcpTimes.call_ms / 1000} s.`, {
        uncertain,
        cause,
      })
    }
    if (error.code === SdkErrorCode.UnsupportedResultType) {
      return new ToolError('input_required', 'The server asks for input of a person, which is not supported.', {
        cause,
      })
    }
  }
  if (error instanceof ProtocolError) {
    if (error.code === unansweredCode) {
      return new ToolError('connection_lost', 'The connection ended before the response.', { uncertain, cause })
    }
    return new ToolError('server_error', `The server answered with an error (${error.code}): ${said(error.message)}`, {
      cause,
    })
  }
  return new ToolError('bad_answer', 'The response of the server violates the protocol.', {
    uncertain,
    cause,
  })
}

function statusFailure(
  status: number,
  { isSent, isUnsafe, cause }: { isSent: boolean; isUnsafe: boolean; cause: unknown },
): ToolError {
  const refused = status === 401 || status === 403 ? ': the credentials are missing, wrong or insufficient' : ''
  // A gateway in front of the server may have given up on a call that continues.
  const uncertain = isUnsafe && status >= 500
  const unauthorized = status === 401 ? (isSent ? 'sent' : 'unsent') : undefined
  const message = `The server answered with HTTP ${status}${refused}.`
  return new ToolError('http_error', message, { uncertain, cause, unauthorized })
}

function said(text: string): string {
  return text.slice(0, messageMax)
}

/** Whether a failure says that the server does not know the session any more, so the call had no effect. */
export async function isSessionLost(error: unknown): Promise<boolean> {
  if (error instanceof EgressError || error instanceof EgressRefused) return false
  const { SdkHttpError } = await import('@modelcontextprotocol/client')
  return error instanceof SdkHttpError && error.status === 404
}
