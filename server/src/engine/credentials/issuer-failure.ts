import {
  AuthorizationResponseError,
  ClientError,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from 'openid-client'
import { EgressError, EgressRefused } from '../../platform/egress/safe-fetch.ts'

/**
 * Why an issuer gave no tokens. `refused`: it said no, and says it again. `unavailable`: it did not do what it was asked for, and
 * may be asked again. `unknown`: the request was sent and no answer that can be read came, so that a refresh token may be spent.
 * `declined`: the person did not let the service in. `mismatch`: what a browser brought is no answer to what was asked.
 */
export type IssuerFailureKind = 'refused' | 'unavailable' | 'unknown' | 'declined' | 'mismatch'

/** An issuer gave no tokens. `code` is for programs; the message is shown to people, and holds no token. */
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

/** What the requests of one conversation with an issuer came to. */
export interface Trail {
  isAsked: boolean
  /** The status of the last answer. */
  status: number | undefined
}

/** Errors by which an issuer says that it may be asked again (RFC 6749 §4.1.2.1, RFC 8628 §3.5). */
const passing = new Set(['temporarily_unavailable', 'server_error', 'slow_down'])
/** Errors by which an issuer says that its user did not go through with it (RFC 6749 §4.1.2.1, OpenID Core §3.1.2.6). */
const declines = new Set(['access_denied', 'login_required', 'consent_required', 'interaction_required'])
/** Failures before the first byte of a request. */
const nothingSent = new Set(['dns_failed', 'connect_failed', 'connect_timed_out', 'tls_failed'])

/** What the libraries threw, as a failure. */
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
      `The issuer may not be reached: ${forbidden.message}.`,
      forbidden,
    )
  const lost = chain.find((cause) => cause instanceof EgressError)
  if (lost) {
    const kind = nothingSent.has(lost.code) || lost.network.bytes_out === 0 ? 'unavailable' : 'unknown'
    return new IssuerFailure(kind, lost.code, `The issuer gave no answer: ${lost.message}.`, lost)
  }
  if (chain.some(({ name }) => name === 'TimeoutError'))
    return new IssuerFailure('unknown', 'timed_out', 'The issuer gave no complete answer in time.', chain[0])
  return undefined
}

function answerFailure(error: unknown, chain: readonly Error[], { isAsked, status }: Trail): IssuerFailure {
  if (error instanceof ResponseBodyError) {
    const isPassing = error.status === 429 || error.status >= 500 || passing.has(error.error)
    const errorText = describeError(error.error, error.error_description)
    return new IssuerFailure(isPassing ? 'unavailable' : 'refused', codeOf(error.error), errorText, error)
  }
  if (error instanceof WWWAuthenticateChallengeError)
    return new IssuerFailure('refused', 'invalid_client', 'The issuer refuses the client and its secret.', error)
  if (status !== undefined && (status < 200 || status > 299))
    return new IssuerFailure('unavailable', `http_${status}`, `The issuer answers HTTP ${status}.`, error)
  if (!isAsked) return new IssuerFailure('mismatch', 'mismatch', describe(chain), error)
  return new IssuerFailure('unknown', 'bad_answer', `The issuer's answer cannot be used: ${describe(chain)}.`, error)
}

/** An error with its causes; what hangs on them beside is left out, because it may be an answer with tokens. */
function causes(error: unknown): Error[] {
  const chain: Error[] = []
  for (let next = error; next instanceof Error && chain.length < 8; next = next.cause) chain.push(next)
  return chain
}

function describe(chain: readonly Error[]): string {
  // A complaint about JSON quotes it.
  const messages = chain
    .filter((error) => !(error instanceof SyntaxError))
    .map((error) => (error instanceof ClientError && error.code !== undefined ? `${error.code}: ` : '') + error.message)
  return [...new Set(messages)].join('; ').slice(0, 300) || 'something was thrown that is no error'
}

/** An issuer's code, where it looks like one. */
function codeOf(error: string): string {
  return /^[\w.-]{1,64}$/.test(error) ? error : 'refused'
}

/** What an issuer wrote, short and on one line. */
function describeError(error: string, description: string | undefined): string {
  const more = description ? `, ${JSON.stringify(description.slice(0, 300))}` : ''
  return `The issuer refuses: ${JSON.stringify(error.slice(0, 100))}${more}.`
}
