import { createParser } from 'eventsource-parser'
import { isObject } from '#contract/core/merge-patch.ts'
import { ModelError } from '../model.ts'
import type { ReadBody, StreamPart } from './adapter.ts'
import { type ChatChunk, type ChatDelta, type ChatToolCall, type ChatUsage, readChunk } from './chat-chunk.ts'
import { eventMax, eventTooLong } from './event-bound.ts'

export type { ChatToolCall } from './chat-chunk.ts'

export interface ChatStreamReading {
  take: (part: StreamPart) => void
  /** Assembles tool calls from their fragments. */
  calls: { processDelta(delta: ChatToolCall): void; flush(): void }
}

/**
 * Reads a Chat Completions stream to its end, and passes on its parts in the names and order of the provider's library.
 * A stream that ends without a finish reason has the reason `error`.
 * @throws errors for `toModelError`: `ProtocolViolation`, `ModelError` for an oversized event, errors of the connection
 */
export async function readChatStream(readBody: ReadBody, reading: ChatStreamReading): Promise<void> {
  const reader = new ChatStreamReader(reading)
  const parser = createParser({
    maxBufferSize: eventMax,
    onEvent: ({ data }) => {
      if (data === '[DONE]') return
      const chunk = readChunk(data)
      if ('choices' in chunk) reader.read(chunk)
      else reading.take({ type: 'error', error: chunk.error })
    },
    onError: (error) => {
      if (error.type === 'max-buffer-size-exceeded') throw eventTooLong()
    },
  })
  const decoder = new TextDecoder()
  await readBody((bytes) => parser.feed(decoder.decode(bytes, { stream: true })))
  reader.end()
}

/** Maximum number of calls whose name has not arrived yet, and of characters of their arguments together. */
const unnamedMax = { calls: 1000, characters: 4 * 1024 * 1024 }

/** A tool call whose name has not arrived yet. */
type UnnamedCall = Omit<ChatToolCall, 'function'> & { index: number; arguments: string }

const textId = 'txt-0'
const reasoningId = 'reasoning-0'

class ChatStreamReader {
  readonly #take: (part: StreamPart) => void
  readonly #calls: ChatStreamReading['calls']
  /** Calls whose name has not arrived yet, by index. */
  readonly #unnamed = new Map<number, UnnamedCall>()
  #unnamed_characters = 0
  readonly #named = new Set<number>()
  #open: 'text' | 'reasoning' | undefined
  #hasMetadata = false
  #hasRefusal = false
  #finish_reason: string | undefined
  #usage: ChatChunk['usage']

  constructor({ take, calls }: ChatStreamReading) {
    this.#take = take
    this.#calls = calls
  }

  read({ id, model, created, choices, usage }: ChatChunk): void {
    if (!this.#hasMetadata && (id || model || created)) {
      this.#hasMetadata = true
      this.#take({ type: 'response-metadata', ...(model ? { modelId: model } : {}) })
    }
    if (usage) this.#usage = usage
    const [choice] = choices
    if (!choice) return
    if (isGiven(choice.finish_reason)) this.#finish_reason = choice.finish_reason
    if (choice.delta) this.#readDelta(choice.delta)
  }

  #readDelta(delta: ChatDelta): void {
    const reasoning = delta.reasoning_content ?? delta.reasoning
    if (reasoning) this.#add('reasoning', reasoning)
    this.#readContent(delta.content)
    if (typeof delta.refusal === 'string' && delta.refusal !== '') {
      this.#hasRefusal = true
      this.#add('text', delta.refusal)
    }
    if (!delta.tool_calls?.length) return
    if (this.#open === 'reasoning') this.#close()
    for (const call of delta.tool_calls) this.#readCall(call)
  }

  #readContent(content: ChatDelta['content']): void {
    if (!content) return
    if (typeof content === 'string') return this.#add('text', content)
    for (const part of content) {
      if (part.type === 'text' && typeof part['text'] === 'string') this.#add('text', part['text'])
      else if (part.type === 'thinking' && Array.isArray(part['thinking']))
        this.#add('reasoning', part['thinking'].map(textOf).join(''))
    }
  }

  #add(type: 'text' | 'reasoning', delta: string): void {
    if (delta === '') return
    const id = type === 'text' ? textId : reasoningId
    if (this.#open !== type) {
      this.#close()
      this.#open = type
      this.#take({ type: `${type}-start`, id })
    }
    this.#take({ type: `${type}-delta`, id, delta })
  }

  #close(): void {
    if (this.#open) this.#take({ type: `${this.#open}-end`, id: this.#open === 'text' ? textId : reasoningId })
    this.#open = undefined
  }

  /** Some servers send a call's arguments before its name; they are held back until the name arrives. */
  #readCall(call: ChatToolCall): void {
    const { index, id, extra_content } = call
    if (!isGiven(index) || this.#named.has(index)) return this.#calls.processDelta(call)
    const known: UnnamedCall = this.#unnamed.get(index) ?? { index, arguments: '' }
    this.#unnamed.set(index, known)
    known.id ??= id ?? null
    known.extra_content ??= extra_content ?? null
    this.#hold(known, call.function.arguments ?? '')
    const { name } = call.function
    if (!isGiven(name)) return
    this.#unnamed.delete(index)
    this.#unnamed_characters -= known.arguments.length
    this.#named.add(index)
    this.#forward(known, name)
  }

  #hold(call: UnnamedCall, given: string): void {
    call.arguments += given
    this.#unnamed_characters += given.length
    if (this.#unnamed.size > unnamedMax.calls || this.#unnamed_characters > unnamedMax.characters)
      throw new ModelError('provider_bad_answer', 'The answer has too many or too long tool calls without a name.', {
        retryable: false,
      })
  }

  #forward({ arguments: given, ...call }: UnnamedCall, name?: string): void {
    this.#calls.processDelta({ ...call, function: { ...(name === undefined ? {} : { name }), arguments: given } })
  }

  end(): void {
    this.#close()
    for (const call of this.#unnamed.values()) this.#forward(call)
    this.#calls.flush()
    const raw = this.#finish_reason
    const unified = raw === undefined ? ('error' as const) : finishReason(raw, this.#hasRefusal)
    this.#take({ type: 'finish', finishReason: { unified, raw }, usage: toUsage(this.#usage) })
  }
}

function isGiven<T>(value: T | null | undefined): value is T {
  return value !== null && value !== undefined
}

/** The text of a part of the reasoning; empty for any other part. */
function textOf(part: unknown): string {
  return isObject(part) && part['type'] === 'text' && typeof part['text'] === 'string' ? part['text'] : ''
}

function finishReason(raw: string, hasRefusal: boolean): FinishReason {
  if (raw === 'stop') return hasRefusal ? 'content-filter' : 'stop'
  return Object.hasOwn(finishReasons, raw) ? finishReasons[raw]! : 'other'
}

type FinishReason = Extract<StreamPart, { type: 'finish' }>['finishReason']['unified']

const finishReasons: Readonly<Partial<Record<string, FinishReason>>> = {
  length: 'length',
  content_filter: 'content-filter',
  function_call: 'tool-calls',
  tool_calls: 'tool-calls',
}

type Usage = Extract<StreamPart, { type: 'finish' }>['usage']

/** Counts that the server does not send stay undefined. */
function toUsage(usage: ChatUsage | null | undefined): Usage {
  if (!usage) {
    const open = undefined
    return {
      inputTokens: { total: open, noCache: open, cacheRead: open, cacheWrite: open },
      outputTokens: { total: open, text: open, reasoning: open },
    }
  }
  const input = usage.prompt_tokens ?? 0
  const output = usage.completion_tokens ?? 0
  const cached = usage.prompt_tokens_details?.cached_tokens ?? 0
  const reasoning = usage.completion_tokens_details?.reasoning_tokens ?? 0
  return {
    inputTokens: { total: input, noCache: input - cached, cacheRead: cached, cacheWrite: undefined },
    outputTokens: { total: output, text: Math.max(0, output - reasoning), reasoning },
    raw: usage as NonNullable<Usage['raw']>,
  }
}
