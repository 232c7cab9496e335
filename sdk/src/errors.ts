import type { Issue } from './contract.ts'

/** Base class of all errors of this SDK. The reason of an aborted signal is thrown unchanged. */
export class CadreError extends Error {
  override readonly name: string = 'CadreError'
}

/** The connection failed or broke, or the response is not one of the service. */
export class APIConnectionError extends CadreError {
  override readonly name: string = 'APIConnectionError'
}

/** There was no response in time. */
export class APITimeoutError extends APIConnectionError {
  override readonly name = 'APITimeoutError'
}

/** A wait timed out. */
export class WaitTimeoutError extends CadreError {
  override readonly name = 'WaitTimeoutError'
}

/** A webhook request has no valid signature, or is too old. */
export class WebhookVerificationError extends CadreError {
  override readonly name = 'WebhookVerificationError'
}

/** A response with a status of 400 or higher. */
interface Answer {
  status: number
  headers: Headers
  body: unknown
  /** Number of attempts. */
  attempts: number
}

/** The service refused the request, or failed. Common statuses have subclasses. */
export class APIError extends CadreError {
  override readonly name: string = 'APIError'
  readonly status: number
  /** Lowercase in the error format `agents`, uppercase in `control` (`docs/reference/errors.md`); OAuth's own of `/oauth2`. */
  readonly code: string
  readonly details: unknown
  /** Identifies the request in the logs of the service. */
  readonly requestId: string | null
  readonly headers: Headers
  /** Seconds after which a retry makes sense; undefined without `Retry-After`. */
  readonly retryAfter: number | undefined
  /** Scopes of which the credential lacks one; empty for other errors. */
  readonly requiredScopes: readonly string[]
  /** Number of attempts: a 404 for the second attempt of a delete may mean that the first one succeeded. */
  readonly attempts: number

  constructor({ status, headers, body, attempts }: Answer) {
    const error = errorOf(body)
    super(error.message ?? `The service responded with status ${status}.`)
    this.status = status
    this.code = error.code ?? `status_${status}`
    this.details = error.details
    this.requestId = error.request_id ?? headers.get('x-request-id')
    this.headers = headers
    this.retryAfter = error.retry_after ?? secondsOf(headers.get('retry-after'))
    this.requiredScopes = error.required_scopes ?? []
    this.attempts = attempts
  }

  /** Issues of fields: all of them in the error format `agents`, the first in `control`. */
  get issues(): Issue[] {
    const { details } = this
    if (Array.isArray(details)) return details.filter((issue) => isObject(issue) && 'field' in issue)
    if (!isObject(details) || typeof details.field !== 'string' || typeof details.issue !== 'string') return []
    return [{ field: details.field, message: details.issue, code: 'invalid_format' }]
  }
}

export class BadRequestError extends APIError {
  override readonly name = 'BadRequestError'
}
export class AuthenticationError extends APIError {
  override readonly name = 'AuthenticationError'
}
export class PermissionDeniedError extends APIError {
  override readonly name = 'PermissionDeniedError'
}
export class NotFoundError extends APIError {
  override readonly name = 'NotFoundError'
}
export class ConflictError extends APIError {
  override readonly name = 'ConflictError'
}
/** The resource has another revision than `ifMatch`. */
export class PreconditionFailedError extends APIError {
  override readonly name = 'PreconditionFailedError'
}
/** The idempotency key was used with another request. */
export class UnprocessableEntityError extends APIError {
  override readonly name = 'UnprocessableEntityError'
}
export class RateLimitError extends APIError {
  override readonly name = 'RateLimitError'
}
/** Status 500 or higher. */
export class InternalServerError extends APIError {
  override readonly name = 'InternalServerError'
}

const classes: Record<number, typeof APIError> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  412: PreconditionFailedError,
  422: UnprocessableEntityError,
  429: RateLimitError,
}

/** Makes the error for a status. */
export function apiError(answer: Answer): APIError {
  const Class = classes[answer.status] ?? (answer.status >= 500 ? InternalServerError : APIError)
  return new Class(answer)
}

interface ErrorMembers {
  code?: string | undefined
  message?: string | undefined
  details?: unknown
  request_id?: string | undefined
  retry_after?: number | undefined
  required_scopes?: string[] | undefined
}

/** Reads the error of a body: `{error: {…}}`, or OAuth's `{error, error_description}`. */
function errorOf(body: unknown): ErrorMembers {
  if (!isObject(body)) return {}
  const { error, error_description, retry_after } = body
  if (typeof error === 'string') {
    const message = typeof error_description === 'string' ? error_description : error
    return { code: error, message, retry_after: typeof retry_after === 'number' ? retry_after : undefined }
  }
  if (!isObject(error)) return {}
  return {
    code: text(error.code),
    message: text(error.message),
    details: error.details,
    request_id: text(error.request_id),
    retry_after: typeof error.retry_after === 'number' ? error.retry_after : undefined,
    required_scopes: Array.isArray(error.required_scopes) ? error.required_scopes.map(String) : undefined,
  }
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** Seconds of a `Retry-After`; dates are ignored, because the service does not send them. */
function secondsOf(header: string | null): number | undefined {
  const seconds = header === null || header.trim() === '' ? Number.NaN : Number(header)
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
