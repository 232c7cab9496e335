import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import OpenAI from 'openai'
import { type FakeModelServer, startFakeModelServer } from '../../../test/fake-models/fake-model-server.ts'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'

describe('what a request of an OpenAI client sets instead of the agent', () => {
  let models: FakeModelServer
  let service: TestService
  let client: OpenAI
  before(async () => {
    models = await startFakeModelServer()
    service = await startTestService({
      OPENAI_API_KEY: 'sk-fake',
      OPENAI_BASE_URL: models.base_url,
      OPENAI_PROTOCOL: 'responses',
    })
    const made = await service.send('POST', '/api/v1/projects', { body: { name: 'overrides' } })
    const project = `/api/v1/projects/${made.body.id}`
    const config = { model: 'openai/gpt-5.6-sol', effort: 'low', tools: ['current_time'] }
    const open = { ...config, doors: { openai: { overrides: ['reasoning'] } } }
    for (const [name, of] of Object.entries({ closed: config, open })) {
      const { body } = await service.send('POST', `${project}/agents`, { body: { name, config: of } })
      await eventually(
        async () => (await service.send('GET', `${project}/agents/${body.id}`)).body.status === 'running',
      )
    }
    client = new OpenAI({ apiKey: service.owner.api_key, baseURL: `${service.url}/v1`, maxRetries: 0 })
  })
  after(async () => {
    await service.stop()
    await models.close()
  })

  const sent = () => models.requests.at(-1)!.body as { reasoning?: { effort: string }; parallel_tool_calls?: boolean }

  it('a request overrides the reasoning effort if the agent allows it, and the response shows the used effort', async () => {
    for (const [model, effort] of [
      ['open', 'high'],
      ['closed', 'low'],
    ] as const) {
      const response = await client.responses.create({ model, input: 'Hello', reasoning: { effort: 'high' } })
      assert.equal(sent().reasoning?.effort, effort, model)
      assert.equal(response.reasoning?.effort, effort, model)
      await client.chat.completions.create({
        model,
        messages: [{ role: 'user', content: 'Hello' }],
        reasoning_effort: 'high',
      })
      assert.equal(sent().reasoning?.effort, effort, model)
    }
  })

  it('an invalid reasoning effort is refused with the name of the parameter', async () => {
    const reasoning = { effort: 'huge' as 'high' }
    await assert.rejects(client.responses.create({ model: 'open', input: 'Hello', reasoning }), (error: any) => {
      assert.deepEqual([error.status, error.param], [400, 'reasoning.effort'])
      return true
    })
  })

  it('a request can forbid parallel tool calls of the model', async () => {
    const one = await client.responses.create({ model: 'closed', input: 'Hello', parallel_tool_calls: false })
    assert.deepEqual([sent().parallel_tool_calls, one.parallel_tool_calls], [false, false])
    const several = await client.responses.create({ model: 'closed', input: 'Hello' })
    assert.deepEqual([sent().parallel_tool_calls, several.parallel_tool_calls], [undefined, true])
  })
})
