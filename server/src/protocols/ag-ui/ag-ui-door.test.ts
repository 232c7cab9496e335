import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  EventType,
  HttpAgent,
  verifyEvents,
  type BaseEvent,
  type Interrupt,
  type Message,
  type Tool,
} from '@ag-ui/client'
import { from, lastValueFrom, toArray } from 'rxjs'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'
import { createAgent, createProject } from '../../../test/fixtures.ts'

let service: TestService
let project: string
const agents: Record<string, string> = {}
const script = (...steps: unknown[]): string => JSON.stringify(steps)

before(async () => {
  service = await startTestService({ CADRE_DOORS: 'agui' })
  project = (await createProject(service.send, 'interface')).path
  const published = { doors: { agui: { published: true } } }
  const model = 'builtin/script'
  await addAgent('script', { model, tools: ['current_time', 'request_input'], ...published })
  await addAgent('careful', { model, tools: ['current_time'], tool_policies: { current_time: 'ask' }, ...published })
  await addAgent('private', { model })
  await addAgent('informed', { model: 'builtin/echo', doors: { agui: { published: true, context: true } } })
})
after(() => service.stop())

async function addAgent(name: string, config: object): Promise<void> {
  const body = await createAgent(service.send, project, { name, config })
  agents[name] = body.id
}
const urlOf = (name: string): string => `${service.url}/agui/agents/${agents[name]}`
const agentOf = (name: string, key = service.owner.api_key): HttpAgent =>
  new HttpAgent({ url: urlOf(name), headers: { authorization: `Bearer ${key}` } })
const says = (agent: HttpAgent, content: string): void =>
  agent.addMessage({ id: crypto.randomUUID(), role: 'user', content })
const tasks = async (): Promise<number> => (await service.send('GET', `${project}/tasks`)).body.pagination.total

/** Runs the protocol's own client; returns its events, its messages and the end of the run. */
async function run(agent: HttpAgent, parameters: Parameters<HttpAgent['runAgent']>[0] = {}) {
  const events: BaseEvent[] = []
  const { newMessages } = await agent.runAgent(parameters, { onEvent: ({ event }) => void events.push(event) })
  return { events, newMessages, last: events.at(-1) as any }
}
const typesOf = (events: readonly { type: string }[]): string[] =>
  events.map(({ type }) => type).filter((type, i, all) => type !== all[i - 1])

/** A raw run request. */
async function raw(
  name: string,
  input: object,
  { key = service.owner.api_key, path = '', method = 'POST', headers = {} } = {},
) {
  const response = await fetch(`${urlOf(name)}${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    ...(method === 'POST' && { body: JSON.stringify(input) }),
  })
  const text = await response.text()
  const frames = text.split('\n\n').flatMap((frame) => {
    const data = /^data: (.*)$/m.exec(frame)?.[1]
    return data ? [{ id: Number(/^id: (\d+)$/m.exec(frame)?.[1] ?? -1), event: JSON.parse(data) }] : []
  })
  return { status: response.status, frames, text }
}
const inputOf = (content: string, more: object = {}) => ({
  threadId: crypto.randomUUID(),
  runId: crypto.randomUUID(),
  messages: [{ id: crypto.randomUUID(), role: 'user', content }],
  ...{ tools: [], context: [], state: {}, forwardedProps: {} },
  ...more,
})

describe('a run', () => {
  it('an AG-UI run streams text and is an ordinary task', async () => {
    const agent = agentOf('script')
    says(agent, script({ text: 'One two three.' }))
    const { events, newMessages, last } = await run(agent)
    assert.deepEqual(typesOf(events), [
      ...['RUN_STARTED', 'STEP_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END'],
      ...['STEP_FINISHED', 'RUN_FINISHED'],
    ])
    assert.deepEqual([newMessages.at(-1)?.content, last.outcome.type], ['One two three.', 'success'])
    const { body } = await service.send('GET', `${project}/tasks?limit=1`)
    assert.deepEqual([body.tasks[0].metadata.door.kind, body.tasks[0].status], ['agui', 'completed'])
  })

  it('an AG-UI run shows tool calls with their results', async () => {
    const agent = agentOf('script')
    says(agent, script({ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'Noon.' }))
    const { events, newMessages } = await run(agent)
    assert.deepEqual(typesOf(events), [
      ...['RUN_STARTED', 'STEP_STARTED', 'TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END', 'TOOL_CALL_RESULT'],
      ...['STEP_FINISHED', 'STEP_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END'],
      ...['STEP_FINISHED', 'RUN_FINISHED'],
    ])
    assert.deepEqual(
      newMessages.map(({ role }) => role),
      ['assistant', 'tool', 'assistant'],
    )
  })

  it('an AG-UI run continues its thread and adds only its new messages to the task', async () => {
    const agent = agentOf('informed')
    says(agent, 'first')
    await run(agent)
    says(agent, 'second')
    const { newMessages } = await run(agent)
    assert.equal(newMessages.at(-1)?.content, 'second')
    const { body } = await service.send('GET', `${project}/tasks?limit=2`)
    const [last, before] = body.tasks
    assert.equal(last.thread_id, before.thread_id)
    assert.deepEqual(
      last.input.map(({ content }: any) => content),
      ['second'],
    )
  })

  it('a repeated run returns the same task, and a different run with its id is refused', async () => {
    const input = inputOf(script({ text: 'Once.' }))
    const count = await tasks()
    const first = await raw('script', input)
    const second = await raw('script', input)
    assert.deepEqual(second.frames, first.frames)
    assert.equal(await tasks(), count + 1)
    assert.equal((await raw('script', { ...input, state: { x: 1 } })).status, 422)
    const again = await raw('script', {}, { method: 'GET', path: `/runs/${input.runId}` })
    assert.deepEqual(again.frames, first.frames)
    const at = first.frames[3]!.id
    const rest = await raw(
      'script',
      {},
      { method: 'GET', path: `/runs/${input.runId}`, headers: { 'last-event-id': String(at) } },
    )
    assert.deepEqual(rest.frames, first.frames.slice(4))
    const verified = await lastValueFrom(from(first.frames.map(({ event }) => event)).pipe(verifyEvents(), toArray()))
    assert.equal(verified.length, first.frames.length)
  })

  it('DELETE cancels an AG-UI run', async () => {
    const input = inputOf(script({ text: 'a' }, { delay_ms: 20_000 }, { text: 'b' }))
    const running = raw('script', input)
    const path = `/runs/${input.runId}`
    await eventually(async () => (await raw('script', {}, { method: 'DELETE', path })).status === 200)
    const { frames } = await running
    assert.deepEqual([frames.at(-1)!.event.type, frames.at(-1)!.event.code], [EventType.RUN_ERROR, 'canceled'])
  })
})

describe('tools of the application', () => {
  const tools: Tool[] = [
    {
      name: 'get_weather',
      description: 'The weather.',
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
    },
  ]

  it('an application calls its tools, and their results continue the same task', async () => {
    const agent = agentOf('script')
    says(
      agent,
      script(
        { tool_calls: [{ name: 'get_weather', arguments: { city: 'Bern' } }] },
        { text: 'It is {{tool_result}}.' },
      ),
    )
    const count = await tasks()
    const { last, newMessages } = await run(agent, { tools })
    const [call] = (newMessages.at(-1) as Extract<Message, { role: 'assistant' }>).toolCalls!
    assert.deepEqual(last.outcome, { type: 'success', pendingToolCallIds: [call!.id] })
    assert.deepEqual(JSON.parse(call!.function.arguments), { city: 'Bern' })
    agent.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: call!.id, content: 'sunny' })
    const second = await run(agent, { tools })
    assert.equal(second.newMessages.at(-1)?.content, 'It is sunny.')
    assert.equal(await tasks(), count + 1)
  })

  it('a tool of an application may not have the name of a tool of the agent', async () => {
    const { status } = await raw('script', inputOf('x', { tools: [{ name: 'current_time', description: '' }] }))
    assert.equal(status, 400)
  })
})

describe('an interrupt', () => {
  const steps = script({ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'Done.' })

  it('an interrupt asks for an approval, and resume resolves it', async () => {
    const agent = agentOf('careful')
    says(agent, steps)
    const { last } = await run(agent)
    const [interrupt] = last.outcome.interrupts as Interrupt[]
    assert.deepEqual([interrupt!.reason, interrupt!.metadata!['tool']], ['confirmation', 'current_time'])
    assert.ok(interrupt!.responseSchema && interrupt!.expiresAt)
    const { newMessages } = await run(agent, { resume: [{ interruptId: interrupt!.id, status: 'resolved' }] })
    assert.equal(newMessages.at(-1)?.content, 'Done.')
    const { body } = await service.send('GET', `${project}/approvals/${interrupt!.id}`)
    assert.equal(body.status, 'approved')
    const { body: log } = await service.send('GET', '/api/v1/auth/audit?limit=50')
    assert.ok(JSON.stringify(log).includes(interrupt!.id))
  })

  it('canceling an interrupt rejects the approval, and a run that leaves others open is refused', async () => {
    const input = inputOf(steps)
    const { frames } = await raw('careful', input)
    const [{ id: interruptId }] = frames.at(-1)!.event.outcome.interrupts
    const next = {
      ...input,
      runId: crypto.randomUUID(),
      messages: [...input.messages, { id: 'm2', role: 'user', content: 'Well?' }],
    }
    const refused = await raw('careful', next)
    assert.deepEqual(
      refused.frames.map(({ event }) => [event.type, event.code]),
      [
        ['RUN_STARTED', undefined],
        ['RUN_ERROR', 'interrupts_open'],
      ],
    )
    const canceled = { ...input, runId: crypto.randomUUID(), resume: [{ interruptId, status: 'cancelled' }] }
    assert.equal((await raw('careful', canceled)).frames.at(-1)!.event.type, EventType.RUN_FINISHED)
    const { body } = await service.send('GET', `${project}/approvals/${interruptId}`)
    assert.equal(body.status, 'rejected')
  })

  it('an interrupt asks a question', async () => {
    const agent = agentOf('script')
    says(
      agent,
      script(
        { tool_calls: [{ name: 'request_input', arguments: { question: 'Where?' } }] },
        { text: 'To {{tool_result}}.' },
      ),
    )
    const { last } = await run(agent)
    const [interrupt] = last.outcome.interrupts as Interrupt[]
    assert.deepEqual([interrupt!.reason, interrupt!.message], ['input_required', 'Where?'])
    const resume = [{ interruptId: interrupt!.id, status: 'resolved' as const, payload: { answer: 'Bern' } }]
    assert.equal((await run(agent, { resume })).newMessages.at(-1)?.content, 'To Bern.')
  })

  it('an approval interrupts only runs of callers who may resolve it', async () => {
    const { body } = await service.send('POST', '/api/v1/auth/api-keys', {
      body: { name: 'weak', scopes: ['tasks:write'] },
    })
    const running = raw('careful', inputOf(steps), { key: body.key })
    const approval = await eventually(async () => {
      const { approvals } = (await service.send('GET', `${project}/approvals?status=pending`)).body
      return approvals[0]
    })
    await service.send('POST', `${project}/approvals/${approval.id}/resolve`, { body: { decision: 'approve' } })
    const { frames } = await running
    assert.ok(frames.some(({ event }) => event.name === 'cadre.wait' && event.value.reason === 'approval'))
    assert.equal(frames.at(-1)!.event.outcome.type, 'success')
  })
})

describe('what is refused', () => {
  it('a refused AG-UI request has the error format of the API', async () => {
    const cases: [string, object, number][] = [
      ['private', inputOf('x'), 404],
      ['script', { ...inputOf('x'), threadId: '' }, 400],
      ['script', { ...inputOf('x'), messages: {} }, 400],
      ['script', { ...inputOf('x'), messages: [] }, 400],
      ['script', { ...inputOf('x'), messages: [{ id: 'a', role: 'king', content: '' }] }, 400],
      ['script', { ...inputOf('x'), messages: [{ id: 'a', role: 'user', content: [{ type: 'image' }] }] }, 400],
      ['script', { ...inputOf('x'), resume: [{ interruptId: 'appr_0', status: 'resolved' }] }, 400],
      ['script', { ...inputOf('x'), tools: 7 }, 400],
      ['script', { ...inputOf('x'), context: 'x' }, 400],
      ...[
        { role: 'assistant', toolCalls: 'x' },
        { role: 'assistant', toolCalls: [null] },
        { role: 'assistant', toolCalls: [{ id: 'c', type: 'function', function: null }] },
        { role: 'assistant', toolCalls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: {} } }] },
        { role: 'tool', toolCallId: 'c', content: 'x', error: {} },
      ].map((message): [string, object, number] => [
        'script',
        {
          ...inputOf('x'),
          messages: [
            { id: 'a', ...message },
            { id: 'b', role: 'user', content: 'x' },
          ],
        },
        400,
      ]),
    ]
    for (const [name, input, status] of cases)
      assert.equal((await raw(name, input)).status, status, JSON.stringify(input))
    const bad = { ...inputOf('x'), tools: [{ name: 'a b', description: '', parameters: {} }] }
    const { body: told } = await service.send('POST', `/agui/agents/${agents['script']}`, { body: bad })
    assert.match(told.error.message, /^tools\[0\]\.name must be /)
    assert.deepEqual(
      [told.error.code, told.error.details[0].field, told.error.param],
      ['validation_error', 'tools[0].name', undefined],
    )
    assert.equal((await raw('script', {}, { method: 'GET', path: '/runs/none' })).status, 404)
    assert.equal((await raw('script', inputOf('x'), { key: 'none' })).status, 401)
    const { body } = await service.send('POST', '/api/v1/auth/api-keys', {
      body: { name: 'reader', scopes: ['agents:read'] },
    })
    assert.equal((await raw('script', inputOf('x'), { key: body.key })).status, 403)
  })

  it('agents and runs of another organization do not exist for AG-UI clients', async () => {
    const input = inputOf(script({ text: 'Ours.' }))
    await raw('script', input)
    const { body: key } = await service.send('POST', '/api/v1/auth/api-keys', {
      body: { name: 'other', scopes: ['tasks:write'] },
    })
    const path = `/runs/${input.runId}`
    assert.equal(
      (await raw('script', {}, { method: 'GET', path, key: key.key })).status,
      404,
      'a run is its credential’s',
    )
  })
})
