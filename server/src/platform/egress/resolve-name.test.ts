import assert from 'node:assert/strict'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { after, before, it } from 'node:test'
import { makeResolveName, type NameSources } from './resolve-name.ts'

/** A name server: `*.well.test` has addresses, `*.dead.test` gets no answer, half of `*.half.test` none; others do not exist. */
let server: Socket
let name_servers: string[]
let asked: string[]
before(async () => {
  server = createSocket('udp4')
  server.on('message', (message, { address, port }) => {
    const reply = answer(message)
    if (reply) server.send(reply, port, address)
  })
  server.bind(0, '127.0.0.1')
  await once(server, 'listening')
  name_servers = [`127.0.0.1:${server.address().port}`]
  asked = []
})
after(() => server.close())

const a = 1
const [v4, v6] = ['192.0.2.7', '2001:db8::7']

function answer(message: Buffer): Buffer | undefined {
  const labels: string[] = []
  let at = 12
  for (let length = message[at]!; length > 0; length = message[at]!) {
    labels.push(message.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const question = message.subarray(12, at + 5)
  const type = message.readUInt16BE(at + 1)
  asked.push(labels.join('.'))
  const zone = labels.at(-2)
  if (zone === 'dead' || (zone === 'half' && type !== a)) return undefined
  const isKnown = zone === 'well' || zone === 'half'
  const data = type === a ? Buffer.from([192, 0, 2, 7]) : Buffer.from('20010db8000000000000000000000007', 'hex')
  const record = Buffer.concat([Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, data.length]), data])
  const head = Buffer.from([
    message[0]!,
    message[1]!,
    0x81,
    isKnown ? 0x80 : 0x83,
    0,
    1,
    0,
    isKnown ? 1 : 0,
    0,
    0,
    0,
    0,
  ])
  return Buffer.concat([head, question, ...(isKnown ? [record] : [])])
}

const notAsked: Required<Pick<NameSources, 'system' | 'hosts'>> = {
  system: async (name) => assert.fail(`the system was asked for ${name}`),
  hosts: async () => '127.0.0.1 localhost\n',
}
const make = (sources: NameSources = {}) => makeResolveName({ name_servers, ...notAsked, ...sources })
const soon = () => AbortSignal.timeout(5000)

it('a name resolves to the addresses of the name servers', async () => {
  assert.deepEqual(await make()('a.well.test', soon()), [v4, v6])
})

it('a name is resolved at once while many others have dead name servers', async () => {
  const resolve = make()
  const stop = new AbortController()
  const dead = Array.from({ length: 50 }, (_, i) => resolve(`${i}.dead.test`, stop.signal).catch(() => 'given up'))
  const start_ms = performance.now()
  const [first] = await resolve('b.well.test', soon())
  assert.equal(first, v4)
  const took_ms = performance.now() - start_ms
  assert.ok(took_ms < 1000, `${took_ms} ms`)
  // Their lookups end when all callers have aborted.
  stop.abort()
  assert.deepEqual(new Set(await Promise.all(dead)), new Set(['given up']))
  assert.ok(performance.now() - start_ms < 2000)
})

it('a name resolves to the addresses of one family if the other gets no answer', async () => {
  const start_ms = performance.now()
  assert.deepEqual(await make()('half.test', soon()), [v4])
  assert.ok(performance.now() - start_ms < 1500)
})

it('a name that name servers do not know is resolved by the system, one at a time', async () => {
  let [now, max] = [0, 0]
  const turns: string[] = []
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  const resolve = make({
    async system(name) {
      turns.push(name)
      max = Math.max(max, ++now)
      await opened
      now -= 1
      return ['198.51.100.1']
    },
  })
  const first = resolve('one.internal', soon())
  const closed = new AbortController()
  const second = resolve('two.internal', closed.signal)
  const third = resolve('three.internal', soon())
  closed.abort(new Error('no caller waits'))
  open()
  assert.deepEqual([await first, await third], [['198.51.100.1'], ['198.51.100.1']])
  await assert.rejects(second)
  assert.equal(max, 1)
  assert.ok(!turns.includes('two.internal'))
})

it('a name in the hosts file is resolved by the system, in any case and with a trailing dot', async () => {
  const hosts = async () => '# none.test\n127.0.0.1\tlocalhost\n10.0.0.5  Intranet.test intranet # the wiki\n'
  const resolve = make({ hosts, system: async (name) => [`of ${name}`] })
  for (const name of ['intranet.test', 'INTRANET', 'intranet.test.', 'localhost'])
    assert.deepEqual(await resolve(name, soon()), [`of ${name}`])
  assert.deepEqual(await resolve('a.well.test', soon()), [v4, v6])
  assert.ok(!asked.includes('intranet.test') && !asked.includes('localhost'))
})

it('an unknown name is rejected, and without name servers and hosts file the system resolves it', async () => {
  const unknown = async (): Promise<never> => Promise.reject(new Error('ENOTFOUND'))
  await assert.rejects(make({ system: unknown })('nowhere.test', soon()), /ENOTFOUND/)
  const resolve = make({ name_servers: ['127.0.0.1:1'], hosts: unknown, system: async () => ['::1'] })
  assert.deepEqual(await resolve('localhost', soon()), ['::1'])
})
