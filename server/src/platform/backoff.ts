/** The wait after the first failure, and the longest one, in one unit. */
export interface BackoffBounds {
  first: number
  max: number
}

/** How long to wait after the `failures`-th failure in a row, from 1: `first`, then twice as long each time, at most `max`. */
export function backoff(failures: number, { first, max }: BackoffBounds): number {
  return Math.min(first * 2 ** (failures - 1), max)
}
