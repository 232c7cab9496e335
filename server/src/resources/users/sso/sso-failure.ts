import { AuthorizationResponseError, ClientError, ResponseBodyError } from 'openid-client'
import { invalid, Problem } from '#contract/core/problems.ts'
import { EgressError, EgressRefused } from '../../../platform/egress/safe-fetch.ts'

/**
 * Why a user who came back from an identity provider is not signed in: the user declined there (declined), the response
 * does not belong to this browser's attempt (mismatch), it cannot be trusted (unusable), or it came too late (late).
 */
export type SsoFailureReason = 'declined' | 'mismatch' | 'unusable' | 'late'

/** Sign-in with an identity provider failed. The message is for the log, and holds no token, code or claim. */
export class SsoFailure extends Error {
  readonly reason: SsoFailureReason
  constructor(reason: SsoFailureReason, message: string) {
    super(message)
    this.name = 'SsoFailure'
    this.reason = reason
  }
}

/** Errors with which providers say that the user declined (RFC 6749 §4.1.2.1, OpenID Core §3.1.2.6). */
const declines = [
  'access_denied',
  'login_required',
  'consent_required',
  'interaction_required',
  'account_selection_required',
]

/**
 * Turns an error of the library into a failure. `isAsked`: whether the provider had been sent a request. Before that,
 * the error is in what the browser sent.
 */
export function ssoFailure(error: unknown, isAsked: boolean): SsoFailure {
  if (error instanceof SsoFailure) return error
  if (error instanceof AuthorizationResponseError) {
    const reason = declines.includes(error.error) ? 'declined' : 'unusable'
    return new SsoFailure(reason, describeError('the provider said', error.error, error.error_description))
  }
  const chain = causes(error)
  const egress = chain.find((cause) => cause instanceof EgressError || cause instanceof EgressRefused)
  if (egress instanceof EgressRefused)
    return new SsoFailure('unusable', `the egress policy forbids an address of the provider: ${egress.message}`)
  if (egress) {
    const isLate = egress.code === 'timed_out' || egress.code === 'connect_timed_out'
    return new SsoFailure(isLate ? 'late' : 'unusable', `${egress.code}: ${egress.message}`)
  }
  if (chain.some(({ name }) => name === 'TimeoutError')) return new SsoFailure('late', 'no complete response in time')
  if (!isAsked) return new SsoFailure('mismatch', describe(chain))
  if (error instanceof ResponseBodyError)
    return new SsoFailure('unusable', describeError('the provider said', error.error, error.error_description))
  return new SsoFailure('unusable', describe(chain))
}

/** The error that the user gets for a failure. */
export function ssoProblem(failure: SsoFailure, label: string): Problem {
  switch (failure.reason) {
    case 'declined':
      return new Problem('insufficient_permissions', undefined, {
        message: `${label} was not allowed to share your account.`,
        cause: failure,
      })
    case 'mismatch':
      return lostAttempt()
    case 'unusable':
      return new Problem('bad_gateway', undefined, {
        message: `You are not signed in, because the response of ${label} could not be verified. Try again later.`,
        cause: failure,
      })
    case 'late':
      return new Problem('gateway_timeout', undefined, {
        message: `${label} did not respond in time. Try again later.`,
        cause: failure,
      })
  }
}

/** 400: the response does not belong to a sign-in that this browser began. */
export function lostAttempt(): Problem {
  const { details } = invalid({ field: 'state', message: 'does not belong to this browser', code: 'invalid_choice' })
  return new Problem('validation_error', details, {
    message: 'This sign-in has expired, was already used, or began in another browser. Start again.',
  })
}

/** An error with its causes, without their other members, which may be a response with tokens. */
function causes(error: unknown): Error[] {
  const chain: Error[] = []
  for (let next = error; next instanceof Error && chain.length < 8; next = next.cause) chain.push(next)
  return chain
}

function describe(chain: Error[]): string {
  // The message of a JSON error quotes the text.
  const messages = chain
    .filter((error) => !(error instanceof SyntaxError))
    .map((error) => {
      const code = error instanceof ClientError && error.code !== undefined ? `${error.code}: ` : ''
      return `${code}${error.message}`
    })
  return [...new Set(messages)].join('; ').slice(0, 500) || 'the thrown value is not an error'
}

/** A provider's error, shortened and on one line. */
function describeError(what: string, error: string, description: string | undefined): string {
  return `${what} ${JSON.stringify(error.slice(0, 100))}${description ? `: ${JSON.stringify(description.slice(0, 300))}` : ''}`
}
