import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { nativeProviders } from '#contract/models/native-providers.ts'
import { modelFacts } from '#contract/models/model-facts.ts'
import { type FakeModelServer, startFakeModelServer } from '../../../test/fake-models/fake-model-server.ts'
import { modelRequest } from '../../../test/fake-models/model-request.ts'
import { makeModel } from '../../../test/fake-models/provider-under-test.ts'
import { anthropicAdapter } from './providers/anthropic.ts'
import { answerTokens, mapCallSettings } from './call-settings.ts'
import type { ModelRequest } from './model.ts'
import type { ModelProtocol } from '#contract/models/native-providers.ts'
import type { ProviderKind } from './providers/provider.ts'

let server: FakeModelServer
before(async () => {
  server = await startFakeModelServer()
})
after(() => server.close())
beforeEach(() => {
  server.refused.length = 0
})
afterEach(() => assert.deepEqual(server.refused, [], 'a provider refused a request'))

const tools = [{ name: 'look_up', description: 'Looks up.', parameters: { type: 'object', properties: {} } }]
const kindOf: Record<string, ProviderKind> = { openai: 'openai', anthropic: 'anthropic', local: 'openai_compatible' }

/** What a provider is sent, and what is warned of. */
async function sent(full: string, more: Partial<ModelRequest>, protocol?: ModelProtocol) {
  const [provider = '', model = ''] = full.split('/')
  const warnings: string[] = []
  const on_warning = ({ feature, message }: { feature: string; message: string }) =>
    void warnings.push(`${feature}: ${message}`)
  server.strict_as = provider === 'openai' ? 'openai' : undefined
  await makeModel(kindOf[provider]!, server.base_url, {}, protocol).call(
    modelRequest('Hello?', { model, max_tokens: 8000, system_prompt: 'Be short.', ...more, on_warning }),
  )
  return { body: server.requests.at(-1)!.body as any, warnings }
}

describe('effort', () => {
  const cases: [
    model: string,
    effort: string,
    read: (body: any) => unknown,
    expected: unknown,
    warned: boolean,
    protocol?: ModelProtocol,
  ][] = [
    ['openai/gpt-5.6-sol', 'high', (body) => body.reasoning.effort, 'high', false],
    ['openai/gpt-5.6-sol', 'max', (body) => body.reasoning.effort, 'max', false],
    ['openai/gpt-5.6-sol', 'none', (body) => body.reasoning.effort, 'none', false],
    ['openai/gpt-5.6-sol', 'minimal', (body) => body.reasoning.effort, 'low', true],
    ['openai/gpt-5.4', 'max', (body) => body.reasoning.effort, 'xhigh', true],
    ['openai/gpt-5', 'max', (body) => body.reasoning.effort, 'high', true],
    ['openai/gpt-5', 'none', (body) => body.reasoning.effort, 'minimal', true],
    ['openai/gpt-6.1-sol', 'none', (body) => body.reasoning.effort, 'low', true],
    ['openai/gpt-4o', 'high', (body) => body.reasoning, undefined, true],
    ['openai/gpt-4o', 'none', (body) => body.reasoning, undefined, false],
    ['openai/gpt-5.6-sol', 'max', (body) => body.reasoning_effort, 'xhigh', true, 'chat'],
    [
      'anthropic/claude-opus-4-8',
      'medium',
      (body) => [body.thinking.type, body.output_config.effort],
      ['adaptive', 'medium'],
      false,
    ],
    ['anthropic/claude-opus-4-6', 'minimal', (body) => body.output_config.effort, 'low', true],
    [
      'anthropic/claude-sonnet-5',
      'none',
      (body) => [body.thinking, body.output_config],
      [{ type: 'disabled' }, undefined],
      false,
    ],
    ['anthropic/claude-opus-5-5', 'none', (body) => body.output_config.effort, 'low', true],
    [
      'anthropic/claude-sonnet-4-5',
      'medium',
      (body) => [body.thinking, body.max_tokens],
      [{ type: 'enabled', budget_tokens: 4000 }, 8000],
      false,
    ],
    ['anthropic/claude-sonnet-4-5', 'none', (body) => body.thinking?.type ?? 'disabled', 'disabled', false],
    ['local/deepseek-reasoner', 'high', (body) => body.reasoning_effort, 'high', false],
    ['local/fake-1', 'high', (body) => body.reasoning_effort, undefined, true],
  ]
  for (const [model, effort, read, expected, warned, protocol] of cases) {
    it(`${effort} of ${model}${protocol ? ` over ${protocol}` : ''} is sent as ${JSON.stringify(expected) ?? 'nothing'}${warned ? ', with a warning' : ''}`, async () => {
      const { body, warnings } = await sent(model, { effort: effort as ModelRequest['effort'] }, protocol)
      assert.deepEqual(read(body), expected)
      assert.equal(warnings.length, warned ? 1 : 0, warnings.join())
      if (warned) assert.match(warnings[0]!, /^effort: /)
    })
  }

  it('effort is none for a model that accepts tools over Chat Completions only without reasoning', async () => {
    const { body, warnings } = await sent('openai/gpt-5.6-sol', { tools, effort: 'high' }, 'chat')
    assert.equal(body.reasoning_effort, 'none')
    assert.match(warnings.join(), /^effort: .*without reasoning/)
  })

  it('a small max_tokens leaves no room for thinking, with a warning', async () => {
    const { body, warnings } = await sent('anthropic/claude-sonnet-4-5', { effort: 'high', max_tokens: 1000 })
    assert.deepEqual([body.thinking, body.max_tokens], [undefined, 1000])
    assert.match(warnings.join(), /^effort: .*no room/)
  })

  it('effort requests a summary and encrypted reasoning from a reasoning model', async () => {
    const asked = await sent('openai/gpt-5.6-sol', { effort: 'low' })
    assert.deepEqual(
      [asked.body.reasoning, asked.body.store, asked.body.include],
      [{ effort: 'low', summary: 'auto' }, false, ['reasoning.encrypted_content']],
    )
    const plain = await sent('openai/gpt-5.6-sol', {})
    assert.deepEqual([plain.body.reasoning, plain.body.include], [undefined, ['reasoning.encrypted_content']])
    const none = await sent('openai/gpt-4o', {})
    assert.deepEqual([none.body.reasoning, none.body.include], [undefined, undefined])
    assert.deepEqual([...asked.warnings, ...plain.warnings, ...none.warnings], [])
  })
})

describe('a temperature', () => {
  for (const [model, more, expected, warned] of [
    ['openai/gpt-4o', {}, 0.5, false],
    ['openai/gpt-5', {}, undefined, true],
    ['openai/gpt-5.2', {}, 0.5, false],
    ['openai/gpt-5.2', { effort: 'high' }, undefined, true],
    ['openai/gpt-5.6-sol', { effort: 'none' }, 0.5, false],
    ['openai/gpt-6.1-sol', {}, undefined, true],
    ['anthropic/claude-opus-4-6', {}, 0.5, false],
    ['anthropic/claude-opus-4-6', { effort: 'high' }, undefined, true],
    ['anthropic/claude-opus-4-8', {}, undefined, true],
    ['local/fake-1', {}, 0.5, false],
  ] as const) {
    it(`a temperature is ${expected === undefined ? 'left out, with one warning,' : 'sent'} for ${model} with ${JSON.stringify(more)}`, async () => {
      const { body, warnings } = await sent(model, { temperature: 0.5, ...more })
      assert.equal(body.temperature, expected)
      assert.equal(warnings.length, warned ? 1 : 0, warnings.join())
      if (warned) assert.match(warnings[0]!, /^temperature: /)
    })
  }

  it("a temperature above the provider's maximum is lowered to it, with one warning", async () => {
    const { body, warnings } = await sent('anthropic/claude-opus-4-6', { temperature: 1.5 })
    assert.equal(body.temperature, 1)
    assert.equal(warnings.length, 1, warnings.join())
    assert.match(
      warnings[0]!,
      /^temperature: claude-opus-4-6 accepts a temperature of at most 1; 1\.5 is lowered to 1\.$/,
    )
  })
})

it("tools for a gateway of Anthropic's protocol have no member that older gateways reject", async () => {
  const { body } = await sent('anthropic/claude-opus-4-6', { tools })
  assert.equal(body.tools.length, 1)
  assert.ok(!('eager_input_streaming' in body.tools[0]), JSON.stringify(body.tools))
})

it("arguments of tools are streamed from Anthropic's own address", () => {
  const provider = {
    name: 'anthropic',
    kind: 'anthropic',
    base_url: nativeProviders.anthropic.base_url,
    api_key: undefined,
    protocol: 'messages',
  } as const
  const request = modelRequest('Hello?', { model: 'claude-opus-4-6', tools })
  const facts = modelFacts('anthropic/claude-opus-4-6')
  const { callSettings } = mapCallSettings(request, provider, facts)
  const { providerOptions } = anthropicAdapter.adapt({ request, provider, facts, callSettings }, { prompt: [] })
  assert.equal(providerOptions?.['anthropic']?.['toolStreaming'], true)
})

describe('a service tier', () => {
  for (const [model, service_tier, expected] of [
    ['openai/gpt-5.6-sol', 'flex', 'flex'],
    ['openai/gpt-5.6-sol', 'priority', 'priority'],
    ['openai/gpt-4o', 'flex', undefined],
    ['openai/gpt-4o', 'default', 'default'],
    ['anthropic/claude-opus-4-8', 'auto', 'auto'],
    ['anthropic/claude-opus-4-8', 'flex', undefined],
    ['anthropic/claude-opus-4-8', 'default', undefined],
    ['local/fake-1', 'flex', 'flex'],
  ] as const) {
    it(`${service_tier} is ${expected === undefined ? 'left out, with one warning,' : 'sent'} for ${model}`, async () => {
      const { body, warnings } = await sent(model, { service_tier })
      assert.equal(body.service_tier, expected)
      assert.deepEqual(
        warnings.map((text) => text.split(':')[0]),
        expected === undefined ? ['service_tier'] : [],
      )
    })
  }
})

describe('prompt caching', () => {
  const call = { id: 'call_1', name: 'look_up', arguments: {} }
  const messages: ModelRequest['messages'] = [
    { role: 'user', content: 'One' },
    { role: 'assistant', content: 'Two', tool_calls: [call] },
    { role: 'tool', content: 'three', tool_call_id: 'call_1', tool_name: 'look_up' },
  ]
  const marks = (body: any) => JSON.stringify(body).split('"cache_control"').length - 1

  it('prompt caching for Anthropic marks tools, system prompt and the last messages, at most four times, and nothing when it is off', async () => {
    const { body } = await sent('anthropic/claude-opus-4-8', { messages, tools, cache_key: 'agent_1:3' })
    assert.equal(marks(body), 4)
    assert.ok(body.tools.at(-1).cache_control && body.system.at(-1).cache_control)
    assert.ok(body.messages.at(-1).content.at(-1).cache_control && body.messages[0].content.at(-1).cache_control)
    assert.equal(marks((await sent('anthropic/claude-opus-4-8', { messages, tools })).body), 0)
    assert.equal(marks((await sent('anthropic/claude-opus-4-8', { cache_key: 'agent_1:3' })).body), 2)
  })

  it('prompt caching sends OpenAI a key of at most 64 characters over both protocols, and compatible servers none', async () => {
    const cache_key = `agent_${'x'.repeat(80)}:3`
    for (const protocol of ['responses', 'chat'] as const)
      assert.equal((await sent('openai/gpt-4o', { cache_key }, protocol)).body.prompt_cache_key, cache_key.slice(0, 64))
    assert.equal('prompt_cache_key' in (await sent('openai/gpt-4o', {})).body, false)
    assert.equal('prompt_cache_key' in (await sent('local/fake-1', { cache_key })).body, false)
  })
})

it('an OpenAI reasoning model behind a gateway gets max_completion_tokens', async () => {
  const { body } = await sent('local/gpt-5.6-sol', { effort: 'low' })
  assert.deepEqual([body.max_completion_tokens, body.max_tokens], [8000, undefined])
  assert.equal((await sent('local/fake-1', {})).body.max_tokens, 8000)
})

it("the default maximum of an answer is 4,096 tokens, 16,384 with reasoning, and at most the model's", () => {
  const tokens = (model: string, config: { max_tokens?: number; effort?: string } = {}) =>
    answerTokens(config, modelFacts(model))
  assert.deepEqual(tokens('openai/gpt-4o'), { max_tokens: 4096, lowered: false })
  assert.deepEqual(tokens('openai/gpt-5.2'), { max_tokens: 4096, lowered: false })
  assert.deepEqual(tokens('openai/gpt-5.2', { effort: 'low' }), { max_tokens: 16_384, lowered: false })
  assert.deepEqual(tokens('openai/gpt-5.6-sol'), { max_tokens: 16_384, lowered: false })
  assert.deepEqual(tokens('openai/gpt-5.6-sol', { effort: 'none' }), { max_tokens: 4096, lowered: false })
  assert.deepEqual(tokens('anthropic/claude-sonnet-5-5', { effort: 'none' }), { max_tokens: 16_384, lowered: false })
  assert.deepEqual(tokens('anthropic/claude-sonnet-5', { effort: 'none' }), { max_tokens: 4096, lowered: false })
  assert.deepEqual(tokens('anthropic/claude-sonnet-5'), { max_tokens: 16_384, lowered: false })
  assert.deepEqual(tokens('anthropic/claude-opus-4-8'), { max_tokens: 4096, lowered: false })
  assert.deepEqual(tokens('openai/gpt-4o', { max_tokens: 100_000 }), { max_tokens: 16_384, lowered: true })
  assert.deepEqual(tokens('builtin/echo', { max_tokens: 100_000 }), { max_tokens: 100_000, lowered: false })
})

it('every array and object in the parameters of a tool has a schema, as OpenAI requires', async () => {
  const parameters = {
    type: 'object',
    properties: {
      body: { type: ['string', 'array'] },
      more: { type: 'object' },
      one: { type: 'array', items: { type: 'string' } },
    },
  }
  for (const model of ['openai/gpt-5.6-sol', 'anthropic/claude-opus-4-8', 'local/fake-1']) {
    await sent(model, { tools: [{ name: 'look_up', description: 'Looks up.', parameters }] })
    await sent(model, { tools: [{ name: 'look_up', description: 'Looks up.', parameters: { type: 'object' } }] })
  }
})

it('a failed tool result is marked as an error if the protocol supports that', async () => {
  const messages: ModelRequest['messages'] = [
    { role: 'user', content: 'One' },
    { role: 'assistant', content: '', tool_calls: [{ id: 'call_1', name: 'look_up', arguments: {} }] },
    { role: 'tool', content: 'HTTP 500: no', tool_call_id: 'call_1', tool_name: 'look_up', is_error: true },
  ]
  const { body } = await sent('anthropic/claude-opus-4-8', { messages, tools })
  const [result] = body.messages.at(-1).content
  assert.deepEqual([result.type, result.is_error, result.content], ['tool_result', true, 'HTTP 500: no'])
  assert.ok(JSON.stringify((await sent('openai/gpt-5.6-sol', { messages, tools })).body).includes('HTTP 500: no'))
  assert.ok(JSON.stringify((await sent('local/fake-1', { messages, tools })).body).includes('HTTP 500: no'))
})
