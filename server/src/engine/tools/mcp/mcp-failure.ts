import { EgressError, EgressRefused } from '../../../platform/egress/safe-fetch.ts'
import { asToolError } from '../http/http-send.ts'
import { TooManyDefinitions } from './mcp-definitions.ts'
import type { Exchange } from './mcp-exchange.ts'
import { mcpTimes } from './mcp-session.ts'
import { unansweredCode } from './mcp-transport.ts'
import { ToolError } from '../tool.ts'

/** Characters of what a server says of a failure. */
const messageMax = 500

/**
 * A failure as one sentence for the caller. `isSent`: the request was a call, or the call was sent before. `isUnsafe`: it may have
 * taken effect without an answer. Where nothing certain came back of such a one, the error is `uncertain`.
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
    return new ToolError('bad_answer', `The answer is too much: ${error.message}.`)

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
      return new ToolError('input_required', 'The server asks for input that only a person at its client could give.', {
        cause,
      })
    }
  }
  if (error instanceof ProtocolError) {
    if (error.code === unansweredCode) {
      return new ToolError('connection_lost', 'The connection ended before the answer.', { uncertain, cause })
    }
    return new ToolError('server_error', `The server answers with an error (${error.code}): ${said(error.message)}`, {
      cause,
    })
  }
  return new ToolError('bad_answer', 'The server answers with something that is not the protocol.', {
    uncertain,
    cause,
  })
}

function statusFailure(
  status: number,
  { isSent, isUnsafe, cause }: { isSent: boolean; isUnsafe: boolean; cause: unknown },
): ToolError {
  const refused = status === 401 || status === 403 ? ': the credentials are missing, wrong or not enough' : ''
  // Whatever stands in front of a server may have given up on a call that goes on.
  const uncertain = isUnsafe && status >= 500
  const unauthorized = status === 401 ? (isSent ? 'sent' : 'unsent') : undefined
  const message = `The server answers with the status ${status}${refused}.`
  return new ToolError('http_error', message, { uncertain, cause, unauthorized })
}

function said(text: string): string {
  return text.slice(0, messageMax)
}

/** Whether a failure says that the server knows nothing of the session any more, and so did nothing. */
export async function isSessionLost(error: unknown): Promise<boolean> {
  if (error instanceof EgressError || error instanceof EgressRefused) return false
  const { SdkHttpError } = await import('@modelcontextprotocol/client')
  return error instanceof SdkHttpError && error.status === 404
}
