import type { OpenModel, ProviderNetwork } from './adapter.ts'
import { type ChatToolCall, readChatStream } from './chat-stream.ts'
import type { Provider } from './provider.ts'

/**
 * A model of a server with Chat Completions. The provider's library writes the request and assembles tool calls. Cadre
 * reads the stream itself (`readChatStream`), because the library's chain of web streams and schemas takes a fifth of
 * the CPU time of a short task (decision 0042).
 */
export async function openChatModel(
  { name, base_url, api_key }: Provider,
  model: string,
  {
    network,
    transformBody,
  }: {
    network: ProviderNetwork
    /** Changes the body before it is sent. */
    transformBody: ((body: Record<string, unknown>) => Record<string, unknown>) | undefined
  },
): Promise<OpenModel> {
  const [{ OpenAICompatibleChatLanguageModel }, { StreamingToolCallTracker }] = await Promise.all([
    import('@ai-sdk/openai-compatible'),
    import('@ai-sdk/provider-utils'),
  ])
  const url = `${base_url.replace(/\/$/, '')}/chat/completions`
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'cadre',
    ...(api_key === undefined ? {} : { authorization: `Bearer ${api_key}` }),
  }
  const library = new OpenAICompatibleChatLanguageModel(model, {
    provider: `${name}.chat`,
    url: () => url,
    headers: () => headers,
    fetch: network.fetch,
    supportsStructuredOutputs: true,
    ...(transformBody ? { transformRequestBody: transformBody } : {}),
  })
  return {
    async stream(options, take) {
      const { body, warnings } = await library.prepareRequest(options)
      const answer = await network.post(url, {
        headers,
        body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
        signal: options.abortSignal!,
      })
      take({ type: 'stream-start', warnings })
      // The name under which the library looks for the metadata when the turn is sent again.
      const metadataName = options.providerOptions?.[camelCase(name)] === undefined ? name : camelCase(name)
      const calls = new StreamingToolCallTracker<ChatToolCall>(
        { enqueue: take },
        {
          extractMetadata: ({ extra_content }) => {
            const thoughtSignature = extra_content?.google?.thought_signature
            return thoughtSignature ? { [metadataName]: { thoughtSignature } } : undefined
          },
          buildToolCallProviderMetadata: (metadata) => metadata,
        },
      )
      await readChatStream(answer, { take, calls })
    },
  }
}

/** The spelling of a provider's name among the library's options. */
export function camelCase(name: string): string {
  return name.replaceAll(/[_-]([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
