import { setTimeout as delay } from 'node:timers/promises'
import type { Hub } from '../events/streams-hub.ts'
import { newId } from '../platform/ids.ts'
import { canceled, type CancelReceipt } from './cancel.ts'
import { lastText, type ModelCallOutput } from './conversation.ts'
import { agentHolds, completed, expired, failed, joined, waiting } from './endings.ts'
import type { Decide, Journal } from './journal.ts'
import { beginModelCall, callModel, discardedMessage, type CallResult, type ModelSource } from './model-call.ts'
import type { ModelToolCall } from './models/model.ts'
import type { Run } from './run.ts'
import type { LockedTask, Step, TaskError } from './task-rows.ts'

type Change = ReturnType<Decide>

/** What running tasks needs; the same for all of a process. */
export interface RunContext {
  journal: Journal
  models: ModelSource
  hub: Hub
  /** Model tokens a credential may use an hour (decision D90). */
  tokens_per_hour: number
  /** 0 to 1. */
  random: () => number
  /** Whether the process stops: no further step begins. */
  isClosing: () => boolean
}

/** Waits up to this long keep the worker's slot; for longer ones the task is put aside. */
const heldWait_seconds = 2
/** A task is given back at a step's boundary after this long: others get their turn, and no lease grows old. */
const claim_ms = 3_600_000

/**
 * Takes turns of model and tools until the task has ended or is put aside. Every turn is two writes: the intent before
 * the call and the result after it, the latter joined with the intent of the next or with the end. Throws `LeaseLost`
 * when the task went to somebody else. Gives the error that the task failed with, if it did.
 */
export async function runTask(run: Run, context: RunContext): Promise<TaskError | undefined> {
  let pending = resumed(run)
  for (;;) {
    const end = nextEnd(run)
    if (end) {
      await context.journal.write(run.claim, (task) => joined(pending, end.change(task)))
      return end.error
    }
    const signal = run.nextSignal()
    const step = beginModelCall(run)
    if (!(await context.journal.write(run.claim, (task) => joined(pending, begin(run, context, task, step)))))
      return undefined
    run.steps[step.index] = step
    const result = await callModel(run, step, { ...context, signal })
    pending = result.change
    if (result.outcome === 'answered') pending = joined(pending, refuseTools(run))
    if (result.outcome !== 'failed') continue
    const { retry_after_seconds } = result
    if (retry_after_seconds === undefined) return fail(run, context, result)
    if (!(await waitToRetry(run, context, pending, retry_after_seconds, signal))) return undefined
    pending = undefined
  }
}

/** What an earlier attempt left unfinished: a message that its watchers should forget. */
function resumed(run: Run): Change | undefined {
  const last = run.steps.at(-1)
  const message_id = discardedMessage(last)
  return message_id && last
    ? { events: [{ type: 'message.discarded', data: { message_id, step_id: last.id } }] }
    : undefined
}

/** The end that the journal leads to; undefined while there is a next step. */
function nextEnd(run: Run): { change: Decide; error?: TaskError } | undefined {
  if (run.expired) return { change: (task) => expired(task, run) }
  const last = run.steps.at(-1)
  if (last?.type === 'model_call' && last.status === 'completed') {
    const { text } = last.output as ModelCallOutput
    return { change: (task) => completed(task, run, { content: text, data: null }) }
  }
  const repeats = last?.type === 'model_call'
  if (run.steps.length < run.stepsMax || repeats) return undefined
  const error = {
    code: 'max_steps_reached',
    message: `The task took ${run.stepsMax} steps without coming to an end.`,
    retryable: false,
    step_id: last?.id ?? null,
  }
  return { change: (task) => failed(task, error, run), error }
}

/** Begins a step, unless something keeps the task from it: seen under its lock, so it is true at this moment. */
function begin(run: Run, context: RunContext, task: LockedTask, step: Step): Change {
  const kept = { secrets: run.secrets }
  if (task.cancel)
    return {
      ...kept,
      usage: run.usage,
      ...withoutTask(canceled({ ...task, usage: run.usage }, task.cancel, receiptOf(run.steps))),
      output: partialOutput(run),
      job: { kind: 'end' },
    }
  if (task.expires_at !== null && Date.parse(task.expires_at) <= Date.parse(task.now))
    return { ...kept, ...expired(task, run) }
  const held = agentHolds(task)
  if (held) return { ...kept, ...waiting(task, held, undefined) }
  if (context.isClosing() || performance.now() - run.claimed_at > claim_ms) return { ...kept, job: { kind: 'back' } }
  if (task.tokens_used >= context.tokens_per_hour) return { ...kept, ...waitForTokens(task, context) }
  const { index, id, type, name, attempt } = step
  return {
    ...kept,
    steps: [step],
    events: [{ type: 'step.started', data: { step_id: id, index, type, name, attempt } }],
  }
}

function waitForTokens(task: LockedTask, { random, tokens_per_hour }: RunContext): Change {
  const hour_ms = 3_600_000
  // Spread over the first seconds of the hour, so that not all come back in the same moment.
  const next = new Date((Math.floor(Date.parse(task.now) / hour_ms) + 1) * hour_ms + Math.floor(random() * 5000))
  return {
    ...waiting(task, 'budget', next),
    logs: [
      {
        level: 'warn',
        message: `Waiting for the next hour: the credential has used its ${tokens_per_hour} model tokens`,
        context: { tokens_used: task.tokens_used, until: next.toISOString() },
      },
    ],
  }
}

/** Writes the failure, and waits for the next try: a moment in this slot, or for longer without one. False: put aside. */
async function waitToRetry(
  run: Run,
  { journal, random }: RunContext,
  failure: Change,
  seconds: number,
  signal: AbortSignal,
): Promise<boolean> {
  const short = seconds <= heldWait_seconds
  const holds = await journal.write(run.claim, (task) => {
    if (short) return joined(failure, { events: [{ type: 'task.retrying', data: { retry_in_seconds: seconds } }] })
    const until = new Date(Date.parse(task.now) + seconds * 1000 * (1 + random() / 10))
    return joined(failure, waiting(task, 'provider', until))
  })
  if (!holds) return false
  // An interruption ends the wait; what it means is seen when the next step begins.
  await delay(seconds * 1000, undefined, { signal }).catch(() => {})
  return true
}

async function fail(
  run: Run,
  { journal }: RunContext,
  result: Extract<CallResult, { outcome: 'failed' }>,
): Promise<TaskError> {
  const { code, message, retryable } = result.error
  const error: TaskError = { code, message, retryable, step_id: run.steps.at(-1)?.id ?? null }
  await journal.write(run.claim, (task) => joined(result.change, { ...failed(task, error, run), secrets: run.secrets }))
  return error
}

/**
 * Answers the tool calls of the last model call: none of the names has a tool behind it, which the model reads as the
 * result of its call (tasks 5).
 */
function refuseTools(run: Run): Change {
  // The step that was just answered.
  const { tool_calls } = run.steps.at(-1)!.output as ModelCallOutput
  const steps = tool_calls.map((call, i) => refused(run, run.steps.length + i, call))
  run.steps.push(...steps)
  if (steps.length > 0)
    run.usage = { ...run.usage, steps: run.usage.steps + steps.length, tool_calls: run.usage.tool_calls + steps.length }
  return {
    steps,
    usage: run.usage,
    events: steps.flatMap(({ id, index, name, error }) => [
      { type: 'tool.called' as const, data: { step_id: id, index, tool: name } },
      { type: 'tool.failed' as const, data: { step_id: id, index, tool: name, error } },
    ]),
    logs: steps.map(({ name }) => ({
      level: 'warn' as const,
      message: `The model called a tool that does not exist: ${name}`,
      context: { tool: name },
    })),
  }
}

function refused(run: Run, index: number, call: ModelToolCall): Step {
  const message = `There is no tool named ${call.name}.`
  return {
    task_id: run.claim.task_id,
    index,
    id: newId('step'),
    agent_id: run.agent_id,
    type: 'tool_call',
    status: 'failed',
    attempt: 1,
    failures: 0,
    name: call.name,
    input: { tool_call_id: call.id, arguments: call.arguments },
    output: { content: message },
    error: { code: 'tool_not_found', message, retryable: false },
    model: null,
    usage: null,
  }
}

function receiptOf(steps: readonly Step[]): CancelReceipt {
  const tools = steps.filter(({ type }) => type === 'tool_call')
  const named = (wanted: (step: Step) => boolean) =>
    tools.filter(wanted).map(({ id, name }) => ({ step_id: id, tool: name }))
  return {
    effects: named(({ status }) => status === 'completed'),
    uncertain: named(({ status }) => status === 'started' || status === 'unknown'),
  }
}

function partialOutput(run: Run): { content: string; data: unknown } | null {
  const text = lastText(run.steps, run.unfinished)
  return text === undefined ? null : { content: text, data: null }
}

function withoutTask<T extends { task: unknown }>({ task: _task, ...rest }: T): Omit<T, 'task'> {
  return rest
}
