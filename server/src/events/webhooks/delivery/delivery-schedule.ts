import { retryWaits_s } from '#contract/events/webhook-retries.ts'

const second_ms = 1000
const hour_ms = 3600 * second_ms

/** The wait before each attempt of a round. */
const waits_ms = retryWaits_s.map((wait_s) => wait_s * second_ms)

/** Attempts of one round; after them the delivery is given up. */
export const attemptsMax = waits_ms.length
/**
 * Jitter: waits are longer or shorter by up to this share, so that deliveries that failed together do not retry
 * together.
 */
export const jitter = 0.2
/** Maximum wait that a receiver can ask for. */
export const retryAfterMax_ms = 24 * hour_ms

/**
 * The wait after this many failed attempts of a round; undefined if no attempt is left. It is never shorter than the
 * receiver asked for. `rng` is from 0 to 1.
 */
export function waitAfter(failed: number, { retry_after_ms = 0, rng }: { retry_after_ms?: number; rng: number }) {
  const wait_ms = waits_ms[failed]
  if (wait_ms === undefined) return undefined
  const jittered_ms = wait_ms * (1 - jitter + 2 * jitter * rng)
  return Math.round(Math.max(jittered_ms, Math.min(retry_after_ms, retryAfterMax_ms)))
}

/** The wait that a `Retry-After` asks for (RFC 9110 §10.2.3), in seconds or as a date; undefined for an invalid one. */
export function retryAfter_ms(header: string | undefined, now: Date): number | undefined {
  if (header === undefined) return undefined
  const text = header.trim()
  if (/^\d{1,10}$/.test(text)) return Number(text) * second_ms
  // `Date.parse` accepts texts that are not HTTP dates, such as a negative number.
  if (!/^[A-Za-z]{3,9}, /.test(text)) return undefined
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now.getTime())
}
