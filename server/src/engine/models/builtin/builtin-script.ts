import { setTimeout as delay } from 'node:timers/promises'
import { countWords, stream, summaryOf, wordsOfRequest } from './builtin-echo.ts'
import { answersIn, type Model, type ModelAnswer, ModelError, type ModelRequest } from '../model.ts'
import { looksLikeScript, readScript, type ScriptAnswer, type ScriptStep } from './script-steps.ts'

/**
 * `builtin/script` plays a script from the conversation, given as JSON (`docs/guides/test-models.md`). One call plays
 * one answer. The number of the assistant's messages since the script selects it; after the last answer, the script
 * repeats. So the model has no state, and a call repeated after a crash, in any process, plays the same answer.
 */
export const scriptModel: Model = {
  provider: 'builtin',
  call: async (request) => {
    request.signal.throwIfAborted()
    if (request.is_summary) return { ...summaryOf(request), model: 'script' }
    const { script, given } = findScript(request)
    const answers = readScript(script)
    const answer = answers[given % answers.length]
    if (!answer) {
      throw new ModelError('provider_refused_request', 'builtin/script: the script has no answer in it.', {
        retryable: false,
      })
    }
    return play(answer, request)
  },
}

/**
 * Finds the script: the system prompt, or the latest message of the user that begins with `[`. `given` counts the
 * assistant's messages since, or all of them for a script in the system prompt.
 */
function findScript({ system_prompt = '', messages }: ModelRequest): { script: string; given: number } {
  const answersAfter = (at: number): number => answersIn(messages.slice(at + 1))
  if (looksLikeScript(system_prompt)) return { script: system_prompt, given: answersAfter(-1) }
  const at = messages.findLastIndex(({ role, content }) => role === 'user' && looksLikeScript(content))
  const script = messages[at]?.content
  if (script !== undefined) return { script, given: answersAfter(at) }
  throw new ModelError(
    'provider_refused_request',
    'builtin/script: neither the system prompt nor a message is a script, such as [{"text": "Hello"}].',
    { retryable: false },
  )
}

async function play(answer: ScriptAnswer, request: ModelRequest): Promise<ModelAnswer> {
  let text = ''
  const usage: Partial<ModelAnswer['usage']> = {}
  const reasoning = answer.steps.flatMap((step) => (step.type === 'reasoning' ? [step.text] : [])).join('\n\n')
  for (const step of answer.steps) {
    if (step.type === 'usage') Object.assign(usage, step.usage)
    else text += await playStep(step, request)
  }
  const before = answersIn(request.messages)
  return {
    text,
    tool_calls: answer.tool_calls.map(({ id, ...call }, index) => ({
      id: id ?? `call_${before + 1}_${index + 1}`,
      ...call,
    })),
    finish_reason: answer.finish_reason,
    model: 'script',
    usage: { input_tokens: wordsOfRequest(request), output_tokens: countWords(text), cached_tokens: 0, ...usage },
    network: { bytes_in: 0, bytes_out: 0 },
    ...(reasoning === '' ? {} : { reasoning_summary: reasoning }),
  }
}

/** Plays a step and returns the text that it adds. */
async function playStep(step: Exclude<ScriptStep, { type: 'usage' }>, request: ModelRequest): Promise<string> {
  const { messages, signal, attempt = 1 } = request
  if (step.type === 'error') {
    if (attempt > step.times) return ''
    throw new ModelError(step.error.code, step.error.message, step.error)
  }
  if (step.type === 'delay') {
    await delay(step.delay_ms, undefined, { signal }).catch((error: unknown) => {
      signal.throwIfAborted()
      throw error
    })
    return ''
  }
  if (step.type === 'reasoning') {
    await stream(step.text, { on_delta: request.on_reasoning, signal })
    return ''
  }
  const result = messages.findLast(({ role }) => role === 'tool')?.content ?? ''
  const text = step.text.replaceAll('{{tool_result}}', () => result)
  await stream(text, request)
  return text
}
