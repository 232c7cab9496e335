import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { type LocalServer, startLocalServer } from '../../../../test/fakes/local-server.ts'
import { makeEgress } from '../../../platform/egress/safe-fetch.ts'
import { mcpConnection } from './mcp-connection.ts'
import { inExchange } from './mcp-exchange.ts'
import { type McpCall, openMcp } from './mcp-session.ts'

const egress = makeEgress({ allow: ['loopback'] })
const signal = new AbortController().signal
const call: McpCall = { name: 'echo', arguments: { a: 1 }, _meta: {}, inputSchema: { type: 'object' } }
const sse = { 'content-type': 'text/event-stream' }

/** Answers of a server of the protocol of 2025, by hand: for servers that break it. */
function answerTo({
  id,
  method,
  params,
}: {
  id: number
  method: string
  params: { arguments: unknown }
}): object | undefined {
  if (method === 'initialize') {
    const capabilities = { tools: {} }
    return {
      jsonrpc: '2.0',
      id,
      result: { protocolVersion: '2025-06-18', capabilities, serverInfo: { name: 'old', version: '1' } },
    }
  }
  if (method === 'tools/list') {
    return { jsonrpc: '2.0', id, result: { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] } }
  }
  if (method === 'tools/call') {
    return { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: JSON.stringify(params.arguments) }] } }
  }
  return undefined
}

/** A server of the older transport, which has one stream for all answers and takes messages at another path. */
function startSseServer(t: TestContext): Promise<LocalServer> {
  const streams = new Map<string, ServerResponse>()
  return startLocalServer(t, async (request, response) => {
    const url = new URL(request.url ?? '/', 'http://x')
    if (request.method === 'GET' && url.pathname === '/sse') {
      const id = String(streams.size)
      streams.set(id, response)
      return void response.writeHead(200, sse).write(`event: endpoint\ndata: /messages?id=${id}\n\n`)
    }
    const stream = streams.get(url.searchParams.get('id') ?? '')
    if (request.method !== 'POST' || !stream) return void response.writeHead(405).end()
    let body = ''
    for await (const chunk of request) body += String(chunk)
    const answer = answerTo(JSON.parse(body))
    if (answer) stream.write(`event: message\ndata: ${JSON.stringify(answer)}\n\n`)
    response.writeHead(202).end()
  })
}

describe('a session with an MCP server', () => {
  it('a server of the older MCP transport gets a session for each call', async (t) => {
    const server = await startSseServer(t)
    const connection = mcpConnection(egress, () => ({ url: `${server.url}/sse`, headers: () => ({}) }))
    t.after(() => connection.close())
    for (const n of [1, 2]) {
      const result = await connection.with(signal, (session, tools) => {
        assert.deepEqual([...tools.keys()], ['echo'])
        return session.call({ ...call, arguments: { n } }, signal)
      })
      assert.deepEqual(result.content, [{ type: 'text', text: `{"n":${n}}` }])
    }
    assert.equal(server.requests.filter((line) => line === 'GET /sse').length, 2)
  })

  it('an MCP session resumes a response whose stream broke', async (t) => {
    let asked: string | undefined
    const server = await startLocalServer(t, async (request, response) => {
      if (request.method === 'GET') {
        assert.equal(request.headers['last-event-id'], '7')
        return void response.writeHead(200, sse).end(`id: 8\ndata: ${asked}\n\n`)
      }
      let body = ''
      for await (const chunk of request) body += String(chunk)
      const message = JSON.parse(body) as Parameters<typeof answerTo>[0]
      const answer = JSON.stringify(answerTo(message))
      if (message.method === 'server/discover') return void response.writeHead(400).end()
      if (message.method === 'notifications/initialized') return void response.writeHead(202).end()
      if (message.method !== 'tools/call')
        return void response.writeHead(200, { 'content-type': 'application/json' }).end(answer)
      asked = answer
      response.writeHead(200, sse).end('id: 7\nretry: 0\ndata:\n\n')
    })
    const session = await openMcp(egress, { url: server.url, headers: () => ({}) }, signal)
    const { content } = await session.call(call, signal)
    assert.deepEqual(content, [{ type: 'text', text: '{"a":1}' }])
    await session.close()
  })

  it('an MCP session ends when its server breaks the stream too often', async (t) => {
    const server = await startLocalServer(t, async (request, response) => {
      let body = ''
      for await (const chunk of request) body += String(chunk)
      if (request.method === 'GET') return void response.writeHead(200, sse).end('id: 7\nretry: 0\ndata:\n\n')
      const message = JSON.parse(body) as Parameters<typeof answerTo>[0]
      if (message.method === 'server/discover') return void response.writeHead(400).end()
      if (message.method === 'notifications/initialized') return void response.writeHead(202).end()
      if (message.method === 'tools/call') return void response.writeHead(200, sse).end('id: 7\nretry: 0\ndata:\n\n')
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answerTo(message)))
    })
    const session = await openMcp(egress, { url: server.url, headers: () => ({}) }, signal)
    await assert.rejects(session.call(call, signal), /the connection ended before the answer/)
    assert.equal(server.requests.filter((line) => line.startsWith('GET')).length, 20)
    await session.close()
  })

  it('an abort ends an MCP session with a silent server at once', async (t) => {
    const waiting = Promise.withResolvers<void>()
    const server = await startLocalServer(t, () => waiting.resolve())
    const controller = new AbortController()
    const opening = inExchange(() => openMcp(egress, { url: server.url, headers: () => ({}) }, controller.signal))
    await waiting.promise
    controller.abort(new Error('enough'))
    await assert.rejects(opening, /enough/)

    const connection = mcpConnection(egress, () => ({ url: server.url, headers: () => ({}) }))
    const again = connection.with(signal, async () => assert.fail())
    await Promise.all([assert.rejects(again, /closed/), connection.close()])
  })
})
