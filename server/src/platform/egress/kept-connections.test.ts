import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import { EgressError, makeEgress } from './safe-fetch.ts'

const failedWith = (code: string) => (error: unknown) => error instanceof EgressError && error.code === code

// 150 ms together.
describe('a kept connection', () => {
  const egress = () => makeEgress({ allow: ['loopback'] })

  it('a repeatable request reuses an idle connection of the same owner', async (t) => {
    const server = await startLocalServer(t)
    const way = egress()
    for (const keptFor of ['a', 'a', 'b', 'a']) {
      const answer = await way.fetch(server.url, { purpose: 'tool', keptFor })
      assert.deepEqual([answer.status, answer.network.bytes_in > 0], [200, true])
    }
    assert.equal(server.connections(), 2)
    await way.fetch(server.url, { purpose: 'tool' })
    assert.equal(server.connections(), 3, 'one without an owner has a new connection')
  })

  it('concurrent requests use separate connections, and each counts only its bytes', async (t) => {
    const server = await startLocalServer(
      t,
      (request, response) => void response.end('x'.repeat(request.url!.length * 1000)),
    )
    const way = egress()
    for (let round = 0; round < 2; round++) {
      const answers = await Promise.all(
        ['/', '/two', '/three'].map((path) => way.fetch(server.url + path, { purpose: 'tool', keptFor: 'a' })),
      )
      assert.deepEqual(
        answers.map(({ body, network }) => [body.length, Math.floor((network.bytes_in - body.length) / 1000)]),
        [
          [1000, 0],
          [4000, 0],
          [6000, 0],
        ],
      )
    }
    assert.equal(server.connections(), 3)
  })

  it('a kept connection that its server closed, before or during a request, fails no request', async (t) => {
    let isClosing = false
    const server = await startLocalServer(t, (request, response) => {
      if (isClosing) request.socket.destroy()
      else response.end('ok')
      isClosing = false
    })
    const way = egress()
    const ask = () => way.fetch(server.url, { purpose: 'tool', keptFor: 'a' })
    await ask()
    isClosing = true
    assert.equal((await ask()).body.toString(), 'ok')
    assert.equal(server.connections(), 2)
    isClosing = true
    await assert.rejects(way.fetch(server.url, { purpose: 'tool' }), failedWith('connection_lost'))
  })

  it('a response that is cut off on a kept connection fails without a retry', async (t) => {
    let asked = 0
    const server = await startLocalServer(t, (request, response) => {
      asked += 1
      if (asked === 1) return void response.end('ok')
      response.writeHead(200, { 'content-length': 10 })
      response.write('some', () => request.socket.destroy())
    })
    const way = egress()
    const ask = () => way.fetch(server.url, { purpose: 'tool', keptFor: 'a' })
    await ask()
    await assert.rejects(ask(), failedWith('connection_lost'))
    assert.equal(asked, 2)
  })

  it('a kept connection is not used if its name now has other addresses or is forbidden', async (t) => {
    const server = await startLocalServer(t)
    let addresses = ['127.0.0.1']
    const way = makeEgress({ allow: ['127.0.0.1/32', '127.0.0.2/32'], resolve: async () => addresses })
    const ask = () => way.fetch(`http://tool.test:${server.port}/`, { purpose: 'tool', keptFor: 'a' })
    await ask()
    await ask()
    assert.equal(server.connections(), 1)
    addresses = ['127.0.0.2']
    await assert.rejects(
      ask(),
      (error: unknown) => error instanceof EgressError || (error as Error).name === 'UpstreamError',
    )
    addresses = ['10.0.0.1']
    await assert.rejects(ask(), /address/)
    assert.equal(server.connections(), 1)
  })

  it('an aborted request closes its connection', async (t) => {
    const held = Promise.withResolvers<ServerResponse>()
    const server = await startLocalServer(t, (request, response) => {
      if (request.url === '/held') held.resolve(response)
      else response.end('ok')
    })
    const way = egress()
    await way.fetch(server.url, { purpose: 'tool', keptFor: 'a' })
    const stop = new AbortController()
    const reason = new Error('given up')
    const asked = way.fetch(`${server.url}/held`, { purpose: 'tool', keptFor: 'a', signal: stop.signal })
    const response = await held.promise
    const closed = once(response, 'close')
    stop.abort(reason)
    await assert.rejects(asked, reason)
    await closed
    await way.fetch(server.url, { purpose: 'tool', keptFor: 'a' })
    assert.equal(server.connections(), 2)
  })
})
