import { setImmediate } from 'node:timers/promises'
import type { ToolSafety } from '#contract/tasks/task-lifecycle.ts'
import { newId } from '../../platform/ids.ts'
import { callHash } from '../tools/call-hash.ts'
import { callsOf, inputOf, type ApprovedCall, type OpenCall } from '../journal/call-states.ts'
import type { Decide } from '../journal/journal.ts'
import type { ModelToolCall } from '../models/model.ts'
import type { Run } from './run.ts'
import { checkArguments } from '../tools/arguments.ts'
import { policyOf } from './tool-policy.ts'
import { engineTools, safetyOf, type Tool } from '../tools/tool.ts'
import type { LockedTask, Step, CallInput, NewApproval, NewToolCall } from '../task.ts'

type Change = ReturnType<Decide>

/** A call that is made as soon as its intent is committed. */
export interface PlannedCall {
  tool: Tool
  step: Step
  arguments: Record<string, unknown>
}

/** What is to happen with the calls of the last answer, as one change: intents, questions to people, refusals. */
export interface Plan {
  /** Steps as they will be, new ones and begun ones. */
  steps: Step[]
  calls: PlannedCall[]
  approvals: NewApproval[]
  /** Calls that the task's caller is to make. */
  tool_calls: NewToolCall[]
}

/** An answer may ask for so many calls; those beyond are refused. */
export const callsMax = 64
/** Where an agent's configuration says nothing: how long a person has to answer. */
const approvalTimeout_seconds = 7 * 86_400
/** After a check that took longer than this, others get their turn. */
const slowCheck_ms = 5

/** What is wrong with the arguments of calls that may begin, by the names of the calls. */
export type CallProblems = ReadonlyMap<string, string>

/**
 * Checks the arguments of calls that may begin, before their intents are written: a check may take a while, and must
 * block neither the task's lock nor this process.
 */
export async function checkCalls({ steps, toolset }: Run): Promise<CallProblems> {
  const complaints = new Map<string, string>()
  for (const { call, at } of callsOf(steps).slice(0, callsMax)) {
    const tool = toolset.tools.get(call.name)
    const args =
      at.state === 'fresh' ? call.arguments : at.state === 'approved' && (at.step.output as ApprovedCall).arguments
    if (!tool || (at.state !== 'fresh' && at.state !== 'approved')) continue
    const began_at = performance.now()
    const complaint = checkArguments(tool, args)
    if (complaint !== undefined) complaints.set(call.id, complaint)
    if (performance.now() - began_at > slowCheck_ms) await setImmediate()
  }
  return complaints
}

/** Plans every call that can go on; those that wait for a person, a moment or a message are left as they are. */
export function planCalls(run: Run, task: LockedTask, complaints: CallProblems): Plan {
  const plan: Plan = { steps: [], calls: [], approvals: [], tool_calls: [] }
  let index = run.steps.length
  callsOf(run.steps).forEach((open, position) => {
    const planned = planCall(run, task, open, { index, position, complaint: complaints.get(open.call.id) })
    if (!planned) return
    plan.steps.push(planned.step)
    if (planned.step.index === index) {
      index += 1
      if (isCallers(planned.step)) plan.tool_calls.push({ id: callId(planned.step), step_index: planned.step.index })
    }
    if (planned.call) plan.calls.push(planned.call)
    if (planned.approval) plan.approvals.push(planned.approval)
  })
  return plan
}

interface Planned {
  step: Step
  call?: PlannedCall
  approval?: NewApproval
}

/** Which call of its answer it is, and which step it would be. */
interface Place {
  index: number
  position: number
  complaint: string | undefined
}

function planCall(run: Run, task: LockedTask, { call, at }: OpenCall, place: Place): Planned | undefined {
  if ('step' in at && run.lacking.has(at.step.index)) return undefined
  if (at.state === 'fresh') return freshCall(run, task, call, place)
  if (at.state === 'approved') return approvedCall(run, task, call, at.step, place)
  if (at.state === 'begun') return startedCall(run, task, at.step)
  if (at.state === 'unknown') return unknownCall(run, task, at.step)
  if (at.state === 'parked' && isDue(at.step, task)) return { step: waited(at.step) }
  return undefined
}

function freshCall(run: Run, task: LockedTask, call: ModelToolCall, { index, position, complaint }: Place): Planned {
  const refuse = (code: string, message: string): Planned => ({ step: refused(run, call, index, code, message) })
  const tool = run.toolset.tools.get(call.name)
  if (!tool) return refuse('tool_not_found', `There is no tool named ${call.name}.`)
  if (position >= callsMax) return refuse('too_many_calls', `One answer may call ${callsMax} tools at most.`)
  const policy = policyOf(run.work.config, call.name)
  if (policy === 'deny') return refuse('tool_denied', `This agent may not call ${call.name}.`)
  if (complaint !== undefined) return refuse('invalid_arguments', complaint)
  const args = call.arguments as Record<string, unknown>
  if (policy === 'ask') return askedCall(run, task, tool, call, index)
  if (isEngineAnswered(tool)) return { step: deferredCall(run, task, tool, call, index) }
  return begin(tool, newStep(run, 'tool_call', call, index), args)
}

/** Leave was given for exactly this call: whatever else the journal says, no other is made. */
function approvedCall(
  run: Run,
  task: LockedTask,
  call: ModelToolCall,
  approval: Step,
  { index, complaint }: Place,
): Planned {
  const { arguments: args, call_hash } = approval.output as ApprovedCall
  const tool = run.toolset.tools.get(call.name)
  if (!tool)
    return { step: refused(run, call, index, 'tool_not_found', `There is no tool named ${call.name} any more.`) }
  if (callHash(call.name, args) !== call_hash)
    return { step: refused(run, call, index, 'approval_mismatch', 'The approval was given for another call.') }
  if (complaint !== undefined) return { step: refused(run, call, index, 'invalid_arguments', complaint) }
  const approved = { ...call, arguments: args }
  if (isEngineAnswered(tool)) return { step: deferredCall(run, task, tool, approved, index) }
  return begin(tool, newStep(run, 'tool_call', approved, index), args)
}

/** These make no call: they make the task wait. */
function isEngineAnswered({ name, kind }: Tool): boolean {
  return kind === 'client' || (engineTools as readonly string[]).includes(name)
}

/** A call that an attempt began and did not finish: the crash rule. */
function startedCall(run: Run, task: LockedTask, step: Step): Planned | undefined {
  const { safety = 'unsafe' } = inputOf(step)
  if (safety === 'unsafe') return unknownCall(run, task, { ...step, status: 'unknown' })
  return again(run, step)
}

/** Its outcome is unknown: a person states it, once an attempt. Undefined until then. */
function unknownCall(run: Run, task: LockedTask, step: Step): Planned | undefined {
  const { repeat, approval_id, arguments: args } = inputOf(step)
  if (repeat === step.attempt) return again(run, step)
  if (approval_id !== undefined && repeat === undefined) return undefined
  const approval = question(run, task, step, 'recovery', args, null)
  const input: CallInput = { ...inputOf(step), approval_id: approval.id }
  delete input.repeat
  return { step: { ...step, status: 'unknown', input }, approval }
}

function again(run: Run, step: Step): Planned {
  const tool = run.toolset.tools.get(step.name)
  if (!tool) return { step: failedStep(step, 'tool_not_found', `There is no tool named ${step.name} any more.`) }
  const { waits_for, ...input } = inputOf(step)
  // One that waited for a token was not made.
  const attempt = waits_for === undefined || step.status === 'unknown' ? step.attempt + 1 : step.attempt
  return begin(tool, { ...step, attempt, input }, input.arguments as Record<string, unknown>)
}

function askedCall(run: Run, task: LockedTask, tool: Tool, call: ModelToolCall, index: number): Planned {
  const step = newStep(run, 'approval', call, index)
  const approval = question(run, task, step, 'tool_call', call.arguments, tool.parameters)
  return { step: { ...step, input: { ...inputOf(step), approval_id: approval.id } }, approval }
}

function question(
  run: Run,
  task: LockedTask,
  step: Step,
  kind: NewApproval['kind'],
  args: unknown,
  parameters: NewApproval['parameters'],
): NewApproval {
  const { approval_timeout_seconds = approvalTimeout_seconds, approval_on_timeout = 'reject' } = run.work.config
  return {
    id: newId('appr'),
    step_id: step.id,
    step_index: step.index,
    kind,
    tool: step.name,
    arguments: args,
    parameters,
    call_hash: callHash(step.name, args),
    on_timeout: approval_on_timeout,
    expires_at: new Date(Date.parse(task.now) + approval_timeout_seconds * 1000).toISOString(),
  }
}

function deferredCall(run: Run, task: LockedTask, tool: Tool, call: ModelToolCall, index: number): Step {
  const step = newStep(run, 'wait', call, index)
  const at = (seconds: number): string => new Date(Date.parse(task.now) + seconds * 1000).toISOString()
  if (tool.kind === 'client') {
    const { approval_timeout_seconds = approvalTimeout_seconds } = run.work.config
    return { ...step, input: { ...inputOf(step), is_callers: true, until: at(approval_timeout_seconds) } }
  }
  if (call.name !== 'wait') return step
  const { seconds } = call.arguments as { seconds: number }
  return { ...step, input: { ...inputOf(step), until: at(seconds) } }
}

function isDue(step: Step, { now }: LockedTask): boolean {
  const { until } = inputOf(step)
  return until !== undefined && Date.parse(until) <= Date.parse(now)
}

function waited(step: Step): Step {
  if (isCallers(step)) return failedStep(step, 'tool_timeout', 'The caller gave no result in time.')
  return { ...step, status: 'completed', output: { content: `It is ${inputOf(step).until} now.` } }
}

function begin(tool: Tool, step: Step, args: Record<string, unknown>): Planned {
  const safety: ToolSafety = safetyOf(tool, args)
  const begun: Step = { ...step, status: 'started', input: { ...inputOf(step), safety } }
  return { step: begun, call: { tool, step: begun, arguments: args } }
}

function newStep(run: Run, type: Step['type'], call: ModelToolCall, index: number): Step {
  const input: CallInput = { tool_call_id: call.id, arguments: call.arguments }
  return {
    task_id: run.claim.task_id,
    index,
    id: newId('step'),
    agent_id: run.agent_id,
    type,
    status: 'started',
    attempt: 1,
    failures: 0,
    name: call.name,
    input,
    output: null,
    error: null,
    model: null,
    usage: null,
  }
}

function refused(run: Run, call: ModelToolCall, index: number, code: string, message: string): Step {
  return failedStep(newStep(run, 'tool_call', call, index), code, message)
}

function failedStep(step: Step, code: string, message: string): Step {
  return { ...step, status: 'failed', output: { content: message }, error: { code, message, retryable: false } }
}

/** The plan as a change: what is written before any of its calls is made. */
export function planned({ steps, approvals, tool_calls }: Plan): Change {
  return {
    steps,
    approvals,
    tool_calls,
    events: [...steps.flatMap((step) => [...called(step), ...stepEvents(step)]), ...approvals.map(approvalEvent)],
    logs: steps
      .filter(({ status, type }) => status === 'failed' && type === 'tool_call')
      .map(({ name, error }) => ({
        level: 'warn' as const,
        message: `Tool call refused: ${error?.message ?? ''}`,
        context: { tool: name, code: error?.code },
      })),
  }
}

/** A call that is refused was never begun; still the model called it. */
function called(step: Step): NonNullable<Change['events']> {
  if (step.type !== 'tool_call' || step.status !== 'failed') return []
  const { id, index, name, attempt } = step
  return [
    {
      type: 'tool.called',
      data: { step_id: id, index, tool: name, tool_call_id: inputOf(step).tool_call_id, attempt },
    },
  ]
}

function approvalEvent({ id, step_id, kind, tool, arguments: args, expires_at }: NewApproval) {
  return {
    type: 'approval.requested' as const,
    data: { approval_id: id, step_id, kind, tool, arguments: args, expires_at },
  }
}

/** Whether a step is a call that the task's caller makes. */
export function isCallers(step: Step): boolean {
  return step.type === 'wait' && inputOf(step).is_callers === true
}

/** The identifier by which the caller answers a call: that of its step, with another beginning. */
export function callId({ id }: Pick<Step, 'id'>): string {
  return `call_${id.slice('step_'.length)}`
}

/** The event of a step's new state. */
export function stepEvents(step: Step): NonNullable<Change['events']> {
  const { id, index, type, name, attempt, status, error } = step
  const of = { step_id: id, index, type, name }
  const tool = { step_id: id, index, tool: name, tool_call_id: inputOf(step).tool_call_id }
  const isCall = type === 'tool_call'
  const called = isCallers(step) ? { ...tool, call_id: callId(step) } : undefined
  if (status === 'started') {
    const begun = { type: 'step.started' as const, data: { ...of, attempt } }
    if (called) return [begun, { type: 'tool.requested' as const, data: called }]
    return isCall ? [begun, { type: 'tool.called' as const, data: { ...tool, attempt } }] : [begun]
  }
  if (status === 'completed') {
    const done = { type: 'step.completed' as const, data: of }
    if (called) return [{ type: 'tool.resolved' as const, data: { ...called, error: null } }, done]
    return isCall ? [{ type: 'tool.completed' as const, data: tool }, done] : [done]
  }
  const failed = {
    type: 'step.failed' as const,
    data: {
      ...of,
      error: error ?? { code: 'unknown_outcome', message: unknownWords, retryable: false },
      will_retry: false,
    },
  }
  if (called) return [{ type: 'tool.resolved' as const, data: { ...called, error } }, failed]
  if (!isCall || status === 'unknown') return [failed]
  return [{ type: 'tool.failed' as const, data: { ...tool, error } }, failed]
}

const unknownWords = 'The call was interrupted; whether it took effect is unknown.'
