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

/** One call takes this long at most, whatever the provider's own limits are. */
export const modelCall_ms = 600_000
/** However long a provider asks to wait, it is asked again after a day. */
const retryAfterMax_seconds = 86_400
/** Text of one answer. */
export const outputBytesMax = 1_048_576
/** A call is begun so often at most before the task fails. */
const modelFailuresMax = 5
/** Waits between tries where the provider says nothing: doubled each time, up to a bound, and spread by chance. */
const backoff_seconds = { first: 0.5, max: 30 }

/** How a call ended: what it leaves for the journal, and how long to wait before it is tried again. */
export type CallResult =
  | { outcome: 'answered'; change: Change }
  | { outcome: 'interrupted'; change: Change }
  | { outcome: 'failed'; change: Change; error: ModelError; retry_after_seconds: number | undefined }

/** The message that a step writes. */
export function messageId(step: Step): string {
  return (step.input as { message_id: string }).message_id
}

/** Every call of a conversation gets a unique id, also where the provider gives none or the same twice. */
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

/** Whose answer it is, what it costs, and how its turn is kept. */
interface AnswerContext {
  provider: string
  asked: string
  /** What `provider/model` costs at that provider; null where it is not known. */
  price: (provider_model: string) => ModelPrice | null
  turns: Turns
}

/** What an answer leaves: a finished step with what it used and cost, and its message. */
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

/** What a summary leaves: it takes the place of what it sums up from the next call on. */
export function compacted(run: Run, step: Step, answer: ModelAnswer, context: AnswerContext): Change {
  const output = compactionOutput(step, cleanText(answer.text))
  const { before_step, kept_history } = output
  return finishedCall(run, { ...step, output }, answer, context, [
    { type: 'context.compacted', data: { step_id: step.id, index: step.index, before_step, kept_history } },
  ])
}

/** A call that a model answered, as it is journaled, published and charged for. */
function finishedCall(
  run: Run,
  step: Step,
  { usage, model: answering, network }: ModelAnswer,
  { provider, asked, price: priceOf }: AnswerContext,
  events: NonNullable<Change['events']>,
): Change {
  const { input_tokens, output_tokens, cached_tokens, reasoning_tokens = 0 } = usage
  const model = `${provider}/${answering}`
  // What was asked for is what was reserved for, and what its provider charges by.
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

/** Characters of a summary of reasoning that are kept for people. */
const summaryMax = 100_000

/** A turn whose calls have the identifiers that the journal knows them by. */
function withIds(turn: ProviderTurn, calls: readonly ModelToolCall[]): ProviderTurn {
  let at = 0
  return {
    ...turn,
    parts: turn.parts.map((part) => (part.type === 'tool_call' ? { ...part, id: calls[at++]?.id ?? part.id } : part)),
  }
}

/** What a provider's failure leaves: a failed step, and whether and when it is tried again. */
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
  // A conversation that is too long is made shorter before it is sent again: that is no further try of the same call.
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

/** What a call leaves that the service cut: a failed step that will be begun again. */
export function interrupted(run: Run, step: Step, thrown: unknown): Change {
  const reason = thrown instanceof Interrupted ? thrown.reason : 'agent'
  const stored = run.unfinished
  const change = unfinished(
    run,
    step,
    { code: 'aborted', message: 'The call was aborted.', retryable: true },
    { reason, will_retry: true },
  )
  // A task that is canceled or out of time keeps what there is of an answer.
  run.unfinished = stored
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
function retryDelay(
  failures: number,
  random: () => number,
  { initial_delay_seconds = backoff_seconds.first, max_delay_seconds = backoff_seconds.max } = {},
): number {
  const whole = backoff(failures, { first: initial_delay_seconds, max: max_delay_seconds })
  return whole / 2 + (whole / 2) * random()
}

/** Whatever a call threw, as a failure of its model. */
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
  // A bug in a provider's adapter: it must not be retried five times and then look like an outage.
  return new ModelError(
    'provider_bad_answer',
    `The model's answer could not be understood: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    { retryable: false, cause: thrown },
  )
}
