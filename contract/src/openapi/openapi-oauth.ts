import type { Failure } from './openapi-types.ts'
import { problemsOf, type Operation } from '../core/operation.ts'
import { problems } from '../core/problems.ts'

/** Errors of the OAuth endpoints (RFC 6749 5.2, RFC 7009 2.2.1, decisions D76, D82, D83), by operation and status. */
const protocolErrors: Record<string, Record<number, Record<string, string>>> = {
  authorize: {
    400: {
      invalid_client: 'The app is unknown.',
      invalid_redirect_uri: 'The redirect URI is missing or not registered.',
    },
  },
  issueToken: {
    400: {
      invalid_request: 'A parameter is missing, repeated or malformed.',
      invalid_grant: 'The code or refresh token is unknown, expired, already used, or belongs to another app.',
      invalid_scope: 'A scope is unknown or was not granted.',
      unsupported_grant_type: 'The grant type is neither authorization_code nor refresh_token.',
    },
    401: { invalid_client: 'The app is unknown, or its secret is wrong.' },
  },
  revokeToken: {
    400: { invalid_request: 'The token is missing.' },
    401: { invalid_client: 'The app is unknown, or its secret is wrong.' },
  },
}

/** OAuth error codes for general problems of the service (decision D29). */
const serviceCodes: Record<number, string> = {
  429: 'rate_limit_exceeded',
  500: 'server_error',
  503: 'temporarily_unavailable',
}

/** All errors of an OAuth endpoint with their statuses. */
export function oauthFailures(operation: Operation): [number, Failure][] {
  const own = Object.entries(protocolErrors[operation.id] ?? {}).flatMap(([status, errors]) =>
    Object.entries(errors).map(([code, message]) => failure(Number(status), code, message)),
  )
  const general = problemsOf(operation).flatMap((kind) => {
    const { status, message } = problems[kind]
    const code = serviceCodes[status]
    return code === undefined ? [] : [failure(status, code, message)]
  })
  return [...own, ...general]
}

function failure(status: number, code: string, message: string): [number, Failure] {
  const wait = status === 429 ? { retry_after: 17 } : {}
  return [status, { name: code, summary: message, value: { error: code, error_description: message, ...wait } }]
}
