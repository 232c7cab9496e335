import { Problem } from '#contract/core/problems.ts'
import { isPlanStale, sqlState } from '../platform/postgres/database.ts'
import { PasswordsBusy } from '../platform/crypto/passwords.ts'

/** Seconds after which a caller may try again when the service is unavailable. */
const unavailableRetry_seconds = 1

/**
 * Whatever was thrown, as a `Problem`: the database being out of reach, exhausted or too slow is 503, everything
 * unknown is 500 with its cause for the log alone.
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
 * Connection errors, shutdowns, timeouts and exhaustion of PostgreSQL and of the pool in front of it (decision D13), and
 * passwords that found no turn to be checked. Also a transaction in whose way a migration came.
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
