import { isObject } from '#contract/core/merge-patch.ts'
import { ProtocolViolation } from '../model-errors.ts'

/** A fragment of a tool call. */
export interface ChatToolCall {
  index?: number | null
  id?: string | null
  function: { name?: string | null; arguments?: string | null }
  extra_content?: { google?: { thought_signature?: string | null } | null } | null
}

/**
 * What one event adds to the answer. `reasoning` and `reasoning_content` are names of different servers for the same
 * member.
 */
export interface ChatDelta {
  content?: string | ({ type: string } & Record<string, unknown>)[] | null
  refusal?: unknown
  reasoning_content?: string | null
  reasoning?: string | null
  tool_calls?: ChatToolCall[] | null
}

/** Token counts of a server; it may count more than these. */
export interface ChatUsage extends Record<string, unknown> {
  prompt_tokens?: number | null
  completion_tokens?: number | null
  prompt_tokens_details?: { cached_tokens?: number | null } | null
  completion_tokens_details?: { reasoning_tokens?: number | null } | null
}

/** One event of a Chat Completions stream. */
export interface ChatChunk {
  id?: string | null
  created?: number | null
  model?: string | null
  choices: { delta?: ChatDelta | null; finish_reason?: string | null }[]
  usage?: ChatUsage | null
}

/** An error that a server sends instead of an answer. */
export interface ChatError {
  error: { message: string; type?: string | null; code?: string | number | null }
}

/**
 * Parses the data of one event.
 * @throws ProtocolViolation for anything but a chunk or an error
 */
export function readChunk(data: string): ChatChunk | ChatError {
  let value: unknown
  try {
    value = JSON.parse(data)
  } catch (cause) {
    throw new ProtocolViolation('an event is not JSON', { cause })
  }
  if (!isObject(value)) throw new ProtocolViolation('an event is not an object')
  if ('error' in value && isError(value['error'])) return value as unknown as ChatError
  if (!isChunk(value)) throw new ProtocolViolation('an event is not a chunk of an answer')
  return value as unknown as ChatChunk
}

function isError(error: unknown): boolean {
  return (
    isObject(error) &&
    typeof error['message'] === 'string' &&
    isText(error['type']) &&
    (isText(error['code']) || typeof error['code'] === 'number')
  )
}

function isChunk({ id, created, model, choices, usage, error }: Record<string, unknown>): boolean {
  return (
    error === undefined &&
    isText(id) &&
    isCount(created) &&
    isText(model) &&
    Array.isArray(choices) &&
    choices.every(isChoice) &&
    isNone(usage, isUsage)
  )
}

function isChoice(choice: unknown): boolean {
  return isObject(choice) && isText(choice['finish_reason']) && isNone(choice['delta'], isDelta)
}

function isDelta({ role, content, reasoning_content, reasoning, tool_calls }: Record<string, unknown>): boolean {
  return (
    (role === undefined || role === null || role === 'assistant' || role === '') &&
    (isText(content) || (Array.isArray(content) && content.every(isPart))) &&
    isText(reasoning_content) &&
    isText(reasoning) &&
    (tool_calls === undefined || tool_calls === null || (Array.isArray(tool_calls) && tool_calls.every(isCall)))
  )
}

function isPart(part: unknown): boolean {
  return isObject(part) && typeof part['type'] === 'string'
}

function isCall(call: unknown): boolean {
  if (!isObject(call) || !isObject(call['function'])) return false
  const { name, arguments: given } = call['function']
  return (
    isCount(call['index']) &&
    isText(call['id']) &&
    isText(name) &&
    isText(given) &&
    isNone(call['extra_content'], ({ google }) => isNone(google, (own) => isText(own['thought_signature'])))
  )
}

function isUsage(usage: Record<string, unknown>): boolean {
  return (
    isCount(usage['prompt_tokens']) &&
    isCount(usage['completion_tokens']) &&
    isCount(usage['total_tokens']) &&
    isNone(usage['prompt_tokens_details'], (details) => isCount(details['cached_tokens'])) &&
    isNone(
      usage['completion_tokens_details'],
      (details) =>
        isCount(details['reasoning_tokens']) &&
        isCount(details['accepted_prediction_tokens']) &&
        isCount(details['rejected_prediction_tokens']),
    )
  )
}

/** Whether a value is missing, null, or an object that `is` accepts. */
function isNone(value: unknown, is: (value: Record<string, unknown>) => boolean): boolean {
  return value === undefined || value === null || (isObject(value) && is(value))
}

function isText(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'string'
}

function isCount(value: unknown): boolean {
  return value === undefined || value === null || typeof value === 'number'
}
