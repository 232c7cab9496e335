import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import { LLMock } from '@copilotkit/aimock'
import { type EngineUnderTest, startEngineUnderTest } from '../../../test/engine-under-test.ts'
import { makeModels } from '../models/models.ts'

/** A server of other people, driven by the engine as it is: rounds of tools, and what goes wrong between them. */
describe('the engine against aimock', () => {
  const mock = new LLMock({ port: 0, host: '127.0.0.1' })
  let engine: EngineUnderTest
  before(async () => {
    await mock.start()
    const server = { api_key: 'mock', base_url: `${mock.url}/v1` }
    engine = await startEngineUnderTest(
      makeModels({
        openai: { ...server, protocol: 'responses' },
        anthropic: server,
        providers: [{ name: 'chat', ...server }],
        default_model: 'openai/x',
      }),
    )
  })
  after(async () => {
    await engine.stop()
    await mock.stop()
  })
  afterEach(() => void mock.clearChaos())

  const usage = { prompt_tokens: 21, completion_tokens: 9, input_tokens: 21, output_tokens: 9 }
  const time = (id: string, time_zone: string) => ({
    id,
    name: 'current_time',
    arguments: JSON.stringify({ time_zone }),
  })
  mock.onMessage('hello', { content: 'Hi there, how are you?', usage })
  mock.onToolResult('call_one', { content: 'Late.' })
  mock.onToolResult('call_tokyo', { content: 'Late in Tokyo, later in Auckland.' })
  mock.onMessage('what time is it', { toolCalls: [time('call_one', 'UTC')] })
  mock.onMessage('in two places', {
    toolCalls: [time('call_auckland', 'Pacific/Auckland'), time('call_tokyo', 'Asia/Tokyo')],
  })
  mock.onMessage('refuse', { error: { message: 'bad key', type: 'authentication_error' }, status: 401 })
  mock.onMessage('limit', { error: { message: 'slow down', type: 'rate_limit_error' }, status: 429 })
  mock.onMessage('broken', { error: { message: 'oops' }, status: 500 })

  mock.onToolResult('call_thought', { content: 'Thought through.' })
  mock.onMessage('think first', {
    reasoning: 'First I look at the clock.',
    toolCalls: [time('call_thought', 'UTC')],
  })
  mock.onMessage('as data', { content: '{"total":12.5}' })

  for (const model of ['openai/gpt-5.6-sol', 'anthropic/claude-opus-4-8', 'chat/deepseek-reasoner']) {
    // It refuses a turn of Claude that comes back without its thinking.
    it(`the engine against aimock goes on after the reasoning of ${model} with the result of the tool`, async () => {
      const effort = 'high'
      const id = await engine.give({ model, effort }, 'think first')
      const done = await engine.ended(id)
      assert.deepEqual([done.status, done.error, done.output?.content], ['completed', null, 'Thought through.'])
      const [asked] = await engine.steps(id)
      assert.equal(asked?.output.reasoning_summary, 'First I look at the clock.')
    })
  }

  for (const model of ['openai/gpt-5.6-sol', 'anthropic/claude-opus-4-8', 'chat/gpt-4o']) {
    it(`the engine against aimock answers by a schema over the protocol of ${model}`, async () => {
      const output_schema = {
        type: 'object',
        properties: { total: { type: 'number' } },
        required: ['total'],
        additionalProperties: false,
      }
      const done = await engine.ended(await engine.give({ model, output_schema, tools: [] }, 'as data'))
      assert.deepEqual([done.status, done.error, done.output?.data], ['completed', null, { total: 12.5 }])
    })
  }

  for (const model of ['openai/gpt-4o', 'chat/gpt-4o', 'anthropic/claude-sonnet-4-5']) {
    describe(model, () => {
      const shape = async (id: string) =>
        (await engine.steps(id)).map(({ type, status, attempt }) => [type, status, attempt])

      it('answers, and what it counted is the usage of the task', async () => {
        const id = await engine.give({ model }, 'hello')
        assert.equal((await engine.ended(id)).output?.content, 'Hi there, how are you?')
        const { data } = (await engine.events(id)).find(({ type }) => type === 'usage.updated') ?? assert.fail()
        assert.deepEqual(
          [data.usage.input_tokens, data.usage.output_tokens, Object.keys(data.usage.by_model)],
          [21, 9, [model]],
        )
      })

      it('the engine against aimock asks for a tool, and reads what it gave', async () => {
        const id = await engine.give({ model }, 'what time is it?')
        assert.equal((await engine.ended(id)).output?.content, 'Late.')
        assert.deepEqual(await shape(id), [
          ['model_call', 'completed', 1],
          ['tool_call', 'completed', 1],
          ['model_call', 'completed', 1],
        ])
        assert.match((await engine.steps(id))[1]?.output.content, /20\d\d-\d\d-\d\d/)
      })

      it('the engine against aimock asks for two tools at once, and reads both results', async () => {
        const id = await engine.give({ model }, 'in two places')
        assert.equal((await engine.ended(id)).output?.content, 'Late in Tokyo, later in Auckland.')
        assert.deepEqual(await shape(id), [
          ['model_call', 'completed', 1],
          ['tool_call', 'completed', 1],
          ['tool_call', 'completed', 1],
          ['model_call', 'completed', 1],
        ])
      })

      for (const [text, code, attempts] of [
        ['refuse', 'provider_credentials_refused', 1],
        ['limit', 'provider_rate_limited', 3],
        ['broken', 'provider_unavailable', 3],
      ] as const) {
        it(`the engine against aimock fails with ${code} where it says so, after ${attempts} tries`, async () => {
          const id = await engine.give({ model }, text)
          const { status, error } = await engine.ended(id)
          assert.deepEqual([status, error?.code], ['failed', code])
          assert.deepEqual(await shape(id), [['model_call', 'failed', attempts]])
        })
      }

      it('the engine against aimock cuts its connections or talks rubbish, and the task ends with a code that says so', async () => {
        for (const [chaos, codes] of [
          [{ disconnectRate: 1 }, ['provider_unavailable']],
          [{ malformedRate: 1 }, ['provider_bad_answer', 'provider_unavailable']],
          [{ dropRate: 1 }, ['provider_unavailable']],
        ] as const) {
          mock.setChaos(chaos)
          const id = await engine.give({ model }, 'hello')
          const { status, error } = await engine.ended(id)
          assert.equal(status, 'failed')
          assert.ok(
            codes.some((code) => code === error?.code),
            `${JSON.stringify(chaos)} ${error?.code}`,
          )
        }
      })

      it('the engine against aimock fails half of the time, and every task comes through with its tools called once', async () => {
        mock.setChaos({ disconnectRate: 0.5 })
        const patient = { max_attempts: 20, initial_delay_seconds: 0.01, max_delay_seconds: 0.02 }
        const ids = await Promise.all(
          Array.from({ length: 8 }, () => engine.give({ model, retry: patient }, 'what time is it?')),
        )
        for (const id of ids) {
          assert.equal((await engine.ended(id)).output?.content, 'Late.')
          const calls = (await engine.events(id)).filter(({ type }) => type === 'tool.called')
          assert.equal(calls.length, 1)
        }
      })
    })
  }
})
