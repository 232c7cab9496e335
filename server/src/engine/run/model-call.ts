import { Problem } from '#contract/core/problems.ts'
import { modelFacts, type ModelFacts } from '#contract/models/model-facts.ts'
import type { ModelPrice } from '#contract/models/model-prices.ts'
import type { Hub } from '../../events/streams/streams-hub.ts'
import { limitedAbort, unlessAborted } from '../../platform/abort-signals.ts'
import { newId } from '../../platform/ids.ts'
import { noSpan } from '../../platform/tracing/tracing.ts'
import { cleanText, makeTextCleaner } from '../../platform/clean-text.ts'
import { compactionRequest } from './compaction.ts'
import { conversation, type ModelCallInput } from '../conversation/conversation.ts'
import { joined } from '../journal/endings.ts'
import type { Decide } from '../journal/journal.ts'
import {
  answered,
  asModelError,
  compacted,
  interrupted,
  messageId,
  modelCall_ms,
  outputBytesMax,
  providerFailed,
  type CallResult,
} from './model-call-result.ts'
import { loadFiles, type FileSource } from './model-files.ts'
import { callKey } from '../models/organization/call-key.ts'
import { type ModelAsk, ModelError, type ModelSource, type OwnProvider } from '../models/model.ts'
import type { Prices } from '../budgets/prices.ts'
import { Interrupted, type Run } from './run.ts'
import { beginChatSpan, noteAnswer, noteRequest } from './spans/spans.ts'
import { chainOf, currentModel, offered } from './run-model.ts'
import { outputSchema } from './task-output.ts'
import type { Turns } from '../conversation/turns.ts'
import type { Caller, Step } from '../task.ts'

type Change = ReturnType<Decide>

/** What is known about a model by its name in a configuration; for an unknown name, what the name itself says. */
export function factsOf(models: ModelSource, name: string): ModelFacts {
  return (models.facts ?? modelFacts)(resolved(models, name)?.name ?? name)
}

/** The key of a model's cooldown and circuit breaker; undefined for an unknown name. */
export function callKeyOf(models: ModelSource, name: string): string | undefined {
  const found = resolved(models, name)
  return found && callKey(found.name, found.own?.key)
}

/** The price of a model; null if it is unknown, undefined for an unknown name. */
export function priceOf(models: ModelSource, prices: Prices, name: string): ModelPrice | null | undefined {
  const found = resolved(models, name)
  return found && prices.of(found.name, found.own)
}

/** `provider/model` as the provider knows it; undefined for an unknown name. */
function resolved(models: ModelSource, full: string): { name: string; own: OwnProvider | undefined } | undefined {
  try {
    const { model, name } = models.resolve(full)
    return { name: `${model.provider}/${name}`, own: model.own }
  } catch {
    return undefined
  }
}

/**
 * The intent of a model call: the step as committed before the call. A repeated call keeps its place and its request;
 * `more` adds to the conversation.
 */
export function beginModelCall(run: Run, more: Pick<ModelCallInput, 'repair' | 'results_left_out_before'> = {}): Step {
  const last = run.steps.at(-1)
  const again = last?.type === 'model_call' && last.status !== 'completed' ? last : undefined
  const index = again?.index ?? run.steps.length
  const done = again ? run.steps.slice(0, -1) : run.steps
  const { repair, results_left_out_before } = { ...(again?.input as ModelCallInput | undefined), ...more }
  const facts = {
    ...(repair === undefined ? {} : { repair }),
    ...(results_left_out_before === undefined ? {} : { results_left_out_before }),
  }
  const input: ModelCallInput = { messages: 0, message_id: newId('msg'), ...facts }
  input.messages = conversation({ ...run, input: run.work.input, steps: done }, input).length
  return {
    task_id: run.claim.task_id,
    index,
    id: again?.id ?? newId('step'),
    agent_id: run.agent_id,
    type: 'model_call',
    status: 'started',
    attempt: (again?.attempt ?? 0) + 1,
    failures: again?.failures ?? 0,
    name: again?.name ?? currentModel(run),
    input,
    output: null,
    error: null,
    model: null,
    usage: null,
  }
}

/** The id of the message that a step in progress was writing when its worker was lost. Its text is discarded. */
export function discardedMessage(step: Step | undefined): string | undefined {
  return step?.type === 'model_call' && step.status === 'started' ? messageId(step) : undefined
}

export interface CallContext {
  models: ModelSource
  prices: Prices
  hub: Hub
  turns: Turns
  /** Source of files; without it, parts with files are described in text. */
  fileSource?: FileSource | undefined
  random: () => number
  signal: AbortSignal
  /** Called for every part of an answer that arrives. */
  onStarted?: () => void
}

/**
 * Makes the call of a step whose intent is committed. If the intent is still being stored, the request is prepared
 * meanwhile, and sent once it is stored. An error of the provider is a result and is never thrown.
 */
export async function callModel(
  run: Run,
  step: Step,
  { models: ofService, prices, hub, turns, fileSource, random, signal, onStarted }: CallContext,
): Promise<CallResult> {
  const models = run.models ?? ofService
  const { ends, release } = limitedAbort(modelCall_ms, signal, () => new Interrupted('call_timeout'))
  const isTurn = step.type === 'model_call'
  let bytes = 0
  const cleaner = makeTextCleaner()
  run.unfinished = ''
  if (isTurn) run.message_id = messageId(step)
  const warnings = run.takeWarnings(step.name)
  const warned = <T extends CallResult>(result: T): T => ({ ...result, change: { ...result.change, warnings } })
  let span = noSpan
  try {
    const { model, name } = models.resolve(step.name)
    const request = isTurn
      ? (run.asked ?? turnRequest(run, step, turns))
      : summaryRequest(run, step, factsOf(models, step.name))
    const files =
      fileSource &&
      (await loadFiles(request.messages, run.project_id, fileSource, { model, name: step.name }).catch(asFileError))
    const begin = (): void => {
      span = beginChatSpan(run, step, { provider: model.provider, model: name })
      noteRequest(run, span, request)
    }
    const ready = run.storing?.promise.then(begin)
    if (!ready) begin()
    else if (!model.preparesEarly) await ready
    const aborted = ends.signal
    const call = model.call({
      model: name,
      ...request,
      ...(files ? { files } : {}),
      max_tokens: run.max_output_tokens,
      signal: aborted,
      ready,
      attempt: step.failures + 1,
      on_warning: (warning) => void warnings.push({ ...warning, model: step.name }),
      on_delta: (text) => {
        if (aborted.aborted) return
        onStarted?.()
        const clean = cleaner.push(text)
        bytes += Buffer.byteLength(clean)
        if (bytes > outputBytesMax) return ends.abort(new Interrupted('output_too_large'))
        // A summary is not a message of the task.
        if (!isTurn) return
        run.unfinished += clean
        hub.delta(run.claim.task_id, messageId(step), clean)
      },
      // The model bounds the size of the whole answer, including its reasoning.
      on_reasoning: (text) => {
        if (aborted.aborted) return
        onStarted?.()
        if (isTurn) hub.reasoning(run.claim.task_id, messageId(step), cleanText(text))
      },
    })
    const answer = await unlessAborted(call, aborted)
    if (Buffer.byteLength(answer.text) > outputBytesMax) throw new Interrupted('output_too_large')
    if (!isTurn && answer.text.trim() === '')
      throw new ModelError('provider_bad_answer', 'The summary of the conversation is empty.', { retryable: true })
    noteAnswer(run, span, answer)
    span.end()
    const of = {
      provider: model.provider,
      asked: `${model.provider}/${name}`,
      price: (asked: string) => prices.of(asked, model.own),
      turns,
    }
    return warned({
      outcome: 'answered',
      change: isTurn ? answered(run, step, answer, of) : compacted(run, step, answer, of),
    })
  } catch (thrown) {
    const error = signal.aborted ? undefined : asModelError(thrown)
    span.end(error?.code ?? 'aborted')
    if (!error) return warned({ outcome: 'interrupted', change: interrupted(run, step, thrown) })
    const failed = providerFailed(run, step, error, random)
    return warned(isOfParts(error) ? notAsked(failed) : failed)
  } finally {
    release()
  }
}

/** The result of a failure without a request to the provider. */
export function notAsked(result: CallResult): CallResult {
  const { consumed: _consumed, ...change } = result.change
  return { ...result, change }
}

/** A file that could not be read for any other reason may be readable later. */
function asFileError(error: unknown): never {
  if (error instanceof ModelError) throw error
  if (error instanceof Problem && error.kind === 'file_not_found')
    throw new ModelError('file_missing', 'A file of the conversation was deleted.', { retryable: false, cause: error })
  throw new ModelError('provider_unavailable', 'The files of the conversation could not be read.', {
    retryable: true,
    cause: error,
  })
}

/** Whether a call failed because of its conversation, before a request was made. */
function isOfParts({ code }: ModelError): boolean {
  return code === 'unsupported_input' || code === 'file_missing'
}

/** The request for the next turn of a task. */
function turnRequest(run: Run, step: Step, turns: Turns): ModelAsk {
  const { config, input } = run.work
  const messages = conversation({ ...run, input, steps: run.steps.slice(0, step.index) }, step.input as ModelCallInput)
  return {
    ...callSettingsOf(run),
    system_prompt: config.system_prompt,
    messages: turns.open(run, messages),
    tools: offered(run),
    tool_choice: toolChoice(run, step),
    parallel_tool_calls: run.work.caller?.parallel_tool_calls,
    output_schema: outputSchema(run),
  }
}

/** The call settings of the agent. */
export function callSettingsOf(run: Run): Pick<ModelAsk, 'temperature' | 'effort' | 'service_tier' | 'cache_key'> {
  const { effort, service_tier, temperature, prompt_cache = 'auto' } = run.work.config
  const cache_key = prompt_cache === 'off' ? undefined : `${run.agent_id}:${run.agent.version}`
  return { temperature, effort, service_tier, cache_key }
}

/** The caller's `tool_choice`, which applies to the first model call since its request. */
function toolChoice({ work: { caller }, steps }: Run, { index }: Step): Caller['tool_choice'] {
  if (!caller?.tool_choice) return undefined
  const earlier = steps.slice(caller.from_step ?? 0, index)
  const isFirst = !earlier.some(({ type, status }) => type === 'model_call' && status === 'completed')
  return isFirst ? caller.tool_choice : undefined
}

/** The request for a summary: without tools, without the agent's settings, and without caching. */
function summaryRequest(run: Run, step: Step, facts: ModelFacts): ModelAsk {
  return {
    ...compactionRequest(run, step, facts),
    is_summary: true,
    tools: [],
    temperature: undefined,
    service_tier: run.work.config.service_tier,
  }
}

/**
 * After a model has failed for good: the next of `fallback_models` takes over the same step, with all tool results so
 * far. Undefined if there is none.
 */
export function fallBack(run: Run, result: Extract<CallResult, { outcome: 'failed' }>): Change | undefined {
  const step = run.steps.at(-1)!
  const chain = chainOf(run.work.config)
  const next = chain[chain.indexOf(step.name) + 1]
  if (next === undefined) return undefined
  const { code, message } = result.error
  const taken: Step = { ...step, name: next, failures: 0 }
  run.steps[step.index] = taken
  return joined(result.change, {
    // The task may be deferred before the call starts.
    steps: [taken],
    events: [
      {
        type: 'model.fallback',
        data: { step_id: step.id, index: step.index, from: step.name, to: next, error: { code, message } },
      },
    ],
    logs: [
      {
        level: 'warn',
        message: `Model ${step.name} failed; ${next} takes over: ${message}`,
        context: { code, from: step.name, to: next },
      },
    ],
  })
}
