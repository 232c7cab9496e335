/**
 * Settles like `work`, or rejects with the reason of `signal` if that aborts first. The work then continues, and its
 * result is ignored.
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
 * Aborts `controller` with the reason of `signal` when that aborts, or at once if it is aborted already. Returns a function
 * that unlinks them. `AbortSignal.any` does the same with weak references, which V8's collector of the young generation
 * treats as strong: all objects of a call would reach the old generation.
 */
export function abortWith(controller: AbortController, signal: AbortSignal): () => void {
  const abort = (): void => controller.abort(signal.reason)
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  return () => signal.removeEventListener('abort', abort)
}

/**
 * A controller that aborts with `signal`, or after `limit_ms` with the error of `late`. `release` stops the timer and
 * unlinks the signal.
 */
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
