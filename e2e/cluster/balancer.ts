import { request } from 'node:http'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** How often processes are asked whether they are ready, and how long one may take to say so. */
const check_ms = 100
const answer_ms = 2000

interface Backend {
  port: number
  hostname: string
  isReady: boolean
  connections: number
}

/** A balancer of TCP connections in front of processes of the service. It knows nothing of requests and repeats none. */
export interface Balancer {
  url: string
  /** Puts a process behind it, and resolves when new connections may go there. */
  add(url: string): Promise<void>
  remove(url: string): void
  close(): Promise<void>
}

/**
 * Starts a balancer as a load balancer of a cloud is: connections go to the ready process that has the fewest, readiness
 * is asked at `/readyz`, and a connection that is refused goes to another process. What is open stays where it is.
 */
export async function startBalancer(): Promise<Balancer> {
  const backends = new Map<string, Backend>()
  const sockets = new Set<Socket>()
  const checkAll = (): Promise<unknown> => Promise.all([...backends.values()].map(check))
  const timer = setInterval(() => void checkAll(), check_ms)
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    keep(sockets, client)
    const tried = new Set<Backend>()
    const next = (): void => {
      const backend = [...backends.values()]
        .filter((one) => one.isReady && !tried.has(one))
        .toSorted((a, b) => a.connections - b.connections)[0]
      if (!backend) return void client.destroy()
      tried.add(backend)
      const far = connect({ host: backend.hostname, port: backend.port, allowHalfOpen: true, noDelay: true })
      keep(sockets, far)
      far.once('error', () => {
        if (far.connecting || !far.remoteAddress) {
          backend.isReady = false
          next()
        } else client.destroy()
      })
      far.once('connect', () => {
        backend.connections += 1
        client.pipe(far).pipe(client)
        far.once('close', () => {
          backend.connections -= 1
          client.destroy()
        })
        client.once('close', () => far.destroy())
      })
    }
    next()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async add(url) {
      const { hostname, port } = new URL(url)
      const backend = { hostname, port: Number(port), isReady: false, connections: 0 }
      backends.set(url, backend)
      while (!backend.isReady) await check(backend)
    },
    remove: (url) => void backends.delete(url),
    async close() {
      clearInterval(timer)
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function keep(sockets: Set<Socket>, socket: Socket): void {
  sockets.add(socket)
  socket.on('error', () => {})
  socket.once('close', () => sockets.delete(socket))
}

async function check(backend: Backend): Promise<void> {
  const { hostname, port } = backend
  backend.isReady = await new Promise((resolve) => {
    const asked = request({ hostname, port, path: '/readyz', agent: false, timeout: answer_ms }, (response) => {
      response.resume()
      resolve(response.statusCode === 200)
    })
    asked.once('error', () => resolve(false))
    asked.once('timeout', () => asked.destroy())
    asked.end()
  })
}
