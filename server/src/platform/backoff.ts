/** Waits after the first failure and at most, in the same unit. */
export interface BackoffBounds {
  first: number
  max: number
}

/** Exponential backoff after the given number of consecutive failures, from 1: `first`, doubled each time up to `max`. */
export function backoff(failures: number, { first, max }: BackoffBounds): number {
  return Math.min(first * 2 ** (failures - 1), max)
}
