/** A process that was ready for so long is none that fails whenever it starts. */
const steady_ms = 60_000
const first_ms = 500
/** Where it became ready, so that a start is worth its cost, and where it ended before. */
const max_ms = { ready: 2000, notReady: 30_000 }

/**
 * How many milliseconds after its end a process is started again: twice as long as the last time, `waited_ms`, up to a bound.
 * `ready_ms` is how long it was ready; undefined where it ended before.
 */
export function restartWait(waited_ms: number | undefined, ready_ms: number | undefined): number {
  if (waited_ms === undefined || (ready_ms ?? 0) > steady_ms) return first_ms
  return Math.min(waited_ms * 2, ready_ms === undefined ? max_ms.notReady : max_ms.ready)
}
