import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import OpenAI from 'openai'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'
import { createAgent, createProject } from '../../../test/fixtures.ts'

let service: TestService
let client: OpenAI
let project: string
const script = (...steps: unknown[]): string => JSON.stringify(steps)

before(async () => {
  service = await startTestService()
  project = (await createProject(service.send, 'door')).path
  await addAgent('echo', { model: 'builtin/echo' })
  await addAgent('script', { model: 'builtin/script', tools: ['current_time', 'request_input'] })
  await addAgent('careful', {
    ...{ model: 'builtin/script', tools: ['current_time'] },
    tool_policies: { current_time: 'ask' },
  })
  client = new OpenAI({ apiKey: service.owner.api_key, baseURL: `${service.url}/v1`, maxRetries: 0 })
})
after(() => service.stop())

async function addAgent(name: string, config: object): Promise<string> {
  const body = await createAgent(service.send, project, { name, config })
  return body.id
}
const tasksOf = async () => (await service.sql<{ id: string }>`select id from task order by id`).map(({ id }) => id)
const weather = {
  type: 'function' as const,
  ...{ name: 'get_weather', description: 'The weather.', strict: false },
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
const chatWeather = { type: 'function' as const, function: weather }
const asksWeather = script(
  { tool_calls: [{ name: 'get_weather', arguments: { city: 'Bern' } }] },
  { text: 'It is {{tool_result}}.' },
)

describe('models', () => {
  it('models are the agents of the organization, listed and read by name', async () => {
    const { data } = await client.models.list()
    assert.deepEqual(
      data.map(({ id, object, owned_by }) => [id, object, owned_by]).slice(0, 3),
      ['careful', 'echo', 'script'].map((name) => [`door/${name}`, 'model', project.replace(/.*\//, 'proj_')]),
    )
    assert.equal((await client.models.retrieve('door/echo')).id, 'door/echo')
    const raw = await service.send('GET', '/v1/models')
    assert.deepEqual(raw.body.models, [])
  })

  it('unknown models give model_not_found', async () => {
    await assert.rejects(client.models.retrieve('door/missing'), (error: any) => {
      assert.deepEqual([error.status, error.code, error.type], [404, 'model_not_found', 'invalid_request_error'])
      return true
    })
    const odd = await service.send('GET', '/v1/models/a%00b')
    assert.deepEqual([odd.status, odd.body.error.code], [404, 'model_not_found'])
  })
})

describe('errors of the door', () => {
  it('errors have the form of the OpenAI protocol', async () => {
    const bad = new OpenAI({ apiKey: `cadre_${'0'.repeat(32)}`, baseURL: `${service.url}/v1`, maxRetries: 0 })
    await assert.rejects(bad.models.list(), (error: any) => {
      assert.deepEqual([error.status, error.code, error.type], [401, 'invalid_api_key', 'invalid_request_error'])
      assert.equal(error.headers.get('x-should-retry'), 'false')
      return true
    })
    const unknown = await service.send('POST', '/v1/embeddings', { body: {} })
    assert.deepEqual([unknown.status, unknown.body.error.code], [404, 'unknown_url'])
    assert.equal(unknown.headers.get('x-should-retry'), 'false')
  })

  it('errors name the invalid parameter', async () => {
    const cases: [object, string, string][] = [
      [{ model: 'echo', messages: [] }, 'messages', 'invalid_value'],
      [{ messages: [{ role: 'user', content: 'x' }] }, 'model', 'missing_required_parameter'],
      [{ model: 'echo', messages: [{ role: 'user', content: 'x' }], n: 2 }, 'n', 'unsupported_parameter'],
      [
        { model: 'echo', messages: [{ role: 'user', content: 'x' }], tools: [{ type: 'mcp' }] },
        'tools[0]',
        'unsupported_parameter',
      ],
    ]
    for (const [body, param, code] of cases) {
      const reply = await service.send('POST', '/v1/chat/completions', { body })
      assert.deepEqual([reply.status, reply.body.error.param, reply.body.error.code], [400, param, code])
    }
  })

  it('a missing scope gives 403 insufficient_scope', async () => {
    const { body } = await service.send('POST', '/api/v1/auth/api-keys', {
      body: { name: 'reader', scopes: ['agents:read'] },
    })
    const reply = await service.send('POST', '/v1/responses', { key: body.key, body: { model: 'echo', input: 'x' } })
    assert.deepEqual(
      [reply.status, reply.body.error.type, reply.body.error.code],
      [403, 'permission_error', 'insufficient_scope'],
    )
  })
})

describe('chat completions', () => {
  it('chat completions are ordinary tasks', async () => {
    const { data, response } = await client.chat.completions
      .create({ model: 'door/echo', messages: [{ role: 'user', content: 'Hello there' }] })
      .withResponse()
    assert.equal(data.choices[0]!.message.content, 'Hello there')
    assert.deepEqual([data.model, data.choices[0]!.finish_reason], ['door/echo', 'stop'])
    const task_id = response.headers.get('cadre-task-id')
    assert.equal(data.id, `chatcmpl-${task_id}`)
    const { body: task } = await service.send('GET', `${project}/tasks/${task_id}`)
    assert.deepEqual([task.status, task.metadata.door.kind], ['completed', 'openai.chat'])
    assert.match(task.metadata.door.client, /^OpenAI\/JS/)
  })

  it('tasks of chat completions are found by their protocol', async () => {
    const { response } = await client.chat.completions
      .create({ model: 'door/echo', messages: [{ role: 'user', content: 'By chat' }] })
      .withResponse()
    await client.responses.create({ model: 'door/echo', input: 'By response' })
    const list = async (path: string) => (await service.send('GET', `${project}${path}`)).body
    const chats = await list('/tasks?door=openai.chat&limit=100')
    assert.equal(chats.tasks[0].id, response.headers.get('cadre-task-id'))
    assert.deepEqual([...new Set(chats.tasks.map((task: any) => task.metadata.door.kind))], ['openai.chat'])
    assert.equal(chats.pagination.total, chats.tasks.length)
    const [newest] = (await list(`/agents/${chats.tasks[0].agent_id}/tasks?door=openai.responses&limit=1`)).tasks
    assert.deepEqual([newest.metadata.door.kind, newest.input[0].content], ['openai.responses', 'By response'])
    assert.equal((await list('/tasks?door=mcp')).pagination.total, 0)
  })

  it('chat completions stream their text, and the usage if requested', async () => {
    const stream = await client.chat.completions.create({
      ...{ model: 'script', stream: true, stream_options: { include_usage: true } },
      messages: [{ role: 'user', content: script({ text: 'One two three four.' }) }],
    })
    let text = ''
    const ends: unknown[] = []
    let usage: unknown
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? ''
      if (chunk.choices[0]?.finish_reason) ends.push(chunk.choices[0].finish_reason)
      usage = chunk.usage ?? usage
    }
    assert.deepEqual([text, ends], ['One two three four.', ['stop']])
    assert.equal((usage as { completion_tokens: number }).completion_tokens, 4)
  })

  it("chat completions request calls of the caller's tools, and the results continue the same task", async () => {
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: asksWeather }]
    const before = (await tasksOf()).length
    const first = await client.chat.completions.create({ model: 'script', messages, tools: [chatWeather] })
    const { message, finish_reason } = first.choices[0]!
    assert.equal(finish_reason, 'tool_calls')
    const [call] = message.tool_calls!
    assert.ok(call?.type === 'function')
    assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ['get_weather', { city: 'Bern' }])
    messages.push(message, { role: 'tool', tool_call_id: call.id, content: 'sunny' })
    const second = await client.chat.completions.create({ model: 'script', messages, tools: [chatWeather] })
    assert.equal(second.choices[0]!.message.content, 'It is sunny.')
    assert.equal(second.id, first.id)
    assert.equal((await tasksOf()).length, before + 1)
    // The task has ended: the same history is a new task.
    const third = await client.chat.completions.create({ model: 'script', messages, tools: [chatWeather] })
    assert.notEqual(third.id, first.id)
    assert.equal(third.choices[0]!.message.content, 'It is sunny.')
  })

  it('chat completions need all results of a task at once', async () => {
    const two = script({
      tool_calls: ['Bern', 'Rome'].map((city) => ({ name: 'get_weather', arguments: { city } })),
    })
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content: two }]
    const first = await client.chat.completions.create({ model: 'script', messages, tools: [chatWeather] })
    const [a, b] = first.choices[0]!.message.tool_calls!
    messages.push(first.choices[0]!.message, { role: 'tool', tool_call_id: a!.id, content: 'sunny' })
    await assert.rejects(
      client.chat.completions.create({ model: 'script', messages, tools: [chatWeather] }),
      (error: any) => error.status === 400 && error.code === 'missing_tool_output' && error.message.includes(b!.id),
    )
  })

  it('chat completions are valid JSON for a schema', async () => {
    const { choices } = await client.chat.completions.create({
      model: 'script',
      messages: [{ role: 'user', content: script({ text: '{"answer": 42}' }) }],
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'answer',
          schema: { type: 'object', properties: { answer: { type: 'integer' } }, required: ['answer'] },
        },
      },
    })
    assert.deepEqual(JSON.parse(choices[0]!.message.content!), { answer: 42 })
  })

  it('failed chat completions have the error of their task', async () => {
    const messages = [{ role: 'user' as const, content: script({ error: { code: 'provider_refused_request' } }) }]
    await assert.rejects(
      client.chat.completions.create({ model: 'script', messages }),
      (error: any) => error.status === 500 && error.code === 'provider_refused_request',
    )
  })

  it('chat completions refuse caller tools with the name of a tool of the agent', async () => {
    const tools = [{ type: 'function' as const, function: { name: 'current_time' } }]
    await assert.rejects(
      client.chat.completions.create({ model: 'script', messages: [{ role: 'user', content: 'x' }], tools }),
      (error: any) => error.status === 400 && error.param === 'tools[0].function.name',
    )
  })
})

describe('responses', () => {
  it('responses are segments of ordinary tasks', async () => {
    const response = await client.responses.create({ model: 'door/echo', input: 'Hello there' })
    assert.deepEqual([response.status, response.output_text], ['completed', 'Hello there'])
    assert.equal(response.usage!.output_tokens, 2)
    assert.deepEqual(await client.responses.retrieve(response.id), response)
  })

  it('responses stream, and a replay from any number has the same frames', async () => {
    const input = script({ text: 'One two three four five six seven eight.' })
    const stream = await client.responses.create({ model: 'script', input, stream: true })
    const events = await Array.fromAsync(stream)
    assert.deepEqual([events[0]!.type, events[0]!.sequence_number], ['response.created', 0])
    const last = events.at(-1)!
    assert.ok(last.type === 'response.completed')
    assert.equal(last.response.output_text ?? textOf(last.response), 'One two three four five six seven eight.')
    const numbers = events.map(({ sequence_number }) => sequence_number)
    assert.deepEqual(
      numbers,
      numbers.toSorted((a, b) => a - b),
    )
    for (const at of [-1, 0, 3, Math.floor(events.length / 2), events.length - 2]) {
      const starting_after = at < 0 ? -1 : numbers[at]!
      const replayed: unknown[] = await Array.fromAsync(
        await client.responses.retrieve(last.response.id, { stream: true, starting_after }),
      )
      assert.deepEqual(replayed, events.slice(at + 1))
    }
  })

  it('the client library reads a response while it is written', async () => {
    const input = script({ text: 'Slowly ' }, { delay_ms: 50 }, { text: 'written.' })
    const final = await client.responses.stream({ model: 'script', input }).finalResponse()
    assert.equal(final.output_text, 'Slowly written.')
  })

  it("responses request calls of the caller's tools and continue with the results", async () => {
    const first = await client.responses.create({ model: 'script', input: asksWeather, tools: [weather] })
    const [call] = first.output
    assert.ok(call?.type === 'function_call' && call.call_id.startsWith('call_'))
    const second = await client.responses.create({
      ...{ model: 'script', previous_response_id: first.id, tools: [weather] },
      input: [{ type: 'function_call_output', call_id: call.call_id, output: 'sunny' }],
    })
    assert.equal(second.output_text, 'It is sunny.')
    assert.equal((second as any).cadre.task_id, (first as any).cadre.task_id)
    assert.deepEqual(await client.responses.retrieve(first.id), first)
  })

  it("responses show calls of the agent's tools with their results", async () => {
    const input = script({ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'Now.' })
    const response = await client.responses.create({ model: 'script', input })
    const [call, message] = response.output
    assert.ok(call?.type === 'mcp_call' && message?.type === 'message')
    assert.deepEqual([call.server_label, call.name, call.error], ['cadre', 'current_time', null])
    assert.match(call.output!, /time_zone/)
  })

  it('responses show delegated tasks as calls with their results', async () => {
    const delegate = { agent_id: await addAgent('helper', { model: 'builtin/echo' }), name: 'help' }
    await addAgent('leader', { model: 'builtin/script', delegates: [delegate] })
    const asks = (input: string) => ({ tool_calls: [{ name: 'delegate_help', arguments: { input } }] })
    const input = script(asks('yes'), { text: 'It says {{tool_result}}.' })
    const response = await client.responses.create({ model: 'leader', input })
    const [call] = response.output
    assert.ok(call?.type === 'mcp_call')
    assert.deepEqual([call.name, call.output, call.arguments], ['delegate_help', 'yes', '{"input":"yes"}'])
    assert.equal(response.output_text, 'It says yes.')
    assert.deepEqual(await client.responses.retrieve(response.id), response)
  })

  it('a response ends with an approval that its caller may resolve', async () => {
    const input = script({ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'Now.' })
    const first = await client.responses.create({ model: 'careful', input })
    const [asked] = first.output
    assert.ok(asked?.type === 'mcp_approval_request' && first.status === 'completed')
    const answer = { type: 'mcp_approval_response' as const, approval_request_id: asked.id, approve: true }
    const again = { model: 'careful', previous_response_id: first.id, input: [answer] }
    const second = await client.responses.create(again)
    assert.equal(second.output_text, 'Now.')
    const [call] = second.output
    assert.ok(call?.type === 'mcp_call')
    assert.equal((call as any).approval_request_id, asked.id)
    const [entry] = await service.sql<{ detail: any }>`
      select detail from audit where action = 'approval.resolved' and detail->>'task_id' = ${(second as any).cadre.task_id}`
    assert.deepEqual([entry!.detail.tool, entry!.detail.kind], ['current_time', 'tool_call'])
    await assert.rejects(
      client.responses.create({ ...again, metadata: { try: '2' } }),
      (error: any) => error.status === 409 && error.code === 'approval_already_resolved',
    )
  })

  it('responses with only tasks:write cannot resolve approvals', async () => {
    const { body } = await service.send('POST', '/api/v1/auth/api-keys', {
      body: { name: 'runner', scopes: ['tasks:write'] },
    })
    const runner = new OpenAI({ apiKey: body.key, baseURL: `${service.url}/v1`, maxRetries: 0 })
    const input = script({ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'Now.' })
    const open = await runner.responses.create({ model: 'careful', input, background: true })
    const task_id = (open as any).cadre.task_id
    const approval = await eventually(
      async () => (await service.sql<{ id: string }>`select id from approval where task_id = ${task_id}`)[0],
    )
    const approval_request_id = `mcpr_${approval.id.slice('appr_'.length)}`
    await assert.rejects(
      runner.responses.create({
        model: 'careful',
        previous_response_id: open.id,
        input: [{ type: 'mcp_approval_response', approval_request_id, approve: true }],
      }),
      (error: any) => error.status === 403 && error.code === 'insufficient_scope',
    )
    const waiting = await runner.responses.retrieve(open.id)
    assert.deepEqual([waiting.status, waiting.output.length], ['in_progress', 0])
  })

  it('a response has a question as its text, and the next response answers it', async () => {
    const input = script(
      { tool_calls: [{ name: 'request_input', arguments: { question: 'Which colour?' } }] },
      { text: 'You said {{tool_result}}.' },
    )
    const first = await client.responses.create({ model: 'script', input })
    assert.deepEqual([first.status, first.output_text], ['completed', 'Which colour?'])
    const second = await client.responses.create({ model: 'script', previous_response_id: first.id, input: 'blue' })
    assert.equal(second.output_text, 'You said blue.')
    assert.equal((second as any).cadre.task_id, (first as any).cadre.task_id)
  })

  it('responses continue from the last one, and from the middle of a chain', async () => {
    const first = await client.responses.create({ model: 'echo', input: 'one' })
    const second = await client.responses.create({ model: 'echo', input: 'two', previous_response_id: first.id })
    const fork = await client.responses.create({ model: 'echo', input: 'three', previous_response_id: first.id })
    assert.deepEqual([second.output_text, fork.output_text], ['two', 'three'])
    // The number of words of the whole conversation, as the model received it.
    assert.deepEqual(
      [first, second, fork].map(({ usage }) => usage!.input_tokens),
      [1, 3, 3],
    )
    await assert.rejects(
      client.responses.create({ model: 'echo', input: 'x', previous_response_id: 'resp_nothing' }),
      (error: any) => error.status === 400 && error.code === 'previous_response_not_found',
    )
  })

  it('responses run in the background, are polled and canceled', async () => {
    const input = script({ delay_ms: 600_000 }, { text: ' whole' })
    const open = await client.responses.create({ model: 'script', input, background: true })
    assert.deepEqual([open.status, open.output], ['queued', []])
    await eventually(async () => (await client.responses.retrieve(open.id)).status === 'in_progress')
    const canceled = await client.responses.cancel(open.id)
    assert.deepEqual([canceled.status, canceled.incomplete_details?.reason], ['cancelled', 'cancelled'])
    assert.equal((await client.responses.retrieve(open.id)).status, 'cancelled')
    assert.equal((await client.responses.cancel(open.id)).status, 'cancelled')
  })

  it('deleted responses, and those with store: false, cannot be retrieved', async () => {
    const { id } = await client.responses.create({ model: 'echo', input: 'x' })
    await client.responses.delete(id)
    await assert.rejects(client.responses.retrieve(id), (error: any) => error.status === 404)
    const unstored = await client.responses.create({ model: 'echo', input: 'x', store: false })
    await assert.rejects(client.responses.retrieve(unstored.id), (error: any) => error.status === 404)
  })

  it('responses list their input items', async () => {
    const { id } = await client.responses.create({
      model: 'echo',
      input: ['a', 'b', 'c'].map((content) => ({ role: 'user' as const, content })),
    })
    const page = await client.responses.inputItems.list(id, { limit: 2, order: 'asc' })
    assert.deepEqual([page.data.length, page.has_more], [2, true])
    const all = await Array.fromAsync(client.responses.inputItems.list(id, { limit: 1, order: 'asc' }))
    assert.deepEqual(
      all.map((item: any) => item.content[0].text),
      ['a', 'b', 'c'],
    )
  })

  it('a response of a failed task has its error', async () => {
    const input = script({ error: { code: 'provider_refused_request' } })
    const response = await client.responses.create({ model: 'script', input })
    assert.deepEqual([response.status, response.error?.code], ['failed', 'provider_refused_request'])
  })

  it('responses are not visible to other organizations', async () => {
    const { id } = await client.responses.create({ model: 'echo', input: 'x' })
    const [other] = await service.sql<{
      id: string
    }>`insert into organization (id, name) values ('org_other', 'Other') returning id`
    await service.sql`update project set org_id = ${other!.id} where id = ${Number(project.split('/').at(-1))}`
    try {
      await assert.rejects(client.responses.retrieve(id), (error: any) => error.status === 404)
      assert.equal((await client.models.list()).data.length, 0)
    } finally {
      const [mine] = await service.sql<{ org_id: string }>`select org_id from api_key limit 1`
      await service.sql`update project set org_id = ${mine!.org_id} where id = ${Number(project.split('/').at(-1))}`
    }
  })
})

describe('conversations', () => {
  it('conversations keep their messages and belong to their first agent', async () => {
    const conversation = await client.conversations.create({
      metadata: { topic: 'test' },
      items: [{ role: 'user', content: 'before' }],
    })
    const one = await client.responses.create({ model: 'echo', input: 'one', conversation: conversation.id })
    const two = await client.responses.create({ model: 'echo', input: 'two', conversation: conversation.id })
    assert.deepEqual(
      [one, two].map(({ usage }) => usage!.input_tokens),
      [2, 4],
    )
    const items = await Array.fromAsync(client.conversations.items.list(conversation.id, { order: 'asc' }))
    assert.deepEqual(
      items.map((item: any) => item.content[0].text),
      ['before', 'one', 'one', 'two', 'two'],
    )
    await assert.rejects(
      client.responses.create({ model: 'script', input: 'x', conversation: conversation.id }),
      (error: any) => error.status === 400 && error.param === 'conversation',
    )
    assert.deepEqual((await client.conversations.retrieve(conversation.id)).metadata, { topic: 'test' })
    await client.conversations.delete(conversation.id)
    await assert.rejects(client.conversations.retrieve(conversation.id), (error: any) => error.status === 404)
  })
})

function textOf(response: OpenAI.Responses.Response): string {
  return response.output
    .flatMap((item) => (item.type === 'message' ? item.content : []))
    .map((part: any) => part.text)
    .join('')
}
