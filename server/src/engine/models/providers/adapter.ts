import type { OpenAICompatibleProvider } from '@ai-sdk/openai-compatible'
import type { ModelFacts } from '#contract/models/model-facts.ts'
import type { Dials } from '../dials.ts'
import type { ModelRequest } from '../model.ts'
import type { Provider } from './provider.ts'

/** A model of the provider libraries: what they all make, and the only part of them that we use. */
export type LanguageModel = ReturnType<OpenAICompatibleProvider['chatModel']>

export type CallOptions = Parameters<LanguageModel['doStream']>[0]

/** One request to a provider, with all that was decided about it. */
export interface AdaptedRequest {
  request: ModelRequest
  provider: Provider
  facts: ModelFacts
  dials: Dials
}

/** How the answer's schema reaches the model: the provider enforces it, or the model calls a tool with the answer. */
export type SchemaWay = 'native' | 'tool'

/** All that is peculiar to a kind of provider: which library speaks to it, and how our terms are its. */
export interface Adapter {
  /**
   * Makes a model. Libraries are loaded at their first use, so that a service without them starts faster. Address and key are
   * always handed over: without them the libraries would read the environment themselves.
   */
  open(provider: Provider, model: string, fetch: typeof globalThis.fetch): Promise<LanguageModel>
  /** How an `output_schema` is asked for. */
  schemaWay(adapted: AdaptedRequest): SchemaWay
  /** What the library's own options say: dials, caching. `options` is what is sent otherwise, and may be changed. */
  adapt(adapted: AdaptedRequest, options: CallOptions): CallOptions
}
