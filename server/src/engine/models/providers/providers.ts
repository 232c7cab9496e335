import type { ModelFacts } from '#contract/models/model-facts.ts'
import { anthropicAdapter } from './anthropic.ts'
import { compatibleAdapter } from './openai-compatible.ts'
import { openaiAdapter } from './openai.ts'
import type { Adapter } from './adapter.ts'
import type { ProviderKind, Provider } from './provider.ts'

/** What is known of a model: the list's, and what the operator says instead. */
export type FactsOf = (provider_model: string) => ModelFacts

/** Where Ollama listens if nothing else is said. */
export const ollamaBaseUrl = 'http://127.0.0.1:11434/v1'

/** The one place that decides which library speaks to a provider, and how. */
const adapters: Record<ProviderKind, Adapter> = {
  openai: openaiAdapter,
  anthropic: anthropicAdapter,
  openai_compatible: compatibleAdapter,
}

/** The adapter of a provider. */
export function adapterOf({ kind }: Provider): Adapter {
  return adapters[kind]
}
