import { once } from 'node:events'
import type { Server } from 'node:http'
import { createServer, type AddressInfo, type Server as Listener, type Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'

/**
 * Number of sockets that a process listens on. Node accepts one connection per socket and turn of its event loop. With
 * a single socket, new connections of an overloaded process wait for seconds in the kernel, where admission control
 * cannot refuse their requests (decision 0040).
 */
const listeners = 16

/** Systems that spread connections over sockets that listen on one port (`SO_REUSEPORT`). */
export const hasReusePort = ['linux', 'freebsd', 'aix', 'sunos'].includes(process.platform)

export interface Listening {
  host: string
  /** 0 lets the system choose. */
  port: number
  /** Other processes of the service listen on the same port, and it is known that no other program does. */
  shares_port: boolean
}

/**
 * Makes a server listen, for `maxConnections` in total, of which as many may wait to be accepted. Resolves with a
 * function that stops the further sockets and resolves once their connections are closed.
 */
export async function listen(
  app: FastifyInstance,
  { host, port, shares_port }: Listening,
): Promise<() => Promise<unknown>> {
  if (hasReusePort && !shares_port) await requireFreePort({ host, port })
  const { server } = app
  const max = server.maxConnections
  await app.listen({ host, port, backlog: max, ...((hasReusePort || shares_port) && { reusePort: true }) })
  const further = hasReusePort ? await listenBeside(server, max) : []
  return () => Promise.all(further.map((listener) => new Promise((closed) => listener.close(closed))))
}

/**
 * Throws if another program listens on the port: sockets that share it would get a part of each other's connections.
 */
export async function requireFreePort(at: { host: string; port: number }): Promise<void> {
  if (at.port === 0) return
  const probe = createServer()
  await once(probe.listen(at), 'listening')
  await new Promise((closed) => probe.close(closed))
}

/** Further sockets on the port of a listening server; their connections belong to that server. */
async function listenBeside(server: Server, max: number): Promise<Listener[]> {
  const { address: host, port } = server.address() as AddressInfo
  let open = 0
  server.on('connection', (socket: Socket) => {
    open += 1
    socket.once('close', () => (open -= 1))
    // The server itself counts only the connections of its first socket.
    if (open > max) socket.destroy()
  })
  const take = (socket: Socket): void => {
    if (open < max) server.emit('connection', socket)
    else socket.destroy()
  }
  const further = Array.from({ length: listeners - 1 }, () =>
    // The options with which Node creates the connections of an HTTP server.
    createServer({ allowHalfOpen: true, noDelay: true }, take).listen({ host, port, reusePort: true, backlog: max }),
  )
  await Promise.all(further.map((listener) => once(listener, 'listening')))
  return further
}
