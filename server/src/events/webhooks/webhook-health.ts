const hour_ms = 3_600_000

/** A webhook whose attempts have all failed for this long is disabled (decision D97). */
export const failingMax_ms = 5 * 24 * hour_ms
/**
 * The failures must be spread over at least this time, because a single failure after a long silence proves nothing.
 */
export const failuresApart_ms = 12 * hour_ms
/** How long an overloaded webhook gets half as many concurrent requests. */
export const slowed_ms = 10 * 60_000

/** Maximum number of concurrent requests to one webhook. */
export const requestsMax = 4
/** The same while it is overloaded. */
const requestsMaxSlowed = 2

/** A slower request counts as trouble: its webhook then waits among the troubled ones. */
export const slow_ms = 1000

/** Statuses with a meaning beyond failure. */
export const goneStatus = 410
const overloaded: readonly (number | null)[] = [429, 502, 504]

/** Whether a status asks for fewer requests. */
export function isOverloaded(status: number | null): boolean {
  return overloaded.includes(status)
}

/** Whether a receiver accepted a delivery: any 2xx (decision D97). */
export function isSuccess({ status, error }: { status: number | null; error: string | null }): boolean {
  return error === null && status !== null && status >= 200 && status < 300
}

/** Whether an attempt makes its webhook count as troubled, so that its next attempts cannot delay healthy webhooks. */
export function isTrouble(result: { status: number | null; error: string | null; duration_ms: number }): boolean {
  return !isSuccess(result) || result.duration_ms > slow_ms
}

/**
 * Maximum number of concurrent requests to a webhook. After a failure, and when a process starts with it, it must first
 * accept a single request, so that a dead receiver occupies little.
 */
export function requestsAtOnce({ isProven, isSlowed }: { isProven: boolean; isSlowed: boolean }): number {
  if (!isProven) return 1
  return isSlowed ? requestsMaxSlowed : requestsMax
}

/**
 * Whether a webhook must be disabled when another attempt fails at `at`: none has succeeded since `failing_since`, and
 * `failed_before` says that one failed between `failingMax_ms` and `failuresApart_ms` ago.
 */
export function mustDisable(
  { failing_since, failed_before }: { failing_since: string; failed_before: boolean },
  at: Date,
): boolean {
  return failed_before && at.getTime() - Date.parse(failing_since) >= failingMax_ms
}
