import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { it, type TestContext } from 'node:test'
import { Agent, request } from 'undici'
import type { Admission } from './admission.ts'
import { refuseEarly } from './refuse-early.ts'

async function serve(t: TestContext) {
  const refused: { path: string; request_id: string; status: number }[] = []
  const world = { isFull: true, refused }
  const server = createServer((_request: IncomingMessage, response) => void response.end('served'))
  refuseEarly(server, {
    admission: { isFull: () => world.isFull } as Admission,
    newRequestId: () => `req_${refused.length}`,
    headersOf: (request_id) => ({ 'x-request-id': request_id }),
    onRefused: ({ url = '' }, request_id, status) => void refused.push({ path: url, request_id, status }),
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const dispatcher = new Agent({ connections: 1 })
  t.after(() => dispatcher.destroy())
  t.after(() => server.close())
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const send = async (path: string, headers: Record<string, string> = {}, body?: string) => {
    const sent = await request(origin + path, {
      dispatcher,
      method: body === undefined ? 'GET' : 'POST',
      headers,
      body,
    })
    return { status: sent.statusCode, headers: sent.headers, text: await sent.body.text() }
  }
  return { world, send }
}

it('a request of the API is refused before the framework sees it, in the error format of its operation', async (t) => {
  const { world, send } = await serve(t)
  for (const [path, code] of [
    ['/api/v1/projects/1/agents', 'service_unavailable'],
    ['/api/v1/projects', 'SERVICE_UNAVAILABLE'],
  ] as const) {
    const { status, headers, text } = await send(path)
    const { error } = JSON.parse(text)
    assert.deepEqual([status, headers['retry-after'], error.code], [503, '1', code])
    assert.equal(headers['x-request-id'], error.request_id)
    assert.deepEqual(world.refused.at(-1), { path, request_id: error.request_id, status: 503 })
  }
  world.isFull = false
  assert.equal((await send('/api/v1/projects')).text, 'served')
})

it('a request that is refused early leaves its connection usable, whatever its body is', async (t) => {
  const { world, send } = await serve(t)
  assert.equal((await send('/api/v1/projects', {}, 'x'.repeat(60_000))).status, 503)
  world.isFull = false
  assert.equal((await send('/api/v1/projects')).text, 'served')
})

it('pages, other protocols, other origins and large bodies are not refused early', async (t) => {
  const { world, send } = await serve(t)
  for (const path of ['/', '/livez', '/oauth2/token', '/docs', '/api/v1/projects/1/work/v1/chat/completions'])
    assert.equal((await send(path)).text, 'served', path)
  assert.equal((await send('/api/v1/projects', { origin: 'https://app.example' })).text, 'served')
  assert.equal((await send('/api/v1/projects', {}, 'x'.repeat(70_000))).text, 'served')
  assert.deepEqual(world.refused, [])
})
