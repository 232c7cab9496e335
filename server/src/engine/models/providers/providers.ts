import type { ModelFacts } from '#contract/models/model-facts.ts'
import { anthropicAdapter } from './anthropic.ts'
import { compatibleAdapter } from './openai-compatible.ts'
import { openaiAdapter } from './openai.ts'
import type { Adapter } from './adapter.ts'
import type { ProviderKind, Provider } from './provider.ts'

/** Facts about a model: the built-in list's, overridden by the operator's settings. */
export type FactsOf = (provider_model: string) => ModelFacts

/** The default address of Ollama. */
export const ollamaBaseUrl = 'http://127.0.0.1:11434/v1'

/** The adapter of each kind of provider. */
const adapters: Record<ProviderKind, Adapter> = {
  openai: openaiAdapter,
  anthropic: anthropicAdapter,
  openai_compatible: compatibleAdapter,
}

/** The adapter of a provider. */
export function adapterOf({ kind }: Provider): Adapter {
  return adapters[kind]
}
