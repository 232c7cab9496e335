/** A process that was ready for this long does not fail at every start. */
const steady_ms = 60_000
const first_ms = 500
/** Maximum delay for a process that became ready, and for one that ended before. */
const max_ms = { ready: 2000, notReady: 30_000 }

/**
 * Delay in milliseconds before a process is restarted: twice the last delay `waited_ms`, up to a maximum. `ready_ms` is how
 * long the process was ready; undefined if it ended before.
 */
export function restartWait(waited_ms: number | undefined, ready_ms: number | undefined): number {
  if (waited_ms === undefined || (ready_ms ?? 0) > steady_ms) return first_ms
  return Math.min(waited_ms * 2, ready_ms === undefined ? max_ms.notReady : max_ms.ready)
}
