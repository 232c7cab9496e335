import type { Logger } from 'pino'
import { Problem } from '#contract/core/problems.ts'
import { LiveList } from '../../platform/memory/live-list.ts'

/** Minimum number of concurrent requests: fewer would leave batches half empty and connections idle. */
const openMin = 96
/** With fewer open requests than this, there is no queue. */
const busyMin = openMin / 2
/**
 * Target for the average time of a request: beyond `openMin`, as many may be open as the process serves in this time.
 */
const target_ms = 400
/** Interval of the measurements, and how long a queue must have lasted before a request is refused. */
const window_ms = 250
/** Weight of the newest measurement in the estimate. */
const newest = 0.3
/** A request that takes longer waits for something outside of this process, and does not count as its work. */
const long_ms = 2000
const retry_seconds = 1
/** Minimum interval of the log line with the number of refused requests. */
const logInterval_ms = 10_000

/** Decides which requests a process accepts. */
export interface Admission {
  /**
   * Counts a request until its place is left.
   * @throws Overloaded if the open requests already fill the target time
   */
  enter(): Place
  /** Whether a request that arrives now is refused; if so, it is counted as refused. */
  isFull(): boolean
}

/** A request that is being served. */
export interface Place {
  /** It is answered, or waits for something outside of the process from now on. Further calls do nothing. */
  leave(): void
}

/** 503: the process has as many requests as it can serve in time. Nothing was done for this one. */
export class Overloaded extends Problem {
  constructor() {
    super(
      'service_unavailable',
      { retry_after: retry_seconds },
      {
        message: `The service has more requests than it can serve in time. Try again in ${retry_seconds} s.`,
        members: { retry_after: retry_seconds },
        headers: { 'retry-after': String(retry_seconds) },
      },
    )
  }
}

/**
 * Admission control by Little's law (decision 0040): the time of a request is the number of open requests divided by
 * the number that end per second. So once a queue has lasted for `window_ms`, only as many requests may be open as end
 * in `target_ms`; others are refused at once. A short burst is served completely, and nothing waits here. `now_ms` is a
 * monotonic clock.
 */
export function makeAdmission(log: Pick<Logger, 'warn'>, now_ms = (): number => performance.now()): Admission {
  /** The start of each request. */
  const open = new LiveList<number>()
  let isBusy = false
  let limit = Infinity
  let rate: number | undefined
  let began_ms = 0
  let ended = 0
  let refused = 0
  let logged_ms = -Infinity

  const calm = (): void => {
    isBusy = false
    limit = Infinity
    rate = undefined
  }

  const look = (now: number): void => {
    if (open.size < busyMin) return
    if (!isBusy) {
      isBusy = true
      began_ms = now
      ended = 0
    } else if (now - began_ms >= window_ms) {
      const measured = ended / (now - began_ms)
      rate = rate === undefined ? measured : newest * measured + (1 - newest) * rate
      limit = Math.max(openMin, Math.round(rate * target_ms))
      began_ms = now
      ended = 0
      for (const request of open.places()) {
        if (now - request.value < long_ms) break
        open.remove(request)
      }
    }
  }

  const report = (now: number): void => {
    refused += 1
    if (now - logged_ms < logInterval_ms) return
    log.warn(
      { refused, open: open.size, limit },
      'the process had more requests than it can serve; it refused some with 503',
    )
    logged_ms = now
    refused = 0
  }

  const isFull = (now: number): boolean => {
    look(now)
    if (open.size < limit) return false
    report(now)
    return true
  }

  return {
    isFull: () => isFull(now_ms()),
    enter() {
      const now = now_ms()
      if (isFull(now)) throw new Overloaded()
      const request = open.add(now)
      return {
        leave() {
          if (!open.remove(request)) return
          ended += 1
          if (isBusy && open.size < busyMin) calm()
        },
      }
    },
  }
}
