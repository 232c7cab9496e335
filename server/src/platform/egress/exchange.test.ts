// test: own process
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { describe, test, type TestContext } from 'node:test'
import { bulk, promotedBy } from '../../../test/old-generation.ts'
import { openUpstream, type UpstreamConnection } from './connect.ts'
import { exchange, type ExchangeRequest } from './exchange.ts'

/** A connection to a server that answers with `listener`. */
async function connectTo(t: TestContext, listener: RequestListener): Promise<UpstreamConnection> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const upstream = await openUpstream(`http://127.0.0.1:${port}`, { connectTimeout_ms: 5000 })
  t.after(async () => {
    await upstream.destroy()
    server.closeAllConnections()
    server.close()
  })
  return upstream
}

const get: ExchangeRequest = { path: '/', method: 'GET', headers: {}, body: null, signal: null }

// 600 ms together.
describe('an exchange with an upstream', () => {
  test('an exchange returns the head of the response, and passes on its body piece by piece', async (t) => {
    const next = Promise.withResolvers<void>()
    const { client } = await connectTo(t, async (request, response) => {
      response.writeHead(201, { 'X-Two': ['a', 'b'] })
      response.write('one')
      await next.promise
      response.end(request.method)
    })
    const answer = await exchange(client, { ...get, method: 'POST', body: 'x' })
    assert.deepEqual([answer.status, answer.headers['x-two']], [201, 'a, b'])
    const pieces: string[] = []
    await answer.read((piece) => {
      pieces.push(piece.toString())
      next.resolve()
    })
    assert.deepEqual(pieces, ['one', 'POST'])
    assert.equal((await exchange(client, get)).status, 201)
  })

  test('a body without a reader is buffered up to a limit, and a slow reader of its stream gets all of it', async (t) => {
    const size = 8 * 1024 * 1024
    const { client, use } = await connectTo(t, (_request, response) => void response.end(Buffer.alloc(size, 'a')))
    const answer = await exchange(client, get)
    const stream = answer.stream()
    await once(stream, 'readable')
    assert.ok(use().bytes_in < size / 2, `${use().bytes_in} bytes came without a reader`)
    assert.equal((await buffer(stream)).length, size)
  })

  test('an exchange ends with the reason of its signal: before it is sent, before the head, and in the body', async (t) => {
    const arrived = Promise.withResolvers<void>()
    const { client } = await connectTo(t, (request, response) => {
      if (request.url === '/body') response.write('x')
      else arrived.resolve()
    })
    const reason = new Error('given up')
    await assert.rejects(exchange(client, { ...get, signal: AbortSignal.abort(reason) }), reason)
    const before = new AbortController()
    const headless = exchange(client, { ...get, signal: before.signal })
    await arrived.promise
    before.abort(reason)
    await assert.rejects(headless, reason)
    const within = new AbortController()
    const answer = await exchange(client, { ...get, path: '/body', signal: within.signal })
    await assert.rejects(
      answer.read(() => within.abort(reason)),
      reason,
    )
    await assert.rejects(
      answer.read(() => {}),
      reason,
    )
  })

  test('an error of the reader ends the exchange and its connection, for buffered and for new pieces', async (t) => {
    let closed = 0
    const { client } = await connectTo(t, (request, response) => {
      request.socket.once('close', () => (closed += 1))
      response.write('one')
      if (request.url === '/late') setImmediate(() => response.write('two'))
    })
    for (const [path, of] of [
      ['/', 'one'],
      ['/late', 'two'],
    ] as const) {
      const answer = await exchange(client, { ...get, path })
      const failure = new Error(of)
      await assert.rejects(
        answer.read((piece) => {
          if (piece.toString() === of) throw failure
        }),
        failure,
      )
    }
    // The next request gets a new connection.
    const answer = await exchange(client, get)
    assert.equal(closed, 2)
    answer.cancel()
    await assert.rejects(
      answer.read(() => {}),
      /was not read/,
    )
  })

  test('a broken connection fails a missing head and an incomplete body', async (t) => {
    const { client } = await connectTo(t, (request, response) => {
      if (request.url === '/') return void request.socket.destroy()
      response.writeHead(200, { 'content-length': 100 })
      response.write('x', () => request.socket.destroy())
    })
    await assert.rejects(exchange(client, get), { code: 'UND_ERR_SOCKET' })
    const answer = await exchange(client, { ...get, path: '/body' })
    await assert.rejects(
      answer.read(() => {}),
      { code: 'UND_ERR_SOCKET' },
    )
    const broken = await exchange(client, { ...get, path: '/body' })
    await assert.rejects(buffer(broken.stream()), { code: 'UND_ERR_SOCKET' })
  })

  test('objects of exchanges do not reach the old generation', async (t) => {
    const { client } = await connectTo(t, (_request, response) => void response.end('done'))
    const promoted = await promotedBy(async () => {
      for (let at = 0; at < 600; at++) {
        const objects = bulk()
        const { signal } = new AbortController()
        const answer = await exchange(client, { ...get, signal })
        await answer.read(() => void objects.length)
      }
    })
    assert.ok(promoted < 5 * 1024 * 1024, `${promoted / 1024 / 1024} MB of 48`)
  })
})
