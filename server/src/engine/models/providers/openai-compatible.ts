import { familyRuleOf, modelFacts } from '#contract/models/model-facts.ts'
import type { Adapter, CallOptions } from './adapter.ts'
import { openaiAdapter, openaiOptions } from './openai.ts'
import { camelCase, openChatModel } from './chat-model.ts'
import { isStrictSchema } from './strict-schema.ts'

/** Any other server that speaks a protocol of OpenAI's: Chat Completions or, where the operator says so, Responses. */
export const compatibleAdapter: Adapter = {
  async open(provider, model, network) {
    if (provider.protocol === 'responses') return openaiAdapter.open(provider, model, network)
    return openChatModel(provider, model, {
      network,
      transformBody: isOpenaiReasoner(`${provider.name}/${model}`) ? withCompletionTokens : undefined,
    })
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
