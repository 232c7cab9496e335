import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { it, type TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import Fastify from 'fastify'
import { closing } from './close-server.ts'
import { hasReusePort, listen } from './listen.ts'

const host = '127.0.0.1'

async function serve(t: TestContext, max: number) {
  const app = Fastify()
  app.get('/', async () => 'served')
  app.server.maxConnections = max
  const close = closing(app)
  const closeOthers = await listen(app, { host, port: 0, shares_port: false })
  const stop = () => close(closeOthers)
  t.after(stop)
  const { port } = app.server.address() as AddressInfo
  const sockets: Socket[] = []
  t.after(() => sockets.forEach((socket) => socket.destroy()))
  const open = (count: number) => {
    const made = Array.from({ length: count }, () => connect({ host, port }).on('error', () => {}))
    sockets.push(...made)
    return made
  }
  return { app, port, open, stop }
}

it('a process accepts several new connections in a turn of its event loop', { skip: !hasReusePort }, async (t) => {
  const { app, open } = await serve(t, 2000)
  const count = 128
  let accepted = 0
  app.server.on('connection', () => accepted++)
  await Promise.all(open(count).map((socket) => once(socket, 'connect')))
  let turns = 0
  for (; accepted < count; turns++) await setImmediate()
  assert.ok(turns < count / 2, `${turns} turns`)
})

it('a process closes connections beyond its bound, whichever of its sockets accepted them', async (t) => {
  const { port, open } = await serve(t, 20)
  const all = open(60)
  let closed = 0
  await new Promise<void>((resolve) => {
    for (const socket of all) socket.resume().once('close', () => ++closed === 40 && resolve())
  })
  all.filter(({ destroyed }) => !destroyed).forEach((socket) => socket.destroy())
  // There is room once the server has seen the end of the connection.
  while ((await fetch(`http://${host}:${port}/`).catch(() => undefined))?.status !== 200) await setImmediate()
})

it('a stopping server answers requests in flight on every socket and accepts no more', async (t) => {
  const { app, port, open, stop } = await serve(t, 2000)
  const go = Promise.withResolvers<void>()
  let asked = 0
  const allAsked = Promise.withResolvers<void>()
  app.server.removeAllListeners('request')
  app.server.on('request', (_request, response) => {
    if (++asked === 40) allAsked.resolve()
    void go.promise.then(() => response.end('late'))
  })
  const answers = open(40).map(async (socket) => {
    socket.write('GET / HTTP/1.1\r\nhost: here\r\n\r\n')
    let text = ''
    for await (const chunk of socket) text += String(chunk)
    return text
  })
  await allAsked.promise
  const stopped = stop()
  go.resolve()
  for (const text of await Promise.all(answers)) assert.match(text, /late/)
  await stopped
  await assert.rejects(once(connect({ host, port }), 'connect'), { code: 'ECONNREFUSED' })
})

it('a port on which another program listens is refused, even if that program shares its port', async (t) => {
  for (const reusePort of hasReusePort ? [false, true] : [false]) {
    const other = createServer().listen({ host, port: 0, reusePort })
    t.after(() => other.close())
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    await assert.rejects(listen(Fastify(), { host, port, shares_port: false }), { code: 'EADDRINUSE' })
  }
})
