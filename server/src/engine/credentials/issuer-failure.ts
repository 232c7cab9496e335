import {
  AuthorizationResponseError,
  ClientError,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from 'openid-client'
import { EgressError, EgressRefused } from '../../platform/egress/safe-fetch.ts'

/**
 * Why an issuer issued no tokens.
 * - `refused`: it refused the request, and would refuse it again.
 * - `unavailable`: it did not process the request, which may be repeated.
 * - `unknown`: the request was sent and no readable response came, so a refresh token may be spent.
 * - `declined`: the person did not authorize the service.
 * - `mismatch`: the callback does not match the authorization request.
 */
export type IssuerFailureKind = 'refused' | 'unavailable' | 'unknown' | 'declined' | 'mismatch'

/** An issuer issued no tokens. `code` is for programs. The message is shown to people, and contains no token. */
export class IssuerFailure extends Error {
  readonly kind: IssuerFailureKind
  readonly code: string
  constructor(kind: IssuerFailureKind, code: string, message: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'IssuerFailure'
    this.kind = kind
    this.code = code
  }
}

/** The progress of the requests of one operation with an issuer. */
export interface Trail {
  isAsked: boolean
  /** The status of the last response. */
  status: number | undefined
}

/** Error codes with which an issuer says that the request may be repeated (RFC 6749 §4.1.2.1, RFC 8628 §3.5). */
const transient = new Set(['temporarily_unavailable', 'server_error', 'slow_down'])
/** Error codes with which an issuer says that its user did not authorize (RFC 6749 §4.1.2.1, OpenID Core §3.1.2.6). */
const declines = new Set(['access_denied', 'login_required', 'consent_required', 'interaction_required'])
/** Failures before the first byte of a request. */
const nothingSent = new Set(['dns_failed', 'connect_failed', 'connect_timed_out', 'tls_failed'])

/** Converts errors of the libraries. */
export function issuerFailure(error: unknown, trail: Trail): IssuerFailure {
  if (error instanceof IssuerFailure) return error
  if (error instanceof AuthorizationResponseError) {
    const kind = declines.has(error.error) ? 'declined' : 'refused'
    return new IssuerFailure(kind, codeOf(error.error), describeError(error.error, error.error_description), error)
  }
  const chain = causes(error)
  return networkFailure(chain) ?? answerFailure(error, chain, trail)
}

function networkFailure(chain: readonly Error[]): IssuerFailure | undefined {
  const forbidden = chain.find((cause) => cause instanceof EgressRefused)
  if (forbidden)
    return new IssuerFailure(
      'unavailable',
      'address_refused',
      `The address of the issuer is not allowed: ${forbidden.message}.`,
      forbidden,
    )
  const lost = chain.find((cause) => cause instanceof EgressError)
  if (lost) {
    const kind = nothingSent.has(lost.code) || lost.network.bytes_out === 0 ? 'unavailable' : 'unknown'
    return new IssuerFailure(kind, lost.code, `The issuer did not respond: ${lost.message}.`, lost)
  }
  if (chain.some(({ name }) => name === 'TimeoutError'))
    return new IssuerFailure('unknown', 'timed_out', 'The issuer did not respond completely in time.', chain[0])
  return undefined
}

function answerFailure(error: unknown, chain: readonly Error[], { isAsked, status }: Trail): IssuerFailure {
  if (error instanceof ResponseBodyError) {
    const isTransient = error.status === 429 || error.status >= 500 || transient.has(error.error)
    const errorText = describeError(error.error, error.error_description)
    return new IssuerFailure(isTransient ? 'unavailable' : 'refused', codeOf(error.error), errorText, error)
  }
  if (error instanceof WWWAuthenticateChallengeError)
    return new IssuerFailure(
      'refused',
      'invalid_client',
      'The issuer refused the client. Check client_id and client_secret.',
      error,
    )
  if (status !== undefined && (status < 200 || status > 299))
    return new IssuerFailure('unavailable', `http_${status}`, `The issuer answered with HTTP ${status}.`, error)
  if (!isAsked) return new IssuerFailure('mismatch', 'mismatch', describe(chain), error)
  return new IssuerFailure('unknown', 'bad_answer', `The response of the issuer is invalid: ${describe(chain)}.`, error)
}

/** The chain of causes of an error. Other members are left out, because one may be a response with tokens. */
function causes(error: unknown): Error[] {
  const chain: Error[] = []
  for (let next = error; next instanceof Error && chain.length < 8; next = next.cause) chain.push(next)
  return chain
}

function describe(chain: readonly Error[]): string {
  // A `SyntaxError` of JSON quotes its input.
  const messages = chain
    .filter((error) => !(error instanceof SyntaxError))
    .map((error) => (error instanceof ClientError && error.code !== undefined ? `${error.code}: ` : '') + error.message)
  return [...new Set(messages)].join('; ').slice(0, 300) || 'unknown error'
}

/** An issuer's error code, if it has the form of one. */
function codeOf(error: string): string {
  return /^[\w.-]{1,64}$/.test(error) ? error : 'refused'
}

/** An issuer's error and description, short and on one line. */
function describeError(error: string, description: string | undefined): string {
  const more = description ? `, ${JSON.stringify(description.slice(0, 300))}` : ''
  return `The issuer refused the request: ${JSON.stringify(error.slice(0, 100))}${more}.`
}
