/** Reasoning of a model. Each protocol has different parts of it. */
export interface FakeReasoning {
  /**
   * Anthropic: the text of a thinking block. Chat: `reasoning_content`. Responses: the summary, where none is given.
   */
  text?: string
  /** Responses: the parts of the summary, sent where a summary was asked for. */
  summary?: string[]
  /** Responses: `encrypted_content`, sent if requested. Default: a unique one. */
  encrypted?: string
  /** Anthropic: the data of `redacted_thinking` blocks, after the thinking block if there is one. */
  redacted?: string[]
  /** Anthropic. Default: a unique one. */
  signature?: string
}

/** A call of a tool. */
export interface FakeToolCall {
  /** Default: a unique one. */
  id?: string
  name: string
  /** A string is sent unchanged, so that it need not be JSON. */
  arguments: unknown
}

/** A part of a response. */
export type FakePart = { reasoning: FakeReasoning } | { text: string } | { tool_call: FakeToolCall }

/** A response before it is converted to the format of a provider. */
export interface FakeAnswer {
  /** The answer's parts in their order; wins over `reasoning`, `text` and `tool_calls`, which come in this order. */
  parts?: FakePart[]
  /** Sent if the request allows reasoning. */
  reasoning?: FakeReasoning[]
  text?: string
  tool_calls?: FakeToolCall[]
  /** In OpenAI's words; by default `tool_calls` where there are calls, else `stop`. */
  finish_reason?: 'stop' | 'length' | 'tool_calls' | 'content_filter'
  /** What was counted, all input and all output; `null` sends none. */
  usage?: FakeUsage | null
  /** The model's name in the response. Default: the requested one. */
  model?: string
}

/** What an answer counts. Input includes what was read from a cache and written to one, output what was reasoned. */
export interface FakeUsage {
  input_tokens: number
  output_tokens: number
  cached_tokens?: number
  cache_write_tokens?: number
  reasoning_tokens?: number
}

/** Default usage. */
export const defaultUsage: FakeUsage = { input_tokens: 11, output_tokens: 7, cached_tokens: 0 }

/** The parts of a response in order. */
export function partsOf({ parts, reasoning = [], text = '', tool_calls = [] }: FakeAnswer): FakePart[] {
  if (parts) return parts
  return [
    ...reasoning.map((one) => ({ reasoning: one })),
    ...(text === '' ? [] : [{ text }]),
    ...tool_calls.map((one) => ({ tool_call: one })),
  ]
}

/** The finish reason of a response, in OpenAI's values. */
export function finishOf(answer: FakeAnswer): NonNullable<FakeAnswer['finish_reason']> {
  const calls = partsOf(answer).some((part) => 'tool_call' in part)
  return answer.finish_reason ?? (calls ? 'tool_calls' : 'stop')
}

/** A text as a model streams it, word by word. */
export function words(text: string): string[] {
  return text === '' ? [] : text.split(/(?<=\s)(?=\S)/)
}

/** The arguments of a call as they go over the wire. */
export function asText(given: unknown): string {
  return typeof given === 'string' ? given : JSON.stringify(given)
}
