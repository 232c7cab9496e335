const suspicions = new EventTarget()

/** Says that the connection may be lost: a stream over it stays open without a byte for long, so every stream connects again. */
export function suspectStreams(): void {
  suspicions.dispatchEvent(new Event('lost'))
}
// With the network comes another connection, which needs not wait for the next attempt.
for (const change of ['offline', 'online']) addEventListener(change, suspectStreams)

/**
 * Reads a stream to its end while the page is visible: a browser has six connections to a host, so hidden tabs must not
 * hold one. `read` is aborted when the page is hidden and called again when it is shown, to resume; the same happens, after
 * `onLost`, when the connection may be lost. Other errors of `read` are thrown. Resolves when the stream has ended, or `signal`
 * is aborted.
 */
export async function whileVisible(
  signal: AbortSignal,
  read: (signal: AbortSignal) => Promise<void>,
  onLost: () => void,
): Promise<void> {
  while (!signal.aborted) {
    await untilVisible(signal)
    if (signal.aborted) return
    const line = new AbortController()
    const hide = (): void => {
      if (document.hidden) line.abort()
    }
    const lose = (): void => {
      onLost()
      line.abort()
    }
    document.addEventListener('visibilitychange', hide)
    suspicions.addEventListener('lost', lose)
    try {
      await read(AbortSignal.any([signal, line.signal]))
      return
    } catch (error) {
      if (!signal.aborted && !line.signal.aborted) throw error
    } finally {
      document.removeEventListener('visibilitychange', hide)
      suspicions.removeEventListener('lost', lose)
    }
  }
}

function untilVisible(signal: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve()
  return new Promise((resolve) => {
    const look = (): void => {
      if (!document.hidden) resolve()
    }
    document.addEventListener('visibilitychange', look, { signal })
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
