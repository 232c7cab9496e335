import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { pino } from 'pino'
import { after, before, beforeEach, describe, it } from 'node:test'
import { readConfig } from '../../config/config.ts'
import { startService, type Service } from '../../service.ts'
import { eventually, makeTestDatabase, sender, type Send } from '../../../test/harness.ts'
import { rawSend } from '../../../test/raw-http.ts'
import { createProject } from '../../../test/fixtures.ts'

let service: Service
let send: Send
let database: Awaited<ReturnType<typeof makeTestDatabase>>
const lines: string[] = []
before(async () => {
  database = await makeTestDatabase()
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const config = readConfig({ PORT: '0', CADRE_OAUTH_REDIRECT_URI: 'https://client.example/cb' })
  service = await startService({
    config,
    secret_key: 'a secret key for tests, 32 characters',
    connection: database.connection,
    log,
  })
  send = sender(service.url, service.first_owner!.api_key)
})
beforeEach(() => void (lines.length = 0))
after(async () => {
  await service.stop()
  await database.drop()
})

/** The log entry of a request, which is written after its response. */
async function entryOf(request_id: string | string[] | null | undefined): Promise<any> {
  return eventually(async () =>
    lines.map((line) => JSON.parse(line)).find((entry) => entry.request_id === request_id && entry.msg === 'request'),
  )
}

describe('the request log', () => {
  it('the request log has the request, its caller, its status and its duration', async () => {
    const { headers } = await send('GET', '/api/v1/projects?search=canary')
    const entry = await entryOf(headers.get('x-request-id'))
    const { method, path, status, org_id, credential_id, duration_ms, ip } = entry
    assert.deepEqual(
      [method, path, status, org_id, ip],
      ['GET', '/api/v1/projects', 200, service.first_owner!.org_id, '127.0.0.1'],
    )
    assert.match(credential_id, /^key_/)
    assert.ok(Number.isInteger(duration_ms) && duration_ms >= 0)
  })

  it('a client that leaves before its body ends is not logged as a failed request', async () => {
    const { hostname, port } = new URL(service.url)
    const head = [
      'POST /api/v1/projects HTTP/1.1',
      'host: localhost',
      `x-api-key: ${service.first_owner!.api_key}`,
      'content-type: application/json',
      'content-length: 100',
    ]
    const socket = connect(Number(port), hostname)
    const [request] = await Promise.all([
      once(service.app.server, 'request').then(([one]) => one as IncomingMessage),
      new Promise<void>((sent) => socket.write(`${head.join('\r\n')}\r\n\r\n{"a`, () => sent())),
    ])
    await eventually(async () => request.listenerCount('error') > 0)
    const closed = new Promise((done) => request.once('close', done))
    socket.destroy()
    await closed
    const { headers } = await send('GET', '/api/v1/status')
    await entryOf(headers.get('x-request-id'))
    assert.deepEqual(
      lines.filter((line) => line.includes('request failed')),
      [],
    )
  })

  it("the request log has the caller's request id only if it is well-formed (decision D4)", async () => {
    for (const [sent, logged] of [
      ['my-id_1.2', 'my-id_1.2'],
      ['x'.repeat(128), 'x'.repeat(128)],
      ['x'.repeat(129), undefined],
      ['a b', undefined],
      ['{"a":1}', undefined],
      ['', undefined],
      ['é', undefined],
    ] as const) {
      const { headers } = await rawSend(service.url, {
        method: 'GET',
        path: '/api/v1/status',
        headers: { 'x-request-id': sent },
      })
      assert.equal((await entryOf(headers['x-request-id'])).client_request_id, logged)
    }
  })

  it('the content of a request cannot forge log entries: an entry is one line', async () => {
    const forged = '%0a%7b%22msg%22%3a%22request%22%2c%22status%22%3a200%7d'
    const { headers } = await rawSend(service.url, { method: 'GET', path: `/api/v1/${forged}?a=${forged}` })
    await entryOf(headers['x-request-id'])
    assert.ok(lines.length >= 1)
    for (const line of lines) assert.equal(line.indexOf('\n'), line.length - 1)
  })

  it('the request log has no secret, whether the request succeeds or fails (decision D105)', async () => {
    const canary = 'canary4711'
    const secrets = {
      authorization: `Bearer ${canary}-token-of-some-length`,
      'x-api-key': `cadre_${'c'.repeat(32)}`,
      cookie: `cadre_session=${canary}.${canary}`,
    }
    for (const [name, value] of Object.entries(secrets))
      await send('GET', '/api/v1/hello', { key: null, headers: { [name]: value } })
    const project = await createProject(send, 'secretive')
    const agents = `${project.path}/agents`
    await send('POST', agents, {
      body: { name: 'a', config: { environment_variables: { A: canary }, system_prompt: canary } },
    })
    await send('POST', agents, { body: { name: '', config: { environment_variables: { A: [canary] } } } })
    await send('POST', '/api/v1/webhooks', {
      body: { url: 'https://hooks.example.com/', events: ['agent.failed'], secret: canary },
    })
    await send('POST', '/api/v1/auth/login', { key: null, body: { email: 'a@example.com', password: canary } })
    const { body: key } = await send('POST', '/api/v1/auth/api-keys', { body: { name: 'k', scopes: ['read'] } })
    const last = await send('GET', `/api/v1/hello?name=${canary}`, { key: key.key })
    await entryOf(last.headers.get('x-request-id'))
    const text = lines.join('')
    for (const secret of [canary, 'c'.repeat(32), key.key, service.first_owner!.api_key, service.first_owner!.password])
      assert.equal(text.includes(secret), false, secret)
  })
})
