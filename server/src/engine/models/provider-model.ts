import { cleanAnswer } from './clean-answer.ts'
import { type Model, type ModelAnswer, ModelError, type ModelRequest, type NetworkUse } from './model.ts'
import { cutOff, toModelError } from './model-errors.ts'
import type { makeModelWires } from './model-wires.ts'
import { type CallLimits, watchCall } from './model-watch.ts'
import { toCallOptions } from './prompt.ts'
import { type LanguageModel, openLanguageModel, type Provider } from './providers.ts'
import { makeWireNames, type WireNames } from './wire-names.ts'

type StreamPart =
  Awaited<ReturnType<LanguageModel['doStream']>>['stream'] extends ReadableStream<infer Part> ? Part : never

/** Characters of one answer: text, reasoning and arguments of calls together. */
const answerCharsMax = 4 * 1024 * 1024

/**
 * A provider's models. A call is exactly one request: the libraries' own loops, retries and tool execution are not
 * used, because the loop and its journal are the engine's. Its stream is read part by part from the provider library
 * (`doStream`), without the library's `streamText` above it, which costs four times the CPU a piece of text and reports
 * a failure as one more part of a stream that ends well.
 */
export function makeProviderModel(
  provider: Provider,
  { wires, limits }: { wires: ReturnType<typeof makeModelWires>; limits: CallLimits },
): Model {
  return {
    provider: provider.name,
    call: async (request) => {
      request.signal.throwIfAborted()
      const wire = wires.begin()
      const watch = watchCall(limits, request.signal, () => wire.use().bytes_in)
      try {
        const names = makeWireNames(request)
        const model = await openLanguageModel(provider, request.model, wire.fetch)
        const { stream } = await model.doStream(toCallOptions(request, names, watch.signal))
        const answer = await readAnswer(stream, { request, names, name: provider.name, onPart: watch.started })
        return cleanAnswer({ ...answer, network: wire.use() })
      } catch (error) {
        request.signal.throwIfAborted()
        throw asFailedCall(watch.failure() ?? toModelError(error, provider.name), provider, wire.use())
      } finally {
        watch.end()
        await wire.end()
      }
    },
  }
}

interface Reading {
  request: ModelRequest
  names: WireNames
  name: string
  /** Called when the provider has begun to answer. */
  onPart: () => void
}

async function readAnswer(
  stream: ReadableStream<StreamPart>,
  { request, names, name, onPart }: Reading,
): Promise<Omit<ModelAnswer, 'network'>> {
  const answer: Omit<ModelAnswer, 'network' | 'finish_reason'> = {
    text: '',
    tool_calls: [],
    model: request.model,
    usage: { input_tokens: 0, output_tokens: 0, cached_tokens: 0 },
  }
  let finished: Extract<StreamPart, { type: 'finish' }> | undefined
  let length = 0
  for await (const part of stream) {
    if (part.type !== 'stream-start') onPart()
    if (part.type === 'error') throw toModelError(part.error, name)
    if (part.type === 'text-delta' || part.type === 'reasoning-delta' || part.type === 'tool-input-delta') {
      length += part.delta.length
      if (length > answerCharsMax) {
        throw new ModelError(
          'provider_bad_answer',
          `The answer of ${name} is longer than ${answerCharsMax} characters.`,
          { retryable: false },
        )
      }
    }
    if (part.type === 'text-delta') {
      answer.text += part.delta
      request.on_delta?.(part.delta)
    } else if (part.type === 'reasoning-delta') request.on_reasoning?.(part.delta)
    else if (part.type === 'tool-call') {
      answer.tool_calls.push({
        id: part.toolCallId,
        name: names.fromWire(part.toolName),
        arguments: readArguments(part.input),
      })
    } else if (part.type === 'response-metadata') answer.model = part.modelId ?? answer.model
    else if (part.type === 'finish') finished = part
  }

  // A stream that just ends is reported as `interrupted` by one library and not at all by another.
  const reason = finished?.finishReason.unified
  if (!finished || reason === undefined || reason === 'interrupted' || reason === 'error') throw cutOff(name)
  const { inputTokens, outputTokens } = finished.usage
  return {
    ...answer,
    finish_reason: answer.tool_calls.length > 0 && reason === 'stop' ? 'tool_calls' : finishReasons[reason],
    usage: {
      input_tokens: inputTokens.total ?? 0,
      output_tokens: outputTokens.total ?? 0,
      cached_tokens: inputTokens.cacheRead ?? 0,
      ...(inputTokens.cacheWrite ? { cache_write_tokens: inputTokens.cacheWrite } : {}),
    },
  }
}

const finishReasons = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  'content-filter': 'content_filter',
  other: 'other',
} as const

/** Arguments as the model wrote them: parsed, or the text itself where it is not JSON; nothing at all is `{}`. */
function readArguments(input: string): unknown {
  if (input.trim() === '') return {}
  try {
    return JSON.parse(input)
  } catch {
    return input
  }
}

/** The error as the engine gets it: with what the call cost, and without the key, which some providers repeat. */
function asFailedCall(error: ModelError, { api_key }: Provider, network: NetworkUse): ModelError {
  const message = api_key ? error.message.replaceAll(api_key, '[redacted]') : error.message
  const { code, retryable, retry_after, cause } = error
  return new ModelError(code, message, { retryable, retry_after, cause, network })
}
