import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startFakeModelServer } from '../../../test/fake-models/fake-model-server.ts'
import { modelRequest } from '../../../test/fake-models/model-request.ts'
import { ModelError, type ModelErrorCode } from './model.ts'
import { makeModels, type ModelSettings } from './models.ts'

const key = { api_key: 'sk-x' }
const openrouter = { base_url: 'http://127.0.0.1:9/v1' }
const local = { name: 'local', base_url: 'http://127.0.0.1:9/v1' }

/** What a name resolves to, as `provider model`, or the code that it is refused with. */
function resolve(settings: Omit<ModelSettings, 'default_model'>, name: string): string {
  try {
    const resolved = makeModels({ ...settings, default_model: 'builtin/echo' }).resolve(name)
    return `${resolved.model.provider} ${resolved.name}`
  } catch (error) {
    assert.ok(error instanceof ModelError && !error.retryable)
    return error.code
  }
}

describe('a model name', () => {
  const refused: ModelErrorCode = 'provider_not_configured'
  const cases: [string, Omit<ModelSettings, 'default_model'>, string, string][] = [
    [
      'goes to the provider in front of its slash',
      { openai: key, anthropic: key },
      'anthropic/claude-x',
      'anthropic claude-x',
    ],
    ['keeps further slashes', { providers: [local] }, 'local/meta-llama/Llama-4', 'local meta-llama/Llama-4'],
    ['always reaches the built-in models', {}, 'builtin/echo', 'builtin echo'],
    ['always reaches Ollama on this machine', {}, 'ollama/llama3:8b', 'ollama llama3:8b'],
    ['without a provider goes to OpenAI', { openai: key, anthropic: key, providers: [local] }, 'gpt-5', 'openai gpt-5'],
    ['without a provider goes to whatever OPENAI_BASE_URL names', { openai: openrouter }, 'llama3', 'openai llama3'],
    [
      'without a provider goes to the first further provider when there is no OpenAI',
      { anthropic: key, providers: [local] },
      'llama3',
      'local llama3',
    ],
    [
      'without a provider goes to Anthropic when there is nothing else',
      { anthropic: key },
      'claude-x',
      'anthropic claude-x',
    ],
    ['without a provider is refused when none is configured', {}, 'gpt-5', refused],
    [
      'with an unknown provider in front is refused, also where the default provider may have such names',
      { openai: openrouter },
      'meta-llama/Llama-4',
      refused,
    ],
    [
      'with slashes in its name is sent to the provider in front of them',
      { openai: openrouter },
      'openai/meta-llama/Llama-4',
      'openai meta-llama/Llama-4',
    ],
    [
      'with an unknown word in front is refused where names have no slash',
      { openai: key },
      'meta-llama/Llama-4',
      refused,
    ],
    ['of a provider without a key is refused', { openai: openrouter }, 'anthropic/claude-x', refused],
    ['of OpenAI without a key is refused, not sent elsewhere', { providers: [local] }, 'openai/gpt-5', refused],
    [
      'is refused if the settings of all providers are empty',
      { openai: { api_key: '', base_url: undefined }, anthropic: { api_key: undefined } },
      'gpt-5',
      refused,
    ],
    ['of an unknown built-in model does not exist', { openai: openrouter }, 'builtin/none', 'model_not_found'],
    ['that is empty does not exist', { openai: key }, '', 'model_not_found'],
    ['without a model behind its provider does not exist', { openai: key }, 'openai/', 'model_not_found'],
  ]
  for (const [promise, settings, name, expected] of cases) {
    it(`a model name ${promise}`, () => assert.equal(resolve(settings, name), expected))
  }

  it('a model name with an unknown provider is rejected with the configured ones and a correction', () => {
    const { resolve: find } = makeModels({ openai: openrouter, providers: [local], default_model: 'x' })
    assert.throws(
      () => find('meta-llama/Llama-4'),
      /provider "meta-llama" .* is not configured.*openai\/meta-llama\/Llama-4.* Configured: builtin, local, ollama, openai\./,
    )
  })

  it('a model name with a typo in its provider is rejected with the nearest name', () => {
    const { resolve: find } = makeModels({ openai: openrouter, anthropic: key, default_model: 'x' })
    assert.throws(
      () => find('antropic/claude-opus-5'),
      /"antropic" .* is not configured; "anthropic" may be meant\. Configured/,
    )
  })

  it('a model name of an unconfigured provider is rejected with the variable to set', () => {
    const { resolve: find } = makeModels({ default_model: 'x' })
    assert.throws(() => find('openai/gpt-5'), /set OPENAI_API_KEY/)
    assert.throws(() => find('gpt-5'), /OPENAI_BASE_URL/)
  })
})

it('a further provider is called at its address, with its key or none', async (t) => {
  const server = await startFakeModelServer()
  t.after(() => server.close())
  const { resolve: find } = makeModels({
    openai: key,
    providers: [
      { name: 'with-key', base_url: server.base_url, api_key: 'secret-1' },
      { name: 'ollama', base_url: `${server.base_url}/` },
    ],
    default_model: 'builtin/echo',
  })
  for (const full of ['with-key/a/b', 'ollama/c']) {
    const { model, name } = find(full)
    const answer = await model.call(modelRequest('Hi', { model: name }))
    assert.deepEqual([`${model.provider}/${answer.model}`, answer.text], [full, 'Hello from the fake model.'])
  }
  assert.deepEqual(
    server.requests.map(({ headers, path }) => [headers.authorization, path]),
    [
      ['Bearer secret-1', '/v1/chat/completions'],
      [undefined, '/v1/chat/completions'],
    ],
  )
})
