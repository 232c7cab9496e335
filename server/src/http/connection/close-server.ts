import type { FastifyInstance } from 'fastify'
import type { Socket } from 'node:net'

/** How often a server that closes looks for connections that have become idle. */
const idleConnections_ms = 50
/** How long a connection that was opened in advance may still bring its first request while the server closes. */
const unusedConnections_ms = 250
/** How long requests in flight may take, their answers to slow readers included. */
const patience_ms = 25_000

/**
 * A function that closes the server, and what else listens for it, when the requests in flight are answered; what takes longer than
 * `wait_ms` is cut off. To be called before the server listens: it watches over the connections.
 *
 * A connection that was busy when closing began is idle afterwards, and would keep the server open until its client goes
 * away. So would one on which nothing was asked yet: browsers and HTTP clients open them in advance, and Node does not
 * count them as idle.
 */
export function closing(
  app: FastifyInstance,
  wait_ms = patience_ms,
): (others?: () => Promise<unknown>) => Promise<void> {
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
