import type { Hub } from '../events/streams-hub.ts'
import { newId } from '../platform/ids.ts'
import { noSpan } from '../platform/tracing.ts'
import { cleanText } from './clean-text.ts'
import { conversation } from './conversation.ts'
import { joined } from './endings.ts'
import type { Decide } from './journal.ts'
import {
  answered,
  asModelError,
  interrupted,
  messageId,
  modelCall_ms,
  outputBytesMax,
  providerFailed,
  type CallResult,
} from './model-call-result.ts'
import type { Model, ModelTool } from './models/model.ts'
import type { Prices } from './prices.ts'
import { Interrupted, type Run } from './run.ts'
import { beginChatSpan, noteAnswer } from './spans.ts'
import type { AgentConfig, Step } from './task-rows.ts'
import { policyOf } from './tool-policy.ts'
import { orAborted } from './tool-run.ts'

type Change = ReturnType<Decide>

/** Where models come from: `engine/models`. Throws `ModelError` for a name with nothing behind it. */
export interface ModelSource {
  resolve(name: string): { model: Model; name: string }
}

/** `provider/model` as the provider knows it; undefined for a name with nothing behind it. */
export function resolvedName(models: ModelSource, name: string): string | undefined {
  try {
    const resolved = models.resolve(name)
    return `${resolved.model.provider}/${resolved.name}`
  } catch {
    return undefined
  }
}

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
    name: again?.name ?? currentModel(run),
    input: { messages: conversation({ ...run, input: run.work.input, steps: done }).length, message_id: newId('msg') },
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

export interface CallContext {
  models: ModelSource
  prices: Prices
  hub: Hub
  random: () => number
  signal: AbortSignal
  /** Told of every part of an answer that has come. */
  onBegun?: () => void
}

/**
 * Makes the call of a step whose intent is committed. Never throws for what a provider does wrong: that is a result.
 * What is returned has not been written yet; it becomes one write with whatever happens next.
 */
export async function callModel(
  run: Run,
  step: Step,
  { models, prices, hub, random, signal, onBegun }: CallContext,
): Promise<CallResult> {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(new Interrupted('call_timeout')), modelCall_ms)
  let bytes = 0
  run.unfinished = ''
  run.message_id = messageId(step)
  let span = noSpan
  try {
    const { config, input } = run.work
    const { model, name } = models.resolve(step.name)
    span = beginChatSpan(run, step, { provider: model.provider, model: name })
    const aborted = AbortSignal.any([signal, limit.signal])
    const call = model.call({
      model: name,
      system_prompt: config.system_prompt,
      messages: conversation({ ...run, input, steps: run.steps.slice(0, step.index) }),
      tools: offered(run),
      temperature: config.temperature,
      max_tokens: run.max_output_tokens ?? config.max_tokens,
      signal: aborted,
      attempt: step.failures + 1,
      on_delta: (text) => {
        if (aborted.aborted) return
        onBegun?.()
        const clean = cleanText(text)
        bytes += Buffer.byteLength(clean)
        if (bytes > outputBytesMax) return limit.abort(new Interrupted('output_too_large'))
        run.unfinished += clean
        hub.delta(run.claim.task_id, messageId(step), clean)
      },
      // Its size is bounded with the whole answer's by the model; it is not kept.
      on_reasoning: (text) => {
        if (aborted.aborted) return
        onBegun?.()
        hub.reasoning(run.claim.task_id, messageId(step), cleanText(text))
      },
    })
    const answer = await orAborted(call, aborted)
    if (Buffer.byteLength(answer.text) > outputBytesMax) throw new Interrupted('output_too_large')
    noteAnswer(span, answer)
    span.end()
    const asked = `${model.provider}/${name}`
    return { outcome: 'answered', change: answered(run, step, answer, { provider: model.provider, asked, prices }) }
  } catch (thrown) {
    const error = signal.aborted ? undefined : asModelError(thrown)
    span.end(error?.code ?? 'aborted')
    if (!error) return { outcome: 'interrupted', change: interrupted(run, step, thrown) }
    return providerFailed(run, step, error, random)
  } finally {
    clearTimeout(timer)
  }
}

/** The tools that the model is told of: what a policy denies it need not know. */
export function offered({ toolset, work }: Run): ModelTool[] {
  return [...toolset.tools.values()].filter(({ name }) => policyOf(work.config, name) !== 'deny')
}

/** The model that answers now: the one that took over last, as long as the configuration still names it. */
function currentModel({ steps, work: { config } }: Run): string {
  const last = steps.findLast(({ type }) => type === 'model_call')?.name
  return last !== undefined && chainOf(config).includes(last) ? last : config.model
}

/** Each model once: one that is named again would take over from itself for ever. */
function chainOf({ model, fallback_models = [] }: AgentConfig): string[] {
  return [...new Set([model, ...fallback_models])]
}

/**
 * After a model has failed for good: the next of `fallback_models` takes over the same step, and what tools gave so far
 * stays. Undefined where there is none.
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
    // The task may be put aside before the call is begun.
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
