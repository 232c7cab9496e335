// test: own process
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { post as deliver, signed } from '../../../../test/fakes/delivery-sender.ts'
import { hmac, secret } from '../../../../test/fakes/trigger-world.ts'
import { eventually, startTestService, type TestService } from '../../../../test/harness.ts'
import { createProject } from '../../../../test/fixtures.ts'
import { longSizeOf } from '../../../../test/long-run.ts'

const requests = longSizeOf({ usual: 4, full: 8 })
/** Checking such a value in the thread of the requests takes 100 ms of its processor, before it is ended. */
const here_ms = 100
/** The share of a processor that a service at rest uses at most. */
const atRest = 0.02
/** Every entry is compared with every other, which takes seconds; what lacks `b` is refused before that. */
const slowList = {
  type: 'object',
  required: ['b'],
  properties: { a: { type: 'array', uniqueItems: true }, b: { type: 'boolean' } },
}
const entries = Array.from({ length: 8000 }, (_, i) => [i])
const slow = { a: entries, b: true }
const quick = { a: entries }

let count = 0
/** Takes a few hundred milliseconds to compile, and was never seen before; that of `known` was. */
const schemaOf = (known: boolean): Record<string, unknown> => ({
  type: 'object',
  title: `schema ${known ? 'known' : ++count}`,
  oneOf: Array.from({ length: 400 }, (_, i) => ({ required: [`p${i}`] })),
})

describe('values and schemas that take long are judged in the thread for schemas, not in that of the requests', () => {
  let test: TestService
  let project: string
  let agent: string
  let remote: string

  before(async () => {
    test = await startTestService({ CADRE_DOORS: 'mcp,a2a,agui,openai', CADRE_EGRESS_ALLOW: 'loopback' })
    project = (await createProject(test.send, 'places')).path
    const published = { published: true }
    const doors = { mcp: published, a2a: published, agui: published }
    agent = await makeAgent('typed', { model: 'builtin/echo', input_schema: slowList, doors })
    await makeAgent('open', { model: 'builtin/echo' })
    const runtime = { kind: 'remote', queue: 'places' }
    remote = await makeAgent('remote', { model: 'builtin/echo', output_schema: slowList, runtime })
  })
  after(() => test.stop())

  const call = async (method: string, path: string, body: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${test.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${test.owner.api_key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    return { status: response.status, text: await response.text() }
  }
  async function make(path: string, body: object): Promise<any> {
    const reply = await test.send('POST', `${project}${path}`, { body })
    assert.ok(reply.status < 300, JSON.stringify(reply.body))
    return reply.body
  }
  async function makeAgent(name: string, config: object): Promise<string> {
    const { id } = await make('/agents', { name, config })
    await eventually(async () => (await test.send('GET', `${project}/agents/${id}`)).body.status === 'running')
    return id
  }

  /** The processor time of the thread that serves all requests, while these are under way. */
  async function processor_ms(send: () => Promise<string>): Promise<{ used: number; received: string[] }> {
    const [began, before] = [performance.now(), process.threadCpuUsage()]
    const received = await Promise.all(Array.from({ length: requests }, send))
    const { user, system } = process.threadCpuUsage(before)
    // What the service does at rest is not of the requests.
    return { used: (user + system) / 1000 - (performance.now() - began) * atRest, received }
  }
  /** `send` is asked for what takes long, and for the like of it that does not. */
  async function judge(send: (takesLong: boolean) => Promise<string>, expected: RegExp): Promise<void> {
    // Whatever is prepared at the first request.
    await send(false)
    const usual = await processor_ms(() => send(false))
    const { used, received } = await processor_ms(() => send(true))
    for (const text of received) assert.match(text, expected)
    const most = 2 * usual.used + (requests * here_ms) / 4
    assert.ok(used < most, `${used} ms of this thread, and ${usual.used} ms for what takes no time`)
  }
  const inTime = /in time|could not be checked/
  const inputs = (send: (input: object) => Promise<{ text: string }>): Promise<void> =>
    judge(async (takesLong) => (await send(takesLong ? slow : quick)).text, inTime)

  it('values and schemas that take long are judged in the thread for schemas, not in that of the requests as inputs of tasks', () =>
    inputs((input) => call('POST', `${project}/agents/${agent}/tasks`, { input })))

  it('values and schemas that take long are judged in the thread for schemas, not in that of the requests as inputs of schedules', () =>
    inputs((input) =>
      call('POST', `${project}/schedules`, { agent_id: agent, name: 'nightly', cron: '0 3 * * *', input }),
    ))

  it('values and schemas that take long are judged in the thread for schemas, not in that of the requests as inputs of test cases', () =>
    inputs((input) => call('POST', `${project}/agents/${agent}/test-cases`, { name: `case ${Math.random()}`, input })))

  it('values and schemas that take long are judged in the thread for schemas, not in that of the requests as deliveries of triggers', async () => {
    const input = { a: '{{body.a}}', b: '{{body.b}}' }
    const trigger = await make('/triggers', { agent_id: agent, name: 'news', source: 'hmac', hmac, secret, input })
    await inputs(async (body) => {
      const reply = await deliver(trigger.url, signed(secret, { ...body, id: Math.random() }))
      return { text: JSON.stringify(reply.body) }
    })
  })

  it('values and schemas that take long are judged in the thread for schemas, not in that of the requests as messages of A2A', () =>
    inputs((data) => {
      const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ data }] }
      const body = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }
      return call('POST', `/a2a/agents/${agent}`, body, { 'a2a-version': '1.0' })
    }))

  it('values and schemas that take long are judged in the thread for schemas, not in that of the requests as runs of AG-UI', () =>
    inputs((input) => {
      const messages = [{ id: crypto.randomUUID(), role: 'user', content: JSON.stringify(input) }]
      const ids = { threadId: crypto.randomUUID(), runId: crypto.randomUUID() }
      const empty = { tools: [], context: [], state: {}, forwardedProps: {} }
      return call('POST', `/agui/agents/${agent}`, { ...ids, ...empty, messages })
    }))

  it('values and schemas that take long are judged in the thread for schemas, not in that of the requests as arguments of a tool of /mcp', () =>
    inputs((input) => {
      const params = { name: 'ask_typed', arguments: input }
      const headers = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' }
      return call('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params }, headers)
    }))

  it('values and schemas that take long are judged in the thread for schemas, not in that of the requests as input of responses and chats of OpenAI', async () => {
    await inputs((input) => call('POST', '/v1/responses', { model: 'typed', input: JSON.stringify(input) }))
    const messages = (input: object) => [{ role: 'user', content: JSON.stringify(input) }]
    await inputs((input) => call('POST', '/v1/chat/completions', { model: 'typed', messages: messages(input) }))
  })

  it('values and schemas that take long are judged in the thread for schemas, not in that of the requests as outputs of remote workers', async () => {
    await make(`/agents/${remote}/tasks`, { input: 'Go.' })
    const { work } = await make('/work/claim', { queues: ['places'], wait: 20 })
    const headers = { authorization: `Bearer ${work.lease.token}` }
    await inputs((data) => call('POST', `${project}/work/complete`, { output: { content: '', data } }, headers))
  })

  it('values and schemas that take long are judged in the thread for schemas, not in that of the requests as schemas of answers and of tools that callers bring', async () => {
    const messages = [{ role: 'user', content: 'Hello.' }]
    const ask = (path: string, of: (schema: object) => object): Promise<void> =>
      judge(async (takesLong) => {
        const { status, text } = await call('POST', path, { model: 'open', ...of(schemaOf(!takesLong)) })
        return `${status} ${text}`
      }, /^200 |too complex/)
    await ask('/v1/chat/completions', (parameters) => ({
      messages,
      tools: [{ type: 'function', function: { name: 'look', parameters } }],
    }))
    await ask('/v1/responses', (schema) => ({
      input: '{"p1": 1}',
      background: true,
      text: { format: { type: 'json_schema', name: 'answer', schema } },
    }))
  })
})
