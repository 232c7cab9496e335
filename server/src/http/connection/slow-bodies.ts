import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

/** How long a body that may come slowly may stop coming, and how long all of it may take. */
const stall_ms = 30_000
const whole_ms = 900_000

/** Connections whose body may come slowly, with the timer that ends them. */
const slow = new WeakMap<object, NodeJS.Timeout>()

/**
 * Lets the body of a request take longer than the server's `requestTimeout`: 15 minutes, as long as bytes come. For a
 * server that `keepSlowBodies` was given.
 */
export function allowSlowBody({ socket, complete }: IncomingMessage): void {
  if (complete) return
  // A socket is destroyed when it times out and has no handler for that. The next request of the connection has the usual ones.
  socket.setTimeout(stall_ms)
  slow.set(socket, setTimeout(() => void socket.destroy(), whole_ms).unref())
}

/** The body has come: from now on the connection has the usual bounds. */
export function endSlowBody({ socket }: IncomingMessage): void {
  clearTimeout(slow.get(socket))
  slow.delete(socket)
}

/**
 * Keeps connections whose body may come slowly when the server's `requestTimeout` has passed. The server looks at each
 * request once and reports it as a client's error; all other errors go where they went.
 */
export function keepSlowBodies(server: Server): void {
  const handlers = server.listeners('clientError')
  server.removeAllListeners('clientError')
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT' && slow.has(socket)) return
    for (const handle of handlers) (handle as (error: Error, socket: Socket) => void).call(server, error, socket)
  })
}
