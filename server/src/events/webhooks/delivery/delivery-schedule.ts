import { retryWaits_s } from '#contract/events/webhook-retries.ts'

const second_ms = 1000
const hour_ms = 3600 * second_ms

/** Before each attempt of a round. */
const waits_ms = retryWaits_s.map((wait_s) => wait_s * second_ms)

/** Attempts of one round; then the delivery is given up. */
export const attemptsMax = waits_ms.length
/** Waits are longer or shorter by up to this share, so that what failed together does not come back together. */
export const jitter = 0.2
/** The longest wait that a receiver can ask for. */
export const retryAfterMax_ms = 24 * hour_ms

/**
 * How long to wait after so many failed attempts of a round; undefined where no attempt is left. Never shorter than the
 * schedule says, nor than the receiver asked for. `rng` is from 0 to 1.
 */
export function waitAfter(failed: number, { retry_after_ms = 0, rng }: { retry_after_ms?: number; rng: number }) {
  const wait_ms = waits_ms[failed]
  if (wait_ms === undefined) return undefined
  const jittered_ms = wait_ms * (1 - jitter + 2 * jitter * rng)
  return Math.round(Math.max(jittered_ms, Math.min(retry_after_ms, retryAfterMax_ms)))
}

/** What a `Retry-After` asks for (RFC 9110 §10.2.3): seconds, or the moment of a date; nothing where it says neither. */
export function retryAfter_ms(header: string | undefined, now: Date): number | undefined {
  if (header === undefined) return undefined
  const text = header.trim()
  if (/^\d{1,10}$/.test(text)) return Number(text) * second_ms
  // `Date.parse` takes much that is no HTTP date, such as a negative number.
  if (!/^[A-Za-z]{3,9}, /.test(text)) return undefined
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now.getTime())
}
