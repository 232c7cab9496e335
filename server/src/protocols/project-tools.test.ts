import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import OpenAI from 'openai'
import { createAgent, createProject } from '../../test/fixtures.ts'
import { startTestService, type TestService } from '../../test/harness.ts'

let service: TestService
let client: OpenAI
let project: string

before(async () => {
  service = await startTestService({ CADRE_DOORS: 'openai,agui' })
  project = (await createProject(service.send, 'served')).path
  const parameters = { type: 'object', properties: { order: { type: 'string' } } }
  for (const [name, safety] of [
    ['refund', 'safe'],
    ['charge', 'unsafe'],
  ]) {
    const tool = { kind: 'client', name, description: 'Is made by a process of the project.', parameters, safety }
    assert.equal((await service.send('POST', `${project}/tools`, { body: tool })).status, 201)
  }
  const config = { model: 'builtin/script', tools: ['refund', 'charge'] }
  await createAgent(service.send, project, { name: 'clerk', config })
  client = new OpenAI({ apiKey: service.owner.api_key, baseURL: `${service.url}/v1`, maxRetries: 0 })
})
after(() => service.stop())

const calls = (...names: string[]) => ({
  tool_calls: names.map((name) => ({ name, arguments: { order: '4711' } })),
})
const asks = (...names: string[]): string => JSON.stringify([calls(...names), { text: 'It says {{tool_result}}.' }])
const pick = { type: 'function' as const, name: 'pick', strict: false, parameters: { type: 'object', properties: {} } }

/** Claims and resolves the next call of a tool, like a process of the project. */
async function serve(name: string, output: unknown): Promise<string> {
  const body = { tools: [name], wait: 30 }
  const { tool_call } = (await service.send('POST', `${project}/tool-calls/claim`, { body })).body
  const result = { lease: tool_call.lease.token, output }
  await service.send('POST', `${project}/tool-calls/${tool_call.id}/result`, { body: result })
  return tool_call.id
}

describe('tools that processes of the project serve', () => {
  it('a response waits for the result of a client tool of the project', async () => {
    const [response] = await Promise.all([
      client.responses.create({ model: 'served/clerk', input: asks('refund') }),
      serve('refund', 'paid'),
    ])
    const [call, message] = response.output
    assert.ok(call?.type === 'mcp_call' && message?.type === 'message')
    assert.deepEqual([call.name, call.arguments, call.output], ['refund', '{"order":"4711"}', 'paid'])
    assert.equal(response.output_text, 'It says paid.')
    assert.deepEqual(await client.responses.retrieve(response.id), response)
  })

  it('a chat completion waits for the result of a client tool of the project', async () => {
    const [{ choices }] = await Promise.all([
      client.chat.completions.create({
        ...{ model: 'served/clerk', messages: [{ role: 'user', content: asks('refund') }] },
      }),
      serve('refund', 'paid'),
    ])
    assert.deepEqual([choices[0]!.finish_reason, choices[0]!.message.content], ['stop', 'It says paid.'])
  })

  it('a background response is in progress while a client tool of the project runs', async () => {
    const made = await client.responses.create({ model: 'served/clerk', background: true, input: asks('refund') })
    const claim = { body: { tools: ['refund'], wait: 30 } }
    const { tool_call } = (await service.send('POST', `${project}/tool-calls/claim`, claim)).body
    const meanwhile = await client.responses.retrieve(made.id)
    assert.deepEqual([meanwhile.status, meanwhile.output[0]?.type], ['in_progress', 'mcp_call'])
    const body = { lease: tool_call.lease.token, error: { code: 'no_order', message: 'There is no such order.' } }
    const [ended] = await Promise.all([
      client.responses.stream({ response_id: made.id }).finalResponse(),
      service.send('POST', `${project}/tool-calls/${tool_call.id}/result`, { body }),
    ])
    const [call] = ended.output
    assert.ok(call?.type === 'mcp_call')
    assert.equal(call.error, 'There is no such order.')
  })

  it('a response returns calls of the caller once client tools of the project have their results', async () => {
    const input = asks('refund', 'pick')
    const [first] = await Promise.all([
      client.responses.create({ model: 'served/clerk', input, tools: [pick] }),
      serve('refund', 'paid'),
    ])
    const [made, left] = first.output
    assert.ok(made?.type === 'mcp_call' && left?.type === 'function_call' && first.output.length === 2)
    assert.deepEqual([made.output, left.name], ['paid', 'pick'])
    const second = await client.responses.create({
      ...{ model: 'served/clerk', previous_response_id: first.id, tools: [pick] },
      input: [{ type: 'function_call_output', call_id: left.call_id, output: 'blue' }],
    })
    assert.equal(second.output_text, 'It says blue.')
  })

  it('an AG-UI run waits for the result of a client tool of the project', async () => {
    const config = { model: 'builtin/script', tools: ['refund'], doors: { agui: { published: true } } }
    const { id } = await createAgent(service.send, project, { name: 'shown', config })
    const body = {
      ...{ threadId: 't', runId: 'r', state: {}, tools: [], context: [], forwardedProps: {} },
      messages: [{ id: 'u', role: 'user', content: asks('refund') }],
    }
    const headers = { authorization: `Bearer ${service.owner.api_key}`, 'content-type': 'application/json' }
    const run = async () => {
      const answer = await fetch(`${service.url}/agui/agents/${id}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      return (await answer.text())
        .split('\n')
        .flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : []))
    }
    const [events] = await Promise.all([run(), serve('refund', 'paid')])
    assert.equal(events.find(({ type }) => type === 'TOOL_CALL_RESULT')?.content, 'paid')
    assert.deepEqual(events.at(-1).outcome, { type: 'success' })
  })

  it('a response closes a call with an unknown outcome, and the next response shows its result', async () => {
    const made = await client.responses.create({ model: 'served/clerk', background: true, input: asks('charge') })
    const { tool_call } = (
      await service.send('POST', `${project}/tool-calls/claim`, { body: { tools: ['charge'], wait: 30 } })
    ).body
    await service.sql`update tool_call set lease_until = now() - interval '1 second' where id = ${tool_call.id}`
    const first = await client.responses.stream({ response_id: made.id }).finalResponse()
    const [call, asked] = first.output
    assert.ok(call?.type === 'mcp_call' && asked?.type === 'mcp_approval_request')
    assert.match(JSON.stringify(call.error), /no result yet/)
    const answer = { type: 'mcp_approval_response' as const, approval_request_id: asked.id, approve: true }
    const [second] = await Promise.all([
      client.responses.create({ model: 'served/clerk', previous_response_id: first.id, input: [answer] }),
      serve('charge', 'charged'),
    ])
    assert.equal(second.output_text, 'It says charged.')
  })
})
