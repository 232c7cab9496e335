import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

/** How long a slow body may pause, and how long it may take in total. */
const stall_ms = 30_000
const whole_ms = 900_000

/** Connections with a slow body, and the timers that end them. */
const slow = new WeakMap<object, NodeJS.Timeout>()

/**
 * Lets the body of a request take longer than the server's `requestTimeout`: 15 minutes, as long as bytes arrive. The
 * server must have been passed to `keepSlowBodies`.
 */
export function allowSlowBody({ socket, complete }: IncomingMessage): void {
  if (complete) return
  // A socket without a timeout handler is destroyed at its timeout. The next request of the connection has the usual
  // timeouts.
  socket.setTimeout(stall_ms)
  slow.set(socket, setTimeout(() => void socket.destroy(), whole_ms).unref())
}

/** The body has arrived: the connection has the usual bounds again. */
export function endSlowBody({ socket }: IncomingMessage): void {
  clearTimeout(slow.get(socket))
  slow.delete(socket)
}

/**
 * Keeps connections with a slow body after the server's `requestTimeout`. The server checks each request once and
 * reports it as a client's error; other errors are handled as before.
 */
export function keepSlowBodies(server: Server): void {
  const handlers = server.listeners('clientError')
  server.removeAllListeners('clientError')
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && slow.has(socket)) return
    for (const handle of handlers) (handle as (error: Error, socket: Socket) => void).call(server, error, socket)
  })
}
