import type { Logger } from 'pino'
import { Problem } from '#contract/core/problems.ts'
import { LiveList } from '../../platform/memory/live-list.ts'

/** So many requests are served at a time at least: fewer would leave batches half empty and connections idle. */
const openMin = 96
/** Fewer open requests than this are no queue. */
const busyMin = openMin / 2
/** What may be open beyond `openMin` is what the process serves in this time: so long does a request take on average. */
const target_ms = 400
/** Time over which answers are counted, and for which a queue must have lasted before any request is refused. */
const window_ms = 250
/** The newest window's part in the estimate. */
const newest = 0.3
/** A request that takes longer waits for something else than this process, and is no work in it. */
const long_ms = 2000
const retry_seconds = 1
/** A line of the log for so much time says how many were refused. */
const telling_ms = 10_000

/** Decides which requests a process takes on. */
export interface Admission {
  /** Counts a request until it is left. Throws `Overloaded` where those that are open fill the time that a request may take. */
  enter(): Place
  /** Whether a request that comes now is refused. Then it counts as refused. */
  isFull(): boolean
}

/** A request that is being served. */
export interface Place {
  /** It is answered, or waits for something outside of the process from here on. Again it does nothing. */
  leave(): void
}

/** 503: the process has as many requests as it serves in time. Nothing was done for this one. */
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
 * Admission by Little's law (decision 0040): requests take as long as those that are open are many, divided by how many end in a second. So where
 * a queue has lasted for `window_ms`, as many may be open as end in `target_ms`, and the others are refused at once. A burst
 * is served whole, and nothing waits here. `now_ms` is a clock that only goes forward.
 */
export function makeAdmission(log: Pick<Logger, 'warn'>, now_ms = (): number => performance.now()): Admission {
  /** When each began. */
  const open = new LiveList<number>()
  let isBusy = false
  let limit = Infinity
  let rate: number | undefined
  let began_ms = 0
  let ended = 0
  let refused = 0
  let told_ms = -Infinity

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

  const tell = (now: number): void => {
    refused += 1
    if (now - told_ms < telling_ms) return
    log.warn(
      { refused, open: open.size, limit },
      'the process had more requests than it can serve; it refused some with 503',
    )
    told_ms = now
    refused = 0
  }

  const isFull = (now: number): boolean => {
    look(now)
    if (open.size < limit) return false
    tell(now)
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
