import type { Hub } from '../events/streams-hub.ts'
import { redact } from '../events/agent-log.ts'
import { newId } from '../platform/ids.ts'
import { cleanText, cleanValue } from './clean-text.ts'
import { conversation, type ModelCallOutput } from './conversation.ts'
import type { Decide } from './journal.ts'
import { ModelError, type Model, type ModelAnswer, type ModelToolCall } from './models/model.ts'
import { Interrupted, type Run } from './run.ts'
import type { Step } from './task-rows.ts'
import { addCall } from './task-usage.ts'

type Change = ReturnType<Decide>

/** Where models come from: `engine/models`. Throws `ModelError` for a name with nothing behind it. */
export interface ModelSource {
  resolve(name: string): { model: Model; name: string }
}

/** One call takes this long at most, whatever the provider's own limits are. */
export const modelCall_ms = 600_000
/** However long a provider asks to wait, it is asked again after a day. */
const retryAfterMax_seconds = 86_400
/** Text of one answer. */
export const outputBytesMax = 1_048_576
/** A call is begun so often at most before the task fails. */
export const modelFailuresMax = 5
/** Waits between tries where the provider says nothing: doubled each time, up to a bound, and spread by chance. */
const backoff_seconds = { first: 0.5, most: 30 }

/** How a call ended: what it leaves for the journal, and how long to wait before it is tried again. */
export type CallResult =
  | { outcome: 'answered'; change: Change }
  | { outcome: 'interrupted'; change: Change }
  | { outcome: 'failed'; change: Change; error: ModelError; retry_after_seconds: number | undefined }

/** The intent of a model call: the step as it is committed before the call. A repeated call keeps its place. */
export function beginModelCall(run: Run): Step {
  const last = run.steps.at(-1)
  const again = last?.type === 'model_call' && last.status !== 'completed' ? last : undefined
  const index = again?.index ?? run.steps.length
  const done = again ? run.steps.slice(0, -1) : run.steps
  return {
    task_id: run.claim.task_id,
    index,
    id: again?.id ?? newId('step'),
    agent_id: run.agent_id,
    type: 'model_call',
    status: 'started',
    attempt: (again?.attempt ?? 0) + 1,
    failures: again?.failures ?? 0,
    name: run.work.config.model,
    input: { messages: conversation(run.work.input, done).length, message_id: newId('msg') },
    output: null,
    error: null,
    model: null,
    usage: null,
  }
}

/** The message that a started step was writing when its worker was lost; its text is void. */
export function discardedMessage(step: Step | undefined): string | undefined {
  return step?.type === 'model_call' && step.status === 'started' ? messageId(step) : undefined
}

function messageId(step: Step): string {
  return (step.input as { message_id: string }).message_id
}

/**
 * Makes the call of a step whose intent is committed. Never throws for what a provider does wrong: that is a result.
 * What is returned has not been written yet; it becomes one write with whatever happens next.
 */
export async function callModel(
  run: Run,
  step: Step,
  { models, hub, random, signal }: { models: ModelSource; hub: Hub; random: () => number; signal: AbortSignal },
): Promise<CallResult> {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(new Interrupted('call_timeout')), modelCall_ms)
  let bytes = 0
  run.unfinished = ''
  run.message_id = messageId(step)
  try {
    const { config, input } = run.work
    const { model, name } = models.resolve(config.model)
    const aborted = AbortSignal.any([signal, limit.signal])
    const call = model.call({
      model: name,
      system_prompt: config.system_prompt,
      messages: conversation(input, run.steps.slice(0, step.index)),
      tools: [],
      temperature: config.temperature,
      max_tokens: config.max_tokens,
      signal: aborted,
      attempt: step.failures + 1,
      on_delta: (text) => {
        if (aborted.aborted) return
        const clean = cleanText(text)
        bytes += Buffer.byteLength(clean)
        if (bytes > outputBytesMax) return limit.abort(new Interrupted('output_too_large'))
        run.unfinished += clean
        hub.delta(run.claim.task_id, messageId(step), clean)
      },
    })
    const answer = await orAborted(call, aborted)
    if (Buffer.byteLength(answer.text) > outputBytesMax) throw new Interrupted('output_too_large')
    return { outcome: 'answered', change: answered(run, step, answer, model.provider) }
  } catch (thrown) {
    if (signal.aborted) return { outcome: 'interrupted', change: interrupted(run, step, thrown) }
    return providerFailed(run, step, asModelError(thrown), random)
  } finally {
    clearTimeout(timer)
  }
}

/** A model that does not listen to the signal must not hold its task, or the process that stops. */
function orAborted<T>(call: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
    call.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

function answered(run: Run, step: Step, answer: ModelAnswer, provider: string): Change {
  const { input_tokens, output_tokens, cached_tokens } = answer.usage
  const model = `${provider}/${answer.model}`
  const output: ModelCallOutput = {
    message_id: messageId(step),
    text: cleanText(answer.text),
    tool_calls: answer.tool_calls.map((call) => cleanValue(call) as ModelToolCall),
    finish_reason: answer.finish_reason,
  }
  const done: Step = {
    ...step,
    status: 'completed',
    output,
    error: null,
    model,
    usage: { input_tokens, output_tokens, cached_tokens, cost_usd: null },
  }
  run.steps[step.index] = done
  run.unfinished = ''
  run.usage = addCall(run.usage, model, answer.usage)
  const events: Change['events'] = [
    {
      type: 'step.completed',
      data: { step_id: step.id, index: step.index, type: step.type, name: step.name, model, usage: done.usage },
    },
    {
      type: 'message.completed',
      data: {
        message_id: output.message_id,
        step_id: step.id,
        role: 'assistant',
        content: output.text,
        tool_calls: output.tool_calls,
      },
    },
    { type: 'usage.updated', data: { usage: run.usage } },
  ]
  return {
    steps: [done],
    events,
    usage: run.usage,
    crashes: 0,
    consumed: {
      model_calls: 1,
      input_tokens,
      output_tokens,
      network_in: answer.network.bytes_in,
      network_out: answer.network.bytes_out,
    },
  }
}

function providerFailed(run: Run, step: Step, thrown: ModelError, random: () => number): CallResult {
  const message = cleanText(redact(thrown.message, run.secrets)).slice(0, 2000)
  const error = new ModelError(thrown.code, message, {
    retryable: thrown.retryable,
    retry_after: thrown.retry_after,
    cause: thrown,
    network: thrown.network,
  })
  const failures = step.failures + 1
  const again = thrown.retryable && failures < modelFailuresMax
  const retry_after_seconds = again
    ? Math.min(thrown.retry_after ?? backoff(failures, random), retryAfterMax_seconds)
    : undefined
  const facts = { code: error.code, message, retryable: thrown.retryable }
  const change = unfinished(run, { ...step, failures }, facts, {
    will_retry: again,
    ...(again ? { retry_after_seconds } : {}),
  })
  const { bytes_in, bytes_out } = thrown.network
  return {
    outcome: 'failed',
    error,
    retry_after_seconds,
    change: {
      ...change,
      consumed: { model_calls: 1, network_in: bytes_in, network_out: bytes_out },
      logs: again
        ? [
            {
              level: 'warn',
              message: `Model call failed, trying again: ${message}`,
              context: { code: error.code, failures, retry_after_seconds, model: step.name },
            },
          ]
        : [],
    },
  }
}

function interrupted(run: Run, step: Step, thrown: unknown): Change {
  const reason = thrown instanceof Interrupted ? thrown.reason : 'agent'
  const kept = run.unfinished
  const change = unfinished(
    run,
    step,
    { code: 'aborted', message: 'The call was aborted.', retryable: true },
    { reason, will_retry: true },
  )
  // A task that is canceled or out of time keeps what there is of an answer.
  run.unfinished = kept
  return change
}

/** What every call leaves that gave no answer: its step failed, and the text streamed so far is void. */
function unfinished(run: Run, step: Step, error: NonNullable<Step['error']>, more: Record<string, unknown>): Change {
  const done: Step = { ...step, status: 'failed', error }
  run.steps[step.index] = done
  const discarded: Change['events'] =
    run.unfinished === ''
      ? []
      : [{ type: 'message.discarded', data: { message_id: messageId(step), step_id: step.id } }]
  run.unfinished = ''
  return {
    steps: [done],
    events: [
      ...discarded,
      {
        type: 'step.failed',
        data: { step_id: step.id, index: step.index, type: step.type, name: step.name, error, ...more },
      },
    ],
  }
}

/** Seconds before try `failures` + 1: exponential, half of it by chance, so that tasks do not come back together. */
export function backoff(failures: number, random: () => number): number {
  const whole = Math.min(backoff_seconds.most, backoff_seconds.first * 2 ** (failures - 1))
  return whole / 2 + (whole / 2) * random()
}

function asModelError(thrown: unknown): ModelError {
  if (thrown instanceof ModelError) return thrown
  if (thrown instanceof Interrupted && thrown.reason === 'call_timeout') {
    return new ModelError('provider_timeout', `The model did not finish within ${modelCall_ms / 1000} s.`, {
      retryable: true,
      cause: thrown,
    })
  }
  if (thrown instanceof Interrupted) {
    return new ModelError('provider_bad_answer', `The model's answer exceeds ${outputBytesMax} bytes.`, {
      retryable: false,
      cause: thrown,
    })
  }
  // A mistake of ours in a provider's adapter: it must not be repeated five times and then look like an outage.
  return new ModelError(
    'provider_bad_answer',
    `The model's answer could not be understood: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    { retryable: false, cause: thrown },
  )
}
