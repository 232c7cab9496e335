/** What a model reasoned before it went on. Each protocol has its own parts of it. */
export interface FakeReasoning {
  /** Anthropic: the text of a thinking block. Chat: `reasoning_content`. Responses: the summary, where none is given. */
  text?: string
  /** Responses: the parts of the summary, sent where a summary was asked for. */
  summary?: string[]
  /** Responses: `encrypted_content`, sent where it was asked for; by default one that no other answer has. */
  encrypted?: string
  /** Anthropic: the data of `redacted_thinking` blocks, after the thinking block if there is one. */
  redacted?: string[]
  /** Anthropic: by default one that no other answer has. */
  signature?: string
}

/** A call of a tool. */
export interface FakeToolCall {
  /** By default one that the server has not given before. */
  id?: string
  name: string
  /** As text it goes out as it is, so that it need not be JSON. */
  arguments: unknown
}

/** A part of an answer. */
export type FakePart = { reasoning: FakeReasoning } | { text: string } | { tool_call: FakeToolCall }

/** An answer, before it is put into a provider's form. */
export interface FakeAnswer {
  /** The answer's parts in their order; wins over `reasoning`, `text` and `tool_calls`, which come in this order. */
  parts?: FakePart[]
  /** Sent where the request lets its model reason. */
  reasoning?: FakeReasoning[]
  text?: string
  tool_calls?: FakeToolCall[]
  /** In OpenAI's words; by default `tool_calls` where there are calls, else `stop`. */
  finish_reason?: 'stop' | 'length' | 'tool_calls' | 'content_filter'
  /** What was counted, all input and all output; `null` sends none. */
  usage?: FakeUsage | null
  /** The name that the answer gives the model; by default the one asked for. */
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

/** What is counted where a test does not care. */
export const defaultUsage: FakeUsage = { input_tokens: 11, output_tokens: 7, cached_tokens: 0 }

/** The parts of an answer in their order. */
export function partsOf({ parts, reasoning = [], text = '', tool_calls = [] }: FakeAnswer): FakePart[] {
  if (parts) return parts
  return [
    ...reasoning.map((one) => ({ reasoning: one })),
    ...(text === '' ? [] : [{ text }]),
    ...tool_calls.map((one) => ({ tool_call: one })),
  ]
}

/** Why an answer ended, in OpenAI's words. */
export function finishOf(answer: FakeAnswer): NonNullable<FakeAnswer['finish_reason']> {
  const calls = partsOf(answer).some((part) => 'tool_call' in part)
  return answer.finish_reason ?? (calls ? 'tool_calls' : 'stop')
}

/** A text as a model streams it: word by word. */
export function words(text: string): string[] {
  return text === '' ? [] : text.split(/(?<=\s)(?=\S)/)
}

/** The arguments of a call as they go over the wire. */
export function asText(given: unknown): string {
  return typeof given === 'string' ? given : JSON.stringify(given)
}
