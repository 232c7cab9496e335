import { cleanText, cleanValue } from '../../platform/clean-text.ts'
import { type ModelAnswer, ModelError, type ModelToolCall, type ModelUsage } from './model.ts'

/** Maximum characters of a name from a provider: of its model, of a tool. */
const nameMax = 200
/** Maximum characters of a call's id. Providers reject longer ones when the conversation is sent again. */
const idMax = 64
/** Maximum number of calls in one answer. */
const callsMax = 128
/** Maximum token count of one call; higher ones are not plausible. */
const tokensMax = 1_000_000_000

/**
 * An answer that can be stored: texts that PostgreSQL accepts, names of bounded length, valid counts, and a unique id
 * for every call, because some servers omit or repeat them.
 * @throws ModelError `provider_bad_answer` for too many calls
 */
export function cleanAnswer(answer: ModelAnswer): ModelAnswer {
  if (answer.tool_calls.length > callsMax) {
    throw new ModelError('provider_bad_answer', `The answer has more than ${callsMax} tool calls.`, {
      retryable: false,
      network: answer.network,
    })
  }
  return {
    ...answer,
    text: cleanText(answer.text),
    model: cleanName(answer.model),
    tool_calls: cleanCalls(answer.tool_calls),
    usage: cleanUsage(answer.usage),
    ...(answer.reasoning_summary ? { reasoning_summary: cleanText(answer.reasoning_summary) } : {}),
  }
}

function cleanCalls(calls: readonly ModelToolCall[]): ModelToolCall[] {
  const ids = new Set<string>()
  return calls.map(({ id: given, name, arguments: args }, index) => {
    const plain = given.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, idMax - 4) || `call_${index + 1}`
    let id = plain
    for (let number = 2; ids.has(id); number++) id = `${plain}_${number}`
    ids.add(id)
    return { id, name: cleanName(name), arguments: cleanValue(args) }
  })
}

function cleanUsage(usage: ModelUsage): ModelUsage {
  return {
    input_tokens: cleanCount(usage.input_tokens),
    output_tokens: cleanCount(usage.output_tokens),
    cached_tokens: cleanCount(usage.cached_tokens),
    ...optional('cache_write_tokens', cleanCount(usage.cache_write_tokens)),
    ...optional('reasoning_tokens', cleanCount(usage.reasoning_tokens)),
  }
}

function optional(name: string, count: number): Record<string, number> {
  return count > 0 ? { [name]: count } : {}
}

/** An invalid count becomes 0; counts are never guessed. */
function cleanCount(count: unknown): number {
  if (typeof count !== 'number' || !(count > 0)) return 0
  return Math.min(Math.round(count), tokensMax)
}

function cleanName(name: unknown): string {
  return typeof name === 'string' ? cleanText(name.slice(0, nameMax)) : ''
}
