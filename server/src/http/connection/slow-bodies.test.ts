import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import { it } from 'node:test'
import { allowSlowBody, endSlowBody, keepSlowBodies } from './slow-bodies.ts'

it('a slow body may take longer than requestTimeout only where the operation allows it', async (t) => {
  const server = createServer({ requestTimeout: 300, headersTimeout: 200, connectionsCheckingInterval: 50 })
  const timedOut: string[] = []
  server.on('clientError', (_error: Error, socket: Socket) => {
    timedOut.push('closed')
    socket.destroy()
  })
  keepSlowBodies(server)
  server.on('request', async (request, response) => {
    if (request.url === '/slow') allowSlowBody(request)
    try {
      response.end(String(Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>)).length))
    } catch {
      // The connection was closed.
    } finally {
      endSlowBody(request)
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.closeAllConnections())
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  const send = (path: string): Socket => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n12345`)
    return socket
  }
  const slow = send('/slow')
  const other = send('/other')
  await once(other, 'close')
  assert.deepEqual(timedOut, ['closed'])
  slow.write('67890')
  const [answer] = (await once(slow, 'data')) as [Buffer]
  assert.match(answer.toString(), /^HTTP\/1\.1 200 OK[^]*\r\n10$/)
})
