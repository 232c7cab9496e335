import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { type LocalServer, startLocalServer } from '../../../test/fakes/local-server.ts'
import { EgressError, type EgressErrorCode, EgressRefused, makeEgress, type RefusalReason } from './safe-fetch.ts'

const refusedFor = (reason: RefusalReason) => (error: unknown) =>
  error instanceof EgressRefused && error.reason === reason
const failedWith = (code: EgressErrorCode) => (error: unknown) => error instanceof EgressError && error.code === code
/** A resolver that must not be used. */
const noResolver = async (name: string): Promise<never> => assert.fail(`${name} was resolved`)

describe('a webhook', () => {
  const egress = makeEgress({ allow: ['hooks.corp.test', '10.1.0.0/16', 'odd.test:81'], resolve: noResolver })
  const refused: [string, RefusalReason][] = [
    ['http://example.com/', 'plain_http'],
    ['http://93.184.216.34/', 'plain_http'],
    ['https://example.com:22/', 'port'],
    ['https://example.com:444/', 'port'],
    ['https://example.com/#x', 'fragment'],
    ['https://example.com/#', 'fragment'],
    ['https://u:p@example.com/', 'user_info'],
    ['http://localhost:3000/', 'address'],
  ]
  for (const [url, reason] of refused) {
    it(`a webhook cannot be registered at ${url}`, () =>
      void assert.throws(() => egress.check(url, 'webhook'), refusedFor(reason)))
  }
  for (const url of [
    'https://example.com/',
    'https://example.com:80/',
    'https://example.com:8443/a?b',
    'http://hooks.corp.test/',
    'http://10.1.2.3/',
    'http://odd.test:81/',
  ]) {
    it(`a webhook can be registered at ${url}, without resolving it`, () => void egress.check(url, 'webhook'))
  }

  it('a webhook may go to this machine if the service listens only on loopback, but not to the service', async (t) => {
    const [server, api] = [await startLocalServer(t), await startLocalServer(t)]
    const local = makeEgress({ listensOnLoopback: true, ownPorts: () => [api.port] })
    for (const host of ['127.0.0.1', 'localhost']) {
      const answer = await local.fetch(`http://${host}:${server.port}/`, {
        purpose: 'webhook',
        method: 'POST',
        body: '{}',
      })
      assert.equal(answer.status, 200, host)
      await assert.rejects(
        local.fetch(`http://${host}:${api.port}/`, { purpose: 'webhook' }),
        refusedFor('own_endpoint'),
      )
      await assert.rejects(local.fetch(`http://${host}:${server.port}/`, { purpose: 'tool' }), refusedFor('address'))
    }
    assert.throws(() => local.check('http://example.com/', 'webhook'), refusedFor('plain_http'))
    assert.equal(api.connections(), 0)
  })

  it('a webhook does not follow a redirect, which is its response', async (t) => {
    const canary = await startLocalServer(t)
    const server = await startLocalServer(
      t,
      (_request, response) => void response.writeHead(302, { location: canary.url }).end(),
    )
    const answer = await makeEgress({ allow: ['loopback'] }).fetch(server.url, {
      purpose: 'webhook',
      method: 'POST',
      body: '{}',
    })
    assert.equal(answer.status, 302)
    assert.equal(canary.connections(), 0)
  })

  it('a webhook reads only the first 64 KiB of a long response', async (t) => {
    const server = await endless(t)
    const answer = await makeEgress({ allow: ['loopback'] }).fetch(server.url, {
      purpose: 'webhook',
      method: 'POST',
      body: '{}',
    })
    assert.deepEqual([answer.status, answer.body.length, answer.truncated], [200, 64 * 1024, true])
  })
})

describe('a redirect of a tool', () => {
  it('a tool follows three redirects, and not a fourth', async (t) => {
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

  for (const location of [
    'http://127.0.0.1:CANARY/',
    '//127.0.0.1:CANARY/',
    'http://2130706433:CANARY/',
    'http://inside.test:CANARY/',
    'file:///etc/passwd',
    'http://user:x@receiver.test:CANARY/',
    'http://[bad',
  ]) {
    it(`a redirect of a tool to ${location} is refused`, async (t) => {
      const canary = await startLocalServer(t)
      const target = location.replace('CANARY', String(canary.port))
      const server = await startLocalServer(
        t,
        (_request, response) => void response.writeHead(302, { location: target }).end(),
      )
      const egress = makeEgress({ allow: [`127.0.0.1:${server.port}`], resolve: async () => ['127.0.0.1'] })
      await assert.rejects(egress.fetch(server.url, { purpose: 'tool' }), EgressRefused)
      assert.equal(canary.connections(), 0)
    })
  }

  it('a redirect to another origin does not get credentials, and one within the origin keeps them', async (t) => {
    const seen: Record<string, unknown>[] = []
    const other = await startLocalServer(t, (request, response) => {
      seen.push(request.headers)
      response.end('ok')
    })
    const server = await startLocalServer(t, (request, response) => {
      seen.push(request.headers)
      response.writeHead(307, { location: request.url === '/a' ? '/b' : other.url }).end()
    })
    const headers = {
      Authorization: 'Bearer x',
      cookie: 'a=b',
      'X-Api-Key': 'k',
      'X-Shop-Secret': 's',
      accept: 'text/plain',
    }
    await makeEgress({ allow: ['loopback'] }).fetch(`${server.url}/a`, { purpose: 'tool', headers })
    assert.deepEqual(
      seen.map((got) => [got['authorization'], got['cookie'], got['x-api-key'], got['x-shop-secret'], got['accept']]),
      [
        ['Bearer x', 'a=b', 'k', 's', 'text/plain'],
        ['Bearer x', 'a=b', 'k', 's', 'text/plain'],
        [undefined, undefined, undefined, undefined, 'text/plain'],
      ],
    )
  })

  it('a redirect turns POST into GET or repeats the body, as HTTP defines for its status', async (t) => {
    const server = await startLocalServer(t, (request, response) => {
      if (request.url !== '/end') response.writeHead(Number(request.url?.slice(1)), { location: '/end' })
      request.pipe(response)
    })
    const egress = makeEgress({ allow: ['loopback'] })
    for (const [status, expected] of [
      [301, ''],
      [302, ''],
      [303, ''],
      [307, 'body'],
      [308, 'body'],
    ] as const) {
      const answer = await egress.fetch(`${server.url}/${status}`, { purpose: 'tool', method: 'POST', body: 'body' })
      assert.equal(answer.body.toString(), expected, String(status))
    }
    assert.deepEqual(
      server.requests.filter((line) => line.endsWith('/end')).map((line) => line.split(' ')[0]),
      ['GET', 'GET', 'GET', 'POST', 'POST'],
    )
  })
})

describe('a request', () => {
  for (const name of [
    'Host',
    'connection',
    'Transfer-Encoding',
    'content-length',
    'proxy-authorization',
    'upgrade',
    'bad name',
    'x\r\ny',
  ]) {
    it(`a request cannot set the header ${JSON.stringify(name)}`, async (t) => {
      const canary = await startLocalServer(t)
      const egress = makeEgress({ allow: ['loopback'] })
      await assert.rejects(
        egress.fetch(canary.url, { purpose: 'tool', headers: { [name]: 'x' } }),
        refusedFor('header'),
      )
      assert.equal(canary.connections(), 0)
    })
  }

  it('a request cannot have a line break in a header value, or use CONNECT or TRACE', async (t) => {
    const canary = await startLocalServer(t)
    const egress = makeEgress({ allow: ['loopback'] })
    await assert.rejects(
      egress.fetch(canary.url, { purpose: 'tool', headers: { a: 'x\r\nhost: y' } }),
      refusedFor('header'),
    )
    for (const method of ['CONNECT', 'TRACE', 'GET /', '']) {
      await assert.rejects(egress.fetch(canary.url, { purpose: 'tool', method }), refusedFor('method'))
    }
    assert.equal(canary.connections(), 0)
  })

  it('a request uses no proxy of the environment', async (t) => {
    const [proxy, server] = [await startLocalServer(t), await startLocalServer(t)]
    const env = {
      ...process.env,
      NODE_USE_ENV_PROXY: '1',
      HTTP_PROXY: proxy.url,
      http_proxy: proxy.url,
      HTTPS_PROXY: proxy.url,
      ALL_PROXY: proxy.url,
      NO_PROXY: '',
    }
    const script = `
      import { makeEgress } from ${JSON.stringify(new URL('./safe-fetch.ts', import.meta.url).href)}
      const answer = await makeEgress({ allow: ['loopback'] }).fetch(${JSON.stringify(server.url)}, { purpose: 'tool' })
      console.log(answer.body.toString())`
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { env })
    assert.equal(stdout.trim(), 'ok')
    assert.deepEqual([proxy.connections(), server.connections()], [0, 1])
  })

  it('a request times out at any point of a response that does not end', async (t) => {
    const egress = makeEgress({ allow: ['loopback'] })
    const silent = await startLocalServer(t, () => {})
    const slow = await startLocalServer(t, (_request, response) => void response.write('some'))
    for (const { url } of [silent, slow]) {
      await assert.rejects(egress.fetch(url, { purpose: 'tool', timeout_ms: 50 }), failedWith('timed_out'))
    }
  })

  it('an aborted request fails with the reason of its signal', async (t) => {
    const stop = new AbortController()
    const reason = new Error('stopped')
    const server = await startLocalServer(t, () => stop.abort(reason))
    const egress = makeEgress({ allow: ['loopback'] })
    await assert.rejects(egress.fetch(server.url, { purpose: 'tool', signal: stop.signal }), reason)
    await assert.rejects(egress.fetch(server.url, { purpose: 'tool', signal: stop.signal }), reason)
    assert.equal(server.connections(), 1)
  })

  it('a failed request has a code for unreachable, cut off, not HTTP and no TLS', async (t) => {
    const egress = makeEgress({ allow: ['loopback'] })
    const cut = await startLocalServer(t, (request) => request.socket.destroy())
    const half = await startLocalServer(t, (request, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('half')
      setImmediate(() => request.socket.destroy())
    })
    const rubbish = await listen(
      (socket) =>
        void socket
          .on('error', () => {})
          .resume()
          .end('this is not HTTP\r\n\r\n'),
    )
    t.after(rubbish.close)
    const deleted = await listen(() => {})
    await deleted.close()
    const cases: [string, EgressErrorCode][] = [
      [cut.url, 'connection_lost'],
      [half.url, 'connection_lost'],
      [rubbish.url, 'bad_answer'],
      [deleted.url, 'connect_failed'],
      [cut.url.replace('http', 'https'), 'tls_failed'],
    ]
    for (const [url, code] of cases) await assert.rejects(egress.fetch(url, { purpose: 'tool' }), failedWith(code), url)
  })

  it('a response of more than 5 MiB is refused without more than that in memory', async (t) => {
    const server = await endless(t)
    await assert.rejects(makeEgress({ allow: ['loopback'] }).fetch(server.url, { purpose: 'tool' }), (error) => {
      assert.ok(failedWith('answer_too_large')(error))
      assert.ok(
        error instanceof EgressError &&
          error.network.bytes_in > 5 * 1024 * 1024 &&
          error.network.bytes_in < 8 * 1024 * 1024,
      )
      return true
    })
  })

  it('a request counts the bytes on the network, with headers, over all its hops', async (t) => {
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
    const answer = await makeEgress({ allow: ['loopback'] }).fetch(`${server.url}/first`, {
      purpose: 'tool',
      method: 'POST',
      body: 'x'.repeat(500),
    })
    await closed
    assert.deepEqual(answer.network, counted)
    assert.ok(counted.bytes_out > 1000 && counted.bytes_in > 12_000)
  })
})

/** A server whose response never ends. */
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

/** A TCP server on loopback. */
async function listen(onSocket: (socket: Socket) => void): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createServer(onSocket).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async (): Promise<void> => void (server.close(), await once(server, 'close'))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}
