import { nativeProviders } from '#contract/models/native-providers.ts'
import { type Adapter, type AdaptedRequest, type CallOptions, libraryModel } from './adapter.ts'
import { isStrictSchema } from './strict-schema.ts'

/** Marks the end of a part to cache; Anthropic allows four marks. */
const cacheMark = { anthropic: { cacheControl: { type: 'ephemeral' } } }

/** Anthropic's Messages protocol. */
export const anthropicAdapter: Adapter = {
  async open({ base_url, api_key }, model, { fetch }) {
    const { createAnthropic } = await import('@ai-sdk/anthropic')
    return libraryModel(createAnthropic({ baseURL: base_url, apiKey: api_key ?? '', fetch }).languageModel(model))
  },
  // A schema that Anthropic cannot enforce unchanged is requested by a tool, because its conversion would close open
  // objects.
  schemaWay: ({ request, facts }) =>
    facts.structured_output && request.output_schema !== undefined && isStrictSchema(request.output_schema)
      ? 'native'
      : 'tool',
  adapt(adapted, options) {
    const { request, provider, callSettings } = adapted
    const thinking = thinkingOf(adapted)
    return {
      ...(request.cache_key === undefined ? options : marked(options)),
      // The library adds the thinking budget to the maximum tokens of the answer.
      ...(thinking?.type === 'enabled' && options.maxOutputTokens !== undefined
        ? { maxOutputTokens: options.maxOutputTokens - thinking.budgetTokens }
        : {}),
      providerOptions: {
        anthropic: {
          structuredOutputMode: 'outputFormat',
          // Older gateways reject this member of tools.
          toolStreaming: provider.base_url === nativeProviders.anthropic.base_url,
          ...(thinking ? { thinking } : {}),
          ...(callSettings.effort === undefined || callSettings.effort === 'none'
            ? {}
            : { effort: callSettings.effort }),
          ...(callSettings.service_tier === undefined ? {} : { serviceTier: callSettings.service_tier }),
          ...(request.parallel_tool_calls === false ? { disableParallelToolUse: true } : {}),
        },
      },
    }
  },
}

/** How to request thinking; undefined leaves it to the model. */
function thinkingOf({ facts, callSettings }: AdaptedRequest) {
  if (callSettings.effort === 'none') return { type: 'disabled' as const }
  if (callSettings.thinking_tokens !== undefined)
    return { type: 'enabled' as const, budgetTokens: callSettings.thinking_tokens }
  // Without this, newer models think without showing it.
  if (callSettings.effort !== undefined && facts.thinking === 'adaptive')
    return { type: 'adaptive' as const, display: 'summarized' as const }
  return undefined
}

/**
 * Marks the ends of the parts that stay the same: the tools, the system prompt, and the conversation as sent last time
 * and now. The marks of the conversation move on with each round, so every round reads what the previous one wrote to
 * the cache.
 */
function marked(options: CallOptions): CallOptions {
  const { prompt, tools } = options
  const last = prompt.length - 1
  const before = prompt.findLastIndex(({ role }) => role === 'assistant') - 1
  return {
    ...options,
    ...(tools && {
      tools: tools.map((tool, at) =>
        at === tools.length - 1 && tool.type === 'function' ? { ...tool, providerOptions: cacheMark } : tool,
      ),
    }),
    prompt: prompt.map((message, at) =>
      message.role === 'system' || at === last || at === before ? { ...message, providerOptions: cacheMark } : message,
    ),
  }
}
