import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { TaskState, type StreamResponse, type Task } from '@a2a-js/sdk'
import type { Client } from '@a2a-js/sdk/client'
import { pino } from 'pino'
import { startTestService, type TestService } from '../../../test/harness.ts'
import {
  a2aClient,
  a2aMessage,
  a2aRequest,
  artifactText,
  assembled,
  partsText,
} from '../../../test/fakes/a2a-client.ts'
import { createAgent, createProject } from '../../../test/fixtures.ts'
import { newId } from '../../platform/ids.ts'

let service: TestService
let project: string
const agents: Record<string, string> = {}
/** Warnings and errors of the service. */
const logged: string[] = []
const script = (...steps: unknown[]): string => JSON.stringify(steps)

before(async () => {
  const log = pino({ level: 'warn' }, { write: (line) => void logged.push(line) })
  service = await startTestService({ CADRE_DOORS: 'a2a' }, { log })
  project = (await createProject(service.send, 'remote')).path
  const published = { doors: { a2a: { published: true } } }
  const model = 'builtin/script'
  await addAgent(
    'echo',
    { model: 'builtin/echo', ...published },
    { description: 'Says it again.', metadata: { tags: ['words'] } },
  )
  await addAgent('script', { model, tools: ['current_time', 'request_input'], ...published })
  await addAgent('careful', { model, tools: ['current_time'], tool_policies: { current_time: 'ask' }, ...published })
  await addAgent('private', { model })
  await addAgent('schema', {
    ...{ model: 'builtin/echo', ...published },
    input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  })
})
after(() => service.stop())

async function addAgent(name: string, config: object, more: object = {}): Promise<void> {
  const body = await createAgent(service.send, project, { name, config, ...more })
  agents[name] = body.id
}
const base = (name: string): string => `${service.url}/a2a/agents/${agents[name]}`
const clientOf = (name: string, binding: 'JSONRPC' | 'HTTP+JSON' = 'JSONRPC', key = service.owner.api_key) =>
  a2aClient(`${base(name)}/.well-known/agent-card.json`, key, binding)
const all = async (events: AsyncIterable<StreamResponse>): Promise<StreamResponse[]> => Array.fromAsync(events)
const tasks = async (): Promise<number> => (await service.send('GET', `${project}/tasks`)).body.pagination.total
const keyWith = async (...scopes: string[]): Promise<string> =>
  (await service.send('POST', '/api/v1/auth/api-keys', { body: { name: scopes.join(), scopes } })).body.key
/** A raw JSON-RPC call. */
const rpc = async (
  name: string,
  method: string,
  params: unknown,
  headers: Record<string, string> = {},
  key = service.owner.api_key,
) => {
  const response = await fetch(base(name), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0', authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params }),
  })
  return { status: response.status, headers: response.headers, body: (await response.json()) as any }
}
const sent = (text: string, more: object = {}) => ({
  message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more },
})
const statesOf = (events: readonly StreamResponse[]): TaskState[] =>
  events.flatMap(({ payload }) =>
    payload?.$case === 'task' || payload?.$case === 'statusUpdate' ? [payload.value.status!.state] : [],
  )

describe('the card of an agent', () => {
  it('the card of a published agent is public and has its interfaces', async () => {
    const response = await fetch(`${base('echo')}/.well-known/agent-card.json`)
    const card = (await response.json()) as any
    assert.deepEqual([response.status, card.name, card.description], [200, 'echo', 'Says it again.'])
    assert.deepEqual(
      card.supportedInterfaces.map(({ url, protocolBinding, protocolVersion }: any) => [
        url,
        protocolBinding,
        protocolVersion,
      ]),
      ['JSONRPC', 'HTTP+JSON'].map((binding) => [base('echo'), binding, '1.0']),
    )
    assert.deepEqual(card.skills[0].tags, ['words'])
    assert.equal(response.headers.get('cache-control'), 'public, max-age=300')
    const again = await fetch(response.url, { headers: { 'if-none-match': response.headers.get('etag')! } })
    assert.equal(again.status, 304)
  })

  it('an unpublished agent has neither a card nor A2A methods', async () => {
    const card = await fetch(`${base('private')}/.well-known/agent-card.json`)
    assert.equal(card.status, 404)
    assert.equal(((await card.json()) as any).error.status, 'NOT_FOUND')
    const { status, body } = await rpc('private', 'SendMessage', sent('x'))
    assert.deepEqual([status, body.id, body.error.data[0].domain], [404, 7, 'cadre'])
    assert.equal((await fetch(`${service.url}/.well-known/agent-card.json`)).status, 404)
  })

  it('the extended card lists the tools of the agent for callers who may run it', async () => {
    const card = await (await clientOf('script')).getAgentCard()
    assert.ok(card.skills.some(({ id }) => id === 'current_time'))
  })
})

for (const binding of ['JSONRPC', 'HTTP+JSON'] as const)
  describe(`a client by ${binding}`, () => {
    let client: Client
    let slow: Client
    before(async () => {
      client = await clientOf('echo', binding)
      slow = await clientOf('script', binding)
    })

    it(`a client by ${binding} sends a message and gets the ended task`, async () => {
      const task = (await client.sendMessage(a2aRequest(a2aMessage('Hello there')))) as Task
      assert.equal(task.status?.state, TaskState.TASK_STATE_COMPLETED)
      assert.equal(artifactText(task), 'Hello there')
      assert.deepEqual(
        task.history.map(({ parts }) => partsText(parts)),
        ['Hello there'],
      )
      const { body } = await service.send('GET', `${project}/tasks/${task.id}`)
      assert.deepEqual([body.status, body.thread_id, body.metadata.door.kind], ['completed', task.contextId, 'a2a'])
    })

    it(`a client by ${binding} streams a task to its end`, async () => {
      const events = await all(slow.sendMessageStream(a2aRequest(a2aMessage(script({ text: 'One two three four.' })))))
      assert.equal(events[0]?.payload?.$case, 'task')
      assert.equal(assembled(events), 'One two three four.')
      assert.deepEqual(statesOf(events), [
        TaskState.TASK_STATE_SUBMITTED,
        TaskState.TASK_STATE_WORKING,
        TaskState.TASK_STATE_COMPLETED,
      ])
    })

    it(`a client by ${binding} gets text before a tool call as a message, and only the answer as the artifact`, async () => {
      const steps = script(
        { text: 'Let me see.' },
        { tool_calls: [{ name: 'current_time', arguments: {} }] },
        { text: 'Noon it is.' },
      )
      const events = await all(slow.sendMessageStream(a2aRequest(a2aMessage(steps))))
      assert.equal(assembled(events), 'Noon it is.')
      const id = (events[0]!.payload!.value as Task).id
      const task = await slow.getTask({ tenant: '', id })
      assert.equal(artifactText(task), 'Noon it is.')
      assert.deepEqual(task.history.map(({ parts }) => partsText(parts)).slice(1), ['Let me see.'])
      const { body } = await service.send('GET', `${project}/tasks/${id}`)
      assert.equal(body.output.content, 'Noon it is.')
    })

    it(`a client by ${binding} answers a question in the same task`, async () => {
      const steps = script(
        { tool_calls: [{ name: 'request_input', arguments: { question: 'Which city?' } }] },
        { text: 'Off to {{tool_result}}.' },
      )
      const asked = (await slow.sendMessage(a2aRequest(a2aMessage(steps)))) as Task
      assert.equal(asked.status?.state, TaskState.TASK_STATE_INPUT_REQUIRED)
      assert.equal(partsText(asked.status.message!.parts), 'Which city?')
      const { id: taskId, contextId } = asked
      const events = await all(slow.sendMessageStream(a2aRequest(a2aMessage('Bern', { taskId, contextId }))))
      assert.deepEqual(statesOf(events), [
        TaskState.TASK_STATE_WORKING,
        TaskState.TASK_STATE_WORKING,
        TaskState.TASK_STATE_COMPLETED,
      ])
      assert.equal(assembled(events), 'Off to Bern.')
      const task = await slow.getTask({ tenant: '', id: taskId })
      assert.deepEqual(task.history.map(({ parts }) => partsText(parts)).slice(1), ['Which city?', 'Bern'])
      assert.equal((await slow.getTask({ tenant: '', id: taskId, historyLength: 1 })).history.length, 1)
      assert.equal((await slow.getTask({ tenant: '', id: taskId, historyLength: 0 })).history.length, 0)
      await assert.rejects(slow.sendMessage(a2aRequest(a2aMessage('More', { taskId }))), {
        name: /UnsupportedOperation/,
      })
    })

    it(`a client by ${binding} cancels a task, once`, async () => {
      const steps = script({ text: 'a' }, { delay_ms: 20_000 }, { text: 'b' })
      const task = (await slow.sendMessage(a2aRequest(a2aMessage(steps), { returnImmediately: true }))) as Task
      assert.notEqual(task.status?.state, TaskState.TASK_STATE_COMPLETED)
      const canceled = await slow.cancelTask({ tenant: '', id: task.id, metadata: undefined })
      assert.equal(canceled.status?.state, TaskState.TASK_STATE_CANCELED)
      await assert.rejects(slow.cancelTask({ tenant: '', id: task.id, metadata: undefined }), {
        name: /TaskNotCancelable/,
      })
      await assert.rejects(all(slow.resubscribeTask({ tenant: '', id: task.id })), { name: /UnsupportedOperation/ })
    })

    it(`a client by ${binding} subscribes to a running task`, async () => {
      const steps = script({ delay_ms: 500 }, { text: 'Late but here.' })
      const { id } = (await slow.sendMessage(a2aRequest(a2aMessage(steps), { returnImmediately: true }))) as Task
      const events = await all(slow.resubscribeTask({ tenant: '', id }))
      assert.equal((events[0]!.payload!.value as Task).id, id)
      assert.equal(assembled(events), 'Late but here.')
      assert.equal(statesOf(events).at(-1), TaskState.TASK_STATE_COMPLETED)
    })

    it(`a client by ${binding} lists tasks by pages, latest status change first`, async () => {
      const contextId = `list-${binding}`
      const ids: string[] = []
      for (const text of ['1', '2', '3'])
        ids.unshift(((await client.sendMessage(a2aRequest(a2aMessage(text, { contextId })))) as Task).id)
      const ask = { tenant: '', contextId, status: TaskState.TASK_STATE_UNSPECIFIED, statusTimestampAfter: undefined }
      const first = await client.listTasks({ ...ask, pageSize: 2, pageToken: '' })
      assert.deepEqual([first.tasks.map(({ id }) => id), first.totalSize], [ids.slice(0, 2), 3])
      assert.deepEqual([first.tasks[0]!.contextId, first.tasks[0]!.artifacts.length], [contextId, 0])
      const second = await client.listTasks({
        ...ask,
        pageSize: 2,
        pageToken: first.nextPageToken,
        includeArtifacts: true,
        historyLength: 5,
      })
      assert.deepEqual([second.tasks.map(({ id }) => id), second.nextPageToken], [ids.slice(2), ''])
      assert.equal(artifactText(second.tasks[0]!), '1')
      assert.equal(second.tasks[0]!.history.length, 1)
      const failed = await client.listTasks({ ...ask, pageToken: '', status: TaskState.TASK_STATE_FAILED })
      assert.deepEqual([failed.tasks, failed.totalSize], [[], 0])
    })
  })

describe('a message', () => {
  it('a repeated message returns the same task, and a different message with its id is refused', async () => {
    const params = sent('Twice')
    const count = await tasks()
    const first = await rpc('echo', 'SendMessage', params)
    const second = await rpc('echo', 'SendMessage', params)
    assert.equal(first.body.result.task.id, second.body.result.task.id)
    assert.equal(await tasks(), count + 1)
    const other = { message: { ...params.message, parts: [{ text: 'Another' }] } }
    assert.equal((await rpc('echo', 'SendMessage', other)).body.error.code, -32602)
    const together = sent('Together')
    const answers = await Promise.all(Array.from({ length: 5 }, () => rpc('echo', 'SendMessage', together)))
    assert.equal(new Set(answers.map(({ body }) => body.result.task.id)).size, 1)
    assert.equal(await tasks(), count + 2)
  })

  it("member names of the protocol's schema are accepted, and responses use the JSON names", async () => {
    const { message } = sent('Hello', { context_id: '', reference_task_ids: [] })
    const { messageId: message_id, ...rest } = message
    const made = await rpc('echo', 'SendMessage', {
      message: { ...rest, message_id },
      configuration: { history_length: 1 },
    })
    const { id } = made.body.result.task
    const read = await rpc('echo', 'GetTask', { id, history_length: 1 })
    assert.equal(read.body.result.history.length, 1)
    const named = { task_id: id, id: 'named', url: 'https://example.com/hook' }
    const push = await rpc('echo', 'CreateTaskPushNotificationConfig', named)
    assert.equal(push.body.result?.taskId, id, JSON.stringify(push.body))
    const slow = await rpc('script', 'SendMessage', {
      ...sent(JSON.stringify([{ delay_ms: 60_000 }, { text: 'x' }])),
      configuration: { return_immediately: true },
    })
    const canceled = await rpc('script', 'CancelTask', { id: slow.body.result.task.id })
    const answers = JSON.stringify([read.body, push.body, slow.body, canceled.body])
    assert.deepEqual([...new Set(answers.match(/"[a-z]+_[a-z_]+":/g))], [])
  })

  it('a message continues the thread of its context, which other agents cannot use', async () => {
    const first = (await rpc('echo', 'SendMessage', sent('1'))).body.result.task
    const second = (await rpc('echo', 'SendMessage', sent('2', { contextId: first.contextId }))).body.result.task
    assert.equal(second.contextId, first.contextId)
    assert.notEqual(second.id, first.id)
    assert.equal(
      (await rpc('script', 'SendMessage', sent('3', { contextId: first.contextId }))).body.error.code,
      -32602,
    )
    const named = (await rpc('echo', 'SendMessage', sent('4', { contextId: 'mine' }))).body.result.task
    assert.equal(named.contextId, 'mine')
    assert.equal((await rpc('script', 'SendMessage', sent('5', { contextId: 'mine' }))).body.error.code, -32602)
    const mixed = sent('6', { taskId: named.id, contextId: first.contextId })
    assert.equal((await rpc('echo', 'SendMessage', mixed)).body.error.code, -32602)
  })

  it('a data part becomes the input object of an agent with an input schema', async () => {
    const { body } = await rpc('schema', 'SendMessage', sent('', { parts: [{ data: { city: 'Bern' } }] }))
    assert.equal(body.result.task.status.state, 'TASK_STATE_COMPLETED')
    const { body: task } = await service.send('GET', `${project}/tasks/${body.result.task.id}`)
    assert.deepEqual(task.input, { city: 'Bern' })
    assert.equal(
      (await rpc('schema', 'SendMessage', sent('', { parts: [{ data: { town: 1 } }] }))).body.error.code,
      -32602,
    )
  })
})

describe('an approval', () => {
  const steps = script({ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'Done.' })

  it('an approval appears as AUTH_REQUIRED and is resolved by a data part, only with the scope for approvals', async () => {
    const asked = (await rpc('careful', 'SendMessage', sent(steps))).body.result.task
    assert.equal(asked.status.state, 'TASK_STATE_AUTH_REQUIRED')
    const [text, data] = asked.status.message.parts
    assert.match(text.text, /current_time waits for approval: http/)
    const { approval_id } = data.data
    const answer = () => sent('', { taskId: asked.id, parts: [{ data: { approval_id, decision: 'approve' } }] })
    const weak = await keyWith('tasks:write')
    const refused = await rpc('careful', 'SendMessage', answer(), {}, weak)
    assert.equal(refused.status, 403)
    const { body: approval } = await service.send('GET', `${project}/approvals/${approval_id}`)
    assert.equal(approval.status, 'pending')
    const done = (await rpc('careful', 'SendMessage', answer())).body.result.task
    assert.equal(done.status.state, 'TASK_STATE_COMPLETED')
    const { body: log } = await service.send('GET', '/api/v1/auth/audit?limit=50')
    assert.ok(JSON.stringify(log).includes(approval_id))
    assert.equal((await rpc('careful', 'SendMessage', answer())).body.error.code, -32004)
  })

  it('an approval keeps the stream of a client without the scope open until a user decides', async () => {
    const weak = await clientOf('careful', 'HTTP+JSON', await keyWith('tasks:write', 'agents:read'))
    const events: StreamResponse[] = []
    for await (const event of weak.sendMessageStream(a2aRequest(a2aMessage(steps)))) {
      events.push(event)
      if (statesOf([event])[0] !== TaskState.TASK_STATE_AUTH_REQUIRED) continue
      const { message } = (event.payload!.value as Task).status!
      const { approval_id } = message!.parts.at(-1)!.content!.value as { approval_id: string }
      await service.send('POST', `${project}/approvals/${approval_id}/resolve`, { body: { decision: 'approve' } })
    }
    assert.equal(statesOf(events).at(-1), TaskState.TASK_STATE_COMPLETED)
    const strong = await all((await clientOf('careful')).sendMessageStream(a2aRequest(a2aMessage(steps))))
    assert.equal(statesOf(strong).at(-1), TaskState.TASK_STATE_AUTH_REQUIRED)
  })
})

describe('errors', () => {
  it('A2A errors have the form of the protocol in JSON-RPC and in HTTP', async () => {
    type Case = [string, unknown, Record<string, string>, number, number]
    const cases: Case[] = [
      ['GetTask', { id: 'task_00000000000000000000000000' }, {}, 200, -32001],
      ['GetTask', {}, {}, 200, -32602],
      ['Nothing', {}, {}, 200, -32601],
      ['SendMessage', sent('x'), { 'a2a-version': '0.3' }, 200, -32009],
      ['SendMessage', sent('x'), { 'a2a-version': '' }, 200, -32009],
      ['SendMessage', sent('', { parts: [{ raw: '***', mediaType: 'image/png' }] }), {}, 200, -32602],
      ['SendMessage', sent('x'), { 'content-type': 'text/plain' }, 200, -32005],
      ['SendMessage', { ...sent('x'), tenant: 'acme' }, {}, 200, -32602],
      ['SendMessage', sent('x', { taskId: 'task_00000000000000000000000000' }), {}, 200, -32001],
      ['ListTasks', { pageToken: 'x' }, {}, 200, -32602],
      ['ListTasks', { pageToken: { toString: 1 } }, {}, 200, -32602],
      ...['1', '0000-01-01', '+275760-01-01T00:00:00Z', 'Jan 1 2026 (\u0000)'].map((at): Case => {
        const pageToken = Buffer.from(JSON.stringify([at, newId('task')])).toString('base64url')
        return ['ListTasks', { pageToken }, {}, 200, -32602]
      }),
      ...['0000-01-01T00:00:00Z', '9999-12-31T23:59:59-23:59', '2026-01-01 x'].map((after): Case => [
        ...(['ListTasks', { statusTimestampAfter: after }, {}, 200, -32602] as const),
      ]),
      ['SendMessage', [], {}, 200, -32602],
    ]
    for (const [method, params, headers, status, code] of cases) {
      const reply = await rpc('echo', method, params, headers)
      assert.deepEqual([method, reply.status, reply.body.error?.code, reply.body.id], [method, status, code, 7])
    }
    const http = async (path: string, init: RequestInit = {}) => {
      const headers = {
        'a2a-version': '1.0',
        'content-type': 'application/a2a+json',
        authorization: `Bearer ${service.owner.api_key}`,
      }
      const response = await fetch(`${base('echo')}${path}`, { ...init, headers })
      return [response.status, ((await response.json()) as any).error.details[0].reason]
    }
    const id = 'task_00000000000000000000000000'
    assert.deepEqual(await http(`/tasks/${id}`), [404, 'TASK_NOT_FOUND'])
    assert.deepEqual(await http(`/tasks/${id}:cancel`, { method: 'POST' }), [404, 'TASK_NOT_FOUND'])
    assert.deepEqual(await http('/message:send', { method: 'POST', body: '{}' }), [400, 'INVALID_PARAMS'])
    assert.deepEqual(await http('/tasks?pageSize=1000'), [400, 'INVALID_PARAMS'])
    assert.equal((await http('/nothing'))[0], 404)
    // Each request gets one response: a second one would log a warning.
    assert.deepEqual(
      logged.filter((line) => line.includes('already sent')),
      [],
    )
  })

  it('A2A errors of credentials and scopes have their HTTP status', async () => {
    assert.equal((await rpc('echo', 'SendMessage', sent('x'), { authorization: 'Bearer nothing' })).status, 401)
    const reader = await keyWith('agents:read')
    const refused = await rpc('echo', 'SendMessage', sent('x'), {}, reader)
    assert.deepEqual([refused.status, refused.body.jsonrpc], [403, '2.0'])
    assert.equal((await rpc('echo', 'ListTasks', {}, {}, reader)).status, 200)
    const cookie = await fetch(base('echo'), { method: 'POST', headers: { cookie: 'cadre_session=x' }, body: '{}' })
    assert.ok([401, 403].includes(cookie.status))
  })
})
