import type { IncomingMessage } from 'node:http'

/** Of a body that is refused for its size: so much is read at most, for so long, and so long without a byte. */
const bytesMax = 64 * 1024 * 1024
const whole_ms = 10_000
const idle_ms = 1000

/**
 * Reads the rest of a body that is refused, and throws it away. A client that is still sending when the connection closes sees that it
 * broke, not the answer, and sends all of it again. Nothing is kept.
 */
export function discardBody(request: IncomingMessage): Promise<void> {
  if (request.complete || request.destroyed || Number(request.headers['content-length'] ?? 0) > bytesMax)
    return Promise.resolve()
  return new Promise((resolve) => {
    let bytes = 0
    const done = (): void => {
      clearTimeout(whole)
      clearTimeout(idle)
      request.removeListener('data', count).pause()
      for (const event of ['end', 'close', 'error']) request.removeListener(event, done)
      resolve()
    }
    const whole = setTimeout(done, whole_ms)
    const idle = setTimeout(done, idle_ms)
    const count = (chunk: Buffer): void => {
      bytes += chunk.length
      idle.refresh()
      if (bytes > bytesMax) done()
    }
    for (const event of ['end', 'close', 'error']) request.once(event, done)
    request.on('data', count).resume()
  })
}
