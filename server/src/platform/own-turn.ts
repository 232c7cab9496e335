import { setImmediate as nextTurn } from 'node:timers/promises'

/** A body of this size takes about a millisecond to parse and check. */
export const largeBody_bytes = 16 * 1024

let last = Promise.resolve()

/**
 * Waits for a turn of the event loop that no other caller gets, so that many large bodies that arrive together do not
 * hold up other requests: one of them is parsed in a turn.
 */
export function ownTurn(): Promise<void> {
  last = last.then(() => nextTurn())
  return last
}
