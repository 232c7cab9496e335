import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { isObject } from '#contract/core/merge-patch.ts'
import { Problem } from '#contract/core/problems.ts'
import { newId } from '../../platform/ids.ts'
import { holdWith, reserveBeside, settleOne } from '../budgets/shared-holds.ts'
import { estimateInput } from '../conversation/estimate.ts'
import type { ModelCallOutput } from '../conversation/conversation.ts'
import { taskEnded } from '../journal/approvals.queries.ts'
import { agentHolds, failed, joined } from '../journal/endings.ts'
import { noUsage } from '../journal/task-rows.ts'
import { addUsages } from '../journal/task-usage.ts'
import { noteDelivered, noteWork } from '../journal/work.queries.ts'
import { answerTokens } from '../models/call-settings.ts'
import type { ModelAsk, ModelError } from '../models/model.ts'
import { askModel } from '../run/ask-model.ts'
import { overLimit, priceUnknown } from '../run/budget-guard.ts'
import { callKeyOf, callSettingsOf, discardedMessage, factsOf, fallBack, priceOf } from '../run/model-call.ts'
import type { CallResult } from '../run/model-call-result.ts'
import { coolingDown, outOfTokens } from '../run/run-guard.ts'
import { chainOf } from '../run/run-model.ts'
import { stepsExceeded, type Run } from '../run/run.ts'
import { beginTaskSpan, endTaskSpan } from '../run/spans/spans.ts'
import { canonicalJson } from '../tools/call-hash.ts'
import type { LockedTask, Step, TaskError } from '../task.ts'
import type { Calls, Looking, WaitedCall } from './calls.ts'
import { checkPolicy } from './endings.ts'
import { dropDead } from './late-holds.ts'
import {
  refuseCanceled,
  underLease,
  writeCall,
  type Change,
  type Decision,
  type Held,
  type Lease,
  type RemoteContext,
} from './lease.ts'
import { withOwnTurns } from './own-turns.ts'

/** A model call that a worker requests. */
export interface AskedCall {
  /** A model of the agent's configuration. */
  model: string
  ask: ModelAsk
  /** Maximum tokens of the answer; the agent's `max_tokens` applies too. */
  max_tokens: number | undefined
  /** Identifies the call: a digest of the whole request, except how it is answered. */
  digest: string
  /** Called with the id of the call's step, before any text. */
  on_step: (id: string) => void
  /** Called with text as it arrives. */
  on_text: (text: string) => void
  /** Aborts when the request is gone; the call continues. */
  signal: AbortSignal
}

/** The answer to a call, from the model or from the journal. */
export interface CallAnswer {
  step: Step
  output: ModelCallOutput
  usage: { input_tokens: number; output_tokens: number; cached_tokens: number; reasoning_tokens: number }
  /** Whether it was answered before, to this worker or an earlier one. */
  is_replay: boolean
  /** The worker has received the answer: the next equal call is another one. */
  delivered(): Promise<void>
  /** The worker has not received it: the next equal call is this one. */
  dropped(): void
}

/** The input of the step of a worker's model call. */
export interface GatewayInput {
  messages: number
  message_id: string
  /** The key of the call: its digest and number. */
  key: string
  claim: number
  /** The id of the process that makes the call. */
  holder: string
}

/** Maximum delay of a retry within the request; for longer ones the worker must repeat the request. */
const heldRetry_seconds = 2

/** The models that a worker may call: those of the agent's configuration. */
export function modelsOf(run: Run): string[] {
  return chainOf(run.work.config)
}

/** The model of the configuration that a name means, with or without its provider; undefined for any other. */
export function modelNamed(run: Run, name: string): string | undefined {
  const models = modelsOf(run)
  return models.find((model) => model === name) ?? models.find((model) => model.slice(model.indexOf('/') + 1) === name)
}

/** The digest of a request, regardless of the order of its members. */
export function digestOf(request: unknown): string {
  return createHash('sha256').update(canonicalJson(request)).digest('hex').slice(0, 32)
}

/**
 * Makes a model call as a step of the task: reserved, journaled, charged and traced. A call that an earlier worker made
 * is answered from the journal.
 * @throws ModelError if the model failed; else problems of the lease, the agent, the budgets and the limits
 */
export async function callModel(
  context: RemoteContext,
  calls: Calls,
  lease: Lease,
  asked: AskedCall,
): Promise<CallAnswer> {
  let mine: WaitedCall | undefined
  try {
    for (;;) {
      const opened = await underLease<Begun>(context, lease, { journal: true, ledger: true }, (held) =>
        begin(context, calls, held, asked, mine),
      )
      mine = opened.mine ?? mine
      if (opened.is === 'join') {
        await opened.again
        continue
      }
      if (opened.is === 'ended') {
        await checkPolicy(context, lease)
        throw new Problem('task_already_finished', undefined, { message: opened.error.message })
      }
      if (opened.is === 'refused') throw opened.problem
      asked.on_step(opened.step.id)
      if (opened.is === 'replay') return answerOf(context, lease, opened.step, mine!, true)
      const { run, step } = opened
      try {
        const done = await calls.make(lease, mine!.key, () => make(context, lease, run, step, asked))
        return answerOf(context, lease, done, mine!, false)
      } finally {
        run.end()
      }
    }
  } catch (error) {
    mine?.leave()
    throw error
  }
}

type Begun = { mine?: WaitedCall } & (
  | { is: 'live'; run: Run; step: Step }
  | { is: 'replay'; step: Step }
  | ({ is: 'join' } & Looking)
  | { is: 'refused'; problem: Problem }
  | { is: 'ended'; error: TaskError }
)

async function begin(
  context: RemoteContext,
  calls: Calls,
  held: Held,
  asked: AskedCall,
  entered: WaitedCall | undefined,
): Promise<Decision<Begun>> {
  const { tx, task, row, steps, run } = held
  refuseCanceled(task)
  await context.run.rereadModels(run, task.providers_version, tx)
  const lease = { task_id: task.id, project_id: task.project_id, attempt: task.attempt }
  const key = entered?.key ?? (await calls.find(lease, `model_${asked.digest}`, { tx, row, steps })).key
  const before = steps.findLast(({ input }) => isObject(input) && input['key'] === key)
  const enter = (): WaitedCall => entered ?? calls.enter(lease, key, asked.signal)
  if (before?.status === 'completed') return { result: { is: 'replay', step: before, mine: enter() } }
  const made = await calls.made(lease, key, before, tx)
  if (made) return { result: { is: 'join', ...made, mine: enter() } }
  const refusal = refusalOf(context, held, asked)
  if (refusal) return refused(refusal)
  if (!before && steps.length + 1 > run.stepsMax) {
    const error = stepsExceeded(run, steps)
    return { change: failed(task, error, { steps, usage: task.usage, unfinished: '' }), result: { is: 'ended', error } }
  }
  const step = stepOf(context, held, asked, key, before)
  const room = await reserveFor(context, calls, held, asked, step)
  if ('decision' in room) return room.decision
  run.max_output_tokens = room.max_output_tokens
  run.asked = completed(context, run, steps, asked.ask)
  run.usage = noUsage
  const discarded = discardedMessage(before)
  const { id, index, type, name, attempt } = step
  const data = { step_id: id, index, type, name, attempt, message_id: (step.input as GatewayInput).message_id }
  const differs = !before && calls.unseen(lease, row, steps)
  const change: Change = {
    steps: [step],
    hold: room.hold,
    secrets: run.secrets,
    events: [
      ...(discarded && before
        ? [{ type: 'message.discarded' as const, data: { message_id: discarded, step_id: before.id } }]
        : []),
      { type: 'step.started', data },
    ],
    logs: differs
      ? [
          {
            level: 'warn',
            message: `A call of ${name} differs from all calls in the journal; it is made as a new step`,
            context: { step_id: id, claim: task.attempt },
          },
        ]
      : [],
  }
  return { change, result: { is: 'live', run, step, mine: enter() } }
}

/** A worker's request with the agent's call settings, unless the worker sets them, and with the whole turns of the model. */
function completed({ run: { turns } }: RemoteContext, run: Run, steps: readonly Step[], ask: ModelAsk): ModelAsk {
  const callSettings = callSettingsOf(run)
  const { temperature = callSettings.temperature, effort = callSettings.effort } = ask
  return { ...ask, ...callSettings, temperature, effort, messages: turns.open(run, withOwnTurns(ask.messages, steps)) }
}

function refused(problem: Problem): Decision<Begun> {
  return { result: { is: 'refused', problem } }
}

/** Why no call may be made now, although the task continues; undefined if it may. */
function refusalOf(context: RemoteContext, { task, run }: Held, { model }: AskedCall): Problem | undefined {
  const held = agentHolds(task)
  if (held)
    return new Problem('agent_not_running', undefined, {
      message: `The agent was ${held === 'agent_paused' ? 'paused' : 'stopped'}. Park the task.`,
    })
  const stops = { ...context.run, isClosing: () => false }
  const tokens = outOfTokens(task, stops)
  if (tokens)
    return new Problem('budget_exceeded', undefined, {
      message: 'The credential has used its model tokens of this hour. Park the task until the next hour.',
    })
  const cooling = coolingDown(task, callKeyOf(run.models ?? context.run.models, model), stops)
  if (!cooling) return undefined
  const seconds = Math.max(1, Math.ceil((Date.parse(cooling.wait?.until ?? task.now) - Date.parse(task.now)) / 1000))
  return new Problem('queue_full', undefined, {
    message: `The provider of ${model} asked for a pause of ${seconds} s. Repeat the call afterwards.`,
    headers: { 'retry-after': String(seconds) },
  })
}

function stepOf(
  { worker_id }: RemoteContext,
  { task, steps }: Held,
  { model, ask }: AskedCall,
  key: string,
  before: Step | undefined,
): Step {
  const input: GatewayInput = {
    messages: ask.messages.length,
    message_id: newId('msg'),
    key,
    claim: task.attempt,
    holder: worker_id,
  }
  return {
    task_id: task.id,
    index: before?.index ?? steps.length,
    id: before?.id ?? newId('step'),
    agent_id: task.agent_id,
    type: 'model_call',
    status: 'started',
    attempt: (before?.attempt ?? 0) + 1,
    // Each request of a worker has the full number of attempts.
    failures: 0,
    name: model,
    input,
    output: null,
    error: null,
    model: null,
    usage: null,
  }
}

type Room = { hold: Held['task']['hold']; max_output_tokens: number | undefined } | { decision: Decision<Begun> }

/**
 * Reserves what the call may use. Without room in a budget, the worker gets the problem at once and should park the
 * task.
 */
async function reserveFor(
  { run: { models: ofService, prices } }: RemoteContext,
  calls: Calls,
  held: Held,
  { ask, max_tokens: asked_tokens }: AskedCall,
  step: Step,
): Promise<Room> {
  const { tx, task, row, run, steps } = held
  const models = run.models ?? ofService
  const price = priceOf(models, prices, step.name)
  if (price === undefined) return { hold: task.hold, max_output_tokens: asked_tokens }
  const wanted = { steps: 1, tool_calls: 0 }
  if (overLimit(task, task.usage, wanted)) return { decision: await spent(tx, task, wanted) }
  const facts = factsOf(models, step.name)
  const own = { ...run.work.config, ...(ask.effort && { effort: ask.effort }) }
  const bound = Math.min(own.max_tokens ?? Infinity, asked_tokens ?? Infinity)
  const { max_tokens } = answerTokens(Number.isFinite(bound) ? { ...own, max_tokens: bound } : own, facts)
  if (!task.ledger || task.ledger.budgets.length === 0) return { hold: task.hold, max_output_tokens: max_tokens }
  await dropDead(calls, held)
  const need = {
    input_tokens: estimateInput({ ...ask, steps: [] }),
    max_output_tokens: max_tokens,
    price,
  }
  const reserved = reserveBeside(task, need)
  if (reserved.outcome === 'held') {
    const { hold, max_output_tokens = max_tokens } = reserved
    if (hold) await noteWork(tx, task.id, { holds: { ...row.holds, [step.id]: hold }, wants: null })
    return { hold: holdWith(task.hold, hold), max_output_tokens }
  }
  if (reserved.outcome === 'refused') return { decision: await spent(tx, task, { ...wanted, call: need }) }
  const error = priceUnknown(step.name, null)
  const change = failed(task, error, { steps, usage: task.usage, unfinished: '' })
  return { decision: { change, result: { is: 'ended', error } } }
}

async function spent(
  tx: Held['tx'],
  task: LockedTask,
  wants: NonNullable<Held['row']['wants']>,
): Promise<Decision<Begun>> {
  await noteWork(tx, task.id, { waits: true, wants })
  return refused(
    new Problem('budget_exceeded', undefined, {
      message: 'A budget of the task has no room for this call. Park the task; it is offered again when there is.',
    }),
  )
}

/** Calls the model of a started step until it answers or fails for good, and writes each result. */
async function make(context: RemoteContext, lease: Lease, run: Run, step: Step, asked: AskedCall): Promise<Step> {
  let text = 0
  const hub: RemoteContext['run']['hub'] = {
    ...context.run.hub,
    delta(task_id, message_id, piece) {
      text += piece.length
      context.run.hub.delta(task_id, message_id, piece)
      asked.on_text(piece)
    },
  }
  run.steps = [...run.steps]
  run.steps[step.index] = step
  run.span = beginTaskSpan(context.tracing, run)
  let code: string | undefined
  try {
    for (let current = step; ;) {
      const { model: signal } = run.nextSignals()
      const model = callKeyOf(run.models ?? context.run.models, current.name)
      const stops = { ...context.run, isClosing: () => false }
      const result = await askModel(run, { step: current, model, signal }, { ...stops, hub })
      const next = text === 0 ? nextTry(run, result) : undefined
      const done = run.steps[step.index]!
      if (!next) {
        await write(context, lease, current, result.change)
        if (result.outcome === 'answered') return done
        code = result.outcome === 'failed' ? result.error.code : 'aborted'
        throw failureOf(result)
      }
      await write(context, lease, current, result.change, next)
      await delay(next.seconds * 1000)
      run.steps[step.index] = next.step
      current = next.step
    }
  } finally {
    endTaskSpan(run.span, noUsage, run.usage, code)
    if (run.message_id) context.run.hub.forget(lease.task_id, run.message_id)
  }
}

/** The retry after a failure: the same model after a delay, or a fallback model. */
function nextTry(run: Run, result: CallResult): { change: Change; step: Step; seconds: number } | undefined {
  if (result.outcome !== 'failed') return undefined
  const { retry_after_seconds: seconds } = result
  if (seconds !== undefined && seconds > heldRetry_seconds) return undefined
  const last = run.steps.at(-1)!
  const change = seconds === undefined ? fallBack(run, result) : result.change
  if (!change) return undefined
  const step = run.steps[last.index]!
  const again: Step = {
    ...step,
    status: 'started',
    attempt: step.attempt + 1,
    error: null,
    input: { ...(step.input as GatewayInput), message_id: newId('msg') },
  }
  return { change, step: again, seconds: seconds ?? 0 }
}

function failureOf(result: CallResult): Error | ModelError {
  if (result.outcome === 'failed') return result.error
  return new Problem('service_unavailable', undefined, { headers: { 'retry-after': '1' } })
}

/**
 * Writes the result of an attempt, and adds its usage to that of the task's other calls. `tried` is the step that
 * ended, `next` the one that follows, unless the lease has ended.
 */
async function write(
  context: RemoteContext,
  lease: Lease,
  tried: Step,
  left: Change,
  next?: { change: Change; step: Step },
): Promise<void> {
  const { id, index } = tried
  await writeCall(context, lease, tried, { ledger: true, after_end: true }, async (held) => {
    const { tx, task, row, holds: goesOn } = held
    if (held.has_ended) return { change: charged(task, tried, left), result: undefined }
    const { [id]: part, ...holds } = row.holds
    const { change, step: again } = (goesOn ? next : undefined) ?? { change: left, step: undefined }
    const isOver = again === undefined
    const usage = change.usage && addUsages(task.usage, change.usage)
    const events = change.events?.map((event) =>
      event.type === 'usage.updated' && usage ? { ...event, data: { usage } } : event,
    )
    const steps = again ? [...(change.steps ?? []).filter((step) => step.index !== index), again] : (change.steps ?? [])
    const hold = isOver ? settleOne(task, part, change.calls ?? []) : task.hold
    if (isOver && part) await noteWork(tx, task.id, { holds })
    const started = again ? [{ type: 'step.started' as const, data: startedData(again) }] : []
    const written: Change = {
      ...change,
      steps,
      ...(usage && { usage }),
      ...(task.ledger && isOver && { hold }),
      events: [...(events ?? []), ...started],
    }
    return { change: joined(undefined, written), result: undefined }
  })
}

/**
 * The change of a call that was answered after its task had ended: only its usage counts. No worker gets the answer,
 * and the end stays the last event.
 */
function charged(task: LockedTask, { index }: Step, { steps = [], usage, calls = [], consumed }: Change): Change {
  // Its reservation was released when the task ended.
  const hold = settleOne(task, undefined, calls)
  if (task.ledger) task.ledger.near = []
  const made = steps.find((step) => step.index === index)
  return {
    ...(made && { steps: [{ ...made, status: 'failed', error: taskEnded, output: null, turn: null }] }),
    ...(usage && { usage: addUsages(task.usage, usage) }),
    ...(consumed && { consumed }),
    ...(task.ledger && { hold }),
    calls,
  }
}

function startedData({ id, index, type, name, attempt, input }: Step): Record<string, unknown> {
  return { step_id: id, index, type, name, attempt, message_id: (input as GatewayInput).message_id }
}

function answerOf(
  context: RemoteContext,
  lease: Lease,
  step: Step,
  { key, leave }: WaitedCall,
  is_replay: boolean,
): CallAnswer {
  const usage = step.usage as CallAnswer['usage']
  return {
    step,
    output: step.output as ModelCallOutput,
    usage,
    is_replay,
    async delivered() {
      await noteDelivered(context.sql, lease, key)
      leave()
    },
    dropped: leave,
  }
}
