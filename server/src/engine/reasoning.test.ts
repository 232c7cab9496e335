import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { type EngineUnderTest, startEngineUnderTest } from '../../test/engine-under-test.ts'
import { type FakeModelServer, startFakeModelServer } from '../../test/fake-model-server.ts'
import { makeModels } from './models/models.ts'

// About 3 s: rounds of tools against the strict fakes, which refuse a turn that does not come back as it was.
describe('reasoning between the steps of a task', () => {
  let server: FakeModelServer
  let engine: EngineUnderTest
  before(async () => {
    server = await startFakeModelServer()
    const at = { api_key: 'sk-fake', base_url: server.base_url }
    engine = await startEngineUnderTest(
      makeModels({ openai: { ...at, protocol: 'responses' }, anthropic: at, default_model: 'x' }),
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
    reasoning: [{ text: `Thought ${n}: “é”`, summary: [`Thought ${n}`, 'and more'], encrypted: `canary-${n}+/=`, signature: `canary-sig-${n}==` }],
    text: `Round ${n}.`,
    tool_calls: [{ name: 'current_time', arguments: '{"time_zone": "UTC" }' }],
  })

  for (const { model, config } of [
    { model: 'openai/gpt-5.6-sol', config: { effort: 'high' } },
    { model: 'anthropic/claude-opus-4-8', config: { effort: 'high' } },
    { model: 'anthropic/claude-sonnet-4-5', config: { effort: 'medium', max_tokens: 4000 } },
  ]) {
    it(`goes back to ${model} byte by byte, in its place, over three rounds of tools`, async () => {
      server.next(
        ...[1, 2, 3].map((n) => ({ do: 'answer' as const, ...thought(n) })),
        { do: 'answer', text: 'Done.', usage: { input_tokens: 100, output_tokens: 50, reasoning_tokens: 40 } },
      )
      const id = await engine.give({ model, ...config }, 'Go.')
      const done = await engine.ended(id)
      assert.deepEqual([done.status, done.error, done.output?.content], ['completed', null, 'Done.'])
      const last = JSON.stringify(server.requests.at(-1)?.body)
      const secrets = model.startsWith('openai') ? 'canary-' : 'canary-sig-'
      const places = [1, 2, 3].map((n) => last.indexOf(`${secrets}${n}`))
      assert.ok(places.every((at, i) => at > 0 && (i === 0 || at > places[i - 1]!)), last)

      const steps = await engine.steps(id)
      assert.match(steps[0]!.output.reasoning_summary, /Thought 1/)
      const told = JSON.stringify([steps, await engine.events(id)])
      assert.ok(!told.includes('canary'), 'what only the provider may read is told')
    })
  }

  it('is left out for another provider, and goes on there with what was said', async () => {
    server.next({ do: 'answer', ...thought(1) }, { do: 'status', status: 400 }, { do: 'answer', text: 'Done.' })
    const id = await engine.give({ model: 'openai/gpt-5.6-sol', fallback_models: ['anthropic/claude-opus-4-8'] }, 'Go.')
    assert.equal((await engine.ended(id)).status, 'completed')
    const last = JSON.stringify(server.requests.at(-1)?.body)
    assert.equal(server.requests.at(-1)?.path, '/v1/messages')
    assert.ok(last.includes('Round 1.') && !last.includes('canary') && !last.includes('Thought'), last)
  })
})
