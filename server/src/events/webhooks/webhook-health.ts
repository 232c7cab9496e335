const hour_ms = 3_600_000

/** A webhook whose attempts have all failed for this long is disabled (decision D97). */
export const failingMax_ms = 5 * 24 * hour_ms
/** The attempts of that time must be this far apart: a single one after a long silence proves nothing. */
export const failuresApart_ms = 12 * hour_ms
/** How long a webhook gets half as many requests at a time. */
export const slowed_ms = 10 * 60_000

/** Requests to one webhook at a time. */
export const requestsMax = 4
/** While it is slowed down. */
const requestsMaxSlowed = 2

/** A request that takes longer is slow: its webhook waits its turn among those in trouble. */
export const slow_ms = 1000

/** What an answer says beside that it was no success. */
export const goneStatus = 410
const overloaded: readonly (number | null)[] = [429, 502, 504]

/** Whether an answer asks for fewer requests. */
export function isOverloaded(status: number | null): boolean {
  return overloaded.includes(status)
}

/** Whether a receiver took what it was sent: any 2xx (decision D97). */
export function isSuccess({ status, error }: { status: number | null; error: string | null }): boolean {
  return error === null && status !== null && status >= 200 && status < 300
}

/** Whether the webhook of such an attempt counts as troubled, so that its next ones cannot delay healthy webhooks. */
export function isTrouble(result: { status: number | null; error: string | null; duration_ms: number }): boolean {
  return !isSuccess(result) || result.duration_ms > slow_ms
}

/**
 * How many requests a webhook may be sent at a time. It proves with one that it takes any, after a failure and whenever a
 * process begins with it, so that a dead receiver binds little.
 */
export function requestsAtOnce({ isProven, isSlowed }: { isProven: boolean; isSlowed: boolean }): number {
  if (!isProven) return 1
  return isSlowed ? requestsMaxSlowed : requestsMax
}

/**
 * Whether a webhook is to be disabled when another attempt fails at `at`: none has succeeded since `failing_since`, and
 * `failed_before` tells whether one failed between `failingMax_ms` and `failuresApart_ms` ago.
 */
export function mustDisable(
  { failing_since, failed_before }: { failing_since: string; failed_before: boolean },
  at: Date,
): boolean {
  return failed_before && at.getTime() - Date.parse(failing_since) >= failingMax_ms
}
