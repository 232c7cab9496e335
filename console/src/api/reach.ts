import { APIConnectionError } from '#sdk/errors.ts'
import { suspectStreams } from './visible.ts'

const listeners = new Set<() => void>()
/** The readers whose last read has not reached the service. */
const unreached = new Set<string>()
const told = new WeakSet<Error>()

/** Whether a part of the page waits for a service that cannot be reached. The shell says so, once for the whole page. */
export const away = {
  get: (): boolean => unreached.size > 0,
  subscribe(listener: () => void): () => void {
    listeners.add(listener)
    return () => listeners.delete(listener)
  },
}

/** Notes for one reader whether it waits. */
export function noteReach(reader: string, isAway: boolean): void {
  const before = unreached.size
  if (isAway) unreached.add(reader)
  else unreached.delete(reader)
  if (before !== unreached.size) for (const listener of listeners) listener()
}

/** Whether an error is that the service cannot be reached; where it is that of a read, the shell says it. */
export function isUnreached(error: unknown): error is Error {
  return error instanceof APIConnectionError
}

/** Notes an error of a read whose reader calls `noteReach`. */
export function noteFailedRead(error: unknown): void {
  if (!isUnreached(error)) return
  told.add(error)
  suspectStreams()
}

/** Whether the shell says this error already. */
export function isToldByShell(error: unknown): boolean {
  return isUnreached(error) && told.has(error)
}
