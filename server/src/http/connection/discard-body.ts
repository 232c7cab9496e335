import type { IncomingMessage } from 'node:http'

/** Bounds for reading a body that is refused for its size: bytes, total time, and time without a byte. */
const bytesMax = 64 * 1024 * 1024
const whole_ms = 10_000
const idle_ms = 1000

/**
 * Reads and drops the rest of a refused body. If the connection closed while the client is still sending, the client
 * would see a broken connection instead of the response, and send everything again.
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
