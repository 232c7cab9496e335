import { costOf, dollarsOf, type ModelPrice } from '#contract/models/model-prices.ts'
import { redact } from '../../events/agent-log.ts'
import { cleanText, cleanValue, cutText } from '../../platform/clean-text.ts'
import { compactionOutput } from './compaction.ts'
import type { ModelCallOutput } from '../conversation/conversation.ts'
import type { Decide } from '../journal/journal.ts'
import { ModelError, type ModelAnswer, type ModelToolCall, type ProviderTurn } from '../models/model.ts'
import { Interrupted, type Run } from './run.ts'
import { addCall } from '../journal/task-usage.ts'
import type { Turns } from '../conversation/turns.ts'
import type { Step, CallInput } from '../task.ts'
import { backoff } from '../../platform/backoff.ts'

type Change = ReturnType<Decide>

/** Maximum duration of one model call, whatever the provider's limits are. */
export const modelCall_ms = 600_000
/** Maximum wait before a retry, even if the provider asks for a longer one. */
const retryAfterMax_seconds = 86_400
/** Maximum size of the text of one answer, in bytes. */
export const outputBytesMax = 1_048_576
/** Maximum number of failures of a call before the task fails. */
const modelFailuresMax = 5
/** Delays between retries if the provider asks for none: doubled each time up to a maximum, with jitter. */
const backoff_seconds = { first: 0.5, max: 30 }

/** How a call ended: its change for the journal, and the wait before a retry. */
export type CallResult =
  | { outcome: 'answered'; change: Change }
  | { outcome: 'interrupted'; change: Change }
  | { outcome: 'failed'; change: Change; error: ModelError; retry_after_seconds: number | undefined }

/** The id of the message that a step writes. */
export function messageId(step: Step): string {
  return (step.input as { message_id: string }).message_id
}

/** Makes the ids of calls unique in the conversation, even if the provider sends none or repeats one. */
function named(steps: readonly Step[], index: number, calls: readonly ModelToolCall[]): ModelToolCall[] {
  const taken = new Set(
    steps.flatMap((step) => (step.type === 'model_call' ? [] : [(step.input as CallInput).tool_call_id])),
  )
  return calls.map((call, i) => {
    let id = call.id === '' || taken.has(call.id) ? `call_${index}_${i}` : call.id
    for (let number = 2; taken.has(id); number += 1) id = `call_${index}_${i}_${number}`
    taken.add(id)
    return { ...call, id }
  })
}

/** The model and provider of an answer, its price, and how its turn is stored. */
interface AnswerContext {
  provider: string
  asked: string
  /** The price of `provider/model` at that provider; null if unknown. */
  price: (provider_model: string) => ModelPrice | null
  turns: Turns
}

/** The change of an answer: a completed step with its usage and cost, and its message. */
export function answered(run: Run, step: Step, answer: ModelAnswer, context: AnswerContext): Change {
  const tool_calls = named(
    run.steps,
    step.index,
    answer.tool_calls.map((call) => cleanValue(call) as ModelToolCall),
  )
  const output: ModelCallOutput = {
    message_id: messageId(step),
    text: cleanText(answer.text),
    tool_calls,
    finish_reason: answer.finish_reason,
    ...(answer.reasoning_summary ? { reasoning_summary: cutText(answer.reasoning_summary, summaryMax) } : {}),
  }
  const turn = answer.turn && context.turns.seal(run, withIds(answer.turn, tool_calls))
  run.unfinished = ''
  return finishedCall(run, { ...step, output, ...(turn === undefined ? {} : { turn }) }, answer, context, [
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
  ])
}

/** The change of a summary, which replaces what it summarizes from the next call on. */
export function compacted(run: Run, step: Step, answer: ModelAnswer, context: AnswerContext): Change {
  const output = compactionOutput(step, cleanText(answer.text))
  const { before_step, kept_history } = output
  return finishedCall(run, { ...step, output }, answer, context, [
    { type: 'context.compacted', data: { step_id: step.id, index: step.index, before_step, kept_history } },
  ])
}

/** The change of a call that a model answered: its step, events, usage and cost. */
function finishedCall(
  run: Run,
  step: Step,
  { usage, model: answering, network }: ModelAnswer,
  { provider, asked, price: priceOf }: AnswerContext,
  events: NonNullable<Change['events']>,
): Change {
  const { input_tokens, output_tokens, cached_tokens, reasoning_tokens = 0 } = usage
  const model = `${provider}/${answering}`
  // The requested model's price is what was reserved, and what its provider charges.
  const price = priceOf(asked) ?? priceOf(model)
  const cost = price && costOf(price, usage)
  const cost_usd = cost === null ? null : dollarsOf(cost)
  const written = usage.cache_write_tokens ? { cache_write_tokens: usage.cache_write_tokens } : {}
  const done: Step = {
    ...step,
    status: 'completed',
    error: null,
    model,
    usage: { input_tokens, output_tokens, cached_tokens, ...written, reasoning_tokens, cost_usd },
  }
  run.steps[step.index] = done
  run.usage = addCall(run.usage, model, usage, cost_usd)
  return {
    steps: [done],
    events: [
      {
        type: 'step.completed',
        data: { step_id: step.id, index: step.index, type: step.type, name: step.name, model, usage: done.usage },
      },
      ...events,
      { type: 'usage.updated', data: { usage: run.usage } },
    ],
    usage: run.usage,
    crashes: 0,
    calls: [{ model, input_tokens, output_tokens, cached_tokens, cost_usd }],
    consumed: {
      model_calls: 1,
      input_tokens,
      output_tokens,
      network_in: network.bytes_in,
      network_out: network.bytes_out,
    },
  }
}

/** Maximum number of characters of a reasoning summary that are stored for people. */
const summaryMax = 100_000

/** A turn whose calls have the ids that the journal has. */
function withIds(turn: ProviderTurn, calls: readonly ModelToolCall[]): ProviderTurn {
  let at = 0
  return {
    ...turn,
    parts: turn.parts.map((part) => (part.type === 'tool_call' ? { ...part, id: calls[at++]?.id ?? part.id } : part)),
  }
}

/**
 * The change of a provider's failure: a failed step, and whether and when it is retried. With `least`, the provider's
 * wait is a lower bound of the delay.
 */
export function providerFailed(
  run: Run,
  step: Step,
  thrown: ModelError,
  random: () => number,
  retryAfterIs: 'exact' | 'least' = 'exact',
): CallResult {
  const message = cleanText(redact(thrown.message, run.secrets)).slice(0, 2000)
  const error = new ModelError(thrown.code, message, {
    retryable: thrown.retryable,
    retry_after: thrown.retry_after,
    cause: thrown,
    network: thrown.network,
  })
  // A conversation that is too long is shortened before it is sent again, which is not another attempt of the same
  // call.
  const failures = step.failures + (thrown.code === 'context_length_exceeded' ? 0 : 1)
  const { max_attempts = modelFailuresMax, ...delays } = run.work.config.retry ?? {}
  const again = thrown.retryable && failures < max_attempts
  const own_seconds = retryDelay(failures, random, delays)
  const asked_seconds = thrown.retry_after ?? own_seconds
  const wait_seconds = retryAfterIs === 'least' ? Math.max(asked_seconds, own_seconds) : asked_seconds
  const retry_after_seconds = again ? Math.min(wait_seconds, retryAfterMax_seconds) : undefined
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

/** The change of a call that Cadre aborted: a failed step, which is repeated unless its task ends with it. */
export function interrupted(run: Run, step: Step, thrown: unknown): Change {
  const reason = thrown instanceof Interrupted ? thrown.reason : 'agent'
  const stored = run.unfinished
  const will_retry = reason !== 'cancel' && reason !== 'timeout'
  const error = { code: 'aborted', message: 'The call was aborted.', retryable: will_retry }
  const change = unfinished(run, step, error, { reason, will_retry })
  // A task that is canceled or out of time keeps the text so far.
  run.unfinished = stored
  return change
}

/** The change of any call without an answer: its step failed, and the text streamed so far is discarded. */
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

/**
 * Seconds before the next attempt after `failures`: exponential, half of it jitter, so that tasks do not retry at the
 * same time.
 */
function retryDelay(
  failures: number,
  random: () => number,
  { initial_delay_seconds = backoff_seconds.first, max_delay_seconds = backoff_seconds.max } = {},
): number {
  const whole = backoff(failures, { first: initial_delay_seconds, max: max_delay_seconds })
  return whole / 2 + (whole / 2) * random()
}

/** Any error of a call as a `ModelError`. */
export function asModelError(thrown: unknown): ModelError {
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
  // A bug in a provider's adapter is not retried, because it would look like an outage.
  return new ModelError(
    'provider_bad_answer',
    `The model's answer could not be understood: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    { retryable: false, cause: thrown },
  )
}
