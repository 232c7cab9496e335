import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Model, ModelAnswer, ModelRequest } from '../model.ts'

/** Maximum number of pieces in which an answer is streamed. */
const piecesMax = 64

/**
 * `builtin/echo` answers with the last message of the user, streamed in pieces of whole words. A token is a word: input
 * tokens are the words of the system prompt and all messages, output tokens those of the answer. `max_tokens` cuts it.
 */
export const echoModel: Model = {
  provider: 'builtin',
  call: async (request) => {
    request.signal.throwIfAborted()
    const said = request.messages.findLast(({ role }) => role === 'user')?.content ?? ''
    const { max_tokens = Infinity } = request
    if (request.is_summary) return summaryOf(request)
    const isCut = countWords(said) > max_tokens
    const text = isCut ? said.trimStart().split(betweenWords).slice(0, max_tokens).join('').trimEnd() : said
    await stream(text, request)
    return {
      text,
      tool_calls: [],
      finish_reason: isCut ? 'length' : 'stop',
      model: 'echo',
      usage: { input_tokens: wordsOfRequest(request), output_tokens: countWords(text), cached_tokens: 0 },
      // Built-in models use no network.
      network: { bytes_in: 0, bytes_out: 0 },
    }
  },
}

/** Maximum words of a built-in model's summary. */
const summaryWords = 50

/** The summary of a built-in model: the first words of the conversation. */
export function summaryOf(request: ModelRequest): ModelAnswer {
  const { content = '' } = request.messages.at(-1) ?? {}
  const text = content.split(betweenWords).slice(0, summaryWords).join('').trimEnd()
  return {
    text,
    tool_calls: [],
    finish_reason: 'stop',
    model: 'echo',
    usage: { input_tokens: wordsOfRequest(request), output_tokens: countWords(text), cached_tokens: 0 },
    network: { bytes_in: 0, bytes_out: 0 },
  }
}

/** The start of a word. It matches no character, so it takes linear time for any text. */
const betweenWords = /(?<=\s)(?=\S)/

/** Streams a text in pieces of whole words, and yields to other work in between. */
export async function stream(
  text: string,
  { on_delta, signal }: { on_delta?: ModelRequest['on_delta'] | undefined; signal: AbortSignal },
): Promise<void> {
  const words = text === '' ? [] : text.split(betweenWords)
  const size = Math.ceil(words.length / piecesMax)
  for (let at = 0; at < words.length; at += size) {
    on_delta?.(words.slice(at, at + size).join(''))
    await nextTurn()
    signal.throwIfAborted()
  }
}

/** Number of words in a text, which the built-in models count as tokens. */
export function countWords(text: string): number {
  return text.match(/\S+/g)?.length ?? 0
}

/** Words of the system prompt and all messages. */
export function wordsOfRequest({ system_prompt = '', messages }: ModelRequest): number {
  return messages.reduce((sum, { content }) => sum + countWords(content), countWords(system_prompt))
}
