import assert from 'node:assert/strict'
import { modelFacts } from '#contract/models/model-facts.ts'
import { nativeProviderNames, nativeProviders, type ModelProtocol } from '#contract/models/native-providers.ts'
import { type Model, ModelError, type ModelErrorCode } from '../../src/engine/models/model.ts'
import { type CallLimits, callLimits } from '../../src/engine/models/model-watch.ts'
import { makeModelConnections } from '../../src/engine/models/model-connections.ts'
import { makeProviderModel } from '../../src/engine/models/provider-model.ts'
import type { ProviderKind } from '../../src/engine/models/providers/provider.ts'

/** Every library that speaks to a provider: what one promises, all do. */
export const providerKinds: ProviderKind[] = [...nativeProviderNames, 'openai_compatible']

/** The key that `makeModel` gives its provider. */
export const providerKey = 'sk-fake-0123456789'

/** How a kind is spoken to unless a test says otherwise. */
export function protocolOf(kind: ProviderKind): ModelProtocol {
  return kind === 'openai_compatible' ? 'chat' : nativeProviders[kind].protocols[0]
}

const paths: Record<ModelProtocol, string> = {
  responses: '/v1/responses',
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
}

/** Where a kind is asked. */
export function pathOf(kind: ProviderKind): string {
  return paths[protocolOf(kind)]
}

/** A model of a kind at an address, with other limits where they are named. */
export function makeModel(
  kind: ProviderKind,
  base_url: string,
  limits: Partial<CallLimits> = {},
  protocol: ModelProtocol = protocolOf(kind),
): Model {
  return makeProviderModel(
    { name: kind, kind, base_url, api_key: providerKey, protocol },
    { connections: makeModelConnections(), limits: { ...callLimits, ...limits }, factsOf: modelFacts },
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
