import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import OpenAI from 'openai'
import type { TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { createAgent, createProject } from '../../../test/fixtures.ts'

let service: TestService
let client: OpenAI
let project: string
const script = (...steps: unknown[]): string => JSON.stringify(steps)

before(async () => {
  service = await shareTestService()
  project = (await createProject(service.send, 'answers')).path
  const system_prompt = script(
    { text: 'Let me look.' },
    { tool_calls: [{ name: 'current_time', arguments: {} }] },
    { text: '{"answer": "much"}' },
    { end: 'stop' },
    { text: '```json\n{"answer": 42}\n```' },
  )
  const config = { model: 'builtin/script', system_prompt, tools: ['current_time'] }
  await createAgent(service.send, project, { name: 'repairing', config })
  await createAgent(service.send, project, { name: 'echo', config: { model: 'builtin/echo' } })
  client = new OpenAI({ apiKey: service.owner.api_key, baseURL: `${service.url}/v1`, maxRetries: 0 })
})
after(() => service.stop())

const schema = { type: 'object', properties: { answer: { type: 'integer' } }, required: ['answer'] }
const messages = [{ role: 'user' as const, content: 'How much?' }]

describe('an answer that must meet a schema', () => {
  it('a chat completion with a schema contains only the valid JSON, not earlier text', async () => {
    const response_format = { type: 'json_schema' as const, json_schema: { name: 'answer', schema } }
    const asked = { model: 'answers/repairing', messages, response_format }
    const [whole] = (await client.chat.completions.create(asked)).choices
    assert.deepEqual(JSON.parse(whole!.message.content!), { answer: 42 })
    const [streamed] = (await client.chat.completions.stream(asked).finalChatCompletion()).choices
    assert.deepEqual(JSON.parse(streamed!.message.content!), { answer: 42 })
    assert.equal(streamed!.finish_reason, 'stop')
  })

  it('a finished response with a schema contains only the message that matches it', async () => {
    const system_prompt = script({ text: '{"answer": "much"}' }, { end: 'stop' }, { text: '{"answer": 42}' })
    const config = { model: 'builtin/script', system_prompt }
    await createAgent(service.send, project, { name: 'learning', config })
    await createAgent(service.send, project, { name: 'schooled', config: { ...config, output_schema: schema } })
    const format = { type: 'json_schema' as const, name: 'answer', schema }
    const asked = { model: 'answers/learning', input: 'How much?', text: { format } }
    const streamed = await client.responses.stream(asked).finalResponse()
    assert.deepEqual(JSON.parse(streamed.output_text), { answer: 42 })
    // Also if the schema is the agent's.
    const plain = await client.responses.create({ model: 'answers/schooled', input: 'How much?' })
    assert.deepEqual(JSON.parse(plain.output_text), { answer: 42 })
    const read = await client.responses.retrieve(plain.id)
    assert.deepEqual(read.output, plain.output)
  })
})

describe('what a request says beside its input', () => {
  it('a member of a wrong type is refused with its name in chats and responses', async () => {
    const wrong = {
      ...{ stream: 'yes', store: 'no', background: 1, instructions: 5, previous_response_id: 5, user: {} },
      ...{ temperature: 'warm', top_p: '1', text: 'x', reasoning: 'low', stream_options: 5, include: 'x', metadata: 5 },
      ...{ max_tool_calls: -1, service_tier: 1, client_metadata: [], max_output_tokens: '5', tools: {} },
    }
    for (const [name, value] of Object.entries(wrong))
      for (const [path, input] of Object.entries({ responses: { input: 'x' }, 'chat/completions': { messages } })) {
        const body = { model: 'answers/echo', ...input, [name]: value }
        const reply = await service.send('POST', `/v1/${path}`, { body })
        assert.deepEqual([reply.status, reply.body.error?.param], [400, name], `${path} ${name}`)
      }
  })

  it('an object in place of a type is refused with the name of the parameter, whatever its members are', async () => {
    const type = { toString: 1, length: 3 }
    const bodies: [string, object, string][] = [
      ['responses', { input: [{ type, role: 'user', content: 'x' }] }, 'input[0].type'],
      ['responses', { input: [{ role: 'user', content: [{ type, text: 'x' }] }] }, 'input[0].content[0]'],
      ['responses', { input: 'x', text: { format: { type } } }, 'text.format'],
      ['responses', { input: 'x', tools: [{ type }] }, 'tools[0]'],
      ['chat/completions', { messages: [{ role: 'user', content: [{ type, text: 'x' }] }] }, 'messages[0].content[0]'],
      ['chat/completions', { messages, response_format: { type } }, 'response_format'],
    ]
    for (const run_after of ['0000-01-01', '+275000-01-01T00:00:00Z', '9999-12-31T23:59:59-23:59', '1'])
      bodies.push(['responses', { input: 'x', cadre: { run_after } }, 'cadre.run_after'])
    for (const [name, limit] of [
      ['max_tokens', 1.5],
      ['max_steps', 1e300],
      ['max_cost_usd', 1e300],
    ] as const)
      bodies.push(['responses', { input: 'x', cadre: { budget: { [name]: limit } } }, `cadre.budget.${name}`])
    for (const [path, members, param] of bodies) {
      const reply = await service.send('POST', `/v1/${path}`, { body: { model: 'answers/echo', ...members } })
      assert.deepEqual([reply.status, reply.body.error.param], [400, param], JSON.stringify(reply.body))
    }
  })

  it('max_tool_calls can only lower the limit of the task', async () => {
    for (const [max_tool_calls, kept] of [
      [5, 2],
      [1, 1],
    ] as const) {
      const { body } = await service.send('POST', '/v1/responses', {
        body: { model: 'answers/echo', input: 'x', max_tool_calls, cadre: { budget: { max_tool_calls: 2 } } },
      })
      const { body: task } = await service.send('GET', `${project}/tasks/${body.cadre.task_id}`)
      assert.equal(task.budget.max_tool_calls, kept)
    }
  })

  it('a response makes at most max_tool_calls calls, and then the model answers without more', async () => {
    const config = { model: 'builtin/script', tools: ['current_time'] }
    await createAgent(service.send, project, { name: 'busy', config })
    const call = { name: 'current_time', arguments: {} }
    const script = [{ tool_calls: [call, call] }, { tool_calls: [call] }, { text: 'Done: {{tool_result}}' }]
    const { body } = await service.send('POST', '/v1/responses', {
      body: { model: 'answers/busy', input: JSON.stringify(script), max_tool_calls: 1 },
    })
    const calls = body.output.filter(({ type }: { type: string }) => type === 'mcp_call')
    assert.deepEqual(
      calls.map(({ status }: { status: string }) => status),
      ['completed', 'failed', 'failed'],
    )
    assert.match(body.output.at(-1).content[0].text, /^Done: The caller of this task set max_tool_calls to 1/)
  })

  it('a response that continues a task keeps its max_tool_calls', async () => {
    const model = 'answers/busy'
    const tools = [{ type: 'function', name: 'pick', parameters: { type: 'object', properties: {} } }]
    const calls = ['pick', 'current_time'].map((name) => ({ tool_calls: [{ name, arguments: {} }] }))
    const first = await service.send('POST', '/v1/responses', {
      body: { model, tools, max_tool_calls: 1, input: JSON.stringify([...calls, { text: 'Done.' }]) },
    })
    const { id, output } = first.body
    const second = await service.send('POST', '/v1/responses', {
      body: {
        ...{ model, tools, previous_response_id: id },
        input: [{ type: 'function_call_output', call_id: output[0].call_id, output: 'blue' }],
      },
    })
    assert.deepEqual(
      second.body.output.map(({ type, status }: { type: string; status: string }) => [type, status]),
      [
        ['mcp_call', 'failed'],
        ['message', 'completed'],
      ],
    )
  })

  it('the error for an unknown bare name explains how to name agents with the same name', async () => {
    const { body } = await service.send('POST', '/v1/responses', { body: { model: 'unknown', input: 'x' } })
    assert.match(body.error.message, /no agent named unknown .* project\/agent-name\.$/)
  })

  it('a response has every member that Open Responses requires, with defaults for absent ones', async () => {
    const { body } = await service.send('POST', '/v1/responses', { body: { model: 'answers/echo', input: 'x' } })
    const required = {
      ...{ truncation: 'disabled', service_tier: 'default', tool_choice: 'auto', text: { format: { type: 'text' } } },
      ...{ temperature: 1, top_p: 1, presence_penalty: 0, frequency_penalty: 0, top_logprobs: 0, store: true },
      ...{ background: false, parallel_tool_calls: true, tools: [], metadata: {}, error: null, instructions: null },
      ...{ incomplete_details: null, previous_response_id: null, reasoning: null, max_output_tokens: null },
      ...{ max_tool_calls: null, safety_identifier: null, prompt_cache_key: null },
    }
    const shown = Object.fromEntries(Object.keys(required).map((name) => [name, body[name]]))
    assert.deepEqual(shown, required)
    const config = { model: 'builtin/echo', temperature: 0.2, max_tokens: 5 }
    await createAgent(service.send, project, { name: 'cool', config })
    // What has no effect is not shown, and a limit of the request can only lower that of the agent.
    const asked = { model: 'answers/cool', input: 'x', text: { verbosity: 'low' }, truncation: 'auto', top_p: 0.5 }
    const cool = await service.send('POST', '/v1/responses', { body: { ...asked, max_output_tokens: 9 } })
    const { temperature, text, truncation, top_p, max_output_tokens } = cool.body
    assert.deepEqual([temperature, truncation, top_p, max_output_tokens], [0.2, 'disabled', 1, 5])
    assert.deepEqual(text, { format: { type: 'text' } })
  })

  it('members that only concern the client are stored with the task and shown by a response', async () => {
    const said = { service_tier: 'flex', user: 'u-1', client_metadata: { session: 's-1', depth: 3 } }
    const headers = { 'X-OpenWebUI-User-Id': 'u-7', 'X-OpenWebUI-Chat-Id': 'x'.repeat(600) }
    const { body } = await service.send('POST', '/v1/responses', {
      body: { model: 'answers/echo', input: 'x', ...said },
      headers,
    })
    assert.deepEqual([body.service_tier, body.user, body.client_metadata], ['flex', 'u-1', { session: 's-1' }])
    const { body: task } = await service.send('GET', `${project}/tasks/${body.cadre.task_id}`)
    assert.deepEqual(task.metadata.openai, {
      ...{ service_tier: 'flex', user: 'u-1', client_metadata: { session: 's-1' } },
      ...{ 'x-openwebui-user-id': 'u-7', 'x-openwebui-chat-id': 'x'.repeat(512) },
    })
  })
})

describe('items of a conversation', () => {
  it('items of a conversation are read by id, and can be deleted until a response has read them', async () => {
    const conversation = await client.conversations.create({
      items: [
        { role: 'user', content: 'first' },
        { role: 'user', content: 'second' },
      ],
    })
    const { id: conversation_id } = conversation
    const { data } = await client.conversations.items.list(conversation_id, { order: 'asc' })
    const [first, second] = data as { id: string; content: { text: string }[] }[]
    assert.deepEqual(await client.conversations.items.retrieve(second!.id, { conversation_id }), second)
    assert.deepEqual(await client.conversations.items.delete(first!.id, { conversation_id }), conversation)
    const isMissing = (error: any) => error.status === 404 && error.code === 'item_not_found'
    await assert.rejects(client.conversations.items.retrieve(first!.id, { conversation_id }), isMissing)
    await assert.rejects(client.conversations.items.delete(first!.id, { conversation_id }), isMissing)
    const { output } = await client.responses.create({
      ...{ model: 'answers/echo', input: 'third', conversation: conversation_id },
    })
    const all = await Array.fromAsync(client.conversations.items.list(conversation_id, { order: 'asc' }))
    assert.deepEqual(
      all.map((item: any) => item.content[0].text),
      ['second', 'third', 'third'],
    )
    const [answer] = output as { id: string }[]
    assert.deepEqual(await client.conversations.items.retrieve(answer!.id, { conversation_id }), answer)
    await assert.rejects(
      client.conversations.items.delete(answer!.id, { conversation_id }),
      (error: any) => error.status === 400 && error.param === 'item_id',
    )
    await assert.rejects(
      client.conversations.items.retrieve(answer!.id, { conversation_id: 'conv_none' }),
      (error: any) => error.status === 404 && error.code === 'conversation_not_found',
    )
  })
})

describe('a chat whose model call is repeated after its first text', () => {
  const error = { code: 'provider_unavailable', times: 1, retry_after: 0 }
  const restarts = script(
    { text: 'Look.' },
    { tool_calls: [{ name: 'current_time', arguments: {} }] },
    { text: 'Half ' },
    { delay_ms: 50 },
    { error },
    { text: 'an answer.' },
  )
  const answer = 'Look.\n\nHalf an answer.'
  const asked = { model: 'answers/restarting', messages: [{ role: 'user' as const, content: restarts }] }

  before(async () => {
    const config = { model: 'builtin/script', tools: ['current_time'] }
    await createAgent(service.send, project, { name: 'restarting', config })
  })

  it('a chat that is not streamed gets the finished answer', async () => {
    const { choices } = await client.chat.completions.create(asked)
    assert.deepEqual([choices[0]!.message.content, choices[0]!.finish_reason], [answer, 'stop'])
  })

  it('a streamed chat ends with stream_reset, and the same Idempotency-Key then gets the finished answer', async () => {
    const stream = async (): Promise<{ text: string; task_id: string | null }> => {
      const authorization = `Bearer ${service.owner.api_key}`
      const answered = await fetch(`${service.url}/v1/chat/completions`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json', 'idempotency-key': 'restarting' },
        body: JSON.stringify({ ...asked, stream: true }),
      })
      return { text: await answered.text(), task_id: answered.headers.get('cadre-task-id') }
    }
    const first = await stream()
    assert.match(first.text, /"content":"Half"[^]*"code":"stream_reset"[^[]*$/)
    await service.send('GET', `${project}/tasks/${first.task_id}?wait=30`)
    const { text } = await stream()
    const chunks = text.split('\n\n').filter((frame) => frame.includes('"delta"'))
    const said = chunks.map((frame) => JSON.parse(frame.slice('data: '.length)).choices[0].delta.content ?? '')
    assert.deepEqual([said.join(''), text.endsWith('data: [DONE]\n\n')], [answer, true])
  })

  it('a message after the results of functions is sent to the task that waits for them', async () => {
    const parameters = { type: 'object', properties: {} }
    const tools = [{ type: 'function' as const, function: { name: 'get_weather', parameters } }]
    const content = script({ tool_calls: [{ name: 'get_weather', arguments: {} }] }, { text: 'It is {{tool_result}}.' })
    const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: 'user', content }]
    const first = await client.chat.completions.create({ ...asked, tools, messages })
    const { message } = first.choices[0]!
    const tool_call_id = message.tool_calls![0]!.id
    const result = { role: 'tool' as const, tool_call_id, content: 'wet' }
    await assert.rejects(
      client.chat.completions.create({ ...asked, tools, messages: [...messages, message, result, result] }),
      (error: any) => error.status === 400 && error.param === 'messages' && error.message.includes(tool_call_id),
    )
    messages.push(message, result, { role: 'user', content: 'And tomorrow?' })
    const second = await client.chat.completions.create({ ...asked, tools, messages })
    assert.deepEqual([second.id, second.choices[0]!.message.content], [first.id, 'It is wet.'])
    const [sent] = await service.sql<{ content: string }>`
      select content from task_message where task_id = ${first.id.slice('chatcmpl-'.length)}`
    assert.equal(sent?.content, 'And tomorrow?')
  })
})

describe('decisions on approvals in the input of a response', () => {
  const model = 'answers/careful'
  const input = script(
    {
      tool_calls: [
        { name: 'current_time', arguments: {} },
        { name: 'get_weather', arguments: {} },
      ],
    },
    { text: 'It is {{tool_result}}.' },
  )
  const tools = [
    { type: 'function' as const, name: 'get_weather', parameters: { type: 'object', properties: {} }, strict: false },
  ]
  const of = (output: OpenAI.Responses.ResponseOutputItem[], type: string): any =>
    output.find((item) => item.type === type)
  const decided = (approval_request_id: string) =>
    ({ type: 'mcp_approval_response', approval_request_id, approve: true }) as const

  before(async () => {
    const config = { model: 'builtin/script', tools: ['current_time'], tool_policies: { current_time: 'ask' } }
    await createAgent(service.send, project, { name: 'careful', config })
  })

  it('a request gives the result of a function and decides an approval of the same task together', async () => {
    const first = await client.responses.create({ model, tools, input })
    const { id } = of(first.output, 'mcp_approval_request')
    const { call_id } = of(first.output, 'function_call')
    const result = { type: 'function_call_output' as const, call_id, output: 'wet' }
    const previous_response_id = first.id
    const second = await client.responses.create({ model, previous_response_id, tools, input: [decided(id), result] })
    assert.equal(second.output_text, 'It is wet.')
    assert.equal(of(second.output, 'mcp_call').approval_request_id, id)
  })

  it('a decision that a client resends as history before a new message starts a new task, and is refused alone', async () => {
    const asks = script({ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'Now.' })
    const user = { role: 'user' as const, content: asks }
    const first = await client.responses.create({ model, input: [user] })
    const request = of(first.output, 'mcp_approval_request')
    const history = [user, request, decided(request.id)]
    const second = await client.responses.create({ model, input: history })
    assert.equal(second.output_text, 'Now.')
    const more = { role: 'user' as const, content: script({ text: 'And more.' }) }
    const third = await client.responses.create({ model, input: [...history, ...second.output, more] as never })
    assert.equal(third.output_text, 'And more.')
    assert.notEqual((third as any).cadre.task_id, (second as any).cadre.task_id)
    await assert.rejects(
      client.responses.create({ model, input: history, metadata: { again: '1' } }),
      (error: any) => error.status === 409 && error.code === 'approval_already_resolved',
    )
  })

  it('a message after a decision is sent to the task that it continues', async () => {
    const asks = script({ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'Now.' })
    const first = await client.responses.create({ model, input: asks })
    const decision = decided(of(first.output, 'mcp_approval_request').id)
    const message = { role: 'user' as const, content: 'And the date?' }
    const second = await client.responses.create({ model, previous_response_id: first.id, input: [decision, message] })
    const task_id = (second as any).cadre.task_id
    const [sent] = await service.sql<{ content: string }>`select content from task_message where task_id = ${task_id}`
    assert.deepEqual([task_id, sent?.content], [(first as any).cadre.task_id, 'And the date?'])
  })
})
