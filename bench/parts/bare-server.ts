import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * The limit of any HTTP server on Node: answers every request with the same bytes, once its body was read. A process of its
 * own, as the service is; prints where it listens.
 */
const answer = JSON.stringify({ id: 'agent_0123456789abcdefghjkmnpqrs', text: 'x'.repeat(700) })
const server = createServer((request, response) => {
  request.resume().on('end', () => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) })
    response.end(answer)
  })
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
process.on('SIGTERM', () => {
  server.close()
  server.closeAllConnections()
})
