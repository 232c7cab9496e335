import assert from 'node:assert/strict'
import { networkInterfaces } from 'node:os'
import { describe, it } from 'node:test'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import {
  EgressError,
  type EgressErrorCode,
  type EgressPurpose,
  EgressRefused,
  makeEgress,
  type RefusalReason,
} from './safe-fetch.ts'

const refusedFor = (reason: RefusalReason) => (error: unknown) =>
  error instanceof EgressRefused && error.reason === reason
const failedWith = (code: EgressErrorCode) => (error: unknown) => error instanceof EgressError && error.code === code
/** A resolver that must not be used. */
const noResolver = async (name: string): Promise<never> => assert.fail(`${name} was resolved`)

describe('an address that is not public', () => {
  const evasions = list(String.raw`
    http://127.0.0.1:PORT/ http://127.1:PORT/ http://127.0.1:PORT/ http://2130706433:PORT/ http://0x7f000001:PORT/
    http://0x7f.0.0.1:PORT/ http://017700000001:PORT/ http://0177.0.0.1:PORT/ http://127.0.0.1.:PORT/
    http://１２７.０.０.１:PORT/ http://127。0。0。1:PORT/ http://①②⑦.⓪.⓪.①:PORT/ http://%31%32%37.0.0.1:PORT/ http://0:PORT/
    http://0.0.0.0:PORT/ http://[::1]:PORT/ http://[::]:PORT/ http://[0:0:0:0:0:0:0:1]:PORT/
    http://[::ffff:127.0.0.1]:PORT/ http://[::ffff:7f00:1]:PORT/ http://[::127.0.0.1]:PORT/
    http://[64:ff9b::7f00:1]:PORT/ http://[2002:7f00:1::]:PORT/ http://[2001:0:7f00:1::]:PORT/
    http://[fe80::1]:PORT/ http://[fe80::1%25lo]:PORT/ http://[::1%25lo]:PORT/ http://[fd00:ec2::254]/
    http://169.254.169.254/latest/meta-data/ http://[::ffff:a9fe:a9fe]/ http://10.0.0.1/ http://192.168.1.1/
    http://100.100.100.200/ http://localhost:PORT/ http://LOCALHOST.:PORT/ http://app.localhost:PORT/
    http:\\127.0.0.1:PORT\ http:127.0.0.1:PORT http://user:secret@127.0.0.1:PORT/
    http://93.184.216.34@127.0.0.1:PORT/ http://127.0.0.1:PORT#@93.184.216.34/ file:///etc/passwd
    gopher://127.0.0.1:PORT/_GET ftp://127.0.0.1:PORT/ data:text/plain,hello ws://127.0.0.1:PORT/
    http+unix://%2Fvar%2Frun%2Fdocker.sock/ //127.0.0.1:PORT/ http:// http://127.0.0.1:99999/`)
  for (const evasion of [...evasions, '']) {
    it(`a URL that is not public is refused before a byte is sent: ${evasion}`, async (t) => {
      const canary = await startLocalServer(t)
      const egress = makeEgress({ resolve: noResolver })
      const url = evasion.replace('PORT', String(canary.port))
      for (const purpose of ['tool', 'webhook', 'sso', 'avatar'] satisfies EgressPurpose[]) {
        assert.throws(() => egress.check(url, purpose), EgressRefused, purpose)
        await assert.rejects(egress.fetch(url, { purpose }), EgressRefused, purpose)
      }
      assert.equal(canary.connections(), 0)
    })
  }

  for (const answer of [
    ['127.0.0.1'],
    ['93.184.216.34', '127.0.0.1'],
    ['127.0.0.1', '93.184.216.34'],
    ['2606:4700::1', '::1'],
    ['::ffff:127.0.0.1'],
    ['fe80::1%lo'],
  ]) {
    it(`a name that resolves to ${answer.join(' and ')} is refused`, async (t) => {
      const canary = await startLocalServer(t)
      const egress = makeEgress({ resolve: async () => answer })
      await assert.rejects(
        egress.fetch(`http://evil.example:${canary.port}/`, { purpose: 'tool' }),
        refusedFor('address'),
      )
      assert.equal(canary.connections(), 0)
    })
  }

  it('a name that was public at registration and is rebound at delivery is refused', async (t) => {
    const canary = await startLocalServer(t)
    const url = `https://rebind.example:${canary.port}/`
    const egress = makeEgress({ resolve: async () => ['127.0.0.1'] })
    egress.check(url, 'webhook')
    await assert.rejects(egress.fetch(url, { purpose: 'webhook' }), refusedFor('address'))
    assert.equal(canary.connections(), 0)
  })

  it('a private address from the system resolver is refused', async (t) => {
    const canary = await startLocalServer(t)
    const egress = makeEgress({ allow: ['localhost:1'] })
    await assert.rejects(egress.fetch(`http://localhost:${canary.port}/`, { purpose: 'tool' }), refusedFor('address'))
    assert.equal(canary.connections(), 0)
  })

  it('the error of a refused name does not contain its address, so that internal addresses stay secret', async () => {
    const egress = makeEgress({ resolve: async () => ['10.20.30.40'] })
    await assert.rejects(
      egress.fetch('https://inside.example/', { purpose: 'tool' }),
      (error: Error) => !error.message.includes('10.20'),
    )
  })
})

describe('a name', () => {
  it('a name is resolved once, and its addresses are used without another lookup', async (t) => {
    const server = await startLocalServer(t)
    const asked: string[] = []
    const resolve = async (name: string) => (asked.push(name) === 1 ? ['127.0.0.1'] : ['10.0.0.1'])
    const egress = makeEgress({ allow: ['loopback'], resolve })
    // Only the test's resolver knows `.test`, so a response proves that it was used for the connection.
    const answer = await egress.fetch(`http://rebind.test:${server.port}/x?y=1`, { purpose: 'tool' })
    assert.equal(answer.body.toString(), 'ok')
    assert.deepEqual(asked, ['rebind.test'])
    await assert.rejects(egress.fetch(`http://rebind.test:${server.port}/`, { purpose: 'tool' }), refusedFor('address'))
    assert.deepEqual(server.requests, ['GET /x?y=1'])
  })

  it('a name that does not resolve, or has no address, fails with dns_failed instead of a refusal', async () => {
    const nothing = makeEgress({ resolve: async () => [] })
    await assert.rejects(nothing.fetch('https://nowhere.example/', { purpose: 'tool' }), failedWith('dns_failed'))
    const system = makeEgress()
    await assert.rejects(system.fetch('https://nowhere.invalid/', { purpose: 'tool' }), failedWith('dns_failed'))
  })

  it('the resolution of a name ends with the request', async () => {
    const egress = makeEgress({ resolve: () => new Promise(() => {}) })
    await assert.rejects(
      egress.fetch('https://slow.example/', { purpose: 'tool', timeout_ms: 20 }),
      failedWith('timed_out'),
    )
  })
})

describe('the allow list', () => {
  const cases: { allow: string[]; url: string; resolves?: string }[] = [
    { allow: ['loopback'], url: 'http://127.0.0.1:PORT/' },
    { allow: ['127.0.0.0/8'], url: 'http://127.0.0.1:PORT/' },
    { allow: ['127.0.0.1'], url: 'http://receiver.test:PORT/', resolves: '127.0.0.1' },
    { allow: ['receiver.test'], url: 'http://Receiver.test.:PORT/', resolves: '127.0.0.1' },
    { allow: ['*.corp.test'], url: 'http://a.corp.test:PORT/', resolves: '127.0.0.1' },
    { allow: ['127.0.0.1:PORT'], url: 'http://127.0.0.1:PORT/' },
    { allow: ['receiver.test:PORT'], url: 'http://receiver.test:PORT/', resolves: '127.0.0.1' },
  ]
  for (const { allow, url, resolves } of cases) {
    it(`the allow list entry ${allow} opens ${url}${resolves ? ` at ${resolves}` : ''}`, async (t) => {
      const server = await startLocalServer(t)
      const withPort = (text: string): string => text.replace('PORT', String(server.port))
      const egress = makeEgress({ allow: allow.map(withPort), resolve: async () => [resolves ?? assert.fail()] })
      const answer = await egress.fetch(withPort(url), { purpose: 'tool' })
      assert.equal(answer.status, 200)
    })
  }

  it('an allow list does not open neighbours of its entries', async (t) => {
    const canary = await startLocalServer(t)
    const egress = makeEgress({
      allow: ['private', '*.corp.test', `127.0.0.1:${canary.port + 1}`],
      resolve: async () => ['127.0.0.1'],
    })
    for (const host of ['127.0.0.1', 'corp.test', 'a.corp.test.evil.test']) {
      await assert.rejects(egress.fetch(`http://${host}:${canary.port}/`, { purpose: 'tool' }), refusedFor('address'))
    }
    assert.equal(canary.connections(), 0)
  })
})

describe('ports of the service and the database', () => {
  it('ports of the service and the database stay closed to listed ranges and names, at every address of this machine', async (t) => {
    const api = await startLocalServer(t)
    const own = Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? [])
    const egress = makeEgress({
      allow: ['0.0.0.0/0', '::/0', 'api.test'],
      ownPorts: [api.port],
      resolve: async () => ['127.0.0.1'],
    })
    const hosts = [
      '127.0.0.1',
      '127.9.9.9',
      '0.0.0.0',
      '[::]',
      '[::1]',
      '[::ffff:127.0.0.1]',
      'api.test',
      'other.test',
      ...own
        .filter((address) => !address.includes('%'))
        .map((address) => (address.includes(':') ? `[${address}]` : address)),
    ]
    for (const host of hosts) {
      await assert.rejects(
        egress.fetch(`http://${host}:${api.port}/`, { purpose: 'tool' }),
        refusedFor('own_endpoint'),
        host,
      )
    }
    assert.equal(api.connections(), 0)
  })

  it('the database stays closed under any name with its address', async (t) => {
    const database = await startLocalServer(t)
    const addresses: Record<string, string> = { 'postgres.test': '10.0.0.5', 'alias.test': '10.0.0.5' }
    const resolve = async (name: string) => [addresses[name] ?? assert.fail(name)]
    const remote = makeEgress({ allow: ['private'], database: { host: 'postgres.test', port: 5432 }, resolve })
    for (const host of ['10.0.0.5', 'postgres.test', 'alias.test']) {
      await assert.rejects(remote.fetch(`http://${host}:5432/`, { purpose: 'tool' }), refusedFor('own_endpoint'), host)
    }
    // Brackets as `URL` leaves them around the host of a database URL.
    for (const [own, host] of [
      ['127.0.0.1', '127.0.0.1'],
      ['127.0.0.1', '127.0.0.2'],
      ['[::1]', '127.0.0.1'],
    ] as const) {
      const local = makeEgress({ allow: ['loopback'], database: { host: own, port: database.port } })
      await assert.rejects(
        local.fetch(`http://${host}:${database.port}/`, { purpose: 'tool' }),
        refusedFor('own_endpoint'),
        host,
      )
    }
    assert.equal(database.connections(), 0)
  })

  it('an exact entry of the allow list opens a port of the service and the database', async (t) => {
    const api = await startLocalServer(t)
    const egress = makeEgress({ allow: [`127.0.0.1:${api.port}`], ownPorts: [api.port] })
    assert.equal((await egress.fetch(api.url, { purpose: 'tool' })).status, 200)
  })
})

function list(text: string): string[] {
  return text.trim().split(/\s+/)
}
