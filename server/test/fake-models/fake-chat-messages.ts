import { asText, defaultUsage, type FakeAnswer, type FakeUsage, finishOf, partsOf, words } from './fake-answer.ts'
import { FakeMemory, type ProducedThinking } from './strict-memory.ts'
import { keyOf } from './strict-messages-turns.ts'
import { claudeFacts, openaiFacts, thinkingOf } from './strict-model-facts.ts'

export type { FakeAnswer } from './fake-answer.ts'

/**
 * The frames of a streamed chat completion, the last one `[DONE]`. Usage comes only where it was asked for, and
 * `reasoning_content` only from servers that are not OpenAI's own, which keeps it to itself.
 */
export function openaiChunks(
  answer: FakeAnswer,
  request: Record<string, unknown>,
  {
    memory = new FakeMemory(),
    strict_as,
  }: { memory?: FakeMemory; strict_as?: 'openai' | 'compatible' | undefined } = {},
): string[] {
  const { usage = defaultUsage } = answer
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
  const isOpenai = (strict_as ?? (openaiFacts(String(request['model'])).known ? 'openai' : 'compatible')) === 'openai'
  const calls: string[] = []
  let reasoned: string | undefined
  const parts = partsOf(answer).flatMap((part) => {
    if ('text' in part) return words(part.text).map((content) => chunk({ content }))
    if ('reasoning' in part) {
      if (isOpenai) return []
      const text = part.reasoning.text ?? part.reasoning.summary?.join('\n\n') ?? ''
      reasoned = (reasoned ?? '') + text
      return words(text).map((reasoning_content) => chunk({ reasoning_content }))
    }
    const { id = memory.id('call'), name, arguments: given } = part.tool_call
    const written = asText(given)
    const half = Math.ceil(written.length / 2)
    const index = calls.push(id) - 1
    return [
      chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
      ...[written.slice(0, half), written.slice(half)].map((part) =>
        chunk({ tool_calls: [{ index, function: { arguments: part } }] }),
      ),
    ]
  })
  for (const id of calls) memory.contents.set(id, reasoned)
  const chunks = [
    chunk({ role: 'assistant', content: '' }),
    ...parts,
    chunk({}, finishOf(answer)),
    ...(usage && options?.include_usage ? [{ ...head, choices: [], usage: openaiUsage(usage) }] : []),
  ]
  return [...chunks.map((one) => `data: ${JSON.stringify(one)}\n\n`), 'data: [DONE]\n\n']
}

function openaiUsage(usage: FakeUsage): object {
  const { input_tokens, output_tokens, cached_tokens = 0, cache_write_tokens, reasoning_tokens } = usage
  return {
    prompt_tokens: input_tokens,
    completion_tokens: output_tokens,
    total_tokens: input_tokens + output_tokens,
    prompt_tokens_details: { cached_tokens, ...(cache_write_tokens !== undefined && { cache_write_tokens }) },
    ...(reasoning_tokens !== undefined && { completion_tokens_details: { reasoning_tokens } }),
  }
}

interface Block {
  start: Record<string, unknown> & { type: string }
  deltas: object[]
}

/**
 * The frames of a streamed message of Anthropic. Its input tokens leave out what was read from a cache and written to
 * one. Thinking comes where the request lets its model think, and its text where the request has it shown.
 */
export function anthropicEvents(
  answer: FakeAnswer,
  request: Record<string, unknown>,
  { memory = new FakeMemory() }: { memory?: FakeMemory } = {},
): string[] {
  const {
    input_tokens,
    output_tokens,
    cached_tokens = 0,
    cache_write_tokens = 0,
    reasoning_tokens,
  } = answer.usage ?? defaultUsage
  const blocks = anthropicBlocks(answer, request, memory)
  const reasons = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'refusal' }
  const stop_reason = reasons[finishOf(answer)]
  const usage = {
    output_tokens,
    ...(reasoning_tokens !== undefined && { output_tokens_details: { thinking_tokens: reasoning_tokens } }),
  }
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
          input_tokens: input_tokens - cached_tokens - cache_write_tokens,
          cache_read_input_tokens: cached_tokens,
          cache_creation_input_tokens: cache_write_tokens,
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
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
    { type: 'message_stop' },
  ]
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
}

function anthropicBlocks(answer: FakeAnswer, request: Record<string, unknown>, memory: FakeMemory): Block[] {
  const turn = { thinking: [] as ProducedThinking[], order: [] as string[] }
  const calls: string[] = []
  const blocks = partsOf(answer).flatMap((part): Block[] => {
    if ('text' in part) {
      const deltas = words(part.text).map((text) => ({ type: 'text_delta', text }))
      return [{ start: { type: 'text', text: '' }, deltas }]
    }
    if ('reasoning' in part) {
      const thinking = thinkingIn(part.reasoning, request, memory)
      for (const block of thinking) memory.thinking.set(keyOf(block), block)
      turn.thinking.push(...thinking)
      turn.order.push(...thinking.map(keyOf))
      return thinking.map(thinkingBlock)
    }
    const { id = memory.id('toolu'), name, arguments: given } = part.tool_call
    calls.push(id)
    turn.order.push(id)
    return [
      {
        start: { type: 'tool_use', id, name, input: {} },
        deltas: [{ type: 'input_json_delta', partial_json: asText(given) }],
      },
    ]
  })
  for (const id of calls) memory.turns.set(id, turn)
  return blocks
}

function thinkingIn(
  { text, summary, redacted = [], signature }: NonNullable<FakeAnswer['reasoning']>[number],
  request: Record<string, unknown>,
  memory: FakeMemory,
): ProducedThinking[] {
  if (thinkingOf(request) === 'off') return []
  const { display } = (request['thinking'] ?? {}) as { display?: string | null }
  const isShown = (display ?? claudeFacts(String(request['model'])).display) !== 'omitted'
  const thought = text ?? summary?.join('\n\n')
  const hasText = thought !== undefined || signature !== undefined || redacted.length === 0
  return [
    ...(hasText
      ? [
          {
            type: 'thinking' as const,
            thinking: isShown ? (thought ?? '') : '',
            signature: signature ?? secret(memory.id('sig')),
          },
        ]
      : []),
    ...redacted.map((data) => ({ type: 'redacted_thinking' as const, data })),
  ]
}

function thinkingBlock(block: ProducedThinking): Block {
  if (block.type === 'redacted_thinking') return { start: { ...block }, deltas: [] }
  const { thinking, signature } = block
  return {
    start: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...words(thinking).map((part) => ({ type: 'thinking_delta', thinking: part })),
      { type: 'signature_delta', signature },
    ],
  }
}

/** A text as opaque as what the services encrypt. */
export function secret(id: string): string {
  return Buffer.from(`encrypted ${id} ${'.'.repeat(40)}`).toString('base64')
}

/** Answers that the assistant has given in the conversation of a request: which round of tools this is, from 0. */
export function answersGiven(request: Record<string, unknown>): number {
  const isModels = ({ role, type }: WireMessage): boolean =>
    role === 'assistant' || type === 'reasoning' || type === 'function_call'
  // In Responses an answer is a row of items.
  const messages = messagesOf(request)
  if (request['messages'] !== undefined) return messages.filter(isModels).length
  return messages.filter((one, at) => isModels(one) && !(at > 0 && isModels(messages[at - 1]!))).length
}

/** The text that the user said last, in any form; results of tools are none. */
export function lastUserText(request: Record<string, unknown>): string {
  const texts = messagesOf(request).flatMap(({ role, content }) => {
    if (role !== 'user' || content === undefined) return []
    if (typeof content === 'string') return [content]
    return content.filter(({ type }) => type === 'text' || type === 'input_text').map(({ text }) => text)
  })
  return texts.at(-1) ?? ''
}

interface WireMessage {
  role?: string
  type?: string
  content?: string | { type: string; text: string }[]
}

function messagesOf(request: Record<string, unknown>): WireMessage[] {
  // What our own side sent: its form is under test elsewhere.
  const { messages, input } = request as { messages?: WireMessage[]; input?: string | WireMessage[] }
  return messages ?? (typeof input === 'string' ? [{ role: 'user', content: input }] : (input ?? []))
}
