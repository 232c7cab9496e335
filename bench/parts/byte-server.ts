import { createServer, type AddressInfo } from 'node:net'

/**
 * The limit of moving bytes over a connection: takes a byte and the count of bytes that follow or are asked for, and reads or
 * sends them. A separate process, as the service is; prints its port.
 */
const piece = Buffer.alloc(1_048_576, 'x')
const headBytes = 5
const server = createServer((socket) => {
  let head = Buffer.alloc(0)
  let left = -1
  socket.on('error', () => {})
  socket.on('data', (chunk: Buffer) => {
    let body = chunk
    if (left < 0) {
      head = Buffer.concat([head, chunk])
      if (head.length < headBytes) return
      left = head.readUInt32BE(1)
      body = head.subarray(headBytes)
      if (head[0] === 'd'.charCodeAt(0)) return send()
    }
    left -= body.length
    if (left <= 0) socket.end('done')
  })
  const send = (): void => {
    while (left > 0) {
      const part = piece.subarray(0, Math.min(left, piece.length))
      left -= part.length
      if (!socket.write(part)) return void socket.once('drain', send)
    }
    socket.end()
  }
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
process.on('SIGTERM', () => process.exit(0))
