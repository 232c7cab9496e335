import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { networkInterfaces } from 'node:os'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { type LocalServer, startLocalServer } from '../../test/local-server.ts'
import { EgressError, type EgressErrorCode, type EgressPurpose, EgressRefused, makeEgress, type RefusalReason } from './safe-fetch.ts'

const refusedFor = (reason: RefusalReason) => (error: unknown) => error instanceof EgressRefused && error.reason === reason
const failedWith = (code: EgressErrorCode) => (error: unknown) => error instanceof EgressError && error.code === code
const isRefused = (error: unknown): boolean => error instanceof EgressRefused
/** A resolver that must not be asked. */
const noResolver = async (name: string): Promise<never> => assert.fail(`${name} was resolved`)

describe('an address that is not public', () => {
  const evasions = [
    'http://127.0.0.1:PORT/', 'http://127.1:PORT/', 'http://127.0.1:PORT/', 'http://2130706433:PORT/', 'http://0x7f000001:PORT/',
    'http://0x7f.0.0.1:PORT/', 'http://017700000001:PORT/', 'http://0177.0.0.1:PORT/', 'http://127.0.0.1.:PORT/',
    'http://１２７.０.０.１:PORT/', 'http://127。0。0。1:PORT/', 'http://①②⑦.⓪.⓪.①:PORT/', 'http://%31%32%37.0.0.1:PORT/',
    'http://0:PORT/', 'http://0.0.0.0:PORT/', 'http://[::1]:PORT/', 'http://[::]:PORT/', 'http://[0:0:0:0:0:0:0:1]:PORT/',
    'http://[::ffff:127.0.0.1]:PORT/', 'http://[::ffff:7f00:1]:PORT/', 'http://[::127.0.0.1]:PORT/', 'http://[64:ff9b::7f00:1]:PORT/',
    'http://[2002:7f00:1::]:PORT/', 'http://[2001:0:7f00:1::]:PORT/', 'http://[fe80::1]:PORT/', 'http://[fe80::1%25lo]:PORT/',
    'http://[::1%25lo]:PORT/', 'http://[fd00:ec2::254]/', 'http://169.254.169.254/latest/meta-data/', 'http://[::ffff:a9fe:a9fe]/',
    'http://10.0.0.1/', 'http://192.168.1.1/', 'http://100.100.100.200/', 'http://localhost:PORT/', 'http://LOCALHOST.:PORT/',
    'http://app.localhost:PORT/', 'http:\\\\127.0.0.1:PORT\\', 'http:127.0.0.1:PORT', 'http://user:secret@127.0.0.1:PORT/',
    'http://93.184.216.34@127.0.0.1:PORT/', 'http://127.0.0.1:PORT#@93.184.216.34/', 'file:///etc/passwd', 'gopher://127.0.0.1:PORT/_GET',
    'ftp://127.0.0.1:PORT/', 'data:text/plain,hello', 'ws://127.0.0.1:PORT/', 'http+unix://%2Fvar%2Frun%2Fdocker.sock/', '//127.0.0.1:PORT/',
    'http://', '', 'http://127.0.0.1:99999/',
  ]
  for (const evasion of evasions) {
    it(`is refused before a byte is sent: ${evasion}`, async (t) => {
      const canary = await startLocalServer(t)
      const egress = makeEgress({ resolve: noResolver })
      const url = evasion.replace('PORT', String(canary.port))
      for (const purpose of ['tool', 'webhook', 'sso', 'avatar'] satisfies EgressPurpose[]) {
        assert.throws(() => egress.check(url, purpose), isRefused, purpose)
        await assert.rejects(egress.fetch(url, { purpose }), isRefused, purpose)
      }
      assert.equal(canary.connections(), 0)
    })
  }

  for (const answer of [['127.0.0.1'], ['93.184.216.34', '127.0.0.1'], ['127.0.0.1', '93.184.216.34'], ['2606:4700::1', '::1'], ['::ffff:127.0.0.1'], ['fe80::1%lo']]) {
    it(`is refused behind a name that resolves to ${answer.join(' and ')}`, async (t) => {
      const canary = await startLocalServer(t)
      const egress = makeEgress({ resolve: async () => answer })
      await assert.rejects(egress.fetch(`http://evil.example:${canary.port}/`, { purpose: 'tool' }), refusedFor('address'))
      assert.equal(canary.connections(), 0)
    })
  }

  it('is refused when the name was public at registration and is rebound at delivery', async (t) => {
    const canary = await startLocalServer(t)
    const url = `https://rebind.example:${canary.port}/`
    const egress = makeEgress({ resolve: async () => ['127.0.0.1'] })
    egress.check(url, 'webhook')
    await assert.rejects(egress.fetch(url, { purpose: 'webhook' }), refusedFor('address'))
    assert.equal(canary.connections(), 0)
  })

  it('is refused through the system resolver too', async (t) => {
    const canary = await startLocalServer(t)
    const egress = makeEgress({ allow: ['localhost:1'] })
    await assert.rejects(egress.fetch(`http://localhost:${canary.port}/`, { purpose: 'tool' }), refusedFor('address'))
    assert.equal(canary.connections(), 0)
  })

  it('is not named in the refusal, so that nobody learns what a name inside resolves to', async () => {
    const egress = makeEgress({ resolve: async () => ['10.20.30.40'] })
    await assert.rejects(egress.fetch('https://inside.example/', { purpose: 'tool' }), (error: Error) => !error.message.includes('10.20'))
  })
})

describe('a name', () => {
  it('is resolved once, and its addresses are used without asking anybody again', async (t) => {
    const server = await startLocalServer(t)
    const asked: string[] = []
    const resolve = async (name: string) => (asked.push(name) === 1 ? ['127.0.0.1'] : ['10.0.0.1'])
    const egress = makeEgress({ allow: ['loopback'], resolve })
    // No resolver but ours knows `.test`, so an answer proves that ours was used for the connection.
    const answer = await egress.fetch(`http://rebind.test:${server.port}/x?y=1`, { purpose: 'tool' })
    assert.equal(answer.body.toString(), 'ok')
    assert.deepEqual(asked, ['rebind.test'])
    await assert.rejects(egress.fetch(`http://rebind.test:${server.port}/`, { purpose: 'tool' }), refusedFor('address'))
    assert.deepEqual(server.requests, ['GET /x?y=1'])
  })

  it('that does not resolve, or has no address, is a failure and not a refusal', async () => {
    const nothing = makeEgress({ resolve: async () => [] })
    await assert.rejects(nothing.fetch('https://nowhere.example/', { purpose: 'tool' }), failedWith('dns_failed'))
    const system = makeEgress()
    await assert.rejects(system.fetch('https://nowhere.invalid/', { purpose: 'tool' }), failedWith('dns_failed'))
  })

  it('that is never resolved ends with the request', async () => {
    const egress = makeEgress({ resolve: () => new Promise(() => {}) })
    await assert.rejects(egress.fetch('https://slow.example/', { purpose: 'tool', timeout_ms: 20 }), failedWith('timed_out'))
  })
})

describe('what the operator allows', () => {
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
    it(`is reached: ${allow} opens ${url}${resolves ? ` at ${resolves}` : ''}`, async (t) => {
      const server = await startLocalServer(t)
      const withPort = (text: string): string => text.replace('PORT', String(server.port))
      const egress = makeEgress({ allow: allow.map(withPort), resolve: async () => [resolves ?? assert.fail()] })
      const answer = await egress.fetch(withPort(url), { purpose: 'tool' })
      assert.equal(answer.status, 200)
    })
  }

  it('is all that is reached: a neighbour stays closed', async (t) => {
    const canary = await startLocalServer(t)
    const egress = makeEgress({ allow: ['private', '*.corp.test', `127.0.0.1:${canary.port + 1}`], resolve: async () => ['127.0.0.1'] })
    for (const host of ['127.0.0.1', 'corp.test', 'a.corp.test.evil.test']) {
      await assert.rejects(egress.fetch(`http://${host}:${canary.port}/`, { purpose: 'tool' }), refusedFor('address'))
    }
    assert.equal(canary.connections(), 0)
  })
})

describe('a webhook', () => {
  const egress = makeEgress({ allow: ['hooks.corp.test', '10.1.0.0/16', 'odd.test:81'], resolve: noResolver })
  const refused: [string, RefusalReason][] = [
    ['http://example.com/', 'plain_http'], ['http://93.184.216.34/', 'plain_http'], ['https://example.com:22/', 'port'],
    ['https://example.com:444/', 'port'], ['https://example.com/#x', 'fragment'], ['https://example.com/#', 'fragment'],
    ['https://u:p@example.com/', 'user_info'], ['http://localhost:3000/', 'address'],
  ]
  for (const [url, reason] of refused) {
    it(`cannot be registered at ${url}`, () => void assert.throws(() => egress.check(url, 'webhook'), refusedFor(reason)))
  }
  for (const url of ['https://example.com/', 'https://example.com:80/', 'https://example.com:8443/a?b', 'http://hooks.corp.test/', 'http://10.1.2.3/', 'http://odd.test:81/']) {
    it(`can be registered at ${url}, without resolving it`, () => void egress.check(url, 'webhook'))
  }

  it('may stay on this machine when the service can only be reached from it, but not reach the service itself', async (t) => {
    const [server, api] = [await startLocalServer(t), await startLocalServer(t)]
    const local = makeEgress({ listensOnLoopback: true, ownPorts: () => [api.port] })
    for (const host of ['127.0.0.1', 'localhost']) {
      const answer = await local.fetch(`http://${host}:${server.port}/`, { purpose: 'webhook', method: 'POST', body: '{}' })
      assert.equal(answer.status, 200, host)
      await assert.rejects(local.fetch(`http://${host}:${api.port}/`, { purpose: 'webhook' }), refusedFor('own_endpoint'))
      await assert.rejects(local.fetch(`http://${host}:${server.port}/`, { purpose: 'tool' }), refusedFor('address'))
    }
    assert.throws(() => local.check('http://example.com/', 'webhook'), refusedFor('plain_http'))
    assert.equal(api.connections(), 0)
  })

  it('is not redirected: the redirect is its answer', async (t) => {
    const canary = await startLocalServer(t)
    const server = await startLocalServer(t, (_request, response) => void response.writeHead(302, { location: canary.url }).end())
    const answer = await makeEgress({ allow: ['loopback'] }).fetch(server.url, { purpose: 'webhook', method: 'POST', body: '{}' })
    assert.equal(answer.status, 302)
    assert.equal(canary.connections(), 0)
  })

  it('keeps the first 64 KiB of a long answer and lets go of the rest', async (t) => {
    const server = await endless(t)
    const answer = await makeEgress({ allow: ['loopback'] }).fetch(server.url, { purpose: 'webhook', method: 'POST', body: '{}' })
    assert.deepEqual([answer.status, answer.body.length, answer.truncated], [200, 64 * 1024, true])
  })
})

describe('our own ports and the database', () => {
  it('stay closed to listed ranges and names, at every address of this machine', async (t) => {
    const api = await startLocalServer(t)
    const own = Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? [])
    const egress = makeEgress({ allow: ['0.0.0.0/0', '::/0', 'api.test'], ownPorts: [api.port], resolve: async () => ['127.0.0.1'] })
    const hosts = ['127.0.0.1', '127.9.9.9', '0.0.0.0', '[::]', '[::1]', '[::ffff:127.0.0.1]', 'api.test', 'other.test',
      ...own.filter((address) => !address.includes('%')).map((address) => (address.includes(':') ? `[${address}]` : address))]
    for (const host of hosts) {
      await assert.rejects(egress.fetch(`http://${host}:${api.port}/`, { purpose: 'tool' }), refusedFor('own_endpoint'), host)
    }
    assert.equal(api.connections(), 0)
  })

  it('keep the database closed by its address, whatever name it goes by', async (t) => {
    const database = await startLocalServer(t)
    const addresses: Record<string, string> = { 'postgres.test': '10.0.0.5', 'alias.test': '10.0.0.5' }
    const resolve = async (name: string) => [addresses[name] ?? assert.fail(name)]
    const remote = makeEgress({ allow: ['private'], database: { host: 'postgres.test', port: 5432 }, resolve })
    for (const host of ['10.0.0.5', 'postgres.test', 'alias.test']) {
      await assert.rejects(remote.fetch(`http://${host}:5432/`, { purpose: 'tool' }), refusedFor('own_endpoint'), host)
    }
    const local = makeEgress({ allow: ['loopback'], database: { host: '127.0.0.1', port: database.port } })
    for (const host of ['127.0.0.1', '127.0.0.2']) {
      await assert.rejects(local.fetch(`http://${host}:${database.port}/`, { purpose: 'tool' }), refusedFor('own_endpoint'), host)
    }
    assert.equal(database.connections(), 0)
  })

  it('open when the operator names them exactly', async (t) => {
    const api = await startLocalServer(t)
    const egress = makeEgress({ allow: [`127.0.0.1:${api.port}`], ownPorts: [api.port] })
    assert.equal((await egress.fetch(api.url, { purpose: 'tool' })).status, 200)
  })
})

describe('a redirect of a tool', () => {
  it('is followed three times, and not a fourth', async (t) => {
    const server = await startLocalServer(t, (request, response) => {
      const left = Number(request.url?.slice(1))
      if (left > 0) response.writeHead(302, { location: `/${left - 1}` })
      response.end('there')
    })
    const egress = makeEgress({ allow: ['loopback'] })
    const answer = await egress.fetch(`${server.url}/3`, { purpose: 'tool' })
    assert.deepEqual([answer.body.toString(), answer.redirects, answer.url], ['there', 3, `${server.url}/0`])
    await assert.rejects(egress.fetch(`${server.url}/4`, { purpose: 'tool' }), failedWith('too_many_redirects'))
  })

  for (const location of ['http://127.0.0.1:CANARY/', '//127.0.0.1:CANARY/', 'http://2130706433:CANARY/', 'http://inside.test:CANARY/', 'file:///etc/passwd', 'http://user:x@receiver.test:CANARY/', 'http://[bad']) {
    it(`is checked anew: ${location} is refused`, async (t) => {
      const canary = await startLocalServer(t)
      const target = location.replace('CANARY', String(canary.port))
      const server = await startLocalServer(t, (_request, response) => void response.writeHead(302, { location: target }).end())
      const egress = makeEgress({ allow: [`127.0.0.1:${server.port}`], resolve: async () => ['127.0.0.1'] })
      await assert.rejects(egress.fetch(server.url, { purpose: 'tool' }), isRefused)
      assert.equal(canary.connections(), 0)
    })
  }

  it('takes no credential to another origin, and all of them within its own', async (t) => {
    const seen: Record<string, unknown>[] = []
    const other = await startLocalServer(t, (request, response) => {
      seen.push(request.headers)
      response.end('ok')
    })
    const server = await startLocalServer(t, (request, response) => {
      seen.push(request.headers)
      response.writeHead(307, { location: request.url === '/a' ? '/b' : other.url }).end()
    })
    const headers = { Authorization: 'Bearer x', cookie: 'a=b', 'X-Api-Key': 'k', 'X-Shop-Secret': 's', accept: 'text/plain' }
    await makeEgress({ allow: ['loopback'] }).fetch(`${server.url}/a`, { purpose: 'tool', headers })
    assert.deepEqual(seen.map((got) => [got['authorization'], got['cookie'], got['x-api-key'], got['x-shop-secret'], got['accept']]), [
      ['Bearer x', 'a=b', 'k', 's', 'text/plain'],
      ['Bearer x', 'a=b', 'k', 's', 'text/plain'],
      [undefined, undefined, undefined, undefined, 'text/plain'],
    ])
  })

  it('turns POST into GET where HTTP says so, and repeats the body where it does not', async (t) => {
    const server = await startLocalServer(t, (request, response) => {
      if (request.url !== '/end') response.writeHead(Number(request.url?.slice(1)), { location: '/end' })
      request.pipe(response)
    })
    const egress = makeEgress({ allow: ['loopback'] })
    for (const [status, expected] of [[301, ''], [302, ''], [303, ''], [307, 'body'], [308, 'body']] as const) {
      const answer = await egress.fetch(`${server.url}/${status}`, { purpose: 'tool', method: 'POST', body: 'body' })
      assert.equal(answer.body.toString(), expected, String(status))
    }
    assert.deepEqual(server.requests.filter((line) => line.endsWith('/end')).map((line) => line.split(' ')[0]), ['GET', 'GET', 'GET', 'POST', 'POST'])
  })
})

describe('a request', () => {
  for (const name of ['Host', 'connection', 'Transfer-Encoding', 'content-length', 'proxy-authorization', 'upgrade', 'bad name', 'x\r\ny']) {
    it(`cannot set the header ${JSON.stringify(name)}`, async (t) => {
      const canary = await startLocalServer(t)
      const egress = makeEgress({ allow: ['loopback'] })
      await assert.rejects(egress.fetch(canary.url, { purpose: 'tool', headers: { [name]: 'x' } }), refusedFor('header'))
      assert.equal(canary.connections(), 0)
    })
  }

  it('cannot smuggle a line in a value, or use a method that makes a tunnel', async (t) => {
    const canary = await startLocalServer(t)
    const egress = makeEgress({ allow: ['loopback'] })
    await assert.rejects(egress.fetch(canary.url, { purpose: 'tool', headers: { a: 'x\r\nhost: y' } }), refusedFor('header'))
    for (const method of ['CONNECT', 'TRACE', 'GET /', '']) {
      await assert.rejects(egress.fetch(canary.url, { purpose: 'tool', method }), refusedFor('method'))
    }
    assert.equal(canary.connections(), 0)
  })

  it('takes no proxy from the environment', async (t) => {
    const [proxy, server] = [await startLocalServer(t), await startLocalServer(t)]
    const env = { ...process.env, NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxy.url, http_proxy: proxy.url, HTTPS_PROXY: proxy.url, ALL_PROXY: proxy.url, NO_PROXY: '' }
    const script = `
      import { makeEgress } from ${JSON.stringify(new URL('./safe-fetch.ts', import.meta.url).href)}
      const answer = await makeEgress({ allow: ['loopback'] }).fetch(${JSON.stringify(server.url)}, { purpose: 'tool' })
      console.log(answer.body.toString())`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { env })
    assert.equal(stdout.trim(), 'ok')
    assert.deepEqual([proxy.connections(), server.connections()], [0, 1])
  })

  it('ends in time when the answer does not, at any point of it', async (t) => {
    const egress = makeEgress({ allow: ['loopback'] })
    const silent = await startLocalServer(t, () => {})
    const slow = await startLocalServer(t, (_request, response) => void response.write('some'))
    for (const { url } of [silent, slow]) {
      await assert.rejects(egress.fetch(url, { purpose: 'tool', timeout_ms: 50 }), failedWith('timed_out'))
    }
  })

  it('ends with the reason of its signal', async (t) => {
    const stop = new AbortController()
    const reason = new Error('stopped')
    const server = await startLocalServer(t, () => stop.abort(reason))
    const egress = makeEgress({ allow: ['loopback'] })
    await assert.rejects(egress.fetch(server.url, { purpose: 'tool', signal: stop.signal }), reason)
    await assert.rejects(egress.fetch(server.url, { purpose: 'tool', signal: stop.signal }), reason)
    assert.equal(server.connections(), 1)
  })

  it('says how it failed: nobody there, cut off, not HTTP, no TLS', async (t) => {
    const egress = makeEgress({ allow: ['loopback'] })
    const cut = await startLocalServer(t, (request) => request.socket.destroy())
    const half = await startLocalServer(t, (request, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('half')
      setImmediate(() => request.socket.destroy())
    })
    const rubbish = await listen((socket) => void socket.on('error', () => {}).resume().end('this is not HTTP\r\n\r\n'))
    t.after(rubbish.close)
    const gone = await listen(() => {})
    await gone.close()
    const cases: [string, EgressErrorCode][] = [
      [cut.url, 'connection_lost'], [half.url, 'connection_lost'],
      [rubbish.url, 'bad_answer'], [gone.url, 'connect_failed'], [cut.url.replace('http', 'https'), 'tls_failed'],
    ]
    for (const [url, code] of cases) await assert.rejects(egress.fetch(url, { purpose: 'tool' }), failedWith(code), url)
  })

  it('is refused an answer of more than 5 MiB without holding more than that', async (t) => {
    const server = await endless(t)
    await assert.rejects(makeEgress({ allow: ['loopback'] }).fetch(server.url, { purpose: 'tool' }), (error) => {
      assert.ok(failedWith('answer_too_large')(error))
      assert.ok(error instanceof EgressError && error.network.bytes_in > 5 * 1024 * 1024 && error.network.bytes_in < 8 * 1024 * 1024)
      return true
    })
  })

  it('counts the bytes that crossed the network, headers included, over all its hops', async (t) => {
    const counted = { bytes_in: 0, bytes_out: 0 }
    const server = await startLocalServer(t, (request, response) => {
      request.socket.on('close', () => {
        counted.bytes_in += request.socket.bytesWritten
        counted.bytes_out += request.socket.bytesRead
      })
      if (request.url === '/first') response.writeHead(307, { location: '/second' })
      request.resume().on('end', () => response.end('answer'.repeat(1000)))
    })
    const closed = new Promise<void>((done) => {
      let open = 2
      server.server.on('connection', (socket) => socket.on('close', () => --open || setImmediate(done)))
    })
    const answer = await makeEgress({ allow: ['loopback'] }).fetch(`${server.url}/first`, { purpose: 'tool', method: 'POST', body: 'x'.repeat(500) })
    await closed
    assert.deepEqual(answer.network, counted)
    assert.ok(counted.bytes_out > 1000 && counted.bytes_in > 12_000)
  })
})

/** A server whose answer never ends. */
async function endless(t: Parameters<typeof startLocalServer>[0]): Promise<LocalServer> {
  const chunk = Buffer.alloc(64 * 1024, 'x')
  return startLocalServer(t, (_request, response) => {
    const more = (): void => {
      while (!response.destroyed && response.write(chunk));
    }
    response.on('drain', more)
    more()
  })
}

/** A server of bare connections on loopback. */
async function listen(onSocket: (socket: Socket) => void): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createServer(onSocket).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async (): Promise<void> => void (server.close(), await once(server, 'close'))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}
