import { setTimeout as delay } from 'node:timers/promises'
import { Problem } from '#contract/core/problems.ts'
import { callId, inputOf, isCallers, stateOf } from '../journal/call-states.ts'
import { agentHolds, failed, joined } from '../journal/endings.ts'
import { noteDelivered, noteWork } from '../journal/work.queries.ts'
import { outOfCalls } from '../run/budget-guard.ts'
import type { ToolCallOutput } from '../conversation/conversation.ts'
import type { ModelTool } from '../models/model.ts'
import { offered } from '../run/run-model.ts'
import { withCalls } from '../run/run-task.ts'
import { stepsExceeded, type Run } from '../run/run.ts'
import { beginTaskSpan, endTaskSpan } from '../run/spans/spans.ts'
import { planCall, planned, type Planned, type PlannedCall } from '../run/tool-plan.ts'
import { runCalls } from '../run/tool-run.ts'
import { checkArguments } from '../tools/arguments.ts'
import { judgeValue } from '../tools/schemas/schema-judge.ts'
import type { Step, TaskError } from '../task.ts'
import type { Calls, Looking, WaitedCall } from './calls.ts'
import { checkPolicy } from './endings.ts'
import {
  prepareRun,
  refuseCanceled,
  underLease,
  writeCall,
  type Change,
  type Decision,
  type Held,
  type Lease,
  type RemoteContext,
} from './lease.ts'
import { digestOf } from './model-calls.ts'

/** The result of a tool call, as a worker reads it. */
export interface ToolResult {
  content: string
  is_error: boolean
  /** Whether the worker has received it: see `CallAnswer`. */
  delivered(): Promise<void>
  dropped(): void
}

/** Poll interval for a waiting call. */
const poll_ms = 500
/** Retry interval of a call that waits for a token. */
const tokenRetry_ms = 5000

/** The tools of a task's agent that its worker may call. */
export async function listTools(context: RemoteContext, lease: Lease): Promise<ModelTool[]> {
  const run = await openRun(context, lease)
  try {
    return offered(run)
  } finally {
    run.end()
  }
}

/** The task as a run of this process, with its tools. */
async function openRun(context: RemoteContext, lease: Lease): Promise<Run> {
  const run = await underLease(context, lease, { journal: true }, async (held) => ({ result: held.run }))
  await prepareRun(context, run)
  return run
}

/**
 * Makes a tool call as a step of the task, with the same policies, approvals and crash rule as a model's tool calls. It
 * waits while a person, another process or another agent must answer, until `signal` aborts; the call then continues
 * without the request. A call that was made before is answered from the journal.
 */
export async function callTool(
  context: RemoteContext,
  calls: Calls,
  lease: Lease,
  { name, args, signal }: { name: string; args: Record<string, unknown>; signal: AbortSignal },
): Promise<ToolResult> {
  const run = await openRun(context, lease)
  let mine: WaitedCall | undefined
  try {
    run.span = beginTaskSpan(context.tracing, run)
    const tool = run.toolset.tools.get(name)
    if (tool) await judgeValue(tool.parameters, args, run.party)
    const argumentError = tool && checkArguments(tool, args)
    const digest = `tool_${digestOf([name, args])}`
    for (;;) {
      const turn = await underLease<Turn>(context, lease, { journal: true }, (held) =>
        takeTurn(context, calls, lease, held, run, { name, args, argumentError, digest, signal, mine }),
      )
      mine = turn.mine ?? mine
      if (turn.is === 'ended') {
        await checkPolicy(context, lease)
        throw new Problem('task_already_finished', undefined, { message: turn.error.message })
      }
      if (turn.is === 'done') return resultOf(context, lease, turn.step, mine!)
      if (turn.is === 'call') await calls.make(lease, mine!.key, () => make(context, lease, run, turn.call))
      else if (turn.is === 'join') await turn.again
      else await untilChanged(context, lease, turn.step, signal)
      if (run.lacking.size > 0) {
        run.lacking.clear()
        await delay(tokenRetry_ms, undefined, { signal })
      }
    }
  } catch (error) {
    mine?.leave()
    throw error
  } finally {
    endTaskSpan(run.span, run.usage, run.usage, undefined)
    run.end()
  }
}

type Turn = { mine?: WaitedCall } & (
  | { is: 'done'; step: Step }
  | { is: 'call'; call: PlannedCall }
  | ({ is: 'join' } & Looking)
  | { is: 'wait'; step: Step | undefined }
  | { is: 'ended'; error: TaskError }
)

interface AskedTool {
  name: string
  args: Record<string, unknown>
  argumentError: string | undefined
  digest: string
  signal: AbortSignal
  /** Set once the key of the call is known. */
  mine: WaitedCall | undefined
}

/** Decides about a call by its state: writes its intent, waits, or returns its result. */
async function takeTurn(
  { worker_id }: RemoteContext,
  calls: Calls,
  lease: Lease,
  held: Held,
  run: Run,
  asked: AskedTool,
): Promise<Decision<Turn>> {
  const { tx, task, row, steps } = held
  refuseCanceled(task)
  run.steps = steps
  run.usage = task.usage
  const next = async () => (await calls.find(lease, asked.digest, { tx, row, steps })).key
  const mine = asked.mine ?? calls.enter(lease, await next(), asked.signal)
  const { key } = mine
  const those = steps.filter((step) => inputOf(step).tool_call_id === key)
  const at = stateOf(those)
  const last = those.at(-1)
  if (at.state === 'done') {
    if (row.waits_since !== null) await noteWork(tx, task.id, { waits: false })
    return { result: { is: 'done', step: those.find(({ type }) => type !== 'approval') ?? those[0]!, mine } }
  }
  const made = await calls.made(lease, key, last, tx)
  if (made) return { result: { is: 'join', ...made, mine } }
  if (agentHolds(task)) return { result: await waiting(held, last, mine) }
  const call = { id: key, name: asked.name, arguments: asked.args }
  const plan = planCall(
    run,
    task,
    { call, at },
    { index: steps.length, position: 0, argumentError: asked.argumentError },
  )
  if (!plan) return { result: await waiting(held, last, mine) }
  if (plan.step.index === steps.length && steps.length + 1 > run.stepsMax) {
    const error = stepsExceeded(run, steps)
    return {
      change: failed(task, error, { steps, usage: task.usage, unfinished: '' }),
      result: { is: 'ended', error, mine },
    }
  }
  // Other processes leave a call of this process alone. Any process may handle a waiting one.
  const holder = plan.call ? worker_id : undefined
  const step: Step = { ...plan.step, input: { ...inputOf(plan.step), claim: task.attempt, holder } }
  const usage = withCalls({ usage: task.usage, steps }, [step])
  const more = { steps: usage.steps - task.usage.steps, tool_calls: usage.tool_calls - task.usage.tool_calls }
  if (outOfCalls(task, task.usage, more)) {
    await noteWork(tx, task.id, { waits: true, wants: more })
    return { result: { is: 'wait', step: last, mine } }
  }
  const isWaiting = plan.call === undefined && step.status !== 'failed' && step.status !== 'completed'
  await noteWork(tx, task.id, { waits: isWaiting, wants: null })
  return { change: changeOf(plan, step, usage, run), result: turnOf(plan, step, mine) }
}

async function waiting({ tx, task }: Held, step: Step | undefined, mine: WaitedCall): Promise<Turn> {
  await noteWork(tx, task.id, { waits: true })
  return { is: 'wait', step, mine }
}

function changeOf({ approval, delegation }: Planned, step: Step, usage: Run['usage'], run: Run): Change {
  const { safety = 'safe', until = null } = inputOf(step)
  const isNew = isCallers(step) && step.status === 'started' && step.attempt === 1
  const tool_calls = isNew
    ? [{ id: callId(step), step_index: step.index, name: step.name, safety, expires_at: until }]
    : []
  return {
    usage,
    secrets: run.secrets,
    ...planned({
      steps: [step],
      calls: [],
      approvals: approval ? [approval] : [],
      tool_calls,
      delegations: delegation ? [delegation] : [],
    }),
  }
}

function turnOf({ call }: Planned, step: Step, mine: WaitedCall): Turn {
  if (call) return { is: 'call', call: { ...call, step }, mine }
  if (step.type !== 'approval' && (step.status === 'failed' || step.status === 'completed'))
    return { is: 'done', step, mine }
  return { is: 'wait', step, mine }
}

/** Makes a call whose intent is committed, and writes its result. */
async function make(context: RemoteContext, lease: Lease, run: Run, call: PlannedCall): Promise<void> {
  run.steps = [...run.steps]
  run.steps[call.step.index] = call.step
  const { model: hold, tools: signal } = run.nextSignals()
  const write = async (change: Change): Promise<boolean> => {
    await writeCall(context, lease, call.step, {}, async () => ({
      change: joined(undefined, change),
      result: undefined,
    }))
    return true
  }
  const { fileSource } = context.run
  const last = await runCalls(run, [call], { signal, hold, write, fileSource })
  if (last) await write({ ...last, secrets: run.secrets })
}

/** Polls until a step may have changed, without holding the lock of the task. */
async function untilChanged(
  { sql }: RemoteContext,
  { task_id }: Lease,
  step: Step | undefined,
  signal: AbortSignal,
): Promise<void> {
  const until = step ? inputOf(step).until : undefined
  for (;;) {
    await delay(poll_ms, undefined, { signal })
    if (!step || (until !== undefined && Date.parse(until) <= Date.now())) return
    const [now] = await sql<{ status: string; input: { repeat?: number } }>`
      select status, input from task_step where task_id = ${task_id} and index = ${step.index}`
    const [task] = await sql<{ is_theirs: boolean }>`
      select status = 'running' and cancel_requested_at is null as is_theirs from task where id = ${task_id}`
    if (!now || now.status !== step.status || now.input.repeat !== undefined || !task?.is_theirs) return
  }
}

function resultOf(context: RemoteContext, lease: Lease, step: Step, { key, leave }: WaitedCall): ToolResult {
  const output = step.output as ToolCallOutput | null
  return {
    content: output?.content ?? step.error?.message ?? '',
    is_error: step.status === 'failed',
    async delivered() {
      await noteDelivered(context.sql, lease, key)
      leave()
    },
    dropped: leave,
  }
}
