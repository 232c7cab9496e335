import { type Adapter, type AdaptedRequest, libraryModel } from './adapter.ts'
import { isStrictSchema } from './strict-schema.ts'

/** Characters of `prompt_cache_key`. */
const cacheKeyMax = 64

/** OpenAI's own service, by the Responses protocol or, where the operator wants it, by Chat Completions. */
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
export function openaiOptions({ request, provider, facts, dials }: AdaptedRequest): Record<string, string | boolean> {
  const { effort, service_tier } = dials
  const isResponses = provider.protocol === 'responses'
  return {
    // Nothing of a conversation is kept at the provider. With that, its library asks for encrypted reasoning where the model reasons.
    ...(isResponses || provider.kind === 'openai' ? { store: false } : {}),
    // The service's facts decide, not those of the library: they also know what the operator says of a model.
    ...(isResponses ? { forceReasoning: facts.reasons } : {}),
    ...(effort === undefined ? {} : { reasoningEffort: effort }),
    // A summary for people is asked for where the agent asks for reasoning.
    ...(isResponses && effort !== undefined && effort !== 'none' && facts.reasons ? { reasoningSummary: 'auto' } : {}),
    ...(service_tier === undefined ? {} : { serviceTier: service_tier }),
    // Without tools the provider refuses the member.
    ...(request.parallel_tool_calls === false && request.tools.length > 0 ? { parallelToolCalls: false } : {}),
    ...(request.output_schema === undefined ? {} : { strictJsonSchema: isStrictSchema(request.output_schema) }),
  }
}
