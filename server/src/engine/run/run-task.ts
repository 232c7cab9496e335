import { setTimeout as delay } from 'node:timers/promises'
import type { Hub } from '../../events/streams/streams-hub.ts'
import { askRoom, outOfCalls } from './budget-guard.ts'
import { callId, callsOf, inputOf, isCallers, type OpenCall } from '../journal/call-states.ts'
import { lackingEvents, lackingWait } from '../credentials/lacking-tokens.ts'
import { askModel } from './ask-model.ts'
import { beginCompaction, compactionDue, openCompaction, retriedCompaction, squeeze } from './compaction.ts'
import { conversationLength, conversationMax, lastAnswer, type ModelCallOutput } from '../conversation/conversation.ts'
import { completed, failed, joined, waiting } from '../journal/endings.ts'
import { coolingDown, stopReason, outOfTokens, type StopContext } from './run-guard.ts'
import type { Decide, Journal } from '../journal/journal.ts'
import type { SandboxSeconds } from './sandbox-seconds.ts'
import type { FileSource } from './model-files.ts'
import { beginModelCall, callKeyOf, discardedMessage, factsOf, fallBack } from './model-call.ts'
import type { ModelSource } from '../models/model.ts'
import { messageId, type CallResult } from './model-call-result.ts'
import type { Prices } from '../budgets/prices.ts'
import { stepsExceeded, type Run, type StartedCall } from './run.ts'
import { judgeOutput, outputInvalid, outputSchema, prejudgeOutput, repairOf } from './task-output.ts'
import { checkCalls, planCalls, planned, type PlannedCall } from './tool-plan.ts'
import { policyOf } from './tool-policy.ts'
import { currentModel } from './run-model.ts'
import { runCalls } from './tool-run.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { Turns } from '../conversation/turns.ts'
import type { LockedTask, Wait, TaskError, TaskOutput, Step } from '../task.ts'

type Change = ReturnType<Decide>

/** What running a task needs; shared by all tasks of a process. */
export interface RunContext extends StopContext {
  journal: Journal
  /** The models of the service. */
  models: ModelSource
  /** Reads the models of a run again, after its organization's model providers changed. */
  rereadModels: (run: Run, providers_version: number, sql?: Sql) => Promise<void>
  prices: Prices
  hub: Hub
  /** Encrypts and decrypts turns of models. */
  turns: Turns
  /** Source of files. */
  fileSource?: FileSource | undefined
  /** Budgets of sandbox seconds. */
  sandboxSeconds?: SandboxSeconds | undefined
  /** Called after a task began to wait for a credential, because it may have been connected meanwhile. */
  onCredentialWait?: () => void
  /** Reads the journal and the messages of a run again, after others wrote to them. */
  reload: (run: Run) => Promise<void>
}

/** A wait up to this long keeps the worker's slot; for a longer one the task is deferred. */
const heldWait_seconds = 2

/**
 * Alternates model and tool calls until the task ends or is deferred. The next step is derived from the journal, so a
 * task that another worker started continues in the same way (decision 0009). Every turn is two writes: the intent
 * before the call, and the result after it, joined with the next intent or the end. Returns the error that the task
 * failed with, if it did.
 * @throws LeaseLost if another worker owns the task
 */
export async function runTask(run: Run, context: RunContext): Promise<TaskError | undefined> {
  const { started: call } = run
  run.started = undefined
  let turn = call ? await makeCall(run, context, call) : await takeTurn(run, context, resumed(run))
  while (turn.next === 'turn') turn = await takeTurn(run, context, turn.pending)
  return turn.error
}

/**
 * The intent of a new task's first model call, written with its claim, which saves a commit before the first token.
 * Undefined if something must be checked or read first; the run decides then. The run is prepared, and no budget limits
 * its task.
 */
export function beginWithClaim(run: Run, task: LockedTask, context: RunContext): Change | undefined {
  const next = { do: 'ask', repair: undefined } as const
  if (unreadableSecrets(run) || run.hasJournal || task.unseen > 0 || tooManySteps(run, [], next) || tooLong(run, next))
    return undefined
  if (compactionDue(run, factsOf(modelsOf(run, context), currentModel(run)))) return undefined
  const { model: signal } = run.nextSignals()
  const step = beginModelCall(run)
  const model = callKeyOf(modelsOf(run, context), step.name)
  if (stopReason(run, task, context) ?? outOfTokens(task, context) ?? coolingDown(task, model, context))
    return undefined
  const room = askRoom(run, task, step, { ...context, ended: [] })
  if (!room.begins) return undefined
  run.max_output_tokens = room.max_output_tokens
  run.started = { step, model, signal }
  return joined(resumed(run), { ...startedStep(run, step), hold: room.hold })
}

/**
 * Prepares the first call of a run whose claim is being stored, so that its request can be sent as soon as the claim is
 * stored: see `callModel`. If the claim is not stored, the call ends with the run.
 */
export function prepareCall(run: Run, context: RunContext): void {
  if (!run.started) return
  run.storing = Promise.withResolvers()
  // Handles the rejection of a claim whose call ended before it awaited the promise.
  run.storing.promise.catch(() => {})
  const call = askModel(run, run.started, context)
  call.catch(() => {})
  prepared.set(run, call)
}

/** First calls that were prepared while their intents were being stored. */
const prepared = new WeakMap<Run, Promise<CallResult>>()

/** How a turn ended: the task is over or deferred, or `pending` must be written together with the next change. */
type Turn = { next: 'over'; error?: TaskError | undefined } | { next: 'turn'; pending: Change | undefined }

const over = (error?: TaskError): Turn => ({ next: 'over', error })

async function takeTurn(run: Run, context: RunContext, pending: Change | undefined): Promise<Turn> {
  const open = callsOf(run.steps).filter(({ at }) => at.state !== 'done')
  if (open.length === 0) await prejudgeOutput(run, lastAnswer(run))
  const next = open.length > 0 ? ({ do: 'tools' } as const) : afterAnswer(run)
  const failure = unreadableSecrets(run) ?? tooManySteps(run, open, next) ?? tooLong(run, next)
  if (failure) return end(run, context, pending, failure)
  switch (next.do) {
    case 'tools':
      return toolTurn(run, context, pending)
    case 'finish':
      return finish(run, context, pending, next)
    case 'ask':
      return askTurn(run, context, pending, next.repair)
  }
}

/** What follows tool calls: the end, with a valid or an invalid answer, or a model call. */
type Next =
  | { do: 'tools' }
  | { do: 'finish'; output: TaskOutput; error?: TaskError | undefined }
  | { do: 'ask'; repair: string | undefined }

function afterAnswer(run: Run): Exclude<Next, { do: 'tools' }> {
  const answer = lastAnswer(run)
  const { text, tool_calls } = (answer?.output ?? { tool_calls: [] }) as ModelCallOutput
  if (!answer || tool_calls.length > 0) return { do: 'ask', repair: undefined }
  const judged = judgeOutput(outputSchema(run), answer)
  if ('data' in judged) return { do: 'finish', output: { content: text, data: judged.data } }
  const repair = repairOf(run, judged.fault)
  if (repair !== undefined) return { do: 'ask', repair }
  return { do: 'finish', output: { content: text, data: null }, error: outputInvalid(answer, judged.fault) }
}

/** Before a model call: shortens the conversation if it is long or was refused as too long. */
async function askTurn(
  run: Run,
  context: RunContext,
  pending: Change | undefined,
  repair: string | undefined,
): Promise<Turn> {
  const open = openCompaction(run.steps)
  if (open) {
    const input = retriedCompaction(open)
    return input
      ? modelTurn(run, context, pending, beginCompaction(run, input))
      : end(run, context, pending, exhausted(open))
  }
  const last = run.steps.at(-1)
  if (last?.type === 'model_call' && last.error?.code === 'context_length_exceeded' && last.status === 'failed') {
    const change = squeeze(run)
    if (!change) return end(run, context, pending, exhausted(last))
    const step =
      change.do === 'compact'
        ? beginCompaction(run, change.input)
        : beginModelCall(run, { results_left_out_before: change.before })
    return modelTurn(run, context, pending, step)
  }
  const due = compactionDue(run, factsOf(modelsOf(run, context), currentModel(run)))
  const more = repair === undefined ? {} : { repair }
  return modelTurn(run, context, pending, due ? beginCompaction(run, due) : beginModelCall(run, more))
}

function exhausted({ id, name }: Step): TaskError {
  return {
    code: 'context_exhausted',
    message: `The conversation does not fit the context window of ${name}, and cannot be shortened any further. Use a model with a larger window, or a smaller task.`,
    retryable: false,
    step_id: id,
  }
}

async function end(run: Run, { journal }: RunContext, pending: Change | undefined, error: TaskError): Promise<Turn> {
  await journal.write(run.claim, (task) => joined(pending, failed(task, error, run)))
  return over(error)
}

/**
 * The change at the start of a run: logs tools that were left out, and discards the message that an earlier attempt
 * left unfinished.
 */
function resumed(run: Run): Change | undefined {
  const { missing } = run.toolset
  const logs: Change['logs'] =
    missing.length > 0 && run.claim.attempt === 1
      ? [
          {
            level: 'warn',
            message: `Tools left out: ${missing
              .slice(0, 20)
              .map(({ name, reason }) => `${name} (${reason})`)
              .join(', ')}`,
            context: { tools: missing.slice(0, 128) },
          },
        ]
      : []
  const last = run.steps.at(-1)
  const message_id = discardedMessage(last)
  return {
    logs,
    secrets: run.secrets,
    events: message_id && last ? [{ type: 'message.discarded', data: { message_id, step_id: last.id } }] : [],
  }
}

/**
 * Checks the limit of steps, including the calls that the model has just requested. A call that needs approval takes
 * two steps, so no approval is requested for a call that could not be made.
 */
function tooManySteps(run: Run, open: readonly OpenCall[], next: Next): TaskError | undefined {
  const toCome = open.reduce((sum, one) => sum + stepsToCome(run, one), 0)
  const asksModel = next.do === 'ask' && nextModelCall(run) === run.steps.length
  if (run.steps.length + toCome + (asksModel ? 1 : 0) <= run.stepsMax) return undefined
  return stepsExceeded(run, run.steps)
}

/** A task never runs without the secrets that its agent and its tools name. */
function unreadableSecrets({ unreadable, toolset, steps }: Run): TaskError | undefined {
  const what = [...unreadable, ...toolset.unreadable.map((name) => `credential ${name}`)]
  if (what.length === 0) return undefined
  return {
    code: 'secret_unreadable',
    message: `Secrets of this task were stored with another CADRE_SECRET_KEY and cannot be read: ${what.join(', ')}. Set them again.`,
    retryable: false,
    step_id: steps.at(-1)?.id ?? null,
  }
}

/** Before a model call: checks the size of the conversation against what a process can hold for each of its tasks. */
function tooLong(run: Run, next: Next): TaskError | undefined {
  if (next.do !== 'ask') return undefined
  if (conversationLength({ ...run, input: run.work.input }) <= conversationMax) return undefined
  return {
    code: 'conversation_too_long',
    message: `The conversation has more than ${conversationMax} characters.`,
    retryable: false,
    step_id: run.steps.at(-1)?.id ?? null,
  }
}

function stepsToCome({ work }: Run, { call, at }: OpenCall): number {
  if (at.state === 'fresh') return policyOf(work.config, call.name) === 'ask' ? 2 : 1
  return at.state === 'asked' || at.state === 'approved' ? 1 : 0
}

/** The index of the next model call; a repeated one keeps its place. */
function nextModelCall({ steps }: Run): number {
  const last = steps.at(-1)
  const isOpen = last?.type === 'model_call' || last?.type === 'compaction'
  return isOpen && last.status !== 'completed' ? last.index : steps.length
}

async function finish(
  run: Run,
  context: RunContext,
  pending: Change | undefined,
  { output, error }: Extract<Next, { do: 'finish' }>,
): Promise<Turn> {
  let reads = false
  const holds = await context.journal.write(run.claim, (task) => {
    reads = task.unseen > 0
    if (run.expired) return joined(pending, stopReason(run, task, context)!)
    // A message arrived just now, so the answer is not the last one.
    if (reads) return joined(pending, read(run))
    return joined(pending, error ? { ...failed(task, error, run), secrets: run.secrets } : completed(task, run, output))
  })
  if (!holds || !reads) return over(reads ? undefined : error)
  await context.reload(run)
  return { next: 'turn', pending: undefined }
}

/** Marks messages of others as read; the next model call has them in its conversation. */
function read(run: Run): Change {
  return { read: { before_step: nextModelCall(run) } }
}

/** Writes the intent of a model call, for a turn or a summary, and makes the call. */
async function modelTurn(run: Run, context: RunContext, pending: Change | undefined, step: Step): Promise<Turn> {
  const { model: signal } = run.nextSignals()
  const model = callKeyOf(modelsOf(run, context), step.name)
  let reads = false
  let changed_to = undefined as number | undefined
  let failure = undefined as TaskError | undefined
  const holds = await context.journal.write(run.claim, (task) => {
    reads = task.unseen > 0
    changed_to = undefined
    failure = undefined
    const held = stopReason(run, task, context) ?? outOfTokens(task, context) ?? coolingDown(task, model, context)
    if (held) return joined(pending, { secrets: run.secrets, ...held })
    if (reads) return joined(pending, read(run))
    // The decision used providers that the organization has changed since: the call would use an old key.
    if (task.providers_version !== run.modelScope.providers_version) {
      changed_to = task.providers_version
      return pending ?? {}
    }
    const room = askRoom(run, task, step, { ...context, ended: pending?.calls ?? [] })
    if (room.begins) {
      run.max_output_tokens = room.max_output_tokens
      return joined(pending, { ...startedStep(run, step), hold: room.hold })
    }
    failure = room.error
    return joined(pending, { secrets: run.secrets, ...room.change })
  })
  if (!holds) return over(failure)
  if (reads) {
    await context.reload(run)
    return { next: 'turn', pending: undefined }
  }
  if (changed_to !== undefined) {
    await context.rereadModels(run, changed_to)
    return { next: 'turn', pending: undefined }
  }
  return makeCall(run, context, { step, model, signal })
}

/** The models of a run's project. */
function modelsOf({ models }: Run, context: RunContext): ModelSource {
  return models ?? context.models
}

/** Makes the model call of a committed intent. */
async function makeCall(run: Run, context: RunContext, { step, model, signal }: StartedCall): Promise<Turn> {
  run.steps[step.index] = step
  // A call may wait for its provider only after the write, because a crash would lose the results in that write.
  const result = await (prepared.get(run) ?? askModel(run, { step, model, signal }, context))
  prepared.delete(run)
  if (result.outcome !== 'failed') return { next: 'turn', pending: result.change }
  const { retry_after_seconds } = result
  if (retry_after_seconds !== undefined) {
    const goesOn = await waitToRetry(run, context, result.change, retry_after_seconds, signal)
    return goesOn ? { next: 'turn', pending: undefined } : over()
  }
  const change = result.error.code === 'context_length_exceeded' ? result.change : fallBack(run, result)
  return change ? { next: 'turn', pending: change } : over(await fail(run, context, result))
}

function startedStep(run: Run, step: Step): Change {
  const { id, index, type, name, attempt } = step
  const message = type === 'model_call' ? { message_id: messageId(step) } : {}
  return {
    secrets: run.secrets,
    steps: [step],
    events: [{ type: 'step.started', data: { step_id: id, index, type, name, attempt, ...message } }],
  }
}

/** Makes the open calls of the last answer that can be made, or defers the task until one can. */
async function toolTurn(run: Run, context: RunContext, pending: Change | undefined): Promise<Turn> {
  const argumentErrors = await checkCalls(run)
  const { tools: signal, model: hold } = run.nextSignals()
  let reads = false
  let calls: PlannedCall[] = []
  let steps: Step[] = []
  const holds = await context.journal.write(run.claim, (task) => {
    calls = []
    steps = []
    reads = task.unseen > 0
    // Messages are read first: they may state the outcome of a call, which the receipt shows.
    if (task.cancel && reads) return joined(pending, read(run))
    const held = stopReason(run, task, context)
    if (held) return joined(pending, held)
    if (reads) return joined(pending, read(run))
    const plan = planCalls(run, task, argumentErrors)
    calls = plan.calls
    steps = plan.steps
    const usage = withCalls(run, plan.steps)
    const more = { steps: usage.steps - run.usage.steps, tool_calls: usage.tool_calls - run.usage.tool_calls }
    // The caller's `max_tool_calls` does not end the task: the plan has refused the calls beyond it.
    const isBounded = run.work.caller?.max_tool_calls !== undefined
    const tooMany = outOfCalls(task, run.usage, isBounded ? { ...more, tool_calls: 0 } : more)
    if (tooMany) {
      calls = []
      steps = []
      return joined(pending, { secrets: run.secrets, ...tooMany })
    }
    const change = joined(pending, { secrets: run.secrets, usage, ...planned(plan) })
    return calls.length > 0 || isSettled(merged(run.steps, steps)) ? change : joined(change, deferred(run, task, steps))
  })
  if (!holds) {
    if (run.lacking.size > 0) context.onCredentialWait?.()
    return over()
  }
  run.usage = withCalls(run, steps)
  run.steps = merged(run.steps, steps)
  if (reads) {
    await context.reload(run)
    return { next: 'turn', pending: undefined }
  }
  const write = (change: Change): Promise<boolean> => context.journal.write(run.claim, () => change)
  const { fileSource, sandboxSeconds } = context
  return { next: 'turn', pending: await runCalls(run, calls, { signal, hold, write, fileSource, sandboxSeconds }) }
}

function merged(before: readonly Step[], steps: readonly Step[]): Step[] {
  const all = [...before]
  for (const step of steps) all[step.index] = step
  return all
}

/**
 * The usage of a task with the calls of a plan: those that are made, for the first time or again, and those refused.
 */
export function withCalls(
  { usage, steps: before }: Pick<Run, 'usage' | 'steps'>,
  steps: readonly Step[],
): Run['usage'] {
  const calls = steps.filter(
    ({ type, status, index }) =>
      type !== 'approval' && (status === 'started' || status === 'failed') && !isCounted(before[index]),
  )
  return { ...usage, steps: usage.steps + calls.length, tool_calls: usage.tool_calls + calls.length }
}

/** Whether a call was counted when it was first tried and not made for lack of a token. */
function isCounted(step: Step | undefined): boolean {
  return step !== undefined && inputOf(step).waits_for !== undefined
}

function isSettled(steps: readonly Step[]): boolean {
  return callsOf(steps).every(({ at }) => at.state === 'done')
}

/** Every open call waits: for a person, a message, or a time. */
function deferred(run: Run, task: LockedTask, steps: readonly Step[]): Change {
  const all = callsOf(merged(run.steps, steps)).flatMap(({ at }) => ('step' in at ? [at] : []))
  const open = all.filter(({ step }) => !run.lacking.has(step.index))
  const approvals = open.flatMap(({ state, step }) => {
    const { approval_id } = inputOf(step)
    return (state === 'asked' || state === 'unknown') && approval_id !== undefined ? [approval_id] : []
  })
  const lacking = lackingWait(task, run.lacking)
  const moments = [...open.flatMap(({ step }) => inputOf(step).until ?? []), ...lacking.moments]
  const until = moments.length > 0 ? new Date(moments.toSorted()[0]!) : undefined
  const calls = open.flatMap(({ step }) => (isCallers(step) && step.status === 'started' ? [callId(step)] : []))
  const step_ids = open.filter(({ step }) => isAnswerable(step)).map(({ step }) => step.id)
  const children = open.flatMap(({ step }) => inputOf(step).child_task_id ?? [])
  const { events = [], ...change } = waiting(task, reasonOf(open, run.lacking.size > 0), until, {
    approvals,
    calls,
    step_ids,
    children,
    ...lacking.wait,
  })
  const { logs, events: expired } = lackingEvents(run.lacking, run.steps)
  return { ...change, events: [...expired, ...events], logs }
}

/** Whether the caller of a task can send the result of a step: a call of one of its tools, or a question. */
export function isAnswerable(step: Step): boolean {
  return step.status === 'started' && (isCallers(step) || (step.type === 'wait' && step.name === 'request_input'))
}

/**
 * The most urgent reason of a wait. In order: a person who knows the outcome of a call, an approval, the caller's
 * result, a delegated task, a credential, a message, a time.
 */
function reasonOf(open: readonly { state: string; step: Step }[], lacksToken: boolean): Wait['reason'] {
  if (open.some(({ state }) => state === 'unknown')) return 'unknown_outcome'
  if (open.some(({ state }) => state === 'asked')) return 'approval'
  if (open.some(({ step }) => isCallers(step))) return 'tool'
  if (open.some(({ step }) => inputOf(step).child_task_id)) return 'child'
  if (lacksToken) return 'credential'
  return open.every(({ step }) => step.name === 'wait') ? 'timer' : 'input'
}

/**
 * Writes the failure and waits for the retry: in this slot if the wait is short, else as a deferred task. False if
 * deferred.
 */
async function waitToRetry(
  run: Run,
  context: RunContext,
  failure: Change,
  seconds: number,
  signal: AbortSignal,
): Promise<boolean> {
  const { journal, random } = context
  const short = seconds <= heldWait_seconds
  const holds = await journal.write(run.claim, (task) => {
    if (short) return joined(failure, { events: [{ type: 'task.retrying', data: { retry_in_seconds: seconds } }] })
    const until = new Date(Date.parse(task.now) + seconds * 1000 * (1 + random() / 10))
    // A cancellation now relies on this worker, because no other process would look at a deferred task.
    return joined(failure, stopReason(run, task, context) ?? waiting(task, 'provider', until))
  })
  if (!holds) return false
  // An interruption ends the wait; the next step handles it.
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
