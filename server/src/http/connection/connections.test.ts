import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { eventually, startTestService, type Reply, type TestService } from '../../../test/harness.ts'
import { exchange } from '../../../test/raw-http.ts'

let test: TestService
before(async () => {
  test = await startTestService()
})
after(() => test.stop())

const body = '{"name":"smuggled"}'
/** A request as bytes. `close` ends the connection, so that the response is complete. */
const request = (head: string[], rest = ''): string =>
  [...head, `x-api-key: ${test.owner.api_key}`, 'connection: close', '', rest].join('\r\n')
const post = (headers: string[], rest: string, line = 'POST /api/v1/projects HTTP/1.1'): string =>
  request([line, 'host: localhost', 'content-type: application/json', ...headers], rest)
const statuses = (answer: string): number[] =>
  [...answer.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))

describe('a request with an unknown expectation', () => {
  it('a request with an unknown Expect header is answered like any other', async () => {
    const lines = ['GET /api/v1/status HTTP/1.1', 'host: localhost', 'expect: 200-maybe']
    const answer = await exchange(test.url, request(lines))
    assert.deepEqual(statuses(answer), [200])
    assert.match(answer, /^x-request-id: req_/im)
  })
})

describe('an ambiguous request', () => {
  const length = `content-length: ${body.length}`
  const chunked = `13\r\n${body}\r\n0\r\n\r\n`
  const ambiguous: [string, () => string][] = [
    ['two lengths', () => post([length, 'content-length: 5'], body)],
    ['the same length twice', () => post([length, length], body)],
    ['a list of lengths', () => post([`content-length: ${body.length}, ${body.length}`], body)],
    ['a length and chunks', () => post([length, 'transfer-encoding: chunked'], chunked)],
    ['chunks and a length', () => post(['transfer-encoding: chunked', length], chunked)],
    ['a signed length', () => post([`content-length: +${body.length}`], body)],
    ['a negative length', () => post(['content-length: -1'], body)],
    ['a length in hexadecimal', () => post(['content-length: 0x13'], body)],
    ['a length with a space inside', () => post(['content-length: 1 9'], body)],
    ['an empty length', () => post(['content-length: '], body)],
    ['an unknown transfer encoding', () => post(['transfer-encoding: xchunked'], chunked)],
    ['chunks that are not last', () => post(['transfer-encoding: chunked, identity'], chunked)],
    ['chunks named twice', () => post(['transfer-encoding: chunked', 'transfer-encoding: chunked'], chunked)],
    ['a space before the colon', () => post([`content-length : ${body.length}`], body)],
    ['a folded header', () => post(['content-length:', ` ${body.length}`], body)],
    ['a header without a colon', () => post([length, 'x-nothing'], body)],
    ['a header with a control character', () => post([length, 'x-bad: a\u0001b'], body)],
    ['a header with a NUL', () => post([length, 'x-bad: a\u0000b'], body)],
    ['a lone line feed in a header', () => post([length, 'x-bad: a\nx-api-key: other'], body)],
    ['a lone carriage return in a header', () => post([length, 'x-bad: a\rb'], body)],
    ['a chunk size that is none', () => post(['transfer-encoding: chunked'], `zz\r\n${body}\r\n0\r\n\r\n`)],
    ['a chunk longer than it says', () => post(['transfer-encoding: chunked'], `5\r\n${body}\r\n0\r\n\r\n`)],
    ['no host', () => request(['GET /api/v1/status HTTP/1.1'])],
    ['an unknown method', () => request(['FETCH /api/v1/status HTTP/1.1', 'host: localhost'])],
    ['a space in its path', () => request(['GET /api/v1/ status HTTP/1.1', 'host: localhost'])],
    ['an unknown version', () => request(['GET /api/v1/status HTTP/3.7', 'host: localhost'])],
    ['bytes of another protocol', () => '\u0016\u0003\u0001\u0000\u00a5\u0001\u0000\u0000\u00a1\u0003\u0003'],
  ]
  for (const [what, bytes] of ambiguous) {
    it(`an ambiguous request is refused completely: ${what}`, async () => {
      const answer = await exchange(test.url, Buffer.from(bytes(), 'latin1'))
      assert.deepEqual(statuses(answer), [400], answer.slice(0, 300))
      assert.deepEqual(await test.sql`select name from project`, [])
    })
  }

  it('a request with too large headers is refused', async () => {
    const answer = await exchange(
      test.url,
      request(['GET /api/v1/status HTTP/1.1', 'host: localhost', `x-large: ${'x'.repeat(20_000)}`]),
    )
    assert.deepEqual(statuses(answer), [431])
  })

  it('the response to an ambiguous request does not repeat its content', async () => {
    const answer = await exchange(test.url, request(['GET /<script>canary</script> HTTP/1.1', 'host: localhost']))
    assert.deepEqual(statuses(answer), [404])
    assert.equal(answer.includes('canary'), false)
  })
})

describe('a request', () => {
  it('the address of a client is known after its connection closed', async () => {
    const { hostname, port } = new URL(test.url)
    const arrived = new Promise<IncomingMessage>((resolve) => test.service.app.server.once('request', resolve))
    const socket = connect(Number(port), hostname)
    socket.write(post(['content-length: 100'], '{'))
    const asked = await arrived
    const closed = new Promise((resolve) => asked.socket.once('close', resolve))
    socket.destroy()
    await closed
    assert.equal(asked.socket.remoteAddress, '127.0.0.1')
  })

  it('a request line in absolute form is served like its path', async () => {
    const cases = [
      ['GET http://other.example/api/v1/status HTTP/1.1', '', 200],
      ['GET HTTP://other.example?x HTTP/1.1', '', 303],
      ['POST http://other.example/mcp HTTP/1.1', '{"jsonrpc":"2.0","id":1,"method":"nothing"}', 200],
      ['GET ftp://other.example/api/v1/status HTTP/1.1', '', 404],
    ] as const
    for (const [line, message, status] of cases) {
      const { host } = new URL(test.url)
      const headers = [line, `host: ${host}`, 'content-type: application/json', 'mcp-protocol-version: 2025-06-18']
      const accept = 'accept: application/json, text/event-stream'
      const answer = await exchange(
        test.url,
        request([...headers, accept, `content-length: ${message.length}`], message),
      )
      assert.deepEqual(statuses(answer), [status], `${line}\n${answer}`)
    }
  })

  it('a request in chunks has the same meaning as one with a length', async () => {
    const chunks = [...'{"name":"in-chunks"}'].map((letter) => `1\r\n${letter}\r\n`).join('')
    assert.deepEqual(
      statuses(await exchange(test.url, post(['transfer-encoding: chunked'], `${chunks}0\r\n\r\n`))),
      [201],
    )
    await test.sql`delete from project`
  })

  it('a second request on a connection is a separate request', async () => {
    const one = ['GET /api/v1/hello HTTP/1.1', 'host: localhost', `x-api-key: ${test.owner.api_key}`, '', ''].join(
      '\r\n',
    )
    const answer = await exchange(test.url, `${one}${one}${request(['GET /api/v1/nope HTTP/1.1', 'host: localhost'])}`)
    assert.deepEqual(statuses(answer), [200, 200, 404])
    assert.equal(new Set([...answer.matchAll(/req_[0-9a-z]{24}/g)].map(([id]) => id)).size, 3)
  })

  it('a request whose unread body looks like another request is one request', async () => {
    const inner = 'GET /api/v1/hello HTTP/1.1\r\nhost: localhost\r\n\r\n'
    for (const line of [
      'POST /api/v1/nope HTTP/1.1',
      'PATCH /api/v1/projects HTTP/1.1',
      'POST /api/v1/projects/1/agents/x/start HTTP/1.1',
      'GET /api/v1/status HTTP/1.1',
    ]) {
      assert.equal(
        statuses(await exchange(test.url, post([`content-length: ${inner.length}`], inner, line))).length,
        1,
        line,
      )
    }
  })

  it('a request of HTTP/0.9 has no headers, so it is answered without a credential', async () => {
    assert.deepEqual(statuses(await exchange(test.url, 'GET /api/v1/status\r\n\r\n')), [200])
    assert.deepEqual(statuses(await exchange(test.url, 'GET /api/v1/hello\r\n\r\n')), [401])
  })

  it('a request with an absolute URL is served by its path, whatever host it names', async () => {
    for (const target of ['http://evil.example/api/v1/status', 'http://evil.example:99/api/v1/status']) {
      const answer = await exchange(test.url, request([`GET ${target} HTTP/1.1`, 'host: localhost']))
      assert.ok([200, 404].includes(statuses(answer)[0]!), answer.slice(0, 200))
      assert.equal(answer.includes('evil'), false)
    }
  })

  it('the Host header does not change the response', async () => {
    for (const host of ['evil.example', 'localhost:1', '[::1]', 'a b', '<script>']) {
      const answer = await exchange(test.url, request(['GET /api/v1/docs HTTP/1.1', `host: ${host}`]))
      assert.ok([200, 400].includes(statuses(answer)[0]!))
      assert.equal(answer.includes('evil.example'), false)
    }
  })

  it('forwarding headers of an untrusted client are ignored', async () => {
    const forwarded = [
      'x-forwarded-for: 203.0.113.7',
      'x-forwarded-host: evil.example',
      'x-forwarded-proto: https',
      'forwarded: for=203.0.113.7;host=evil.example',
    ]
    const answer = await exchange(test.url, request(['GET /api/v1/docs HTTP/1.1', 'host: localhost', ...forwarded]))
    assert.equal(answer.includes('evil.example'), false)
    const [row] = await test.sql<{
      subjects: string[]
    }>`select array_agg(subject) as subjects from rate_window where bucket = 'docs'`
    assert.deepEqual(row!.subjects, ['ip:127.0.0.1'])
  })
})

describe('a request beyond the capacity', () => {
  it('a request beyond the capacity is refused at once with 503 and Retry-After, while probes are answered; later ones are served', async () => {
    const { id } = (await test.send('POST', '/api/v1/projects', { body: { name: 'held-up' } })).body
    const read = () => test.send('GET', `/api/v1/projects/${id}`)
    const replies: Reply[] = []
    const sent: Promise<unknown>[] = []
    await test.sql.begin(async (tx) => {
      await tx.script('lock table project in access exclusive mode')
      const { headers, body } = await eventually(async () => {
        for (let i = 0; i < 40; i++) sent.push(read().then((reply) => replies.push(reply)))
        return replies.find(({ status }) => status === 503)
      })
      assert.equal(headers.get('retry-after'), '1')
      assert.deepEqual([body.error.code, body.error.retry_after], ['SERVICE_UNAVAILABLE', 1])
      assert.match(body.error.message, /more requests than it can serve in time/)
      assert.equal(headers.get('x-request-id'), body.error.request_id)
      assert.equal(headers.get('cache-control'), 'no-store')
      const agents = await test.send('POST', `/api/v1/projects/${id}/agents`, { body: { name: 'agent' } })
      assert.deepEqual([agents.status, agents.body.error.code], [503, 'service_unavailable'])
      assert.equal((await test.send('GET', '/readyz', { key: null })).status, 200)
    })
    await Promise.all(sent)
    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200, 503]))
    assert.equal((await read()).status, 200)
  })
})
