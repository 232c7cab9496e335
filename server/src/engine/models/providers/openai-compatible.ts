import { familyRuleOf, modelFacts } from '#contract/models/model-facts.ts'
import type { Adapter, CallOptions } from './adapter.ts'
import { openaiAdapter, openaiOptions } from './openai.ts'
import { isStrictSchema } from './strict-schema.ts'

/** Any other server that speaks a protocol of OpenAI's: Chat Completions or, where the operator says so, Responses. */
export const compatibleAdapter: Adapter = {
  async open(provider, model, fetch) {
    if (provider.protocol === 'responses') return openaiAdapter.open(provider, model, fetch)
    const { name, base_url, api_key } = provider
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
    const key = api_key === undefined ? {} : { apiKey: api_key }
    return createOpenAICompatible({
      name,
      baseURL: base_url,
      ...key,
      fetch,
      includeUsage: true,
      supportsStructuredOutputs: true,
      ...(isOpenaiReasoner(`${name}/${model}`) ? { transformRequestBody: withCompletionTokens } : {}),
    }).chatModel(model)
  },
  // Servers that constrain an answer to a schema can no longer call tools with it (llama.cpp refuses the two together).
  schemaWay: ({ request, provider, facts }) =>
    facts.structured_output && (provider.protocol === 'responses' || request.tools.length === 0) ? 'native' : 'tool',
  adapt: (adapted, options) => {
    const { request, provider, dials } = adapted
    if (provider.protocol === 'responses') return { ...options, providerOptions: { openai: openaiOptions(adapted) } }
    const { effort, service_tier } = dials
    const providerOptions: NonNullable<CallOptions['providerOptions']> = {
      openaiCompatible: {
        ...(effort === undefined ? {} : { reasoningEffort: effort }),
        ...(request.output_schema === undefined ? {} : { strictJsonSchema: isStrictSchema(request.output_schema) }),
      },
    }
    // What the library does not know goes out under the provider's own name, as it is.
    const own = {
      ...(service_tier === undefined ? {} : { service_tier }),
      ...(request.parallel_tool_calls === false && request.tools.length > 0 ? { parallel_tool_calls: false } : {}),
    }
    if (Object.keys(own).length > 0) providerOptions[camelCase(provider.name)] = own
    return { ...options, providerOptions }
  },
}

/** Whether a model is one of OpenAI's reasoning models, at any server. */
function isOpenaiReasoner(provider_model: string): boolean {
  return modelFacts(provider_model).reasons && familyRuleOf(provider_model)?.[0] === 'openai'
}

/** OpenAI's reasoning models refuse `max_tokens`; behind a gateway they still do. */
function withCompletionTokens({ max_tokens, ...body }: Record<string, unknown>): Record<string, unknown> {
  return max_tokens === undefined ? body : { ...body, max_completion_tokens: max_tokens }
}

/** How the library spells the name of a provider among its options. */
function camelCase(name: string): string {
  return name.replaceAll(/[_-]([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
