import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import { egressFetch } from './egress-fetch.ts'
import type { EgressStream } from './egress-stream.ts'
import { EgressError, type EgressErrorCode, EgressRefused, makeEgress } from './safe-fetch.ts'

const open = makeEgress({ allow: ['loopback'] })
const failedWith = (code: EgressErrorCode) => (error: unknown) => error instanceof EgressError && error.code === code

describe('a fetch through the egress', () => {
  it('a fetch through the egress returns status, headers and a streamed body like fetch', async (t) => {
    let finish = (): void => assert.fail()
    const server = await startLocalServer(t, (request, response) => {
      response.writeHead(201, { 'x-method': request.method, 'x-sent': request.headers['x-sent'] })
      response.write('first ')
      finish = () => void response.end('second')
    })
    const fetch = egressFetch(open, { purpose: 'tool', headers: () => ({ 'X-Sent': 'ours', 'X-Method': 'ours' }) })
    const answer = await fetch(server.url, { method: 'POST', body: 'hello', headers: { 'x-sent': 'theirs' } })
    assert.equal(answer.status, 201)
    assert.equal(answer.headers.get('x-method'), 'POST')
    assert.equal(answer.headers.get('x-sent'), 'theirs')
    const reader = (answer.body ?? assert.fail()).pipeThrough(new TextDecoderStream()).getReader()
    assert.equal((await reader.read()).value, 'first ')
    finish()
    assert.equal((await reader.read()).value, 'second')
    assert.equal((await reader.read()).done, true)
  })

  it('a fetch through the egress connects to nothing that the rules forbid', async (t) => {
    const canary = await startLocalServer(t)
    const closed = makeEgress({ resolve: async () => ['127.0.0.1'] })
    const fetch = egressFetch(closed, { purpose: 'tool' })
    for (const url of [canary.url, `http://public.test:${canary.port}/`, `http://[::ffff:127.0.0.1]:${canary.port}/`]) {
      await assert.rejects(fetch(url), EgressRefused, url)
    }
    await assert.rejects(
      egressFetch(open, { purpose: 'tool' })(canary.url, { headers: { host: 'a.test' } }),
      EgressRefused,
    )
    assert.equal(canary.connections(), 0)
  })

  it('a fetch through the egress does not follow a redirect', async (t) => {
    const canary = await startLocalServer(t)
    const server = await startLocalServer(t, (_request, response) =>
      response.writeHead(307, { location: canary.url }).end(),
    )
    const answer = await egressFetch(open, { purpose: 'tool' })(server.url)
    assert.equal(answer.status, 307)
    await answer.body?.cancel()
    assert.equal(canary.connections(), 0)
  })

  it('a fetch through the egress ends an endless response at its byte limit, having read little more', async (t) => {
    const server = await startLocalServer(t, (_request, response) => {
      const more = (): void => {
        while (response.write(Buffer.alloc(64 * 1024)));
        response.once('drain', more)
      }
      more()
    })
    const answers: EgressStream[] = []
    const fetch = egressFetch(open, {
      purpose: 'tool',
      bytesMax: () => 1_000_000,
      onAnswer: (answer) => answers.push(answer),
    })
    const answer = await fetch(server.url)
    await assert.rejects(answer.text(), failedWith('answer_too_large'))
    const read = answers[0]?.use().bytes_in ?? assert.fail()
    assert.ok(read > 1_000_000 && read < 4_000_000, String(read))
  })

  it('a fetch through the egress ends a response that takes too long, also one that is not read', async (t) => {
    const server = await startLocalServer(t, (_request, response) => void response.write('begun'))
    const fetch = egressFetch(open, { purpose: 'tool', timeout_ms: () => 500 })
    await assert.rejects((await fetch(server.url)).text(), failedWith('timed_out'))

    const closed = new Promise((done) => server.server.on('connection', (socket) => socket.once('close', done)))
    await fetch(server.url)
    await closed
  })

  it('a fetch through the egress ends with the reason of its signal, and when its reader cancels', async (t) => {
    const server = await startLocalServer(t, (_request, response) => void response.write('begun'))
    const fetch = egressFetch(open, { purpose: 'tool' })
    const controller = new AbortController()
    const answer = await fetch(server.url, { signal: controller.signal })
    const text = answer.text()
    controller.abort(new Error('no longer needed'))
    await assert.rejects(text, /no longer needed/)

    const connection = once(server.server, 'connection')
    const left = await fetch(server.url)
    const [socket] = (await connection) as [NodeJS.EventEmitter]
    await Promise.all([once(socket, 'close'), left.body?.cancel()])
  })

  it('a fetch through the egress fails if the connection is lost in the middle of a response', async (t) => {
    const server = await startLocalServer(t, (_request, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('begun', () => response.destroy())
    })
    const answer = await egressFetch(open, { purpose: 'tool' })(server.url)
    await assert.rejects(answer.text(), failedWith('connection_lost'))
  })
})
