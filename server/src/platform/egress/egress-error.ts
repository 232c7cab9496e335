import { UpstreamError, type UpstreamErrorCode, type UpstreamUse } from './connect.ts'

export type EgressErrorCode =
  | UpstreamErrorCode
  | 'timed_out'
  | 'connection_lost'
  | 'bad_answer'
  | 'answer_too_large'
  | 'too_many_redirects'

/** A request that the rules allow, and that failed. */
export class EgressError extends Error {
  readonly code: EgressErrorCode
  readonly network: UpstreamUse
  constructor(code: EgressErrorCode, message: string, options: { network: UpstreamUse; cause?: unknown }) {
    super(message, { cause: options.cause })
    this.name = 'EgressError'
    this.code = code
    this.network = options.network
  }
}

/** Names of undici's errors for a response that is not valid HTTP. */
const unreadable = new Set(['HTTPParserError', 'HeadersOverflowError', 'ResponseContentLengthMismatchError'])

/** Turns an error of a connection into an `EgressError`. */
export function egressFailure(error: unknown, network: UpstreamUse): EgressError {
  if (error instanceof UpstreamError) return new EgressError(error.code, error.message, { network, cause: error })
  return error instanceof Error && unreadable.has(error.name)
    ? new EgressError('bad_answer', 'the answer is not HTTP that we understand', { network, cause: error })
    : new EgressError('connection_lost', 'the connection was lost before the answer was complete', {
        network,
        cause: error,
      })
}
