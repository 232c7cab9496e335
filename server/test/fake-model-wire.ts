/** An answer, before it is put into a provider's form. */
export interface FakeAnswer {
  text?: string
  /** `arguments` as text goes out as it is, so that it need not be JSON. */
  tool_calls?: { id?: string; name: string; arguments: unknown }[]
  /** In OpenAI's words; by default `tool_calls` where there are calls, else `stop`. */
  finish_reason?: 'stop' | 'length' | 'tool_calls' | 'content_filter'
  /** `null` sends none. */
  usage?: { input_tokens: number; output_tokens: number; cached_tokens?: number } | null
  /** The name that the answer gives the model; by default the one asked for. */
  model?: string
}

const defaultUsage = { input_tokens: 11, output_tokens: 7, cached_tokens: 0 }

/** The frames of a streamed chat completion, the last one `[DONE]`. Usage comes only where it was asked for. */
export function openaiChunks(answer: FakeAnswer, request: Record<string, unknown>): string[] {
  const { text = '', tool_calls = [], usage = defaultUsage } = answer
  const head = {
    id: 'chatcmpl-fake',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: answer.model ?? request['model'],
  }
  const chunk = (delta: unknown, finish_reason: string | null = null): object => ({
    ...head,
    choices: [{ index: 0, delta, finish_reason }],
  })
  const options = request['stream_options'] as { include_usage?: boolean } | undefined
  const chunks = [
    chunk({ role: 'assistant', content: '' }),
    ...words(text).map((content) => chunk({ content })),
    ...tool_calls.flatMap(({ id, name, arguments: given }, at) => {
      const written = asText(given)
      const half = Math.ceil(written.length / 2)
      return [
        chunk({
          tool_calls: [{ index: at, id: id ?? `call_${at + 1}`, type: 'function', function: { name, arguments: '' } }],
        }),
        ...[written.slice(0, half), written.slice(half)].map((part) =>
          chunk({ tool_calls: [{ index: at, function: { arguments: part } }] }),
        ),
      ]
    }),
    chunk({}, answer.finish_reason ?? (tool_calls.length > 0 ? 'tool_calls' : 'stop')),
    ...(usage && options?.include_usage ? [{ ...head, choices: [], usage: openaiUsage(usage) }] : []),
  ]
  return [...chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`), 'data: [DONE]\n\n']
}

function openaiUsage({ input_tokens, output_tokens, cached_tokens = 0 }: NonNullable<FakeAnswer['usage']>): object {
  return {
    prompt_tokens: input_tokens,
    completion_tokens: output_tokens,
    total_tokens: input_tokens + output_tokens,
    prompt_tokens_details: { cached_tokens },
  }
}

/** The frames of a streamed message of Anthropic. Its input tokens leave out the cached ones. */
export function anthropicEvents(answer: FakeAnswer, request: Record<string, unknown>): string[] {
  const { text = '', tool_calls = [], usage } = answer
  const { input_tokens, output_tokens, cached_tokens = 0 } = usage ?? defaultUsage
  const blocks = [
    ...(text === ''
      ? []
      : [
          {
            start: { type: 'text', text: '' },
            deltas: words(text).map((part) => ({ type: 'text_delta', text: part })),
          },
        ]),
    ...tool_calls.map(({ id, name, arguments: given }, at) => ({
      start: { type: 'tool_use', id: id ?? `toolu_${at + 1}`, name, input: {} },
      deltas: [{ type: 'input_json_delta', partial_json: asText(given) }],
    })),
  ]
  const reasons = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'refusal' }
  const stop_reason = reasons[answer.finish_reason ?? (tool_calls.length > 0 ? 'tool_calls' : 'stop')]
  const events: ({ type: string } & Record<string, unknown>)[] = [
    {
      type: 'message_start',
      message: {
        id: 'msg_fake',
        type: 'message',
        role: 'assistant',
        content: [],
        model: answer.model ?? request['model'],
        stop_reason: null,
        stop_sequence: null,
        usage: {
          input_tokens: input_tokens - cached_tokens,
          cache_read_input_tokens: cached_tokens,
          cache_creation_input_tokens: 0,
          output_tokens: 1,
        },
      },
    },
    { type: 'ping' },
    ...blocks.flatMap(({ start, deltas }, at) => [
      { type: 'content_block_start', index: at, content_block: start },
      ...deltas.map((delta) => ({ type: 'content_block_delta', index: at, delta })),
      { type: 'content_block_stop', index: at },
    ]),
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens } },
    { type: 'message_stop' },
  ]
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
}

/** Answers that the assistant has given in the conversation of a request: which round of tools this is, from 0. */
export function answersGiven(request: Record<string, unknown>): number {
  return messagesOf(request).filter(({ role }) => role === 'assistant').length
}

/** The text that the user said last, in either form; results of tools are none. */
export function lastUserText(request: Record<string, unknown>): string {
  const texts = messagesOf(request).flatMap(({ role, content }) => {
    if (role !== 'user') return []
    if (typeof content === 'string') return [content]
    return content.filter(({ type }) => type === 'text').map(({ text }) => text)
  })
  return texts.at(-1) ?? ''
}

interface WireMessage {
  role: string
  content: string | { type: string; text: string }[]
}

function messagesOf(request: Record<string, unknown>): WireMessage[] {
  // What our own side sent: its form is under test elsewhere.
  return request['messages'] as WireMessage[]
}

function words(text: string): string[] {
  return text === '' ? [] : text.split(/(?<=\s)(?=\S)/)
}

function asText(given: unknown): string {
  return typeof given === 'string' ? given : JSON.stringify(given)
}
