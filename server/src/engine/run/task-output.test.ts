import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { type EngineUnderTest, startEngineUnderTest } from '../../../test/engine-under-test.ts'
import { type FakeModelServer, startFakeModelServer } from '../../../test/fake-models/fake-model-server.ts'
import { makeModels } from '../models/models.ts'

const closed = {
  type: 'object',
  properties: { total: { type: 'number' }, currency: { type: 'string', enum: ['EUR', 'USD'] } },
  required: ['total', 'currency'],
  additionalProperties: false,
}
/** One that no provider enforces: members may be added, and a number has a bound. */
const open = { type: 'object', properties: { total: { type: 'number', minimum: 0 } }, required: ['total'] }
const good = { total: 12.5, currency: 'EUR' }
const usage = { input_tokens: 10, output_tokens: 5 }

// About 4 s: answers that must meet a schema, against the strict fakes of all protocols.
describe('a task whose answer must meet a schema', () => {
  let server: FakeModelServer
  let engine: EngineUnderTest
  before(async () => {
    server = await startFakeModelServer()
    const at = { api_key: 'sk-fake', base_url: server.base_url }
    engine = await startEngineUnderTest(
      makeModels({
        openai: { ...at, protocol: 'responses' },
        anthropic: at,
        providers: [{ name: 'local', base_url: server.base_url }],
        default_model: 'x',
      }),
    )
  })
  after(async () => {
    await engine.stop()
    await server.close()
  })
  beforeEach(() => {
    server.requests.length = 0
    server.refused.length = 0
  })
  afterEach(() => assert.deepEqual(server.refused, [], 'a provider refused a request'))

  const models = [
    'openai/gpt-5.6-sol',
    'openai/gpt-4o',
    'anthropic/claude-opus-4-8',
    'anthropic/claude-3-haiku-20240307',
    'local/fake-1',
  ]
  for (const model of models) {
    it(`a task with an output schema completes with value and text if ${model} answers correctly at once`, async () => {
      for (const output_schema of [closed, open]) {
        server.next({ do: 'answer', text: JSON.stringify(good) })
        const done = await engine.ended(await engine.give({ model, output_schema }, 'Sum up.'))
        assert.deepEqual([done.status, done.output], ['completed', { content: JSON.stringify(good), data: good }])
      }
    })

    it(`a task with an output schema sends ${model} the errors of an answer, and accepts the next one`, async () => {
      server.next({ do: 'answer', text: '{"total": "12"}', usage }, { do: 'answer', text: JSON.stringify(good), usage })
      const id = await engine.give({ model, output_schema: closed }, 'Sum up.')
      assert.deepEqual((await engine.ended(id)).output?.data, good)
      assert.equal(server.requests.length, 2)
      assert.match(JSON.stringify(server.requests[1]!.body), /not valid: .*(total must be number|currency)/)
      const { data } = (await engine.events(id)).findLast(({ type }) => type === 'task.completed') ?? assert.fail()
      assert.deepEqual([data.usage.input_tokens, data.usage.output_tokens, data.usage.steps], [20, 10, 2])
    })

    it(`a task with an output schema fails after two repairs of ${model} without success, and keeps the text`, async () => {
      server.next(...['no', '{}', '[1]'].map((text) => ({ do: 'answer' as const, text })))
      const done = await engine.ended(await engine.give({ model, output_schema: closed }, 'Sum up.'))
      assert.deepEqual(
        [done.status, done.error?.code, done.error?.retryable, done.output],
        ['failed', 'output_invalid', false, { content: '[1]', data: null }],
      )
      assert.equal(server.requests.length, 3)
    })
  }

  it('a task with an output_schema calls tools before its answer, and takes the answer from a tool if the provider does not enforce schemas', async () => {
    for (const model of ['local/fake-1', 'anthropic/claude-3-haiku-20240307']) {
      server.next(
        { do: 'answer', tool_calls: [{ name: 'current_time', arguments: { time_zone: 'UTC' } }] },
        { do: 'answer', tool_calls: [{ name: 'final_answer', arguments: { total: '1' } }] },
        { do: 'answer', tool_calls: [{ name: 'final_answer', arguments: good }] },
      )
      const id = await engine.give({ model, output_schema: closed }, 'Sum up.')
      const done = await engine.ended(id)
      assert.deepEqual([done.status, done.output?.data], ['completed', good], model)
      assert.deepEqual(
        (await engine.steps(id)).map(({ type }) => type),
        ['model_call', 'tool_call', 'model_call', 'model_call'],
      )
    }
  })

  it('an answer may be JSON in a code block, and no other text around it', async () => {
    server.next({ do: 'answer', text: '```json\n{"total": 1}\n```' })
    const done = await engine.ended(await engine.give({ model: 'local/fake-1', output_schema: open }, 'Sum up.'))
    assert.deepEqual(done.output?.data, { total: 1 })
  })
})
