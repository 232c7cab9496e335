import { familyRuleOf, modelFacts } from '#contract/models/model-facts.ts'
import type { Adapter, CallOptions } from './adapter.ts'
import { openaiAdapter, openaiOptions } from './openai.ts'
import { camelCase, openChatModel } from './chat-model.ts'
import { isStrictSchema } from './strict-schema.ts'

/** Any other server with a protocol of OpenAI: Chat Completions or, if the operator sets it, Responses. */
export const compatibleAdapter: Adapter = {
  async open(provider, model, network) {
    if (provider.protocol === 'responses') return openaiAdapter.open(provider, model, network)
    return openChatModel(provider, model, {
      network,
      transformBody: isOpenaiReasoner(`${provider.name}/${model}`) ? withCompletionTokens : undefined,
    })
  },
  // Many servers cannot combine a schema for the answer with tools; llama.cpp rejects the two together.
  schemaWay: ({ request, provider, facts }) =>
    facts.structured_output && (provider.protocol === 'responses' || request.tools.length === 0) ? 'native' : 'tool',
  adapt: (adapted, options) => {
    const { request, provider, callSettings } = adapted
    if (provider.protocol === 'responses') return { ...options, providerOptions: { openai: openaiOptions(adapted) } }
    const { effort, service_tier } = callSettings
    const providerOptions: NonNullable<CallOptions['providerOptions']> = {
      openaiCompatible: {
        ...(effort === undefined ? {} : { reasoningEffort: effort }),
        ...(request.output_schema === undefined ? {} : { strictJsonSchema: isStrictSchema(request.output_schema) }),
      },
    }
    // Members that the library does not know are sent unchanged under the provider's name.
    const own = {
      ...(service_tier === undefined ? {} : { service_tier }),
      ...(request.parallel_tool_calls === false && request.tools.length > 0 ? { parallel_tool_calls: false } : {}),
    }
    if (Object.keys(own).length > 0) providerOptions[camelCase(provider.name)] = own
    return { ...options, providerOptions }
  },
}

/** Whether a model is one of OpenAI's reasoning models, on any server. */
function isOpenaiReasoner(provider_model: string): boolean {
  return modelFacts(provider_model).reasons && familyRuleOf(provider_model)?.[0] === 'openai'
}

/** OpenAI's reasoning models reject `max_tokens`, even behind a gateway. */
function withCompletionTokens({ max_tokens, ...body }: Record<string, unknown>): Record<string, unknown> {
  return max_tokens === undefined ? body : { ...body, max_completion_tokens: max_tokens }
}
