import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type EngineUnderTest, startEngineUnderTest } from '../../../test/engine-under-test.ts'
import { modelFaults } from '../../../test/fake-models/fake-model-faults.ts'
import {
  type FakeModelServer,
  type FakeRequest,
  startFakeModelServer,
} from '../../../test/fake-models/fake-model-server.ts'
import { answersGiven, lastUserText } from '../../../test/fake-models/fake-chat-messages.ts'
import { eventually } from '../../../test/harness.ts'
import { makeModels } from '../models/models.ts'
import { callLimits } from '../models/model-watch.ts'

/** What providers do wrong, met by the engine as it is: never a task that is stuck. */
describe('a provider that fails', () => {
  let engine: EngineUnderTest
  let server: FakeModelServer
  before(async () => {
    server = await startFakeModelServer()
    const { base_url } = server
    const settings = { openai: { base_url }, anthropic: { base_url, api_key: 'sk-fake' }, default_model: 'openai/x' }
    const limits = { ...callLimits, start_ms: 4000, idle_ms: 4000 }
    engine = await startEngineUnderTest(makeModels(settings, { limits }))
  })
  after(async () => {
    await engine.stop()
    await server.close()
  })

  const asked = (input: string): FakeRequest[] => server.requests.filter(({ body }) => lastUserText(body) === input)

  for (const model of ['openai/x', 'anthropic/x']) {
    describe(`(${model})`, () => {
      it('a call to a failing provider is retried, and its task fails with a clear code', async () => {
        server.always((request) => {
          const fault = modelFaults.find(({ what }) => what === lastUserText(request.body))
          return fault?.behave(request) ?? { do: 'answer', text: 'fine' }
        })
        const tasks = await Promise.all(
          // One model name for each test: a cooldown would affect them all.
          modelFaults.map(async (fault, i) => ({
            fault,
            id: await engine.give({ model: `${model}${i}` }, fault.what),
          })),
        )
        for (const { fault, id } of tasks) {
          const { status, error } = await engine.ended(id)
          assert.deepEqual([status, error?.code, error?.retryable], ['failed', fault.code, fault.retryable], fault.what)
          const [step, ...others] = await engine.steps(id)
          assert.equal(others.length, 0, fault.what)
          assert.equal(step?.failures, fault.retryable ? 3 : 1, fault.what)
          const failures = (await engine.events(id)).filter(({ type }) => type === 'step.failed')
          assert.equal(failures.at(-1)?.data['will_retry'], false, fault.what)
        }
      })

      it('tasks complete if their failing provider recovers in time', async () => {
        server.always(({ path, body }) => {
          const text = lastUserText(body)
          const fault = modelFaults.find(({ what }) => `back: ${what}` === text)
          return fault && asked(text).length < 3 ? fault.behave({ path }) : { do: 'answer', text: 'fine' }
        })
        const passing = modelFaults.filter(({ retryable }) => retryable)
        const tasks = await Promise.all(
          passing.map(async ({ what }, i) => ({
            what,
            id: await engine.give({ model: `${model}${i}` }, `back: ${what}`),
          })),
        )
        for (const { what, id } of tasks) {
          const { status, output } = await engine.ended(id)
          assert.deepEqual([status, output?.content], ['completed', 'fine'], what)
        }
      })

      it('a provider failure between two rounds does not repeat tool calls', async () => {
        const input = `rounds of ${model}`
        let failed = false
        server.always(({ body }) => {
          const round = answersGiven(body)
          if (round === 0) {
            const calls = ['UTC', 'Asia/Tokyo'].map((time_zone) => ({ name: 'current_time', arguments: { time_zone } }))
            return { do: 'answer', text: 'Looking.', tool_calls: calls }
          }
          if (!failed) {
            failed = true
            return { do: 'cut', pieces: 3, text: 'almost there' }
          }
          return { do: 'answer', text: 'It is late.' }
        })
        const id = await engine.give({ model }, input)
        assert.deepEqual((await engine.ended(id)).output, { content: 'It is late.', data: null })
        const steps = await engine.steps(id)
        assert.deepEqual(
          steps.map(({ type, status, attempt }) => [type, status, attempt]),
          [
            ['model_call', 'completed', 1],
            ['tool_call', 'completed', 1],
            ['tool_call', 'completed', 1],
            ['model_call', 'completed', 2],
          ],
        )
        const types = (await engine.events(id)).map(({ type }) => type)
        assert.ok(types.includes('message.discarded') || types.includes('step.failed'))
      })

      it('a model that writes arguments that are not JSON gets an error, and may correct them', async () => {
        server.always(({ body }) =>
          answersGiven(body) === 0
            ? { do: 'answer', tool_calls: [{ name: 'current_time', arguments: '{"time_zone": "U' }] }
            : { do: 'answer', text: 'Sorry.' },
        )
        const id = await engine.give({ model }, 'bad arguments')
        assert.equal((await engine.ended(id)).output?.content, 'Sorry.')
        const [, call] = await engine.sql<{ status: string; error: { code: string } }>`
          select status, error from task_step where task_id = ${id} order by index`
        assert.deepEqual([call?.status, call?.error.code], ['failed', 'invalid_arguments'])
      })

      it('a model that endlessly calls tools is stopped by the limit of steps', async () => {
        server.always({ do: 'answer', tool_calls: [{ id: 'same', name: 'current_time', arguments: {} }] })
        const id = await engine.give({ model, max_steps: 9 }, 'loop')
        const { status, error } = await engine.ended(id)
        assert.deepEqual([status, error?.code], ['failed', 'max_steps_reached'])
        assert.ok((await engine.steps(id)).length <= 9)
      })

      it('the next of fallback_models takes over from a provider that fails for good', async () => {
        server.always(({ body }) =>
          body['model'] === 'first' ? { do: 'status', status: 500 } : { do: 'answer', text: 'from the second' },
        )
        const [provider] = model.split('/')
        const id = await engine.give(
          { model: `${provider}/first`, fallback_models: [`${provider}/second`] },
          'fall back',
        )
        assert.equal((await engine.ended(id)).output?.content, 'from the second')
        const change = (await engine.events(id)).find(({ type }) => type === 'model.fallback')
        assert.deepEqual([change?.data['from'], change?.data['to']], [`${provider}/first`, `${provider}/second`])
      })

      it('a provider that asks for a pause gets no call of any task until its end', async () => {
        const name = `${model.split('/')[0]}/busy`
        let isBusy = true
        server.always(() =>
          isBusy ? { do: 'status', status: 429, headers: { 'retry-after': '4' } } : { do: 'answer', text: 'rested' },
        )
        const first = await engine.give({ model: name }, `patience 0 ${model}`)
        await eventually(async () => (await engine.read(first)).status === 'waiting')
        isBusy = false
        const others = await Promise.all([1, 2, 3].map((i) => engine.give({ model: name }, `patience ${i} ${model}`)))
        for (const id of others) {
          const received = await eventually(async () => {
            const now = await engine.read(id)
            return now.status !== 'queued' && now.status !== 'running' && now
          })
          assert.deepEqual([received.status, received.wait?.reason], ['waiting', 'provider'])
        }
        assert.equal(asked(`patience 1 ${model}`).length, 0, 'no call asks it meanwhile')
        for (const id of [first, ...others]) assert.equal((await engine.ended(id)).output?.content, 'rested')
        assert.equal((await engine.steps(others[0]!))[0]?.failures, 0, 'the wait was no failure of theirs')
      })
    })
  }

  it('after a pause one call is made, and if the provider asks for another pause the waiting calls fail like it', async () => {
    const name = 'openai/busy-for-long'
    server.always({ do: 'status', status: 503, headers: { 'retry-after': '1' } })
    const inputs = Array.from({ length: 8 }, (_, i) => `again ${i}`)
    const tasks = await Promise.all(
      inputs.map((input) => engine.give({ model: name, retry: { max_attempts: 4 } }, input)),
    )
    const received: string[] = []
    for (const id of tasks) {
      const { status, error } = await engine.ended(id)
      assert.deepEqual([status, error?.code, error?.retryable], ['failed', 'provider_unavailable', true])
      const failures = (await engine.events(id)).filter(({ type }) => type === 'step.failed')
      assert.equal(failures.length, 4, 'its own bound ends it')
      received.push(...failures.map(({ data }) => data.error.message))
    }
    const spared = received.filter((message) => message.startsWith(`${name} was not called: it asked for a pause`))
    assert.ok(spared.length > 0, 'some were refused without a request')
    assert.equal(inputs.reduce((sum, input) => sum + asked(input).length, 0) + spared.length, received.length)
  })

  it('a provider that never responds is probed by one call before all others call it', async () => {
    const name = 'openai/dead'
    server.always({ do: 'status', status: 500 })
    const inputs = Array.from({ length: 12 }, (_, i) => `dead ${i}`)
    const retry = (max_attempts: number) => ({ max_attempts, initial_delay_seconds: 0.02, max_delay_seconds: 0.04 })
    const tasks = await Promise.all(inputs.map((input) => engine.give({ model: name, retry: retry(2) }, input)))
    const received: string[] = []
    for (const id of tasks) {
      const { status, error } = await engine.ended(id)
      assert.deepEqual([status, error?.code, error?.retryable], ['failed', 'provider_unavailable', true])
      const failures = (await engine.events(id)).filter(({ type }) => type === 'step.failed')
      assert.equal(failures.length, 2, 'its own bound ends it')
      received.push(...failures.map(({ data }) => data.error.message))
    }
    const spared = received.filter((message) => message.startsWith(`${name} was not called, because its last `))
    assert.ok(spared.length > 0, 'some were refused without a request')
    const requests = inputs.reduce((sum, input) => sum + asked(input).length, 0)
    assert.equal(requests + spared.length, received.length)

    // It answers again, but slowly: no call fails while one waits for the first answer.
    server.always({ do: 'answer', text: 'back', delay_ms: 1000 })
    const others = await Promise.all(
      [1, 2, 3, 4].map((i) => engine.give({ model: name, retry: retry(5) }, `alive ${i}`)),
    )
    for (const id of others) assert.equal((await engine.ended(id)).output?.content, 'back')
  })
})
