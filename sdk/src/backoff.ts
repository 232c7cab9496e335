import { APIConnectionError, APIError } from './errors.ts'

const firstDelay_ms = 500
const delayMax_ms = 8000
/** With a longer Retry-After the error is thrown instead of a retry. */
const retryAfterMax_seconds = 60

/**
 * Delay in milliseconds before the next attempt; undefined if there must be none. Retried are 408, 429, 500 and higher, a 409
 * because an earlier attempt with the same idempotency key is still running, and connection errors. A request that is not
 * repeatable is only retried if the service refused it before doing anything. A spent budget is not retried.
 */
export function retryDelay(error: unknown, attempt: number, isRepeatable: boolean): number | undefined {
  if (error instanceof APIConnectionError) return isRepeatable ? backoff(attempt) : undefined
  if (!(error instanceof APIError)) return undefined
  const { status, retryAfter = 0 } = error
  if (error.code.toLowerCase() === 'budget_exceeded') return undefined
  const isRefused = status === 429 || isInProgress(error)
  const isFailed = status === 408 || status >= 500
  if (!isRefused && !(isFailed && isRepeatable)) return undefined
  if (retryAfter > retryAfterMax_seconds) return undefined
  return Math.max(backoff(attempt), retryAfter * 1000)
}

/** Exponential backoff with jitter, in milliseconds. */
export function backoff(attempt: number, first_ms = firstDelay_ms, max_ms = delayMax_ms): number {
  return Math.min(max_ms, first_ms * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2)
}

/** Waits; rejects with the reason of `signal` if it aborts first. */
export function pause(duration_ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(signal?.reason as Error)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, duration_ms)
    if (signal?.aborted) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
  })
}

function isInProgress({ status, details }: APIError): boolean {
  return (
    status === 409 &&
    typeof details === 'object' &&
    details !== null &&
    'conflicting_field' in details &&
    details.conflicting_field === 'Idempotency-Key'
  )
}
