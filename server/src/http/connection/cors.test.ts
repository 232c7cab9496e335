import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeSession, ownerOf } from '../../../test/actors.ts'
import { localUrl, startTestService, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { rawSend, type RawReply } from '../../../test/raw-http.ts'

const ours = 'https://console.example.com'
const doors = 'https://chat.example.com'
const listed = 'https://app.example.com'
let test: TestService
let cookie: string
let address: string
before(async () => {
  test = await startTestService({
    CADRE_CORS_ORIGINS: `${listed},http://localhost:3000`,
    CADRE_DOOR_ORIGINS: doors,
    CADRE_PUBLIC_URL: ours,
  })
  cookie = (await makeSession(test, ownerOf(test))).cookie
  address = localUrl(test)
})
after(() => test.stop())

/** Sends a request like a browser; `fetch` cannot set these headers. */
const ask = (method: string, path: string, headers: Record<string, string>, body?: string): Promise<RawReply> =>
  rawSend(address, { method, path, headers, body })

describe('a page of another origin (decision D18)', () => {
  const preflight = {
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'x-api-key,content-type',
  }

  it('a preflight from a listed origin is allowed for every path without a credential', async () => {
    for (const path of ['/api/v1/projects', '/api/v1/auth/user', '/api/v1/projects/1/agents/x/start']) {
      const { status, headers, body } = await ask('OPTIONS', path, { origin: listed, ...preflight })
      assert.equal(status, 204)
      assert.equal(body, '')
      assert.equal(headers['access-control-allow-origin'], listed)
      for (const method of ['GET', 'POST', 'PUT', 'DELETE'])
        assert.match(headers['access-control-allow-methods'] ?? '', new RegExp(method))
      for (const name of [
        'Authorization',
        'X-API-Key',
        'X-Organization-ID',
        'traceparent',
        'Content-Type',
        'If-Match',
      ]) {
        assert.match(headers['access-control-allow-headers'] ?? '', new RegExp(name, 'i'))
      }
      assert.match(headers['x-request-id'] as string, /^req_/)
    }
  })

  it('an origin is listed separately for the API and for the other protocols', async () => {
    for (const [path, origin, allowed] of [
      ['/v1/models', doors, doors],
      ['/v1/models', listed, undefined],
      ['/api/v1/hello', doors, undefined],
    ] as const) {
      const { headers } = await ask('OPTIONS', path, { origin, ...preflight })
      assert.equal(headers['access-control-allow-origin'], allowed, `${origin} at ${path}`)
    }
    const sent = { ...preflight, 'access-control-request-headers': 'x-stainless-lang,authorization' }
    const { headers } = await ask('OPTIONS', '/v1/responses', { origin: doors, ...sent })
    assert.equal(headers['access-control-allow-headers'], 'x-stainless-lang,authorization')
  })

  it('a page of a listed origin may read responses and errors with their headers, but never with cookies', async () => {
    for (const [path, key] of [
      ['/api/v1/hello', test.owner.api_key],
      ['/api/v1/hello', 'wrong'],
      ['/api/v1/nope', ''],
    ] as const) {
      const { headers } = await ask('GET', path, { origin: listed, 'x-api-key': key })
      assert.equal(headers['access-control-allow-origin'], listed)
      assert.equal(headers['access-control-allow-credentials'], undefined)
      assert.equal(headers.vary, 'Origin')
      const exposed = (headers['access-control-expose-headers'] ?? '').split(', ')
      for (const name of [
        'X-Request-ID',
        'Retry-After',
        'X-RateLimit-Limit',
        'X-RateLimit-Remaining',
        'X-RateLimit-Reset',
        'RateLimit-Policy',
        'RateLimit',
        'X-RateLimit-Remaining-Requests',
        'X-RateLimit-Remaining-Tokens',
      ]) {
        assert.ok(exposed.includes(name), name)
      }
    }
  })

  for (const origin of [
    'https://evil.example',
    'null',
    '*',
    '',
    listed.toUpperCase(),
    `${listed}/`,
    `${listed}:443`,
    `${listed}.evil.example`,
    'http://app.example.com',
    'https://example.com',
    'https://sub.app.example.com',
    'https://evilapp.example.com',
    'http://localhost:3001',
    'http://localhost',
    `${listed},https://evil.example`,
    `https://evil.example ${listed}`,
  ]) {
    it(`a page of the origin ${JSON.stringify(origin)}, which is not listed, gets no CORS headers`, async () => {
      const { status, headers } = await ask('OPTIONS', '/api/v1/projects', { origin, ...preflight })
      assert.equal(status, 405)
      assert.equal(headers['access-control-allow-origin'], undefined)
      const got = await ask('GET', '/api/v1/hello', { origin, 'x-api-key': test.owner.api_key })
      assert.equal(got.status, 200)
      assert.equal(got.headers['access-control-allow-origin'], undefined)
      assert.equal(got.headers.vary, 'Origin')
    })
  }

  it('an OPTIONS request that is not a preflight is 405', async () => {
    assert.equal((await ask('OPTIONS', '/api/v1/projects', { origin: listed })).status, 405)
    assert.equal((await ask('OPTIONS', '/api/v1/projects', preflight)).status, 405)
  })
})

describe('without listed origins', () => {
  let plain: TestService
  before(async () => {
    plain = await shareTestService()
  })
  after(() => plain.stop())

  it('without listed origins no response has CORS headers, and OPTIONS is 405', async () => {
    const headers = { origin: listed, 'access-control-request-method': 'GET' }
    const preflight = await rawSend(plain.url, { method: 'OPTIONS', path: '/api/v1/hello', headers })
    const got = await rawSend(plain.url, {
      method: 'GET',
      path: '/api/v1/hello',
      headers: { ...headers, 'x-api-key': plain.owner.api_key },
    })
    assert.deepEqual([preflight.status, got.status], [405, 200])
    for (const answer of [preflight, got])
      assert.deepEqual(
        Object.keys(answer.headers).filter((name) => name.startsWith('access-control') || name === 'vary'),
        [],
      )
  })
})

describe('a write with a cookie (decision S2)', () => {
  const sites: [Record<string, string>, boolean][] = [
    [{ 'sec-fetch-site': 'same-origin' }, true],
    [{ 'sec-fetch-site': 'none' }, true],
    [{ 'sec-fetch-site': 'same-site' }, false],
    [{ 'sec-fetch-site': 'cross-site' }, false],
    [{ 'sec-fetch-site': '' }, false],
    [{ 'sec-fetch-site': 'Same-Origin' }, false],
    [{ 'sec-fetch-site': 'same-origin', origin: ours }, true],
    [{ 'sec-fetch-site': 'cross-site', origin: ours }, false],
    [{ 'sec-fetch-site': 'cross-site', origin: listed }, false],
    [{ origin: ours }, true],
    [{}, true],
    [{ origin: listed }, false],
    [{ origin: 'null' }, false],
    [{ origin: '' }, false],
    [{ origin: 'http://console.example.com' }, false],
    [{ origin: `${ours}:8443` }, false],
    [{ origin: `${ours}.evil.example` }, false],
    [{ origin: 'https://evil.example', referer: `${ours}/` }, false],
  ]
  let names = 0
  for (const [headers, allowed] of sites) {
    it(`a write with a cookie is ${allowed ? 'served' : 'refused'} with ${JSON.stringify(headers)}`, async () => {
      const name = `cross-site-${++names}`
      const { status, body } = await ask(
        'POST',
        '/api/v1/projects',
        { cookie, 'content-type': 'application/json', ...headers },
        JSON.stringify({ name }),
      )
      const made = await test.sql`select 1 from project where name = ${name}`
      assert.deepEqual([status, made.length], allowed ? [201, 1] : [403, 0])
      if (!allowed) assert.equal(body.error.code, 'FORBIDDEN')
      const a = await ask(
        'PUT',
        '/api/v1/auth/user',
        { cookie, 'content-type': 'application/json', ...headers },
        '{"name":"Ada"}',
      )
      assert.deepEqual([a.status, a.body.error?.code], allowed ? [200, undefined] : [403, 'insufficient_permissions'])
    })
  }

  it('a request with a cookie from another site is refused for every write method, and served for reads', async () => {
    const elsewhere = { cookie, 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const path = method === 'POST' ? '/api/v1/webhooks' : '/api/v1/projects/1'
      assert.equal((await ask(method, path, elsewhere)).status, 403, method)
    }
    for (const method of ['GET', 'HEAD']) assert.equal((await ask(method, '/api/v1/projects', elsewhere)).status, 200)
  })

  it('a request with a key or token is served from any site', async () => {
    const headers = {
      cookie,
      'sec-fetch-site': 'cross-site',
      origin: 'https://evil.example',
      'content-type': 'application/json',
      'x-api-key': test.owner.api_key,
    }
    assert.equal((await ask('POST', '/api/v1/projects', headers, '{"name":"by-key"}')).status, 201)
  })

  it('a write with a cookie must be JSON, so that a form of another site is refused', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      assert.equal(
        (await ask('POST', '/api/v1/projects', { cookie, 'content-type': type }, '{"name":"by-form"}')).status,
        400,
      )
    }
  })
})
