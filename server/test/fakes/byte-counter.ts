import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import type { TestContext } from 'node:test'

/** Passes connections on to `port` of this machine for the length of a test, and counts what crosses. */
export async function startByteCounter(t: TestContext, port: number) {
  const seen = { bytes_in: 0, bytes_out: 0 }
  let connections = 0
  const front = createServer((socket) => {
    connections++
    const inner = connect(port, '127.0.0.1')
    socket.on('data', (chunk) => void (seen.bytes_out += chunk.length)).on('error', () => {})
    inner.on('data', (chunk) => void (seen.bytes_in += chunk.length)).on('error', () => {})
    socket.pipe(inner).pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(front, 'listening')
  t.after(() => void front.close())
  return { port: (front.address() as AddressInfo).port, seen, connections: () => connections }
}
