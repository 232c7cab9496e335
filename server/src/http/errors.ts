import { Problem } from '#contract/core/problems.ts'
import { isPlanStale, sqlState } from '../platform/postgres/database.ts'
import { PasswordsBusy } from '../platform/crypto/passwords.ts'

/** `Retry-After` of a 503. */
const unavailableRetry_seconds = 1

/**
 * Turns any thrown value into a `Problem`: 503 if the database is unreachable, exhausted or too slow; 500 for an
 * unknown error, whose cause is only logged.
 */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (isUnavailable(error)) {
    return new Problem(
      'service_unavailable',
      { retry_after: unavailableRetry_seconds },
      {
        cause: error,
        members: { retry_after: unavailableRetry_seconds },
        headers: { 'retry-after': String(unavailableRetry_seconds) },
      },
    )
  }
  return new Problem('internal_error', undefined, { cause: error })
}

/**
 * Whether the request may succeed later: connection errors, shutdown, timeouts and exhaustion of PostgreSQL and of the
 * pool (decision D13), a full queue of password checks, or a statement whose plan a migration made stale.
 */
function isUnavailable(error: unknown): boolean {
  if (error instanceof PasswordsBusy || isPlanStale(error)) return true
  const state = sqlState(error)
  if (state !== undefined && /^(08|57P|53|58)/.test(state)) return true
  // Statement and lock timeouts; deadlocks and serialization failures that survived their retries.
  if (state !== undefined && ['57014', '55P03', '40P01', '40001', '25P03', '25P04'].includes(state)) return true
  if (state !== undefined && /^E(CONNREFUSED|CONNRESET|PIPE|NOENT|TIMEDOUT|HOSTUNREACH|AI_AGAIN)$/.test(state))
    return true
  return (
    error instanceof Error &&
    /timeout|terminated|not queryable|Query read timeout|Cannot use a pool after/i.test(error.message) &&
    !('kind' in error)
  )
}
