import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { LLMock } from '@copilotkit/aimock'
import { modelRequest } from '../../../test/fake-models/model-request.ts'
import { ModelError, type ModelRequest } from './model.ts'
import { makeModels } from './models.ts'

/** A server of other people: what our fake and our reading of the protocols would both get wrong shows here. */
const mock = new LLMock({ port: 0, host: '127.0.0.1' })
before(() => mock.start())
after(() => mock.stop())

const usage = { prompt_tokens: 21, completion_tokens: 9, input_tokens: 21, output_tokens: 9 }
mock.onMessage('hello', { content: 'Hi there, how are you?', usage })
mock.onToolResult('call_w', { content: 'It rains in Bonn.' })
mock.onMessage('weather', { toolCalls: [{ id: 'call_w', name: 'weather', arguments: '{"city":"Bonn"}' }] })
mock.onMessage('refuse', { error: { message: 'bad key', type: 'authentication_error' }, status: 401 })
mock.onMessage('limit', { error: { message: 'slow down', type: 'rate_limit_error' }, status: 429, retryAfter: 3 })
mock.onMessage('broken', { error: { message: 'oops' }, status: 500 })

const tools = [
  { name: 'weather', description: 'Weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
]

for (const name of ['openai/gpt-4o', 'chat/gpt-4o', 'anthropic/claude-sonnet-4-5']) {
  describe(`${name} against aimock`, () => {
    const call = (request: ModelRequest) => {
      const server = { api_key: 'mock', base_url: `${mock.url}/v1` }
      const resolved = makeModels({
        openai: { ...server, protocol: 'responses' },
        anthropic: server,
        providers: [{ name: 'chat', ...server }],
        default_model: name,
      }).resolve(name)
      return resolved.model.call({ ...request, model: resolved.name })
    }

    it(`${name} against aimock answers in pieces, with usage and the model that answered`, async () => {
      const pieces: string[] = []
      const answer = await call(modelRequest('hello', { on_delta: (piece) => void pieces.push(piece) }))
      assert.equal(answer.text, 'Hi there, how are you?')
      assert.equal(pieces.join(''), answer.text)
      assert.deepEqual([answer.finish_reason, answer.usage.input_tokens, answer.usage.output_tokens], ['stop', 21, 9])
      assert.equal(`${name.split('/')[0]}/${answer.model}`, name)
    })

    it(`${name} against aimock asks for a tool and reads its result`, async () => {
      const asked = await call(modelRequest('weather?', { tools }))
      assert.deepEqual(
        [asked.finish_reason, asked.tool_calls],
        ['tool_calls', [{ id: 'call_w', name: 'weather', arguments: { city: 'Bonn' } }]],
      )
      const answer = await call(
        modelRequest('', {
          tools,
          messages: [
            { role: 'user', content: 'weather?' },
            { role: 'assistant', content: asked.text, tool_calls: asked.tool_calls },
            { role: 'tool', content: 'rain', tool_call_id: 'call_w', tool_name: 'weather' },
          ],
        }),
      )
      assert.equal(answer.text, 'It rains in Bonn.')
    })

    it(`${name} against aimock fails with the code of the reason`, async () => {
      for (const [text, code, retry_after] of [
        ['refuse', 'provider_credentials_refused'],
        ['limit', 'provider_rate_limited', 3],
        ['broken', 'provider_unavailable'],
      ] as const) {
        await assert.rejects(
          call(modelRequest(text)),
          (error) => error instanceof ModelError && error.code === code && error.retry_after === retry_after,
        )
      }
    })

    it(`${name} against aimock fails when the connection is cut, or the answer is rubbish`, async (t) => {
      t.after(() => void mock.clearChaos())
      mock.setChaos({ disconnectRate: 1 })
      await assert.rejects(
        call(modelRequest('hello')),
        (error) => error instanceof ModelError && error.code === 'provider_unavailable',
      )
      mock.setChaos({ malformedRate: 1 })
      await assert.rejects(
        call(modelRequest('hello')),
        (error) => error instanceof ModelError && ['provider_bad_answer', 'provider_unavailable'].includes(error.code),
      )
    })
  })
}
