import { isObject } from '#contract/core/merge-patch.ts'
import { ModelError, type ModelAnswer, type ModelErrorCode, type ModelUsage } from '../model.ts'
import { isRetryable } from '../model-errors.ts'

/** A step of `builtin/script`, as `docs/guides/test-models.md` describes it. */
export type ScriptStep =
  | { type: 'text'; text: string }
  | { type: 'reasoning'; text: string }
  | { type: 'delay'; delay_ms: number }
  | { type: 'error'; error: ModelError; times: number }
  | { type: 'usage'; usage: Partial<ModelUsage> }

/** What one call plays: steps, and the end of its answer. */
export interface ScriptAnswer {
  steps: ScriptStep[]
  tool_calls: { id: string | undefined; name: string; arguments: unknown }[]
  finish_reason: ModelAnswer['finish_reason']
}

/** Maximum number of steps of a script, with repetitions expanded. */
const stepsMax = 10_000
const delay_ms_max = 600_000
/** Maximum nesting of repetitions. */
const depthMax = 4

const errorCodes = new Set<string>([
  'provider_not_configured',
  'provider_credentials_refused',
  'model_not_found',
  'provider_rate_limited',
  'provider_unavailable',
  'provider_timeout',
  'provider_refused_request',
  'provider_bad_answer',
  'context_length_exceeded',
] satisfies ModelErrorCode[])
const ends = new Set<unknown>(['stop', 'length', 'content_filter', 'other'] satisfies ModelAnswer['finish_reason'][])

/** Whether a text may be a script. */
export function looksLikeScript(text: string): boolean {
  return text.trimStart().startsWith('[')
}

/**
 * Parses a script into answers: one up to and including each `tool_calls` or `end`, and one for the rest.
 * @throws ModelError `provider_refused_request`, which names the invalid step
 */
export function readScript(text: string): ScriptAnswer[] {
  let script: unknown
  try {
    script = JSON.parse(text)
  } catch (error) {
    throw refused(`the script is not JSON: ${error instanceof Error ? error.message : String(error)}`)
  }
  if (!Array.isArray(script) || script.length === 0) throw refused('the script must be an array of at least one step')
  const reader = new Reader()
  reader.readSteps(script, 'step', 0)
  return reader.answers()
}

class Reader {
  readonly #answers: ScriptAnswer[] = []
  #open: ScriptAnswer = nothing()
  #count = 0

  answers(): ScriptAnswer[] {
    return this.#open.steps.length > 0 ? [...this.#answers, this.#open] : this.#answers
  }

  readSteps(steps: unknown[], where: string, depth: number): void {
    for (const [index, step] of steps.entries()) this.#readStep(step, `${where} ${index + 1}`, depth)
  }

  #readStep(step: unknown, where: string, depth: number): void {
    if (++this.#count > stepsMax) throw refused(`the script has more than ${stepsMax} steps`)
    if (!isObject(step)) throw refused(`${where} must be an object`)
    const kinds = ['text', 'reasoning', 'delay_ms', 'tool_calls', 'error', 'usage', 'end', 'repeat'].filter(
      (kind) => kind in step,
    )
    const [kind] = kinds
    if (kind === undefined || kinds.length > 1) {
      throw refused(
        `${where} must have exactly one of text, reasoning, delay_ms, tool_calls, error, usage, end, repeat`,
      )
    }
    switch (kind) {
      case 'text':
        if (typeof step['text'] !== 'string') throw refused(`${where}: text must be a string`)
        return this.#add({ type: 'text', text: step['text'] })
      case 'reasoning':
        if (typeof step['reasoning'] !== 'string') throw refused(`${where}: reasoning must be a string`)
        return this.#add({ type: 'reasoning', text: step['reasoning'] })
      case 'delay_ms':
        return this.#add({ type: 'delay', delay_ms: wholeNumber(step['delay_ms'], delay_ms_max, `${where}: delay_ms`) })
      case 'usage':
        return this.#add({ type: 'usage', usage: readUsage(step['usage'], where) })
      case 'error':
        return this.#add(readError(step['error'], where))
      case 'tool_calls':
        this.#open.tool_calls = readCalls(step['tool_calls'], where)
        return this.#close('tool_calls')
      case 'end':
        if (!ends.has(step['end'])) throw refused(`${where}: end must be one of ${[...ends].join(', ')}`)
        return this.#close(step['end'] as ModelAnswer['finish_reason'])
      default:
        return this.#repeat(step, where, depth)
    }
  }

  #repeat({ repeat, steps }: Record<string, unknown>, where: string, depth: number): void {
    if (depth === depthMax) throw refused(`${where}: repetitions are nested more than ${depthMax} deep`)
    if (!Array.isArray(steps) || steps.length === 0) {
      throw refused(`${where}: repeat needs steps, an array of at least one`)
    }
    const times = wholeNumber(repeat, stepsMax, `${where}: repeat`)
    for (let time = 0; time < times; time++) this.readSteps(steps, `${where}, step`, depth + 1)
  }

  #add(step: ScriptStep): void {
    this.#open.steps.push(step)
  }

  #close(finish_reason: ModelAnswer['finish_reason']): void {
    this.#answers.push({ ...this.#open, finish_reason })
    this.#open = nothing()
  }
}

function nothing(): ScriptAnswer {
  return { steps: [], tool_calls: [], finish_reason: 'stop' }
}

function readCalls(calls: unknown, where: string): ScriptAnswer['tool_calls'] {
  if (!Array.isArray(calls) || calls.length === 0) {
    throw refused(`${where}: tool_calls must be an array of at least one call`)
  }
  return calls.map((call: unknown, index) => {
    const place = `${where}: tool_calls[${index}]`
    if (!isObject(call) || typeof call['name'] !== 'string' || call['name'] === '') {
      throw refused(`${place} needs a name`)
    }
    if (call['id'] !== undefined && typeof call['id'] !== 'string') throw refused(`${place}: id must be a string`)
    return { id: call['id'], name: call['name'], arguments: call['arguments'] ?? {} }
  })
}

function readError(error: unknown, where: string): ScriptStep {
  if (!isObject(error) || typeof error['code'] !== 'string' || !errorCodes.has(error['code'])) {
    throw refused(`${where}: error.code must be one of ${[...errorCodes].join(', ')}`)
  }
  // Checked against the list in the line above.
  const code = error['code'] as ModelErrorCode
  const { message = `The script says ${code}.`, retry_after, retryable = isRetryable(code), times } = error
  if (typeof message !== 'string') throw refused(`${where}: error.message must be a string`)
  if (typeof retryable !== 'boolean') throw refused(`${where}: error.retryable must be true or false`)
  if (retry_after !== undefined && !(typeof retry_after === 'number' && retry_after >= 0)) {
    throw refused(`${where}: error.retry_after must be a number of seconds`)
  }
  return {
    type: 'error',
    error: new ModelError(code, message, { retryable, retry_after }),
    times: times === undefined ? Infinity : wholeNumber(times, stepsMax, `${where}: error.times`),
  }
}

function readUsage(usage: unknown, where: string): Partial<ModelUsage> {
  if (!isObject(usage)) throw refused(`${where}: usage must be an object`)
  const known = ['input_tokens', 'output_tokens', 'cached_tokens', 'reasoning_tokens'].filter(
    (name) => usage[name] !== undefined,
  )
  return Object.fromEntries(known.map((name) => [name, wholeNumber(usage[name], 1e9, `${where}: usage.${name}`)]))
}

function wholeNumber(value: unknown, max: number, what: string): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max) return value
  throw refused(`${what} must be a whole number from 0 to ${max}`)
}

function refused(reason: string): ModelError {
  return new ModelError('provider_refused_request', `builtin/script: ${reason}.`, { retryable: false })
}
