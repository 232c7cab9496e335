import type { OpenAICompatibleProvider } from '@ai-sdk/openai-compatible'
import type { ModelFacts } from '#contract/models/model-facts.ts'
import type { Dials } from '../dials.ts'
import type { ModelRequest } from '../model.ts'
import type { Provider } from './provider.ts'

/** A model of the provider libraries: what they all make, and the only part of them that we use. */
export type LanguageModel = ReturnType<OpenAICompatibleProvider['chatModel']>

export type CallOptions = Parameters<LanguageModel['doStream']>[0]

/** A part of an answer, as the provider libraries name it. */
export type StreamPart =
  Awaited<ReturnType<LanguageModel['doStream']>>['stream'] extends ReadableStream<infer Part> ? Part : never

/** A model that can be called. */
export interface OpenModel {
  /** Sends one request and hands over the parts of its answer in their order. Throws what `toModelError` reads. */
  stream(options: CallOptions, take: (part: StreamPart) => void): Promise<void>
}

/** How a model's provider is reached. */
export interface ProviderNetwork {
  /** For the libraries: they send the signal of their call with each request. */
  fetch: typeof globalThis.fetch
  /** For what reads a stream itself. Throws `ProviderRefusal` for an answer that is no stream. */
  post(url: string, request: PostedRequest): Promise<ReadBody>
}

/** Hands over a body piece by piece, in the moment in which it comes; what `take` throws ends it. */
export type ReadBody = (take: (bytes: Uint8Array) => void) => Promise<void>

/** A request whose answer is a stream of events. */
export interface PostedRequest {
  headers: Record<string, string>
  body: string
  signal: AbortSignal
}

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
  open(provider: Provider, model: string, network: ProviderNetwork): Promise<OpenModel>
  /** How an `output_schema` is asked for. */
  schemaWay(adapted: AdaptedRequest): SchemaWay
  /** What the library's own options say: dials, caching. `options` is what is sent otherwise, and may be changed. */
  adapt(adapted: AdaptedRequest, options: CallOptions): CallOptions
}

/** A model whose answers its library reads. */
export function libraryModel(model: LanguageModel): OpenModel {
  return {
    async stream(options, take) {
      const { stream } = await model.doStream(options)
      for await (const part of stream) take(part)
    },
  }
}
