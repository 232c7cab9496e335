import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { operations } from '#contract/operations.ts'
import { type TestService } from '../../test/harness.ts'
import { shareTestService } from '../../test/shared-service.ts'
import { rawSend } from '../../test/raw-http.ts'

let test: TestService
before(async () => {
  test = await shareTestService()
})
after(() => test.stop())

const raw = (method: string, path: string, more: { body?: string; headers?: Record<string, string> } = {}) =>
  rawSend(test.url, { method, path, ...more, headers: { 'x-api-key': test.owner.api_key, ...more.headers } })

describe('every response', () => {
  const requests: [string, string, string, object?][] = [
    ['a success', 'GET', '/api/v1/hello'],
    ['a public answer', 'GET', '/api/v1/status'],
    ['a fault', 'POST', '/api/v1/projects', { body: {} }],
    ['a refusal', 'GET', '/api/v1/hello', { key: null }],
    ['an unknown path', 'GET', '/nope'],
    ['an unknown method', 'PATCH', '/api/v1/hello'],
    ['a path that cannot be decoded', 'GET', '/api/v1/%zz'],
    ['a path that is too long', 'GET', `/api/v1/projects/${'9'.repeat(1000)}`],
    ['a probe', 'GET', '/livez'],
  ]
  for (const [what, method, path, options] of requests) {
    it(`every response to ${what} has a request id, a response time and security headers (decisions D4, D5)`, async () => {
      const { status, headers, body } = await test.send(method, path, options)
      assert.match(headers.get('x-request-id') ?? '', /^req_[0-9a-hjkmnp-tv-z]{24}$/)
      assert.match(headers.get('x-response-time') ?? '', /^\d+ms$/)
      assert.equal(headers.get('x-content-type-options'), 'nosniff')
      assert.equal(headers.get('server'), null)
      assert.equal(headers.get('x-powered-by'), null)
      assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
      if (status >= 400) assert.equal(body.error.request_id, headers.get('x-request-id'))
    })
  }

  it("every response has a new request id, never the caller's (decision D4)", async () => {
    const sent = 'my-own-id'
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const { headers } = await test.send('GET', '/api/v1/hello', { headers: { 'x-request-id': sent } })
        return headers.get('x-request-id')
      }),
    )
    assert.equal(new Set(ids).size, 20)
    assert.equal(ids.includes(sent), false)
  })

  it('responses of the API have Cache-Control: no-store', async () => {
    assert.equal((await test.send('GET', '/api/v1/hello')).headers.get('cache-control'), 'no-store')
  })
})

describe('an unknown path', () => {
  const families: [string, 'resource_not_found' | 'RESOURCE_NOT_FOUND'][] = [
    ['/api/v1/auth/nope', 'resource_not_found'],
    ['/api/v1/auth/', 'resource_not_found'],
    ['/api/v1/auth/api-keys/key_1/nope', 'resource_not_found'],
    ['/api/v1/projects/proj_1/agents/agent_1/nope', 'resource_not_found'],
    ['/api/v1/projects/proj_1/agents/agent_1/start/nope', 'resource_not_found'],
    ['/api/v1/nope', 'RESOURCE_NOT_FOUND'],
    ['/api/v1/projects/proj_1/nope', 'RESOURCE_NOT_FOUND'],
    ['/api/v1/authnope', 'RESOURCE_NOT_FOUND'],
    ['/api/v1', 'RESOURCE_NOT_FOUND'],
    ['/api/v2/auth/user', 'RESOURCE_NOT_FOUND'],
    ['/api/auth/user', 'RESOURCE_NOT_FOUND'],
    ['/API/v1/hello', 'RESOURCE_NOT_FOUND'],
    ['/api/v1/Hello', 'RESOURCE_NOT_FOUND'],
    ['/api/v1/hello//', 'RESOURCE_NOT_FOUND'],
    ['/api//v1/hello', 'RESOURCE_NOT_FOUND'],
    ['//api/v1/hello', 'RESOURCE_NOT_FOUND'],
    ['/api/v1/auth/../hello', 'resource_not_found'],
    ['/api/v1/auth/%2e%2e/hello', 'resource_not_found'],
    ['/api/v1/./hello', 'RESOURCE_NOT_FOUND'],
    ['/api/v1%2fhello', 'RESOURCE_NOT_FOUND'],
    ['/api/v1/%zz', 'RESOURCE_NOT_FOUND'],
    ['/api/v1/auth/%zz', 'resource_not_found'],
    ['/api/v1/auth/%c0%af', 'resource_not_found'],
    ['/api/v1/hello;a=b', 'RESOURCE_NOT_FOUND'],
    ['/api/v1/hello%00', 'RESOURCE_NOT_FOUND'],
    ['/api/v1/hello%3fname=x', 'RESOURCE_NOT_FOUND'],
  ]
  for (const [path, code] of families) {
    it(`the unknown path ${path} is 404 ${code} without details, also without a credential (decisions D2, D19, D24)`, async () => {
      const { status, body } = await rawSend(test.url, { method: 'GET', path })
      assert.equal(status, 404)
      assert.equal(body.error.code, code)
      assert.equal('details' in body.error, false)
    })
  }

  it('an unknown path is 404 before its body is checked, even if it is large or malformed (decision D3)', async () => {
    const bodies: [string, string][] = [
      ['{', 'application/json'],
      ['x', 'text/plain'],
      ['x', 'no type at all'],
      ['{}', ''],
      ['x'.repeat(1_048_577), 'application/json'],
    ]
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
      for (const [body, type] of bodies) {
        const { status } = await raw(method, '/api/v1/nope', { body, headers: { 'content-type': type } })
        assert.equal(status, 404, `${method} ${type}`)
      }
    }
  })
})

describe('a path', () => {
  it('a path may end with one slash', async () => {
    assert.equal((await raw('GET', '/api/v1/hello/')).status, 200)
    assert.equal((await raw('GET', '/api/v1/hello/?name=Ada')).body.message, 'Hello, Ada!')
    assert.equal((await raw('GET', '/api/v1/projects/')).status, 200)
  })

  it('a path is decoded once', async () => {
    assert.equal((await raw('GET', '/api/v1/%68ello')).status, 200)
    assert.equal((await raw('GET', '/api/v1/%2568ello')).status, 404)
    const { body } = await raw('GET', '/api/v1/projects/%2570roj_1/agents')
    assert.equal(body.error.details.resource_id, '%70roj_1')
  })

  it('a path with an encoded slash or dot segment in an identifier names nothing', async () => {
    const user = '/api/v1/auth/api-keys/..%2f..%2fhello'
    for (const path of [
      user,
      '/api/v1/projects/%2e%2e',
      '/api/v1/projects/%2e%2e/agents',
      '/api/v1/projects/42%2fagents',
      '/api/v1/auth/api-keys/%2e',
    ]) {
      assert.equal((await raw('GET', path)).status, 404, path)
    }
  })

  it('a path has the errors of its error format however it is encoded', async () => {
    const { status, body } = await rawSend(test.url, {
      method: 'GET',
      path: '/api/v1/%61uth/user',
      headers: { 'x-api-key': 'cadre_1' },
    })
    assert.equal(status, 401)
    assert.equal(body.error.code, 'invalid_api_key')
  })
})

describe('methods', () => {
  const paths = new Map<string, { methods: Set<string>; error_format: string }>()
  for (const { path, method, error_format } of operations) {
    const known = paths.get(path) ?? { methods: new Set(), error_format }
    known.methods.add(method)
    if (method === 'GET') known.methods.add('HEAD')
    paths.set(path, known)
  }

  it('a method that a path does not have is 405 with the allowed ones, before any other check (decision D12)', async () => {
    const codes: Record<string, (body: any) => unknown> = {
      agents: (body) => body.error.code === 'method_not_allowed',
      control: (body) => body.error.code === 'METHOD_NOT_ALLOWED',
      oauth: (body) => body.error === 'invalid_request',
    }
    for (const [path, { error_format }] of paths) {
      const example = path.replaceAll(/\{\w+\}/g, 'x1')
      // A literal segment may match the parameter of another path, whose methods are then allowed too.
      const alike = [...paths].filter(([other]) =>
        new RegExp(`^${other.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(example),
      )
      const methods = new Set(alike.flatMap(([, known]) => [...known.methods]))
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY'].filter(
        (name) => !methods.has(name),
      )) {
        const { status, headers, body } = await rawSend(test.url, {
          method,
          path: example,
          body: method === 'TRACE' ? undefined : '{',
        })
        assert.equal(status, 405, `${method} ${path}`)
        assert.deepEqual(headers.allow?.split(', ').sort(), [...methods].sort(), `${method} ${path}`)
        assert.ok(codes[error_format]?.(body), `${method} ${path} ${JSON.stringify(body)}`)
      }
    }
  })

  it('HEAD is answered like GET, without a body', async () => {
    for (const path of ['/api/v1/hello?name=Ada', '/api/v1/projects', '/api/v1/status', '/api/v1/docs', '/livez']) {
      const get = await test.send('GET', path)
      const head = await test.send('HEAD', path)
      assert.equal(head.status, get.status)
      assert.equal(head.body, '')
      assert.equal(head.headers.get('content-type'), get.headers.get('content-type'))
      if (path !== '/api/v1/status') assert.equal(head.headers.get('content-length'), get.headers.get('content-length'))
    }
    assert.equal((await test.send('HEAD', '/api/v1/hello', { key: null })).status, 401)
  })

  it('a header does not override the method', async () => {
    for (const name of ['x-http-method-override', 'x-http-method', 'x-method-override']) {
      const { body } = await test.send('POST', '/api/v1/projects', { headers: { [name]: 'GET' }, body: {} })
      assert.equal(body.error.code, 'INVALID_REQUEST')
    }
  })
})
