import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, it } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import { closing } from './close-server.ts'

/** A server whose `/held` answers on command; and the function that closes it. */
async function start(wait_ms?: number) {
  const app: FastifyInstance = Fastify()
  const answer = Promise.withResolvers<string>()
  const asked = Promise.withResolvers<void>()
  app.get('/held', () => {
    asked.resolve()
    return answer.promise
  })
  const close = closing(app, wait_ms)
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return { url, close, answer: answer.resolve, asked: asked.promise }
}

describe('a closing server', () => {
  it('a closing server answers requests in flight, and accepts no connections', async () => {
    const { url, close, answer, asked } = await start()
    const reply = fetch(`${url}/held`)
    await asked
    const closed = close()
    await assert.rejects(fetch(url))
    answer('answered')
    assert.equal(await (await reply).text(), 'answered')
    await closed
  })

  it('a closing server closes connections of requests that take too long', async () => {
    const { url, close, asked } = await start(100)
    const reply = fetch(`${url}/held`)
    await asked
    await Promise.all([assert.rejects(reply), close()])
  })

  it('a closing server does not wait for connections without a request', async () => {
    const { url, close } = await start()
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    const ended = once(socket.resume(), 'close')
    await Promise.all([close(), ended])
  })
})
