import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { Cadre, type CadreOptions } from './client.ts'
import {
  APIConnectionError,
  APITimeoutError,
  CadreError,
  ConflictError,
  InternalServerError,
  RateLimitError,
} from './errors.ts'

type Answer = (response: ServerResponse) => void

/** A service that sends one response after the other and repeats the last, and its client. */
async function against(t: TestContext, answers: Answer[], options: CadreOptions = {}) {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    request.resume().on('end', () => (answers.length > 1 ? answers.shift() : answers[0])!(response))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const baseURL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { client: new Cadre({ apiKey: 'key', baseURL, ...options }), requests, baseURL }
}

const answer =
  (status: number, body: object = {}, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response
      .writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers })
      .end(JSON.stringify(body))
const good = answer(200, { id: 'agent_1' })
const unavailable = answer(503, { error: { code: 'service_unavailable', message: 'later' } })
const cut: Answer = (response) => response.destroy()
const silence: Answer = () => {}

const answerThatBreaksOff: Answer = (response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' }).write('{"id"')
  setImmediate(() => response.destroy())
}

for (const [name, fault] of Object.entries({
  'status 408': answer(408),
  'status 429': answer(429),
  'status 500': answer(500),
  'status 503': unavailable,
  'a lost connection': cut,
  'an answer that breaks off': answerThatBreaksOff,
})) {
  test(`a read is retried after ${name}`, async (t) => {
    const { client, requests } = await against(t, [fault, good])
    assert.deepEqual(await client.agents.get(1, 'agent_1'), { id: 'agent_1' })
    assert.equal(requests.length, 2)
  })

  test(`a creation is retried after ${name} with the same idempotency key`, async (t) => {
    const { client, requests } = await against(t, [fault, fault, good])
    await client.agents.create(1, { name: 'a' })
    const keys = requests.map(({ headers }) => headers['idempotency-key'])
    assert.equal(keys.length, 3)
    assert.match(String(keys[0]), /^[\x21-\x7e]{16,255}$/)
    assert.equal(new Set(keys).size, 1)
    await client.agents.create(1, { name: 'a' })
    assert.notEqual(requests.at(-1)?.headers['idempotency-key'], keys[0])
  })

  test(`a POST without idempotency is ${name.endsWith('429') ? '' : 'not '}retried after ${name}`, async (t) => {
    const { client, requests } = await against(t, [fault, good])
    const made = client.apiKeys.create({ name: 'k', scopes: ['read'] })
    if (name.endsWith('429')) await made
    else await assert.rejects(made, CadreError)
    assert.equal(requests.length, name.endsWith('429') ? 2 : 1)
    assert.equal(requests[0]?.headers['idempotency-key'], undefined)
  })
}

for (const status of [400, 401, 403, 404, 409, 412, 422]) {
  test(`a response with status ${status} is not retried`, async (t) => {
    const { client, requests } = await against(t, [answer(status), good])
    await assert.rejects(client.agents.get(1, 'a'), { status, attempts: 1 })
    assert.equal(requests.length, 1)
  })
}

test('a conflict with an earlier attempt that is still running is retried', async (t) => {
  const pending = answer(409, {
    error: { code: 'resource_conflict', message: 'running', details: { conflicting_field: 'Idempotency-Key' } },
  })
  const { client } = await against(t, [cut, pending, good])
  assert.deepEqual(await client.agents.create(1, { name: 'a' }), { id: 'agent_1' })
  const real = await against(t, [answer(409, { error: { code: 'agent_conflict', message: 'there is one' } })])
  await assert.rejects(real.client.agents.create(1, { name: 'a' }), ConflictError)
})

test('retries are limited, and the last error has the number of attempts', async (t) => {
  const { client, requests } = await against(t, [unavailable])
  await assert.rejects(
    client.agents.get(1, 'a', { maxRetries: 1 }),
    (error) => error instanceof InternalServerError && error.attempts === 2 && error.code === 'service_unavailable',
  )
  assert.equal(requests.length, 2)
  await assert.rejects(client.agents.get(1, 'a', { maxRetries: 0 }))
  assert.equal(requests.length, 3)
})

test('a retry waits for Retry-After, and there is none after more than a minute', async (t) => {
  const { client } = await against(t, [answer(429, {}, { 'retry-after': '2' }), good])
  const began = Date.now()
  await client.agents.get(1, 'a')
  assert.ok(Date.now() - began >= 1990)

  const body = { error: { code: 'rate_limit_exceeded', message: 'slow', retry_after: 3599 } }
  const hour = await against(t, [answer(429, body), good])
  await assert.rejects(
    hour.client.agents.get(1, 'a'),
    (error) => error instanceof RateLimitError && error.retryAfter === 3599,
  )
  const spent = await against(t, [answer(429, { error: { code: 'budget_exceeded', message: 'spent' } }), good])
  await assert.rejects(spent.client.tasks.create(1, 'a', { input: 'x' }), { code: 'budget_exceeded' })
  assert.equal(spent.requests.length, 1)
})

test('a request times out, also in the middle of a response, and a signal aborts it at once', async (t) => {
  const { client, requests } = await against(t, [silence], { timeout_ms: 500, maxRetries: 1 })
  await assert.rejects(client.agents.get(1, 'a'), APITimeoutError)
  assert.equal(requests.length, 2)
  const half: Answer = (response) => void response.writeHead(200, { 'content-type': 'application/json' }).write('{')
  const slow = await against(t, [half], { timeout_ms: 200, maxRetries: 0 })
  await assert.rejects(slow.client.agents.get(1, 'a'), APITimeoutError)

  const reason = new Error('enough')
  const aborted = new AbortController()
  const patient = await against(t, [() => aborted.abort(reason)])
  const waiting = patient.client.agents.get(1, 'a', { signal: aborted.signal })
  await assert.rejects(waiting, reason)
  await assert.rejects(patient.client.agents.get(1, 'a', { signal: aborted.signal }), reason)
  assert.equal(patient.requests.length, 1)
  const retrying = await against(t, [answer(429, {}, { 'retry-after': '50' })])
  await assert.rejects(retrying.client.agents.get(1, 'a', { signal: AbortSignal.timeout(300) }), {
    name: 'TimeoutError',
  })
})

test('an unreachable server is a connection error with the reason', async (t) => {
  const { baseURL } = await against(t, [good])
  const deleted = new URL(baseURL)
  deleted.port = '1'
  const client = new Cadre({ baseURL: deleted.href, maxRetries: 0 })
  await assert.rejects(client.service.status(), (error) => {
    assert.ok(error instanceof APIConnectionError)
    return /ECONNREFUSED|bad port/.test(error.message)
  })
})

test('a redirect to another origin does not get the API key', async (t) => {
  const other = await against(t, [good])
  const { client } = await against(t, [answer(303, {}, { location: `${other.baseURL}/stolen` })])
  await assert.rejects(client.service.status(), /Set baseURL to that address/)
  assert.equal(other.requests.length, 0)
})

test('a request has an API key, a token that may change with each request, or no credential', async (t) => {
  const { client, requests, baseURL } = await against(t, [good])
  await client.user.get()
  let made = 0
  await new Cadre({ baseURL, token: async () => `token-${++made}` }).user.get()
  await new Cadre({ baseURL, apiKey: null, headers: { 'X-Organization-ID': 'org_1' } }).user.get()
  assert.deepEqual(
    requests.map(({ headers }) => [headers['x-api-key'], headers.authorization, headers['x-organization-id']]),
    [
      ['key', undefined, undefined],
      [undefined, 'Bearer token-1', undefined],
      [undefined, undefined, 'org_1'],
    ],
  )
})

test('the log of requests has no secrets', async (t) => {
  const lines: unknown[] = []
  const logger = { debug: (message: string, fields: object) => void lines.push({ message, ...fields }) }
  const { client } = await against(t, [unavailable, good], { apiKey: 'cadre_secret', logger })
  await client.apiKeys
    .list()
    .page()
    .catch(() => {})
  assert.ok(lines.length >= 3)
  assert.doesNotMatch(JSON.stringify(lines), /cadre_secret/)
})
