import type { OpenAICompatibleProvider } from '@ai-sdk/openai-compatible'
import type { ModelFacts } from '#contract/models/model-facts.ts'
import type { CallSettings } from '../call-settings.ts'
import type { ModelRequest } from '../model.ts'
import type { Provider } from './provider.ts'

/** A model of the provider libraries: the only part of them that Cadre uses. */
export type LanguageModel = ReturnType<OpenAICompatibleProvider['chatModel']>

export type CallOptions = Parameters<LanguageModel['doStream']>[0]

/** A part of an answer, as the provider libraries name it. */
export type StreamPart =
  Awaited<ReturnType<LanguageModel['doStream']>>['stream'] extends ReadableStream<infer Part> ? Part : never

/** A model that can be called. */
export interface OpenModel {
  /**
   * Sends one request and passes on the parts of its answer in order.
   * @throws errors for `toModelError`
   */
  stream(options: CallOptions, take: (part: StreamPart) => void): Promise<void>
}

/** The network of calls to a model's provider. */
export interface ProviderNetwork {
  /** For the libraries, which pass the signal of their call with each request. */
  fetch: typeof globalThis.fetch
  /**
   * For code that reads a stream itself.
   * @throws ProviderRefusal for a response that is not a stream
   */
  post(url: string, request: PostedRequest): Promise<ReadBody>
}

/** Passes on each piece of a body as soon as it arrives. An error of `take` ends the reading. */
export type ReadBody = (take: (bytes: Uint8Array) => void) => Promise<void>

/** A request whose response is a stream of events. */
export interface PostedRequest {
  headers: Record<string, string>
  body: string
  signal: AbortSignal
}

/** A request to a provider, with all decisions about it. */
export interface AdaptedRequest {
  request: ModelRequest
  provider: Provider
  facts: ModelFacts
  callSettings: CallSettings
}

/** How the answer's schema reaches the model: the provider enforces it, or the model calls a tool with the answer. */
export type SchemaWay = 'native' | 'tool'

/** The differences of a kind of provider: its library, and its form of Cadre's settings. */
export interface Adapter {
  /**
   * Opens a model. Libraries are loaded at first use, so that a service starts faster without them. Address and key are
   * always passed, because the libraries would otherwise read the environment.
   */
  open(provider: Provider, model: string, network: ProviderNetwork): Promise<OpenModel>
  /** How an `output_schema` is requested. */
  schemaWay(adapted: AdaptedRequest): SchemaWay
  /** Adds the library's options: call settings, caching. `options` is everything else that is sent, and may be changed. */
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
