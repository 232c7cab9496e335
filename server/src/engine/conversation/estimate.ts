import type { ModelTool } from '../models/model.ts'
import type { StoredMessage } from './turns.ts'
import type { Step } from '../task.ts'

/** Assumed bytes of text per token. Most text has four, so that estimates are rather too high than too low. */
export const tokenBytes = 3
/** Tokens of a message in addition to its text. */
const messageTokens = 4

/** Tokens of a part in addition to its text: providers count pictures by size and documents by pages. */
const partTokens = { text: 0, image: 2000, file: 10_000 } as const

/** Everything that the next call sends to a model. */
export interface NextCall {
  messages: readonly StoredMessage[]
  system_prompt: string | undefined
  tools: readonly ModelTool[]
  /** The schema of the answer, if any. */
  output_schema?: Record<string, unknown> | undefined
  steps: readonly Step[]
}

/**
 * Estimates the input tokens of a call: the provider's count for the task's last call and its answer, plus one token
 * for three bytes of everything since. Without an earlier call, the whole conversation is estimated.
 */
export function estimateInput({ messages, system_prompt = '', tools, output_schema, steps }: NextCall): number {
  // A count from before a compaction does not apply to what is sent after it.
  const compacted = steps.findLastIndex(({ type, status }) => type === 'compaction' && status === 'completed')
  const last = steps
    .slice(compacted + 1)
    .findLast(({ type, status, usage }) => type === 'model_call' && status === 'completed' && usage !== null)
  const counted = last && countedIn(last)
  if (!counted)
    return (
      tokensOf(system_prompt) + tokensOf(JSON.stringify(output_schema ? [tools, output_schema] : tools)) + sum(messages)
    )
  // Skips the counted messages and the answer to them.
  return counted.tokens + sum(messages.slice(counted.messages + 1))
}

/** What the provider counted for a completed call; undefined if it counted nothing. */
function countedIn({ usage, input }: Step): { tokens: number; messages: number } | undefined {
  const { input_tokens, output_tokens } = usage as { input_tokens: number; output_tokens: number }
  const { messages } = input as { messages: number }
  return input_tokens > 0 ? { tokens: input_tokens + output_tokens, messages } : undefined
}

function sum(messages: readonly StoredMessage[]): number {
  return messages.reduce(
    (tokens, { content, parts = [], tool_calls, encrypted_turn = '' }) =>
      tokens +
      messageTokens +
      parts.reduce((sum, { type }) => sum + partTokens[type], 0) +
      // A stored turn contains everything of the message, in base64.
      Math.max(
        tokensOf(content) + (tool_calls ? tokensOf(JSON.stringify(tool_calls)) : 0),
        Math.ceil((encrypted_turn.length * 3) / 4 / tokenBytes),
      ),
    0,
  )
}

function tokensOf(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / tokenBytes)
}

/** Maximum bytes of text per token: no tokenizer makes fewer tokens of ordinary text. */
const tokenBytesMax = 8

/** The minimum number of tokens of messages, whatever a provider counts. */
export function leastInput(messages: readonly StoredMessage[], system_prompt = ''): number {
  const bytes = messages.reduce(
    (sum, { content, tool_calls }) =>
      sum + Buffer.byteLength(content) + (tool_calls ? Buffer.byteLength(JSON.stringify(tool_calls)) : 0),
    Buffer.byteLength(system_prompt),
  )
  return Math.floor(bytes / tokenBytesMax)
}
