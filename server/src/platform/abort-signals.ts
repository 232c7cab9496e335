/**
 * Resolves or rejects as `work` does, or rejects with the reason of `signal` where that aborts first. The work is not ended by that,
 * and what it comes to afterwards is ignored.
 */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    const settled = (): void => signal.removeEventListener('abort', stop)
    work.then(
      (value) => {
        settled()
        resolve(value)
      },
      (error: Error) => {
        settled()
        reject(error)
      },
    )
  })
}

/**
 * Aborts `controller` with the reason of `signal` when that aborts, at once where it has; the function that it returns ends that.
 * `AbortSignal.any` does the same with weak references, which the collector of young objects takes for strong ones: what a call
 * made would all reach the old generation.
 */
export function abortWith(controller: AbortController, signal: AbortSignal): () => void {
  const abort = (): void => controller.abort(signal.reason)
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  return () => signal.removeEventListener('abort', abort)
}

/** An abort that comes with `signal`, or after `limit_ms` with the reason that `late` gives; `release` ends both. */
export function limitedAbort(
  limit_ms: number,
  signal: AbortSignal | undefined,
  late?: () => Error,
): { ends: AbortController; release: () => void } {
  const ends = new AbortController()
  const timer = setTimeout(() => ends.abort(late?.()), limit_ms)
  const unlink = signal && abortWith(ends, signal)
  return {
    ends,
    release: () => {
      clearTimeout(timer)
      unlink?.()
    },
  }
}
