import { type Adapter, type AdaptedRequest, libraryModel } from './adapter.ts'
import { isStrictSchema } from './strict-schema.ts'

/** Maximum characters of `prompt_cache_key`. */
const cacheKeyMax = 64

/** OpenAI's service, by the Responses protocol or, if the operator sets it, by Chat Completions. */
export const openaiAdapter: Adapter = {
  async open({ base_url, api_key, protocol }, model, { fetch }) {
    const { createOpenAI } = await import('@ai-sdk/openai')
    const openai = createOpenAI({ baseURL: base_url, apiKey: api_key ?? '', fetch })
    return libraryModel(protocol === 'responses' ? openai.responses(model) : openai.chat(model))
  },
  schemaWay: ({ facts }) => (facts.structured_output ? 'native' : 'tool'),
  adapt: (adapted, options) => ({
    ...options,
    providerOptions: {
      openai: {
        ...openaiOptions(adapted),
        ...(adapted.request.cache_key === undefined
          ? {}
          : { promptCacheKey: adapted.request.cache_key.slice(0, cacheKeyMax) }),
      },
    },
  }),
}

/** Options of OpenAI's library for either of its protocols, except caching. */
export function openaiOptions({
  request,
  provider,
  facts,
  callSettings,
}: AdaptedRequest): Record<string, string | boolean> {
  const { effort, service_tier } = callSettings
  const isResponses = provider.protocol === 'responses'
  return {
    // The provider stores nothing of a conversation. The library then requests encrypted reasoning if the model
    // reasons.
    ...(isResponses || provider.kind === 'openai' ? { store: false } : {}),
    // The service's facts apply, not the library's: they include the operator's settings for a model.
    ...(isResponses ? { forceReasoning: facts.reasons } : {}),
    ...(effort === undefined ? {} : { reasoningEffort: effort }),
    // A summary for people is requested if the agent requests reasoning.
    ...(isResponses && effort !== undefined && effort !== 'none' && facts.reasons ? { reasoningSummary: 'auto' } : {}),
    ...(service_tier === undefined ? {} : { serviceTier: service_tier }),
    // Without tools, the provider rejects this member.
    ...(request.parallel_tool_calls === false && request.tools.length > 0 ? { parallelToolCalls: false } : {}),
    ...(request.output_schema === undefined ? {} : { strictJsonSchema: isStrictSchema(request.output_schema) }),
  }
}
