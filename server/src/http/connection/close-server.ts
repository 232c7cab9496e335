import type { FastifyInstance } from 'fastify'
import type { Socket } from 'node:net'

/** Interval at which a closing server closes connections that have become idle. */
const idleConnections_ms = 50
/** How long an unused connection may still send its first request while the server closes. */
const unusedConnections_ms = 250
/** How long requests in flight may take, including responses to slow readers. */
const drain_ms = 25_000

/**
 * Returns a function that closes the server, and its further listeners, when the requests in flight are answered;
 * requests that take longer than `wait_ms` are cut off. Must be called before the server listens, because it tracks the
 * connections.
 *
 * A connection that was busy when closing began becomes idle, and would keep the server open until its client leaves.
 * So would a connection without any request yet: browsers and HTTP clients open them in advance, and Node does not
 * count them as idle.
 */
export function closing(app: FastifyInstance, wait_ms = drain_ms): (others?: () => Promise<unknown>) => Promise<void> {
  const { server } = app
  const unused = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    unused.add(socket)
    socket.once('close', () => unused.delete(socket))
  })
  server.on('request', ({ socket }) => unused.delete(socket))
  return async (others) => {
    const timers = [
      setInterval(() => server.closeIdleConnections(), idleConnections_ms),
      setTimeout(() => unused.forEach((socket) => socket.destroy()), unusedConnections_ms),
      setTimeout(() => server.closeAllConnections(), wait_ms),
    ]
    try {
      await Promise.all([others?.(), app.close()])
    } finally {
      timers.forEach((timer) => clearTimeout(timer))
    }
  }
}
