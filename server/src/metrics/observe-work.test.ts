import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Registry } from 'prom-client'
import { type Model, ModelError, type ModelRequest } from '../engine/models/model.ts'
import { noTools, ToolError, type Tool, type ToolAnswer } from '../engine/tools/tool.ts'
import { makeInstruments } from './instruments.ts'
import { observeModels, observeTools } from './observe-work.ts'

const meters = makeInstruments(new Registry())

/** The values of a counter by its labels in their order. */
async function counted(counter: typeof meters.cadre_model_calls_total | typeof meters.cadre_tool_calls_total) {
  const { values } = await counter.get()
  return Object.fromEntries(values.map(({ labels, value }) => [Object.values(labels).join(' '), value]))
}

describe('a call of a model', () => {
  it('a call of a model is counted by its outcome, and passed on unchanged', async () => {
    const answer = { usage: { input_tokens: 7, output_tokens: 3, cached_tokens: 2 } }
    const ways: Record<string, () => Promise<unknown>> = {
      answers: async () => answer,
      refuses: async () => Promise.reject(new ModelError('provider_unavailable', 'away', { retryable: true })),
      breaks: async () => Promise.reject(new TypeError('a bug')),
    }
    const call: Model['call'] = async ({ model }) => (await ways[model]!()) as never
    const { model } = observeModels(
      { resolve: (name) => ({ model: { provider: 'fake', call }, name }) },
      meters,
    ).resolve('any')
    const ask = (name: string, signal = new AbortController().signal) =>
      model.call({ model: name, signal } as ModelRequest)
    assert.equal(await ask('answers'), answer)
    await assert.rejects(ask('refuses'), { code: 'provider_unavailable' })
    await assert.rejects(ask('breaks'), TypeError)
    await assert.rejects(ask('breaks', AbortSignal.abort()), TypeError)
    assert.deepEqual(await counted(meters.cadre_model_calls_total), {
      'fake answered': 1,
      'fake provider_unavailable': 1,
      'fake internal_error': 1,
      'fake aborted': 1,
    })
  })
})

it("a call of an organization's provider is counted by a well-known name, or under one common label", async () => {
  const call: Model['call'] = async () => ({ usage: { input_tokens: 1, output_tokens: 1, cached_tokens: 0 } }) as never
  const own = { key: 'mprov_1@1', is_elsewhere: false, prices: new Map() }
  const models = new Map(['anthropic', 'acme'].map((provider) => [provider, { provider, own, call }]))
  const source = observeModels(
    {
      resolve: () => assert.fail(),
      with: (given) => ({ resolve: (name) => ({ model: given.models.get(name)!, name }) }),
    },
    meters,
  ).with!({ models, disabled: [] })
  for (const name of models.keys()) {
    const { model } = source.resolve(name)
    assert.equal(model.provider, name)
    assert.equal(model.own, own)
    await model.call({ model: name, signal: new AbortController().signal } as ModelRequest)
  }
  const all = await counted(meters.cadre_model_calls_total)
  assert.deepEqual([all['anthropic answered'], all['organization answered'], all['acme answered']], [1, 1, undefined])
})

describe('a call of a tool', () => {
  it('a call of a tool is counted by its kind and outcome, not by its name', async () => {
    const make = (name: string, kind: Tool['kind'], call: () => Promise<ToolAnswer>): Tool => ({
      name,
      description: '',
      parameters: {},
      safety: 'safe',
      call,
      ...(kind && { kind }),
    })
    const tools = [
      make('current_time', undefined, async () => ({ content: 'now' })),
      make('weather', 'http', async () => ({ content: 'no', error: { code: 'http_error', message: 'no' } })),
      make('github/list', 'mcp', async () => Promise.reject(new ToolError('mcp_error', 'no'))),
    ]
    const source = { open: async () => ({ ...noTools, tools: new Map(tools.map((tool) => [tool.name, tool])) }) }
    const opened = await observeTools(source, meters).open({
      project_id: 1,
      agent_id: 'agt_1',
      names: [],
      environment: {},
    })
    const call = (name: string, signal = new AbortController().signal) =>
      opened.tools.get(name)!.call({}, { signal } as Parameters<Tool['call']>[1])
    assert.deepEqual(await call('current_time'), { content: 'now' })
    assert.equal((await call('weather')).content, 'no')
    await assert.rejects(call('github/list'), ToolError)
    await assert.rejects(call('github/list', AbortSignal.abort()), ToolError)
    assert.deepEqual(await counted(meters.cadre_tool_calls_total), {
      'builtin answered': 1,
      'http failed': 1,
      'mcp failed': 1,
      'mcp aborted': 1,
    })
  })
})
