import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { type EngineUnderTest, startEngineUnderTest } from '../../../test/engine-under-test.ts'
import {
  type FakeBehaviour,
  type FakeModelServer,
  type FakeRequest,
  startFakeModelServer,
} from '../../../test/fake-models/fake-model-server.ts'
import { answersGiven } from '../../../test/fake-models/fake-chat-messages.ts'
import { makeModels } from '../models/models.ts'

const call = (n: number): FakeBehaviour => ({
  do: 'answer',
  text: `Round ${n} of the work.`,
  tool_calls: [{ name: 'current_time', arguments: { time_zone: 'UTC' } }],
})
const summary: FakeBehaviour = {
  do: 'answer',
  text: 'SUMMARY of what was done.',
  usage: { input_tokens: 300, output_tokens: 20 },
}
const isSummary = ({ body }: FakeRequest): boolean => JSON.stringify(body).includes('You sum up the earlier part')
/** What the model is sent grows with each round, as a provider would count it. */
const counted = (request: FakeRequest, behaviour: FakeBehaviour): FakeBehaviour => ({
  ...(behaviour as Extract<FakeBehaviour, { do: 'answer' }>),
  usage: { input_tokens: Math.ceil(JSON.stringify(request.body['messages']).length / 4), output_tokens: 10 },
})

// About 8 s: long tasks against the strict fake of Chat Completions.
describe('a long conversation', () => {
  let server: FakeModelServer
  let engine: EngineUnderTest
  before(async () => {
    server = await startFakeModelServer()
    engine = await startEngineUnderTest(
      makeModels({
        anthropic: { api_key: 'sk-fake', base_url: server.base_url },
        providers: [{ name: 'local', base_url: server.base_url }],
        default_model: 'x',
        limits: new Map([['local/small', { context: 1000 }]]),
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
  const compactions = async (id: string) => (await engine.steps(id)).filter(({ type }) => type === 'compaction')

  it('a task of 50 rounds is compacted and completes, with a complete journal and every call charged', async () => {
    let round = 0
    server.always((request) => {
      if (isSummary(request)) return summary
      round += 1
      return counted(request, round <= 50 ? call(round) : { do: 'answer', text: 'Done.' })
    })
    const id = await engine.give(
      { model: 'local/fake-1', max_steps: 1000, context: { compact_at_tokens: 500 } },
      'Work for long.',
    )
    const done = await engine.ended(id)
    assert.deepEqual([done.status, done.error, done.output?.content], ['completed', null, 'Done.'])
    const steps = await engine.steps(id)
    assert.deepEqual(
      [
        steps.filter(({ type }) => type === 'tool_call').length,
        steps.filter(({ type }) => type === 'model_call').length,
      ],
      [50, 51],
    )
    const made = await compactions(id)
    assert.ok(made.length > 0 && made.length < 50, String(made.length))
    const { data } = (await engine.events(id)).findLast(({ type }) => type === 'task.completed') ?? assert.fail()
    assert.equal(data.usage.steps, steps.length)
    const events = (await engine.events(id)).filter(({ type }) => type === 'context.compacted')
    assert.equal(events.length, made.length)
    const last = JSON.stringify(server.requests.at(-1)!.body)
    assert.ok(last.includes('Work for long.') && last.includes('SUMMARY') && !last.includes('Round 1 of'), last)
    // What is kept begins with the model's turn: user, summary, then the last rounds.
    const { messages } = server.requests.at(-1)!.body as { messages: { role: string }[] }
    assert.deepEqual(
      messages.slice(0, 3).map(({ role }) => role),
      ['user', 'user', 'assistant'],
    )
  })

  it('a conversation of a built-in model is compacted, and a script continues at its place', async () => {
    const script = [
      { repeat: 50, steps: [{ tool_calls: [{ name: 'current_time', arguments: { time_zone: 'UTC' } }] }] },
      { text: 'Done.' },
    ]
    for (const config of [{ system_prompt: JSON.stringify(script) }, {}, { context: { model: 'builtin/echo' } }]) {
      const context = { compact_at_tokens: 500, keep_last_steps: 3, ...('context' in config ? config.context : {}) }
      const id = await engine.give(
        { model: 'builtin/script', max_steps: 1000, ...config, context },
        JSON.stringify(script),
      )
      const done = await engine.ended(id)
      assert.deepEqual([done.status, done.error, done.output?.content], ['completed', null, 'Done.'])
      assert.equal((await engine.steps(id)).filter(({ type }) => type === 'tool_call').length, 50)
      assert.ok((await compactions(id)).length > 0)
    }
  })

  it("a conversation is compacted at 80 percent of the model's window by default", async () => {
    server.always((request) => {
      if (isSummary(request)) return summary
      const n = answersGiven(request.body) + 1
      const usage = { input_tokens: n === 4 ? 790 : 100, output_tokens: 15 }
      const said = JSON.stringify(request.body).includes('SUMMARY') ? { do: 'answer' as const, text: 'Done.' } : call(n)
      return { ...(said as Extract<FakeBehaviour, { do: 'answer' }>), usage }
    })
    const id = await engine.give({ model: 'local/small', context: { keep_last_steps: 2 } }, 'Work.')
    assert.equal((await engine.ended(id)).status, 'completed')
    assert.deepEqual((await engine.steps(id)).map(({ type }) => type).slice(-3), [
      'tool_call',
      'compaction',
      'model_call',
    ])
    assert.equal((await compactions(id))[0]?.output.before_step, 6)
  })

  it('a conversation that the provider rejects as too long is compacted and sent again', async () => {
    const tooLong: FakeBehaviour = {
      do: 'status',
      status: 400,
      code: 'context_length_exceeded',
      message: "This model's maximum context length is 8192 tokens.",
    }
    server.next(call(1), call(2), call(3), tooLong, summary, { do: 'answer', text: 'Done.' })
    const id = await engine.give({ model: 'local/fake-1' }, 'Work.')
    assert.equal((await engine.ended(id)).status, 'completed')
    assert.deepEqual((await engine.steps(id)).map(({ type, status }) => `${type} ${status}`).slice(-3), [
      'model_call failed',
      'compaction completed',
      'model_call completed',
    ])
  })

  it('a conversation that does not fit after a compaction loses its oldest results, and then fails with context_exhausted', async () => {
    const tooLong: FakeBehaviour = {
      do: 'status',
      status: 400,
      message: 'prompt is too long: 210000 tokens > 200000 maximum',
      code: 'invalid_request_error',
    }
    server.always((request) => {
      if (isSummary(request)) return summary
      const given = answersGiven(request.body)
      return given < 4 && server.requests.length < 6 ? call(given + 1) : tooLong
    })
    const id = await engine.give({ model: 'anthropic/claude-opus-4-8', context: { keep_last_steps: 4 } }, 'Work.')
    const done = await engine.ended(id)
    assert.deepEqual([done.status, done.error?.code, done.error?.retryable], ['failed', 'context_exhausted', false])
    assert.equal((await compactions(id)).length, 1)
    const bodies = server.requests.map(({ body }) => JSON.stringify(body).split('was left out').length - 1)
    assert.deepEqual(bodies.slice(-3), [0, 1, 2], 'results that were left out')
    const { messages } = server.requests.at(-1)!.body as { messages: unknown[] }
    assert.ok(JSON.stringify(messages).includes('Work.'))
  })

  it('a summary request that is too long is halved, and the task fails with context_exhausted after three halvings', async () => {
    const tooLong: FakeBehaviour = {
      do: 'status',
      status: 400,
      message: 'prompt is too long',
      code: 'invalid_request_error',
    }
    let refusals = 2
    server.always((request) => {
      if (isSummary(request)) return refusals-- > 0 ? tooLong : summary
      if (JSON.stringify(request.body).includes('SUMMARY')) return { do: 'answer', text: 'Done.' }
      const given = answersGiven(request.body)
      return given < 4 ? call(given + 1) : tooLong
    })
    const config = { model: 'local/fake-1', retry: { max_attempts: 2 } }
    const id = await engine.give(config, 'Work.')
    assert.equal((await engine.ended(id)).status, 'completed')
    assert.equal((await compactions(id))[0]?.attempt, 3)
    refusals = Infinity
    const lost = await engine.ended(await engine.give(config, 'Work.'))
    assert.deepEqual([lost.status, lost.error?.code], ['failed', 'context_exhausted'])
  })

  it('a long conversation of a thread is compacted between its tasks', async () => {
    const agent = await insertTestAgent(engine.sql, {
      model: 'local/fake-1',
      context: { compact_at_tokens: 200, keep_last_steps: 1 },
    })
    const [thread] = await engine.sql<{ id: string }>`
      insert into thread (id, project_id, agent_id, created_by) values (${`thread_${'0'.repeat(26)}`}, ${agent.project_id}, ${agent.id}, ${newTestTask(agent, 'x').created_by}) returning id`
    server.always((request) =>
      isSummary(request) ? summary : { do: 'answer', text: `Answer with many words ${'word '.repeat(40)}` },
    )
    const said: string[] = []
    for (let n = 0; n < 4; n++) {
      const task = { ...newTestTask(agent, `Question ${n}`), thread_id: thread!.id }
      await engine.enqueue(task)
      said.push((await engine.ended(task.id)).status)
      if ((await compactions(task.id)).length > 0) said.push('compacted')
    }
    assert.ok(said.includes('compacted') && said.filter((one) => one === 'completed').length === 4, said.join())
    const { messages } = server.requests.at(-1)!.body as { messages: { role: string; content: string }[] }
    assert.equal(messages.at(-1)?.content, 'Question 3')
    assert.ok(!JSON.stringify(messages).includes('Question 0'))
  })
})
