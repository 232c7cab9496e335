import type { OpenAICompatibleProvider } from '@ai-sdk/openai-compatible'

/** A model of the provider libraries: what they all make, and the only part of them that we use. */
export type LanguageModel = ReturnType<OpenAICompatibleProvider['chatModel']>

export type ProviderKind = 'openai' | 'openai_compatible' | 'anthropic'

/** A provider as the operator configured it. */
export interface Provider {
  name: string
  kind: ProviderKind
  base_url: string
  api_key: string | undefined
}

export const openaiBaseUrl = 'https://api.openai.com/v1'
export const anthropicBaseUrl = 'https://api.anthropic.com/v1'
/** Where Ollama listens if nothing else is said. */
export const ollamaBaseUrl = 'http://127.0.0.1:11434/v1'

/**
 * Makes a model of a provider. The libraries are loaded at their first use, so that a service without them starts
 * faster. Address and key are always handed over: without them the libraries would read the environment themselves.
 */
export async function openLanguageModel(
  { name, kind, base_url, api_key }: Provider,
  model: string,
  fetch: typeof globalThis.fetch,
): Promise<LanguageModel> {
  switch (kind) {
    case 'openai': {
      const { createOpenAI } = await import('@ai-sdk/openai')
      return createOpenAI({ baseURL: base_url, apiKey: api_key ?? '', fetch }).chat(model)
    }
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic')
      return createAnthropic({ baseURL: base_url, apiKey: api_key ?? '', fetch }).languageModel(model)
    }
    case 'openai_compatible': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
      const key = api_key === undefined ? {} : { apiKey: api_key }
      return createOpenAICompatible({ name, baseURL: base_url, ...key, fetch, includeUsage: true }).chatModel(model)
    }
  }
}
