import { backoff, pause } from './backoff.ts'
import { WaitTimeoutError } from './errors.ts'
import type { RequestOptions } from './http.ts'

/** `timeout_ms` is the total time to wait. */
export interface WaitOptions extends Omit<RequestOptions, 'idempotencyKey' | 'ifMatch'> {}

const poll_ms = { first: 100, max: 2000 }

/**
 * Polls until a condition holds, at growing intervals. `read` may wait for a change, for at most the given whole
 * seconds.
 */
export async function waitFor<T>(
  what: string,
  { timeout_ms = Number.POSITIVE_INFINITY, ...options }: WaitOptions,
  read: (wait_seconds: number, options: RequestOptions) => Promise<T>,
  isDone: (value: T) => boolean,
): Promise<T> {
  const end = Date.now() + timeout_ms
  for (let attempt = 1; ; attempt++) {
    const left_ms = end - Date.now()
    const value = await read(Math.max(0, Math.min(30, Math.floor(left_ms / 1000))), options)
    if (isDone(value)) return value
    if (Date.now() >= end) throw new WaitTimeoutError(`Waited ${timeout_ms} ms for ${what}.`)
    await pause(Math.min(backoff(attempt, poll_ms.first, poll_ms.max), Math.max(0, end - Date.now())), options.signal)
  }
}
