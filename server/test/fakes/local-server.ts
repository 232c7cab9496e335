import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

/** A server on loopback for the length of a test, which remembers who came. */
export interface LocalServer {
  server: Server
  /** `http://127.0.0.1:<port>`, without a slash at the end. */
  url: string
  port: number
  /** Connections so far, whether or not a request came with them: a canary's must stay 0. */
  connections: () => number
  /** Requests so far, as `GET /path`. */
  requests: string[]
}

/** Starts a server on loopback and ends it with the test. Without `answer` everything gets 200 `ok`. */
export async function startLocalServer(
  t: TestContext,
  answer: RequestListener = (_request, response) => void response.end('ok'),
): Promise<LocalServer> {
  let connections = 0
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    answer(request, response)
  })
  server.on('connection', () => connections++)
  server.listen(0, '127.0.0.1')
  await new Promise((listening) => server.once('listening', listening))
  t.after(async () => {
    server.closeAllConnections()
    await new Promise((closed) => server.close(closed))
  })
  const { port } = server.address() as AddressInfo
  return { server, url: `http://127.0.0.1:${port}`, port, connections: () => connections, requests }
}
