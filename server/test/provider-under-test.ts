import assert from 'node:assert/strict'
import { modelFacts } from '#contract/model-facts.ts'
import type { ModelProtocol } from '#contract/model-providers.ts'
import { type Model, ModelError, type ModelErrorCode } from '../src/engine/models/model.ts'
import { type CallLimits, callLimits } from '../src/engine/models/model-watch.ts'
import { makeModelWires } from '../src/engine/models/model-wires.ts'
import { makeProviderModel } from '../src/engine/models/provider-model.ts'
import type { ProviderKind } from '../src/engine/models/providers.ts'

/** Every library that speaks to a provider: what one promises, all do. */
export const providerKinds: ProviderKind[] = ['openai', 'openai_compatible', 'anthropic']

/** The key that `makeModel` gives its provider. */
export const providerKey = 'sk-fake-0123456789'

/** How each is spoken to unless a test says otherwise. */
export const protocolOf: Record<ProviderKind, ModelProtocol> = {
  openai: 'responses',
  openai_compatible: 'chat',
  anthropic: 'messages',
}

/** Where each is asked. */
export const pathOf: Record<ProviderKind, string> = {
  openai: '/v1/responses',
  openai_compatible: '/v1/chat/completions',
  anthropic: '/v1/messages',
}

/** A model of a kind at an address, with other limits where they are named. */
export function makeModel(
  kind: ProviderKind,
  base_url: string,
  limits: Partial<CallLimits> = {},
  protocol: ModelProtocol = protocolOf[kind],
): Model {
  return makeProviderModel(
    { name: kind, kind, base_url, api_key: providerKey, protocol },
    { wires: makeModelWires(), limits: { ...callLimits, ...limits }, factsOf: modelFacts },
  )
}

/** For `assert.rejects`: a `ModelError` with this code, of which `more` is true. */
export function failsWith(code: ModelErrorCode, retryable: boolean, more: (error: ModelError) => boolean = () => true) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof ModelError, String(error))
    assert.deepEqual([error.code, error.retryable], [code, retryable], error.message)
    assert.ok(more(error), `${error.message} ${error.retry_after}`)
    return true
  }
}
