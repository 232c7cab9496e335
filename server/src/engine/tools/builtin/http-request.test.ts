import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startLocalServer } from '../../../../test/fakes/local-server.ts'
import { toolCall, toolEgress } from '../../../../test/tool-call.ts'
import { checkArguments } from '../arguments.ts'
import { httpRequest } from './http-request.ts'
import { safetyOf, ToolError } from '../tool.ts'

const tool = httpRequest(toolEgress)

describe('http_request', () => {
  it('http_request returns status, useful headers and body of any response', async (t) => {
    const { url } = await startLocalServer(t, (request, response) => {
      const status = request.url === '/missing' ? 404 : 200
      response.writeHead(status, { 'content-type': 'application/json', 'x-other': 'no' }).end('{"a":1}')
    })
    const ok = await tool.call({ url }, toolCall())
    assert.deepEqual([ok.content, ok.error], ['HTTP 200\ncontent-type: application/json\n\n{"a":1}', undefined])
    const missing = await tool.call({ url: `${url}/missing` }, toolCall())
    assert.deepEqual([missing.content.slice(0, 8), missing.error], ['HTTP 404', undefined])
  })

  it('http_request sends text unchanged and anything else as JSON, with the idempotency key', async (t) => {
    const seen: unknown[] = []
    const { url } = await startLocalServer(t, async (request, response) => {
      const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>)).toString()
      const { 'content-type': type, 'idempotency-key': key } = request.headers
      seen.push([request.method, type, key, body])
      response.end()
    })
    const key = toolCall().idempotency_key
    await tool.call({ method: 'POST', url, body: { a: 1 } }, toolCall())
    await tool.call({ method: 'PUT', url, body: 'text', headers: { 'Content-Type': 'text/plain' } }, toolCall())
    await tool.call({ method: 'PATCH', url, body: [1], headers: { 'CONTENT-TYPE': 'application/x' } }, toolCall())
    await tool.call({ method: 'HEAD', url }, toolCall())
    assert.deepEqual(seen, [
      ['POST', 'application/json', key, '{"a":1}'],
      ['PUT', 'text/plain', key, 'text'],
      ['PATCH', 'application/x', key, '[1]'],
      ['HEAD', undefined, undefined, ''],
    ])
  })

  it('http_request follows three redirects and returns the final URL', async (t) => {
    const { url } = await startLocalServer(t, (request, response) => {
      const left = Number(request.url?.slice(1))
      if (left > 0) response.writeHead(302, { location: `/${left - 1}` }).end()
      else response.end('here')
    })
    assert.match((await tool.call({ url: `${url}/3` }, toolCall())).content, new RegExp(`^HTTP 200\nurl: ${url}/0\n`))
    await assert.rejects(tool.call({ url: `${url}/4` }, toolCall()), isRefusal('too_many_redirects'))
  })

  it('http_request reaches only public addresses, directly or by a redirect', async (t) => {
    const { url, requests } = await startLocalServer(t, (request, response) => {
      response.writeHead(302, { location: decodeURIComponent(request.url!.slice(1)) }).end()
    })
    for (const target of [
      'http://10.0.0.1/',
      'http://169.254.169.254/latest/meta-data/',
      'http://[::ffff:10.0.0.1]/',
      'http://192.168.0.1:8080/',
      'http://localhost.:22/',
      'file:///etc/passwd',
      'gopher://example.com/',
      'http://user:password@example.com/',
    ]) {
      await assert.rejects(tool.call({ url: target }, toolCall()), isRefusal('request_refused'), target)
      const redirected = tool.call({ url: `${url}/${encodeURIComponent(target)}` }, toolCall())
      await assert.rejects(redirected, isRefusal('request_refused'), target)
    }
    assert.equal(requests.length, 8)
  })

  it('http_request cannot set routing or framing headers, or secrets', async (t) => {
    const { url, requests } = await startLocalServer(t)
    for (const headers of [{ Host: 'internal' }, { 'Transfer-Encoding': 'chunked' }, { 'x-a': 'b\r\nx-c: d' }])
      await assert.rejects(tool.call({ url, headers }, toolCall()), isRefusal('request_refused'))
    assert.deepEqual(requests, [])
    const echo = await startLocalServer(t, (request, response) => void response.end(request.headers['x-a']))
    const { content } = await tool.call({ url: echo.url, headers: { 'x-a': '${env.KEY}' } }, toolCall())
    assert.match(content, /\$\{env\.KEY\}$/)
  })

  it('http_request is safe for GET and HEAD only', () => {
    for (const method of [undefined, 'GET', 'HEAD']) assert.equal(safetyOf(tool, { method }), 'safe')
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
      assert.equal(safetyOf(tool, { method }), 'unsafe')
  })

  it('http_request rejects arguments outside its schema', () => {
    for (const args of [
      {},
      { url: 5 },
      { url: '' },
      { url: 'https://a.example', method: 'CONNECT' },
      { url: 'https://a.example', method: 'get' },
      { url: 'https://a.example', timeout_seconds: 61 },
      { url: 'https://a.example', headers: { a: 5 } },
      { url: 'https://a.example', body: 5 },
      { url: 'https://a.example', more: 1 },
    ])
      assert.equal(typeof checkArguments(tool, args), 'string', JSON.stringify(args))
    const args = { url: 'https://a.example', method: 'POST', headers: { a: 'b' }, body: { a: 1 }, timeout_seconds: 60 }
    assert.equal(checkArguments(tool, args), undefined)
  })
})

const isRefusal = (code: string) => (error: unknown) => error instanceof ToolError && error.code === code
