import { APIConnectionError, APIError } from './errors.ts'

const firstDelay_ms = 500
const delayMax_ms = 8000
/** A longer Retry-After is not waited for: the caller decides. */
const retryAfterMax_seconds = 60

/**
 * How long to wait before the next try; undefined where there must be none. Repeated are 408, 429, 500 and more, and what
 * got no answer. A POST that the service would do twice only where it was refused before it began. A spent budget does not
 * come back by asking; 409 is a real conflict, but for an earlier try of the same request that is still at work.
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

/** Doubles with each try, and is spread, so that many callers do not come back at once. */
export function backoff(attempt: number, first_ms = firstDelay_ms, max_ms = delayMax_ms): number {
  return Math.min(max_ms, first_ms * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2)
}

/** Waits; rejects with the reason of `signal` where that is aborted before. */
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
