import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import type { ToolDefinition } from '#contract/tools/tools.ts'
import type { ToolSafety } from '#contract/tasks/task-lifecycle.ts'
import { startLocalServer } from '../../../../test/fakes/local-server.ts'
import { toolCall, toolEgress } from '../../../../test/tool-call.ts'
import { httpTool } from './http-tool.ts'
import { fillPlaceholders } from '../placeholders.ts'
import { safetyOf, type Tool, type ToolCallContext, ToolError } from '../tool.ts'

const values = {
  credentials: new Map([
    ['KEY', { value: 'canary/key', allowed_hosts: ['127.0.0.1'] }],
    ['EVIL', { value: 'a\r\nx-injected: 1', allowed_hosts: null }],
    ['OTHER', { value: 'canary-other', allowed_hosts: ['*.example.com', '127.0.0.1:1'] }],
  ]),
  environment: { TEAM: 'red team' },
}

function tool(http: ToolDefinition<'http'>, safety: ToolSafety | null = null): Tool {
  const row = {
    id: 'tool_1',
    project_id: 42,
    name: 'weather',
    description: 'The weather.',
    kind: 'http' as const,
    safety,
    parameters: { type: 'object' },
    definition: http,
    pinned: null,
    status: 'active' as const,
    drift: null,
  }
  const fill = (template: string, target: string, encode?: (value: string) => string) =>
    fillPlaceholders(template, values, target, encode)
  return httpTool(row, { egress: toolEgress, fill } as Parameters<typeof httpTool>[1])
}

/** What a server was sent, and an answer that says it. */
async function echo(t: TestContext) {
  const seen: { method: string; url: string; headers: IncomingMessage['headers']; body: string }[] = []
  const server = await startLocalServer(t, async (request, response) => {
    const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>)
    const { method = '', url = '', headers } = request
    seen.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
    response.setHeader('content-type', 'application/json')
    response.end('{"ok":true}')
  })
  return { ...server, last: () => seen.at(-1)! }
}

const answers = async (t: TestContext, answer: RequestListener, more: Partial<ToolCallContext> = {}) => {
  const { url } = await startLocalServer(t, answer)
  return tool({ method: 'GET', url }).call({}, toolCall(more))
}

/** Fails with a `ToolError` of this code, which is uncertain or not. */
async function fails(call: Promise<unknown>, code: string, uncertain = false): Promise<ToolError> {
  const error = await call.then(
    () => assert.fail('it did not fail'),
    (reason: unknown) => reason,
  )
  assert.ok(error instanceof ToolError, String(error))
  assert.deepEqual([error.code, error.uncertain], [code, uncertain], error.message)
  return error
}

describe('a tool of kind http', () => {
  it('a tool of kind http fills in arguments and secrets in path, query and headers', async (t) => {
    const { url, last } = await echo(t)
    const get = tool({
      method: 'GET',
      url: `${url}/v1/{city}?key=\${credentials.KEY}&fixed=1`,
      headers: { Authorization: 'Bearer ${credentials.KEY}', 'X-Team': '${env.TEAM}' },
    })
    const { content, error, network } = await get.call({ city: 'São/Paulo', days: 3, tags: ['a', 'b'] }, toolCall())
    assert.deepEqual([content, error], ['{"ok":true}', undefined])
    assert.ok(network!.bytes_in > 0 && network!.bytes_out > 0)
    assert.equal(last().url, '/v1/S%C3%A3o%2FPaulo?key=canary%2Fkey&fixed=1&days=3&tags=a&tags=b')
    assert.equal(last().headers.authorization, 'Bearer canary/key')
    assert.equal(last().headers['x-team'], 'red team')
    assert.equal(last().headers['idempotency-key'], undefined)
    assert.equal(last().body, '')
  })

  it('a tool of kind http sends the other arguments as a JSON body', async (t) => {
    const { url, last } = await echo(t)
    for (const method of ['POST', 'PUT', 'PATCH'] as const) {
      await tool({ method, url: `${url}/{id}` }).call({ id: 7, name: 'x', deep: { a: [1] } }, toolCall())
      assert.deepEqual(
        [last().method, last().url, last().body, last().headers['content-type']],
        [method, '/7', '{"name":"x","deep":{"a":[1]}}', 'application/json'],
      )
    }
    await tool({ method: 'DELETE', url: `${url}/{id}` }).call({ id: 7, force: true }, toolCall())
    assert.deepEqual([last().method, last().url, last().body], ['DELETE', '/7?force=true', ''])
  })

  it('a tool of kind http sends the same idempotency key with every repetition, and the trace', async (t) => {
    const { url, last } = await echo(t)
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'] as const) {
      await tool({ method, url }, 'keyed').call({}, toolCall({ traceparent }))
      assert.equal(last().headers['idempotency-key'], toolCall().idempotency_key)
      assert.equal(last().headers.traceparent, traceparent)
    }
    await tool({ method: 'POST', url, headers: { 'idempotency-KEY': 'own' } }).call({}, toolCall())
    assert.equal(last().headers['idempotency-key'], 'own')
  })

  it('a tool of kind http is safe as a GET, and unsafe otherwise until a caller declares it', () => {
    const url = 'https://api.example.com/'
    assert.equal(safetyOf(tool({ method: 'GET', url }), {}), 'safe')
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'] as const)
      assert.equal(safetyOf(tool({ method, url }), {}), 'unsafe')
    assert.equal(safetyOf(tool({ method: 'POST', url }, 'keyed'), {}), 'keyed')
    assert.equal(safetyOf(tool({ method: 'GET', url }, 'unsafe'), {}), 'unsafe')
  })

  it('a tool of kind http sends nothing if a placeholder has no value', async (t) => {
    const { url, requests } = await echo(t)
    for (const place of ['${credentials.NONE}', '${env.NONE}', '${env.toString}', '${other.KEY}', '${KEY}', '${}']) {
      const { message } = await fails(
        tool({ method: 'GET', url, headers: { 'x-a': place } }).call({}, toolCall()),
        'placeholder_unknown',
      )
      assert.ok(message.includes(place), message)
      assert.equal(message.includes('canary'), false)
    }
    assert.deepEqual(requests, [])
  })

  it('a tool of kind http sends nothing if an argument would change the path, or a secret a header', async (t) => {
    const { url, requests } = await echo(t)
    for (const id of ['', '.', '..', undefined, {}])
      await fails(tool({ method: 'DELETE', url: `${url}/users/{id}` }).call({ id }, toolCall()), 'invalid_arguments')
    const { message } = await fails(
      tool({ method: 'GET', url, headers: { 'x-a': '${credentials.EVIL}' } }).call({}, toolCall()),
      'request_refused',
    )
    assert.equal(message.includes('injected'), false)
    assert.deepEqual(requests, [])
  })

  it('a tool of kind http keeps secrets from other origins when it is redirected', async (t) => {
    const other = await echo(t)
    const { url } = await startLocalServer(t, (_request, response) => {
      response.writeHead(307, { location: other.url }).end()
    })
    await tool({ method: 'GET', url, headers: { 'x-key': '${credentials.KEY}' } }).call({}, toolCall())
    assert.equal(other.last().headers['x-key'], undefined)
  })
})

describe('an answer', () => {
  it('a response of 400 or more is an error that the model reads with its status', async (t) => {
    for (const status of [400, 404, 429, 500, 503]) {
      const { content, error } = await answers(t, (_request, response) => {
        response.writeHead(status, { 'content-type': 'text/plain' }).end('why not')
      })
      assert.equal(content, `HTTP ${status}: why not`)
      assert.deepEqual(error, { code: `http_${status}`, message: `The server answered HTTP ${status}.` })
    }
  })

  it('an empty response is described as such', async (t) => {
    for (const [status, code] of [
      [204, undefined],
      [500, 'http_500'],
    ] as const) {
      const { content, error } = await answers(t, (_request, response) => void response.writeHead(status).end())
      assert.deepEqual([content, error?.code], [`HTTP ${status} without content`, code])
    }
  })

  it('a binary response of 500 is described after its status', async (t) => {
    const { content } = await answers(t, (_request, response) => {
      response.writeHead(500, { 'content-type': 'image/png' }).end(Buffer.from([0x89, 0x50, 0xff]))
    })
    assert.equal(content, 'HTTP 500: [3 bytes of image/png that are not text]')
  })

  it('a binary response is described and not shown', async (t) => {
    const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
    for (const [type, body] of [
      ['image/png', png],
      ['text/plain', Buffer.from([0xff, 0xfe, 0xfd])],
      ['application/json', Buffer.from('a\u0000b')],
      ['text/plain; charset=nonsense', Buffer.from('text')],
    ] as const) {
      const { content } = await answers(t, (_request, response) => {
        response.writeHead(200, { 'content-type': type }).end(body)
      })
      assert.match(content, new RegExp(`^\\[${body.length} bytes of ${type.split(';')[0]} that are not text\\]$`))
    }
  })

  it('a response is decompressed and read in its character set', async (t) => {
    for (const [headers, body] of [
      [{ 'content-type': 'text/plain; charset=iso-8859-1' }, Buffer.from('Köln', 'latin1')],
      [{ 'content-type': 'text/plain', 'content-encoding': 'gzip' }, gzipSync('Köln')],
      [{ 'content-type': 'text/plain', 'content-encoding': 'br' }, brotliCompressSync('Köln')],
      [{}, Buffer.from('\uFEFFKöln')],
    ] as const) {
      const answer = await answers(t, (_request, response) => void response.writeHead(200, headers).end(body))
      assert.equal(answer.content, 'Köln')
    }
  })

  it('a response that cannot be decompressed within its bound is described', async (t) => {
    for (const [encoding, body] of [
      ['gzip', gzipSync(Buffer.alloc(50_000_000))],
      ['gzip', Buffer.from('no gzip')],
      ['strange', Buffer.from('text')],
    ] as const) {
      const { content } = await answers(t, (_request, response) => {
        response.writeHead(200, { 'content-encoding': encoding }).end(body)
      })
      assert.match(content, /could not be decompressed\]$/)
    }
  })

  it('a response of 10 MB or without an end fails without using memory', async (t) => {
    const before = process.memoryUsage.rss()
    await fails(
      answers(t, (_request, response) => void response.end(Buffer.alloc(10_000_000, 'x'))),
      'answer_too_large',
    )
    await fails(
      answers(t, (_request, response) => {
        const more = (): void => {
          while (response.write(Buffer.alloc(65_536, 'x')));
          response.once('drain', more)
        }
        more()
      }),
      'answer_too_large',
    )
    assert.ok(process.memoryUsage.rss() - before < 150e6)
  })

  it('a response that is not HTTP fails', async (t) => {
    const url = await startTcp(t, (socket) => void socket.end('hello\r\n\r\n'))
    await fails(tool({ method: 'GET', url }).call({}, toolCall()), 'bad_answer')
    await fails(tool({ method: 'POST', url }).call({}, toolCall()), 'bad_answer', true)
  })
})

describe('a call without an answer', () => {
  const never = (_request: unknown): void => {}

  it('a call without a response is uncertain if its request was sent and may have taken effect', async (t) => {
    const slow = await startLocalServer(t, never)
    const cut = await startLocalServer(t, (request) => void request.socket.destroy())
    const half = await startLocalServer(t, (_request, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('half', () => response.destroy())
    })
    for (const [{ url }, code] of [
      [slow, 'timed_out'],
      [cut, 'connection_lost'],
      [half, 'connection_lost'],
    ] as const) {
      const call = (method: 'GET' | 'POST', safety: ToolSafety | null = null) =>
        tool({ method, url, timeout_seconds: 0.3 }, safety).call({}, toolCall())
      await fails(call('POST'), code, true)
      await fails(call('POST', 'keyed'), code, false)
      await fails(call('POST', 'safe'), code, false)
      await fails(call('GET'), code, false)
      await fails(call('GET', 'unsafe'), code, true)
    }
  })

  it('a call without a response is certain if nothing was sent', async (t) => {
    const free = await freePort()
    await fails(tool({ method: 'POST', url: `http://127.0.0.1:${free}/` }).call({}, toolCall()), 'connect_failed')
    const post = (url: string) => tool({ method: 'POST', url }).call({}, toolCall())
    for (const url of ['http://10.0.0.1/', 'http://169.254.169.254/latest/meta-data', 'http://[fd00::1]/'])
      await fails(post(url), 'request_refused')
    await fails(post('http://nowhere.invalid/'), 'dns_failed')
    const away = await startLocalServer(t, (_request, response) => {
      response.writeHead(303, { location: 'http://10.0.0.1/' }).end()
    })
    // This one was sent, and only what came after it was refused.
    await fails(post(away.url), 'request_refused', true)
  })

  it('an aborted call ends with the reason of the abort', async (t) => {
    const arrived = Promise.withResolvers<void>()
    const { url } = await startLocalServer(t, () => arrived.resolve())
    const abort = new AbortController()
    const call = tool({ method: 'POST', url }).call({}, toolCall({ signal: abort.signal }))
    await arrived.promise
    const reason = new Error('the task was canceled')
    abort.abort(reason)
    await assert.rejects(call, reason)
  })
})

async function startTcp(t: TestContext, connected: (socket: Socket) => void): Promise<string> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    connected(socket)
  })
  server.listen(0, '127.0.0.1')
  await new Promise((listening) => server.once('listening', listening))
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A port without a listener. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((listening) => server.once('listening', listening))
  const { port } = server.address() as AddressInfo
  await new Promise((closed) => server.close(closed))
  return port
}
