import { isObject } from '#contract/core/merge-patch.ts'
import type { StreamPart } from './providers/adapter.ts'
import { type ModelAnswer, ModelError, type ModelRequest, type TurnMetadata, type TurnPart } from './model.ts'
import { cutOff, toModelError } from './model-errors.ts'
import { readArguments } from './prompt.ts'
import type { WireNames } from './wire-names.ts'
import { turnOwner, type Provider } from './providers/provider.ts'

type Warning = Extract<StreamPart, { type: 'stream-start' }>['warnings'][number]

/** Maximum characters of one answer: text, reasoning and arguments of calls together. */
const answerCharsMax = 4 * 1024 * 1024
/** Maximum characters of data that only the provider understands: signatures, encrypted reasoning. */
const opaqueCharsMax = 2 * 1024 * 1024
/** Maximum number of reasoning items, texts and calls in one answer. */
const partsMax = 10_000
/** Maximum characters of a library's warning. */
const warningMax = 500

export interface Reading {
  request: ModelRequest
  names: WireNames
  provider: Provider
  /** The tool that returns the answer, if one does: the arguments of its call are the answer's text. */
  answer_tool: string | undefined
  /** Called with every part, so also when the provider begins to answer. */
  onPart: () => void
}

/**
 * Reads an answer whose parts `stream` passes on.
 * @throws ModelError for an answer that is incomplete or too large, and errors of `stream`
 */
export async function readAnswer(
  stream: (take: (part: StreamPart) => void) => Promise<void>,
  reading: Reading,
): Promise<Omit<ModelAnswer, 'network'>> {
  const reader = new AnswerReader(reading)
  await stream((part) => reader.take(part))
  return reader.answer()
}

class AnswerReader {
  readonly #reading: Reading
  /** In the order in which they started. */
  readonly #parts: TurnPart[] = []
  readonly #open = new Map<string, Exclude<TurnPart, { type: 'tool_call' }>>()
  #text = ''
  #reasoning = ''
  #model: string
  #length = 0
  #opaque = 0
  #finished: Extract<StreamPart, { type: 'finish' }> | undefined

  constructor(reading: Reading) {
    this.#reading = reading
    this.#model = reading.request.model
  }

  take(part: StreamPart): void {
    const { provider, request, onPart } = this.#reading
    if (part.type !== 'stream-start') onPart()
    switch (part.type) {
      case 'stream-start':
        for (const warning of part.warnings) request.on_warning?.(readWarning(warning))
        return
      case 'error':
        throw toModelError(part.error, provider.name)
      case 'text-start':
      case 'reasoning-start':
        return this.#begin(part.type === 'text-start' ? 'text' : 'reasoning', part.id, part.providerMetadata)
      case 'text-delta':
      case 'reasoning-delta':
        return this.#add(part.type === 'text-delta' ? 'text' : 'reasoning', part)
      case 'text-end':
      case 'reasoning-end':
        return this.#note(
          this.#open.get(keyOf(part.type === 'text-end' ? 'text' : 'reasoning', part.id)),
          part.providerMetadata,
        )
      case 'tool-input-delta':
        return this.#count(part.delta.length)
      case 'tool-call':
        return this.#call(part)
      case 'response-metadata':
        this.#model = part.modelId ?? this.#model
        return
      case 'finish':
        this.#finished = part
        return
      default:
        // Sources, files and the like are never requested.
        return
    }
  }

  answer(): Omit<ModelAnswer, 'network'> {
    const { provider } = this.#reading
    // One library reports a stream without an end as `interrupted`, another does not report it.
    const reason = this.#finished?.finishReason.unified
    if (!this.#finished || reason === undefined || reason === 'interrupted' || reason === 'error')
      throw cutOff(provider.name)
    const calls = this.#parts.filter((part) => part.type === 'tool_call')
    const given = this.#givenAnswer(calls)
    const turn = this.#turn()
    const { inputTokens, outputTokens, raw } = this.#finished.usage
    const written = inputTokens.cacheWrite ?? writtenIn(raw)
    return {
      text: given ?? this.#text,
      tool_calls:
        given === undefined
          ? calls
              .filter(({ name }) => name !== this.#reading.answer_tool)
              .map(({ id, name, input }) => ({ id, name, arguments: readArguments(input) }))
          : [],
      finish_reason:
        given !== undefined ? 'stop' : calls.length > 0 && reason === 'stop' ? 'tool_calls' : finishReasons[reason],
      model: this.#model,
      usage: {
        input_tokens: inputTokens.total ?? 0,
        output_tokens: outputTokens.total ?? 0,
        cached_tokens: inputTokens.cacheRead ?? 0,
        ...(written ? { cache_write_tokens: written } : {}),
        ...(outputTokens.reasoning ? { reasoning_tokens: outputTokens.reasoning } : {}),
      },
      ...(this.#reasoning === '' ? {} : { reasoning_summary: this.#reasoning }),
      ...(turn ? { turn } : {}),
    }
  }

  /**
   * The answer that the model returned by calling its answer tool; undefined if it did not, or also made other calls.
   */
  #givenAnswer(calls: readonly Extract<TurnPart, { type: 'tool_call' }>[]): string | undefined {
    const { answer_tool } = this.#reading
    if (answer_tool === undefined || calls.some(({ name }) => name !== answer_tool)) return undefined
    return calls.at(-1)?.input
  }

  /** The whole turn, if it has more than text. A call of the answer tool becomes text. */
  #turn(): ModelAnswer['turn'] {
    const { provider, answer_tool } = this.#reading
    const isPlain = this.#parts.every(({ type, metadata }) => type === 'text' && !isTelling(metadata))
    if (isPlain) return undefined
    const hasOther = this.#parts.some((part) => part.type === 'tool_call' && part.name !== answer_tool)
    const parts = this.#parts.flatMap((part): TurnPart[] => {
      if (part.type !== 'tool_call' || part.name !== answer_tool) return [part]
      return hasOther ? [] : [{ type: 'text', text: part.input }]
    })
    return { provider: turnOwner(provider), protocol: provider.protocol, parts }
  }

  #begin(type: 'text' | 'reasoning', id: string, metadata: unknown): void {
    if (this.#parts.length >= partsMax) throw this.#tooLarge(`has more than ${partsMax} parts`)
    const part = { type, text: '' } as const
    const stored: Exclude<TurnPart, { type: 'tool_call' }> = { ...part }
    this.#parts.push(stored)
    this.#open.set(keyOf(type, id), stored)
    this.#note(stored, metadata)
  }

  #add(
    type: 'text' | 'reasoning',
    { id, delta, providerMetadata }: { id: string; delta: string; providerMetadata?: unknown },
  ) {
    this.#count(delta.length)
    const key = keyOf(type, id)
    if (!this.#open.has(key)) this.#begin(type, id, undefined)
    const part = this.#open.get(key)!
    const isFirst = part.text === ''
    part.text += delta
    this.#note(part, providerMetadata)
    if (delta === '') return
    const { request } = this.#reading
    if (type === 'text') {
      this.#text += delta
      request.on_delta?.(delta)
      return
    }
    // Each part of a summary is a paragraph.
    const more = isFirst && this.#reasoning !== '' ? `\n\n${delta}` : delta
    this.#reasoning += more
    request.on_reasoning?.(more)
  }

  #call({ toolCallId, toolName, input, providerMetadata }: Extract<StreamPart, { type: 'tool-call' }>): void {
    if (this.#parts.length >= partsMax) throw this.#tooLarge(`has more than ${partsMax} parts`)
    const part: TurnPart = {
      type: 'tool_call',
      id: toolCallId,
      name: this.#reading.names.fromWire(toolName),
      input,
    }
    this.#parts.push(part)
    this.#note(part, providerMetadata)
  }

  /** Stores provider data of a part. Later data replaces earlier data, unless it is empty. */
  #note(part: TurnPart | undefined, metadata: unknown): void {
    if (!part || typeof metadata !== 'object' || metadata === null) return
    const stored: TurnMetadata = (part.metadata ??= {})
    for (const [provider, members] of Object.entries(metadata as TurnMetadata)) {
      const own = (stored[provider] ??= {})
      for (const [name, value] of Object.entries(members)) {
        if (value === null || value === undefined || own[name] === value) continue
        this.#opaque += typeof value === 'string' ? value.length : JSON.stringify(value).length
        own[name] = value
      }
    }
    if (this.#opaque > opaqueCharsMax)
      throw this.#tooLarge(`has more than ${opaqueCharsMax} characters of encrypted reasoning`)
  }

  #count(length: number): void {
    this.#length += length
    if (this.#length > answerCharsMax) throw this.#tooLarge(`is longer than ${answerCharsMax} characters`)
  }

  #tooLarge(how: string): ModelError {
    return new ModelError('provider_bad_answer', `The answer of ${this.#reading.provider.name} ${how}.`, {
      retryable: false,
    })
  }
}

/** Tokens written to the cache, which the library for compatible servers leaves out. */
function writtenIn(raw: unknown): number | undefined {
  const details = isObject(raw) ? raw['prompt_tokens_details'] : undefined
  const written = isObject(details) ? details['cache_write_tokens'] : undefined
  return typeof written === 'number' ? written : undefined
}

function keyOf(type: string, id: string): string {
  return `${type} ${id}`
}

/**
 * Whether metadata has anything that the provider needs. The id of an item that the provider did not store is not
 * needed.
 */
function isTelling(metadata: TurnMetadata | undefined): boolean {
  return Object.values(metadata ?? {}).some((members) => Object.keys(members).some((name) => name !== 'itemId'))
}

function readWarning(warning: Warning) {
  const feature = 'feature' in warning ? warning.feature : 'setting' in warning ? warning.setting : 'request'
  const details = 'details' in warning ? warning.details : 'message' in warning ? warning.message : undefined
  return {
    feature,
    message: (details ?? `${feature} is not supported by the model; it is omitted.`).slice(0, warningMax),
  }
}

const finishReasons = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  'content-filter': 'content_filter',
  other: 'other',
} as const
