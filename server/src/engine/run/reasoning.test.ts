import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { type EngineUnderTest, startEngineUnderTest } from '../../../test/engine-under-test.ts'
import { type FakeModelServer, startFakeModelServer } from '../../../test/fake-models/fake-model-server.ts'
import { modelPrices } from '#contract/models/model-prices.ts'
import { makeModels } from '../models/models.ts'

// About 3 s: rounds of tools against the strict fakes, which refuse a turn that does not come back as it was.
describe('reasoning between the steps of a task', () => {
  let server: FakeModelServer
  let engine: EngineUnderTest
  before(async () => {
    server = await startFakeModelServer()
    const at = { api_key: 'sk-fake', base_url: server.base_url }
    engine = await startEngineUnderTest(
      makeModels({
        openai: { ...at, protocol: 'responses' },
        anthropic: at,
        providers: [{ name: 'chat', base_url: server.base_url }],
        default_model: 'x',
      }),
      new Map([['chat/gpt-5.6-sol', modelPrices.get('openai/gpt-5.6-sol')!]]),
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

  const thought = (n: number) => ({
    reasoning: [
      {
        text: `Thought ${n}: “é”`,
        summary: [`Thought ${n}`, 'and more'],
        encrypted: `canary-${n}+/=`,
        signature: `canary-sig-${n}==`,
      },
    ],
    text: `Round ${n}.`,
    tool_calls: [{ name: 'current_time', arguments: '{"time_zone": "UTC" }' }],
  })

  for (const { model, config } of [
    { model: 'openai/gpt-5.6-sol', config: { effort: 'high' } },
    { model: 'anthropic/claude-opus-4-8', config: { effort: 'high' } },
    { model: 'anthropic/claude-sonnet-4-5', config: { effort: 'medium', max_tokens: 4000 } },
  ]) {
    it(`reasoning between the steps of a task goes back to ${model} byte by byte, in its place, over three rounds of tools`, async () => {
      server.next(...[1, 2, 3].map((n) => ({ do: 'answer' as const, ...thought(n) })), {
        do: 'answer',
        text: 'Done.',
        usage: { input_tokens: 100, output_tokens: 50, reasoning_tokens: 40 },
      })
      const id = await engine.give({ model, ...config }, 'Go.')
      const done = await engine.ended(id)
      assert.deepEqual([done.status, done.error, done.output?.content], ['completed', null, 'Done.'])
      const last = JSON.stringify(server.requests.at(-1)?.body)
      const secrets = model.startsWith('openai') ? 'canary-' : 'canary-sig-'
      const places = [1, 2, 3].map((n) => last.indexOf(`${secrets}${n}`))
      assert.ok(
        places.every((at, i) => at > 0 && (i === 0 || at > places[i - 1]!)),
        last,
      )

      const steps = await engine.steps(id)
      assert.match(steps[0]!.output.reasoning_summary, /Thought 1/)
      const published = JSON.stringify([steps, await engine.events(id)])
      assert.ok(!published.includes('canary'), 'reasoning that only the provider may read is shown')
    })
  }

  it('another provider gets the messages of a task without the reasoning of the first', async () => {
    server.next({ do: 'answer', ...thought(1) }, { do: 'status', status: 400 }, { do: 'answer', text: 'Done.' })
    const id = await engine.give({ model: 'openai/gpt-5.6-sol', fallback_models: ['anthropic/claude-opus-4-8'] }, 'Go.')
    assert.equal((await engine.ended(id)).status, 'completed')
    const last = JSON.stringify(server.requests.at(-1)?.body)
    assert.equal(server.requests.at(-1)?.path, '/v1/messages')
    assert.ok(last.includes('Round 1.') && !last.includes('canary') && !last.includes('Thought'), last)
  })

  it('reasoning is sent back to its provider in later tasks of the thread too', async () => {
    server.next({ do: 'answer', ...thought(1) }, { do: 'answer', text: 'First.' }, { do: 'answer', text: 'Second.' })
    const agent = await insertTestAgent(engine.sql, { model: 'openai/gpt-5.6-sol', tools: ['current_time'] })
    const [thread] = await engine.sql<{ id: string }>`
      insert into thread (id, project_id, agent_id, created_by)
      values (${`thread_${'0'.repeat(26)}`}, ${agent.project_id}, ${agent.id}, ${newTestTask(agent, 'x').created_by}) returning id`
    for (const input of ['One?', 'Two?']) {
      const task = { ...newTestTask(agent, input), thread_id: thread!.id }
      await engine.enqueue(task)
      assert.equal((await engine.ended(task.id)).status, 'completed')
    }
    assert.ok(JSON.stringify(server.requests.at(-1)?.body).includes('canary-1+/='))
  })

  it('reasoning tokens and cache reads and writes are charged exactly over every protocol', async () => {
    const usage = {
      input_tokens: 1003,
      output_tokens: 507,
      cached_tokens: 301,
      cache_write_tokens: 199,
      reasoning_tokens: 401,
    }
    for (const [model, dollars] of [
      // 503 tokens of plain input, 301 read from the cache, 199 written to it, 507 of output with the reasoning.
      ['openai/gpt-5.6-sol', (503 * 4 + 301 * 0.4 + 199 * 5 + 507 * 20) / 1e6],
      ['anthropic/claude-opus-4-8', (503 * 5 + 301 * 0.5 + 199 * 6.25 + 507 * 25) / 1e6],
      ['chat/gpt-5.6-sol', (503 * 4 + 301 * 0.4 + 199 * 5 + 507 * 20) / 1e6],
    ] as const) {
      server.next({ do: 'answer', text: 'Done.', usage })
      const id = await engine.give({ model, effort: 'low', tools: [] }, 'Go.')
      assert.equal((await engine.ended(id)).status, 'completed')
      const { data } = (await engine.events(id)).findLast(({ type }) => type === 'task.completed') ?? assert.fail()
      assert.ok(Math.abs(data.usage.cost_usd - dollars) < 1e-9, `${model}: ${data.usage.cost_usd} ${dollars}`)
      assert.deepEqual(
        [data.usage.cached_tokens, data.usage.reasoning_tokens, data.usage.by_model[model].reasoning_tokens],
        [301, 401, 401],
        model,
      )
    }
  })

  it('an unsupported call setting is logged once per version of the agent', async () => {
    const agent = await insertTestAgent(engine.sql, {
      model: 'openai/gpt-5.6-sol',
      temperature: 0.5,
      effort: 'minimal',
      max_tokens: 1e6,
    })
    const logged = async () =>
      engine.sql<{
        message: string
      }>`select message from agent_log where agent_id = ${agent.id} and level = 'warn' order by message`
    for (let n = 0; n < 3; n++) {
      const task = newTestTask(agent, 'Go.')
      await engine.enqueue(task)
      await engine.ended(task.id)
    }
    const messages = (await logged()).map(({ message }) => message)
    assert.equal(messages.length, 3, messages.join('\n'))
    assert.match(messages.join('\n'), /temperature.*\n.*effort minimal.*\n.*at most 128000 tokens/)
  })
})
