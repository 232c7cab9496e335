import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { after, before, describe, it } from 'node:test'
import type { Scope } from '#contract/core/scopes.ts'
import { makeKey, makePerson, makeToken, ownerOf, type Person } from '../../../test/actors.ts'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'
import { createAgent, createProject } from '../../../test/fixtures.ts'

let service: TestService
let project: string
let stranger: Person
let foreign: string
let agent: string
let task: string
let context: string
let run: string
const script = (...steps: unknown[]): string => JSON.stringify(steps)

before(async () => {
  service = await startTestService({ CADRE_DOORS: 'a2a,agui', CADRE_RATE_LIMITS_SCALE: '1' })
  stranger = await makePerson(service)
  foreign = (await makeKey(service, stranger, ['admin'])).key
  project = (await createProject(service.send, 'objects')).path
  agent = await addAgent('ours', { model: 'builtin/script' })
  const first = await a2a('SendMessage', sent(script({ text: 'Ours.' })))
  task = first.body.result.task.id
  context = first.body.result.task.contextId
  run = crypto.randomUUID()
  assert.equal((await agui(inputOf(script({ text: 'Ours.' }), { runId: run }))).status, 200)
})
after(() => service.stop())

async function addAgent(name: string, config: object): Promise<string> {
  const doors = { a2a: { published: true }, agui: { published: true } }
  const body = await createAgent(service.send, project, { name, config: { ...config, doors } })
  return body.id
}
const sent = (text: string, more: object = {}) => ({
  message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more },
})
const inputOf = (content: string, more: object = {}) => ({
  ...{ threadId: crypto.randomUUID(), runId: crypto.randomUUID(), tools: [], context: [] },
  messages: [{ id: crypto.randomUUID(), role: 'user', content }],
  ...more,
})
interface Asked {
  key?: string
  of?: string
  headers?: Record<string, string>
}
const headersOf = ({ key = service.owner.api_key, headers = {} }: Asked) => ({
  ...{ 'content-type': 'application/json', 'a2a-version': '1.0', authorization: `Bearer ${key}` },
  ...headers,
})
async function a2a(method: string, params: unknown, asked: Asked = {}) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const init = { method: 'POST', headers: headersOf(asked), body }
  const response = await fetch(`${service.url}/a2a/agents/${asked.of ?? agent}`, init)
  return { status: response.status, headers: response.headers, body: (await response.json()) as any }
}
async function http(method: string, path: string, asked: Asked = {}, body?: unknown) {
  const init = { method, headers: headersOf(asked), ...(body === undefined ? {} : { body: JSON.stringify(body) }) }
  const response = await fetch(`${service.url}${path}`, init)
  return { status: response.status, headers: response.headers, text: await response.text() }
}
const agui = (input: object, asked: Asked = {}) => http('POST', `/agui/agents/${asked.of ?? agent}`, asked, input)
const keyOf = async (...scopes: Scope[]): Promise<string> => (await makeKey(service, ownerOf(service), scopes)).key

const paths = (): [string, string, unknown?][] => {
  const base = `/a2a/agents/${agent}`
  return [
    ['POST', `${base}/message:send`, sent('x')],
    ['POST', `${base}/message:stream`, sent('x')],
    ['GET', `${base}/tasks`],
    ['GET', `${base}/tasks/${task}`],
    ['POST', `${base}/tasks/${task}:cancel`],
    ['POST', `${base}/tasks/${task}:subscribe`],
    ['GET', `${base}/tasks/${task}:subscribe`],
    ['POST', `${base}/tasks/${task}/pushNotificationConfigs`, { url: 'http://127.0.0.1:9/' }],
    ['GET', `${base}/tasks/${task}/pushNotificationConfigs`],
    ['GET', `${base}/tasks/${task}/pushNotificationConfigs/x`],
    ['DELETE', `${base}/tasks/${task}/pushNotificationConfigs/x`],
    ['GET', `${base}/extendedAgentCard`],
    ['POST', `/agui/agents/${agent}`, inputOf('x')],
    ['GET', `/agui/agents/${agent}/runs/${run}`],
    ['DELETE', `/agui/agents/${agent}/runs/${run}`],
  ]
}
/** The scope that each of these requests requires. */
const needs: Scope[] = [
  ...([
    'tasks:write',
    'tasks:write',
    'agents:read',
    'agents:read',
    'tasks:write',
    'agents:read',
    'agents:read',
  ] as const),
  ...(['tasks:write', 'agents:read', 'agents:read', 'tasks:write', 'agents:read'] as const),
  ...(['tasks:write', 'agents:read', 'tasks:write'] as const),
]

describe('what belongs to another organization', () => {
  it('tasks and runs of another organization do not exist for any request', async () => {
    for (const [method, path, body] of paths()) {
      const { status } = await http(method, path, { key: foreign }, body)
      assert.deepEqual([method, path, status], [method, path, 404])
    }
    for (const method of [
      'SendMessage',
      'GetTask',
      'ListTasks',
      'CancelTask',
      'SubscribeToTask',
      'GetExtendedAgentCard',
    ])
      assert.equal((await a2a(method, { ...sent('x'), id: task }, { key: foreign })).status, 404, method)
  })

  it('a task of another organization is not reachable through an own agent', async () => {
    const theirs = await makeTheirAgent()
    const asked = { key: foreign, of: theirs }
    assert.equal((await a2a('GetTask', { id: task }, asked)).body.error.code, -32001)
    assert.equal((await a2a('CancelTask', { id: task }, asked)).body.error.code, -32001)
    assert.equal((await a2a('SendMessage', sent('x', { taskId: task }), asked)).body.error.code, -32001)
    assert.equal((await a2a('ListTasks', {}, asked)).body.result.totalSize, 0)
    // In another organization, the id of this context is a new name and gets a new thread.
    const named = (await a2a('SendMessage', sent('x', { contextId: context }), asked)).body.result.task
    const [row] = await service.sql<{ thread_id: string }>`select thread_id from task where id = ${named.id}`
    assert.equal(named.contextId, context)
    assert.notEqual(row!.thread_id, context)
    assert.equal((await http('GET', `/agui/agents/${theirs}/runs/${run}`, asked)).status, 404)
  })
})

async function makeTheirAgent(): Promise<string> {
  const { send } = service
  const { body: theirs } = await send('POST', '/api/v1/projects', { key: foreign, body: { name: 'theirs' } })
  const path = `/api/v1/projects/${theirs.id}/agents`
  const config = { model: 'builtin/echo', doors: { a2a: { published: true }, agui: { published: true } } }
  const { body } = await send('POST', path, { key: foreign, body: { name: 'theirs', config } })
  await eventually(async () => (await send('GET', `${path}/${body.id}`, { key: foreign })).body.status === 'running')
  return body.id
}

describe('a credential', () => {
  it('a key or token needs the scope of each method in both bindings', async () => {
    const weak: Record<string, string> = {
      'tasks:write': await keyOf('agents:read'),
      'agents:read': (await makeToken(service, ownerOf(service), ['logs:read'] as never)).token,
    }
    for (const [i, [method, path, body]] of paths().entries()) {
      const { status } = await http(method, path, { key: weak[needs[i]!]! }, body)
      assert.deepEqual([method, path, status], [method, path, 403])
    }
    const reader = await keyOf('agents:read')
    assert.equal((await a2a('CancelTask', { id: task }, { key: reader })).status, 403)
    assert.equal((await a2a('GetTask', { id: task }, { key: reader })).status, 200)
  })

  it('reads do not count against the rate limit for creating tasks', async () => {
    const key = await keyOf('agents:read', 'tasks:write')
    const limit = async (method: string, params: object) =>
      Number((await a2a(method, params, { key })).headers.get('x-ratelimit-limit'))
    const create = await limit('SendMessage', sent(script({ text: 'x' })))
    const read = await limit('GetTask', { id: task })
    const list = await limit('ListTasks', {})
    assert.deepEqual([create, read, list], [300, 600, 100])
  })

  it('a credential over its rate limit gets 429 in the error format of the protocol', async () => {
    const key = await keyOf('agents:read')
    let refused
    for (let i = 0; i < 120 && !refused; i++) {
      const answer = await a2a('ListTasks', { pageSize: 1 }, { key })
      if (answer.status === 429) refused = answer
    }
    assert.deepEqual([refused?.body.jsonrpc, refused?.body.id], ['2.0', 1])
    assert.ok(Number(refused?.headers.get('retry-after')) > 0)
  })
})

it('an exhausted budget and a stopped agent refuse tasks of both protocols', async () => {
  const poor = await addAgent('poor', { model: 'builtin/echo' })
  await service.send('POST', `${project}/budgets`, { body: { scope: 'agent', subject: poor, max_tokens: 1 } })
  const params = { ...sent('spend it'), configuration: { returnImmediately: true } }
  const { id } = (await a2a('SendMessage', params, { of: poor })).body.result.task
  await eventually(async () => {
    const { result } = (await a2a('GetTask', { id }, { of: poor })).body
    return result.status.state === 'TASK_STATE_WORKING' && result.metadata.cadre.wait?.reason === 'budget'
  })
  const idle = await addAgent('idle', { model: 'builtin/echo' })
  await service.send('POST', `${project}/agents/${idle}/stop`)
  await eventually(async () => (await service.send('GET', `${project}/agents/${idle}`)).body.status === 'stopped')
  assert.equal((await a2a('SendMessage', sent('x'), { of: idle })).body.error.code, -32004)
  assert.equal((await agui(inputOf('x'), { of: idle })).status, 409)
})

describe('a hostile client', () => {
  const wrong: unknown[] = [7, 'x', [1], { a: 1 }, { toString: 1 }]

  it('a wrong type of any member gives an error of the protocol and never a 500', async () => {
    const message = sent('x').message
    const bodies: unknown[] = wrong.flatMap((value) => [
      value,
      { message: value },
      ...Object.keys({ ...message, contextId: 1, taskId: 1, metadata: 1, extensions: 1, referenceTaskIds: 1 }).map(
        (name) => ({
          message: { ...message, messageId: crypto.randomUUID(), [name]: value },
        }),
      ),
      ...['acceptedOutputModes', 'historyLength', 'returnImmediately', 'taskPushNotificationConfig'].map((name) => ({
        ...sent('x'),
        configuration: { [name]: value },
      })),
      { message: { ...message, messageId: crypto.randomUUID(), parts: [value] } },
      { message: { ...message, messageId: crypto.randomUUID(), parts: [{ data: value }] } },
      ...['text', 'mediaType', 'filename', 'metadata'].map((name) => ({
        message: { ...message, messageId: crypto.randomUUID(), parts: [{ text: 'x', [name]: value }] },
      })),
    ])
    const key = await keyOf('tasks:write', 'agents:read')
    for (let at = 0; at < bodies.length; at += 50) {
      // A new key after every 200 requests, because of the rate limit.
      const own = at % 200 === 0 ? await keyOf('tasks:write', 'agents:read') : key
      for (const params of bodies.slice(at, at + 50)) {
        const { status, body } = await a2a('SendMessage', params, { key: own })
        assert.ok(
          status < 500 && (body.result || body.error.code <= -32000),
          `${JSON.stringify(params)}: ${status} ${JSON.stringify(body)}`,
        )
      }
    }
    for (const name of ['threadId', 'runId', 'messages', 'tools', 'context', 'state', 'forwardedProps', 'resume'])
      for (const value of wrong) {
        const { status, text } = await agui(
          { ...inputOf(script({ text: 'x' })), [name]: value },
          { key: await keyOf('tasks:write') },
        )
        assert.ok(status < 500, `${name} ${JSON.stringify(value)}: ${status} ${text}`)
      }
  })

  it('an oversized body gives an error in the format of the protocol', async () => {
    const large = sent('x'.repeat(9 * 1024 * 1024))
    const answer = await a2a('SendMessage', large)
    assert.deepEqual([answer.status, answer.body.jsonrpc], [413, '2.0'])
    assert.equal((await agui(inputOf('x'.repeat(9 * 1024 * 1024)))).status, 413)
    const many = Array.from({ length: 10_000 }, (_, i) => ({ id: `m${i}`, role: 'user', content: 'x' }))
    assert.equal((await agui(inputOf('', { messages: many }))).status, 400)
    const parts = Array.from({ length: 10_000 }, () => ({ text: 'x' }))
    assert.equal((await a2a('SendMessage', sent('', { parts }))).body.error.code, -32602)
  })

  it('a client that disconnects during a stream does not cancel the task', async () => {
    // The other agent is stopped by now, because too many of its tasks failed in a row.
    const of = await addAgent('patient', { model: 'builtin/script' })
    const message = sent(script({ text: 'a ' }, { delay_ms: 300 }, { text: 'b' })).message
    const body = JSON.stringify({ message })
    const head = Object.entries({
      ...headersOf({}),
      host: 'localhost',
      'content-length': String(Buffer.byteLength(body)),
    })
    const { port } = new URL(service.url)
    const socket = connect(Number(port), '127.0.0.1')
    socket.on('error', () => {})
    socket.write(
      `POST /a2a/agents/${of}/message:stream HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}`).join('\r\n')}\r\n\r\n${body}`,
    )
    await new Promise((resolve) => socket.once('data', resolve))
    socket.destroy()
    const again = await a2a('SendMessage', { message }, { of })
    assert.equal(again.body.result?.task.status.state, 'TASK_STATE_COMPLETED', JSON.stringify(again.body))
  })
})
