import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import OpenAI from 'openai'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
let client: OpenAI
let project: string
const script = (...steps: unknown[]): string => JSON.stringify(steps)

before(async () => {
  test = await shareTestService()
  const made = await test.send('POST', '/api/v1/projects', { body: { name: 'items' } })
  project = `/api/v1/projects/${made.body.id}`
  for (const [name, tools] of Object.entries({
    script: ['current_time', 'calculate', 'request_input'],
    other: ['current_time'],
  }))
    await test.send('POST', `${project}/agents`, { body: { name, config: { model: 'builtin/script', tools } } })
  await test.send('POST', `${project}/agents`, { body: { name: 'echo', config: { model: 'builtin/echo' } } })
  client = new OpenAI({ apiKey: test.owner.api_key, baseURL: `${test.url}/v1`, maxRetries: 0 })
})
after(() => test.stop())

const weather = {
  type: 'function' as const,
  ...{ name: 'get_weather', description: 'The weather.', strict: false },
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}
const inputOf = async (response: OpenAI.Responses.Response) =>
  (await test.send('GET', `${project}/tasks/${(response as any).cadre.task_id}`)).body.input

describe('references to items', () => {
  it("item references resolve to input and output items of the agent's responses", async () => {
    const said = script({ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'It is late.' })
    const first = await client.responses.create({ model: 'script', input: said })
    const [call, message] = first.output as any[]
    const { data } = await client.responses.inputItems.list(first.id)
    const second = await client.responses.create({
      model: 'script',
      input: [
        { type: 'item_reference', id: data[0]!.id },
        { type: 'item_reference', id: call.id },
        // The type may be omitted. Reasoning is not stored, and references to it are dropped.
        { id: message.id },
        { type: 'item_reference', id: 'rs_of_another_provider' },
        { role: 'user', content: script({ text: 'Yes.' }) },
      ],
    })
    assert.equal(second.output_text, 'Yes.')
    const input = await inputOf(second)
    assert.deepEqual(
      input.map(({ role, content, tool_calls }: any) => [role, tool_calls?.[0].name ?? content]),
      [
        ['user', said],
        ['assistant', 'current_time'],
        ['tool', call.output],
        ['assistant', 'It is late.'],
        ['user', script({ text: 'Yes.' })],
      ],
    )
    const shown = await client.responses.inputItems.list(second.id, { order: 'asc' })
    assert.deepEqual(
      shown.data.map(({ type }) => type),
      ['message', 'mcp_call', 'message', 'message'],
    )
  })

  it('item references to a waiting call and its output continue the task', async () => {
    const asks = script(
      { tool_calls: [{ name: 'get_weather', arguments: { city: 'Bern' } }] },
      { text: '{{tool_result}}.' },
    )
    const first = await client.responses.create({ model: 'script', input: asks, tools: [weather] })
    const [call] = first.output as any[]
    const second = await client.responses.create({
      model: 'script',
      tools: [weather],
      input: [
        { type: 'item_reference', id: call.id },
        { type: 'function_call_output', call_id: call.call_id, output: 'Sunny' },
      ],
    })
    assert.deepEqual([second.output_text, taskId(second)], ['Sunny.', taskId(first)])
    const { body: task } = await test.send('GET', `${project}/tasks/${taskId(first)}`)
    assert.equal(task.status, 'completed')
    const question = script(
      { tool_calls: [{ name: 'request_input', arguments: { question: 'Which?' } }] },
      { text: 'Ah.' },
    )
    const asked = await client.responses.create({ model: 'script', input: question })
    const again = await client.responses.create({
      model: 'script',
      input: [
        { type: 'item_reference', id: asked.output[0]!.id! },
        { role: 'user', content: script({ text: 'x' }) },
      ],
    })
    assert.equal((await inputOf(again))[0].content, 'Which?')
  })

  it("item references to unknown, deleted, unstored or other agents' items are refused with their parameter", async () => {
    const of = async (options: object) =>
      client.responses.create({ model: 'script', input: script({ text: 'Here.' }), ...options }) as any
    const [mine, unstored, deleted] = [await of({}), await of({ store: false }), await of({})]
    await client.responses.delete(deleted.id)
    const refused: [string, string][] = [
      ['script', 'msg_nothing'],
      ['script', `msg_${'0'.repeat(26)}`],
      ['script', `fc_${'0'.repeat(26)}`],
      ['script', 'x'.repeat(300)],
      ['script', unstored.output[0].id],
      ['script', deleted.output[0].id],
      ['other', mine.output[0].id],
    ]
    for (const [model, id] of refused) {
      const input = [
        { role: 'user', content: 'x' },
        { type: 'item_reference', id },
      ]
      const { status, body } = await test.send('POST', '/v1/responses', { body: { model, input } })
      assert.deepEqual([status, body.error.code, body.error.param], [400, 'item_not_found', 'input[1].id'], id)
    }
  })
})

describe('allowed tools', () => {
  const calls = (name: string) =>
    script({ tool_calls: [{ name, arguments: {} }] }, { text: 'It says: {{tool_result}}' })
  const allowed = (...names: string[]) => ({
    type: 'allowed_tools' as const,
    mode: 'auto' as const,
    tools: names.map((name) => ({ type: 'function', name })),
  })

  it('the model may call only the allowed tools in chats and responses', async () => {
    const refused = await client.responses.create({
      ...{ model: 'script', input: calls('current_time'), tools: [weather] },
      tool_choice: allowed('get_weather'),
    })
    assert.match(refused.output_text, /does not allow current_time/)
    const own = await client.responses.create({
      ...{ model: 'script', input: calls('current_time'), tools: [weather] },
      tool_choice: { ...allowed(), tools: [{ type: 'mcp', server_label: 'cadre', name: 'current_time' }] },
    })
    assert.match(own.output_text, /It says: .*20\d\d/)
    const chat = await client.chat.completions.create({
      model: 'script',
      messages: [{ role: 'user', content: calls('get_weather').replace('{}', '{"city":"Bern"}') }],
      tools: [{ type: 'function', function: weather }],
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'get_weather' } }] },
      },
    })
    assert.equal(chat.choices[0]!.finish_reason, 'tool_calls')
    const [row] = await test.sql<{ caller: any }>`select caller from task order by id desc limit 1`
    assert.deepEqual([row!.caller.tool_choice, row!.caller.allowed_tools], ['required', ['get_weather']])
  })

  it('allowed tools must be a list of existing tools', async () => {
    const cases: [object, string][] = [
      [{ ...allowed('missing') }, 'tool_choice.tools[0]'],
      [{ ...allowed() }, 'tool_choice.tools'],
      [{ ...allowed('get_weather'), mode: 'sometimes' }, 'tool_choice.mode'],
    ]
    for (const [tool_choice, param] of cases) {
      const body = { model: 'script', input: 'x', tools: [weather], tool_choice }
      const reply = await test.send('POST', '/v1/responses', { body })
      assert.deepEqual([reply.status, reply.body.error.param], [400, param])
    }
  })
})

describe('the door of a task', () => {
  it('the service sets the protocol of a task whatever its caller sends', async () => {
    const { body: agents } = await test.send('GET', `${project}/agents`)
    const agent = agents.agents.find(({ name }: any) => name === 'echo').id
    const metadata = { ticket: 1, door: { kind: 'mcp', client: 'me' } }
    const made = await test.send('POST', `${project}/agents/${agent}/tasks`, { body: { input: 'x', metadata } })
    assert.deepEqual([made.status, made.body.metadata], [201, { ticket: 1 }])
    const batch = await test.send('POST', `${project}/agents/${agent}/tasks/batch`, {
      body: { tasks: [{ input: 'x', metadata }] },
    })
    assert.deepEqual(batch.body.results[0].task.metadata, { ticket: 1 })
    const { body: schedule } = await test.send('POST', `${project}/schedules`, {
      body: { agent_id: agent, name: 'nightly', cron: '0 3 * * *', input: 'x', metadata },
    })
    const { body: ran } = await test.send('POST', `${project}/schedules/${schedule.id}/trigger`)
    const { body: task } = await test.send('GET', `${project}/tasks/${ran.id ?? ran.task_id}`)
    assert.deepEqual(task.metadata, { ticket: 1 })
  })
})

const taskId = (response: OpenAI.Responses.Response): string => (response as any).cadre.task_id
