import { setImmediate } from 'node:timers/promises'
import { bounds } from '#contract/core/limits.ts'
import type { ToolSafety } from '#contract/tasks/task-lifecycle.ts'
import { newId } from '../../platform/ids.ts'
import { callHash } from '../tools/call-hash.ts'
import {
  callId,
  callsOf,
  inputOf,
  isCallers,
  timeoutCode,
  type ApprovedCall,
  type OpenCall,
} from '../journal/call-states.ts'
import type { Decide } from '../journal/journal.ts'
import type { ModelToolCall } from '../models/model.ts'
import type { Run } from './run.ts'
import { isAllowed } from './run-model.ts'
import { judgeValue } from '../tools/schemas/schema-judge.ts'
import { checkArguments } from '../tools/arguments.ts'
import { policyOf } from './tool-policy.ts'
import { engineTools, safetyOf, type Tool } from '../tools/tool.ts'
import type { LockedTask, Step, CallInput, NewApproval, NewDelegation, NewToolCall } from '../task.ts'

type Change = ReturnType<Decide>

/** A tool call that is made as soon as its intent is committed. */
export interface PlannedCall {
  tool: Tool
  step: Step
  arguments: Record<string, unknown>
}

/** The plan for the tool calls of the last answer, written as one change: intents, approvals, refusals. */
export interface Plan {
  /** Steps as they will be, new and changed ones. */
  steps: Step[]
  calls: PlannedCall[]
  approvals: NewApproval[]
  /** Calls that are made outside the engine. */
  tool_calls: NewToolCall[]
  /** Calls that become tasks of other agents. */
  delegations: NewDelegation[]
}

/** Maximum number of calls in one answer; further ones are refused. */
export const callsMax = 64
/** Default time for a person to answer. */
const approvalTimeout_seconds = 7 * 86_400
/** After a check that took longer than this, other work of the process gets its turn. */
const slowCheck_ms = 5

/** Errors in the arguments of calls that may start, by the ids of the calls. */
export type CallProblems = ReadonlyMap<string, string>

/**
 * Checks the arguments of calls that may start, before their intents are written. A check may take long, and must block
 * neither the task's lock nor the process.
 */
export async function checkCalls({ steps, toolset, party }: Run): Promise<CallProblems> {
  const argumentErrors = new Map<string, string>()
  for (const { call, at } of callsOf(steps).slice(0, callsMax)) {
    const tool = toolset.tools.get(call.name)
    const args =
      at.state === 'fresh' ? call.arguments : at.state === 'approved' && (at.step.output as ApprovedCall).arguments
    if (!tool || (at.state !== 'fresh' && at.state !== 'approved')) continue
    const began_at = performance.now()
    await judgeValue(tool.parameters, args, party)
    const argumentError = checkArguments(tool, args)
    if (argumentError !== undefined) argumentErrors.set(call.id, argumentError)
    if (performance.now() - began_at > slowCheck_ms) await setImmediate()
  }
  return argumentErrors
}

/** Plans every call that can continue. Calls that wait for a person, a time or a message stay as they are. */
export function planCalls(run: Run, task: LockedTask, argumentErrors: CallProblems): Plan {
  const plan: Plan = { steps: [], calls: [], approvals: [], tool_calls: [], delegations: [] }
  let index = run.steps.length
  const allowed = (run.work.caller?.max_tool_calls ?? Infinity) - run.usage.tool_calls
  callsOf(run.steps).forEach((open, position) => {
    const argumentError = argumentErrors.get(open.call.id)
    const isBeyond =
      plan.steps.filter(({ type, status }) => type !== 'approval' && status === 'started').length >= allowed
    const planned = planCall(run, task, open, { index, position, argumentError, isBeyond })
    if (!planned) return
    plan.steps.push(planned.step)
    if (planned.step.index === index) {
      index += 1
      if (isCallers(planned.step)) plan.tool_calls.push(newToolCall(planned.step))
    }
    if (planned.call) plan.calls.push(planned.call)
    if (planned.delegation) plan.delegations.push(planned.delegation)
    if (planned.approval) plan.approvals.push(planned.approval)
  })
  return plan
}

function newToolCall(step: Step): NewToolCall {
  const { safety = 'safe', until = null } = inputOf(step)
  return { id: callId(step), step_index: step.index, name: step.name, safety, expires_at: until }
}

/** The plan for one call. */
export interface Planned {
  step: Step
  call?: PlannedCall
  approval?: NewApproval
  delegation?: NewDelegation
}

/** The position of a call in its answer, and the index of its step. */
export interface Place {
  index: number
  position: number
  argumentError: string | undefined
  /** Whether the caller's `max_tool_calls` is reached. */
  isBeyond?: boolean
}

/** Plans one call; undefined if it waits for a person, a time or a message. */
export function planCall(run: Run, task: LockedTask, { call, at }: OpenCall, place: Place): Planned | undefined {
  if ('step' in at && run.lacking.has(at.step.index)) return undefined
  if (at.state === 'fresh') return freshCall(run, task, call, place)
  if (at.state === 'approved') return approvedCall(run, task, call, at.step, place)
  if (at.state === 'started') return startedCall(run, task, at.step)
  if (at.state === 'unknown') return unknownCall(run, task, at.step)
  if (at.state === 'waiting' && isDue(at.step, task)) return { step: waited(at.step) }
  return undefined
}

function freshCall(
  run: Run,
  task: LockedTask,
  call: ModelToolCall,
  { index, position, argumentError, isBeyond }: Place,
): Planned {
  const refuse = (code: string, message: string): Planned => ({ step: refused(run, call, index, code, message) })
  if (isBeyond) return refuse('too_many_calls', beyondWords(run))
  const tool = run.toolset.tools.get(call.name)
  if (!tool) return refuse('tool_not_found', `There is no tool named ${call.name}.`)
  if (position >= callsMax) return refuse('too_many_calls', `One answer may call ${callsMax} tools at most.`)
  const policy = policyOf(run.work.config, call.name)
  if (policy === 'deny') return refuse('tool_denied', `This agent may not call ${call.name}.`)
  if (!isAllowed(run.work.caller, call.name))
    return refuse('tool_not_allowed', `The caller of this task does not allow ${call.name}.`)
  if (argumentError !== undefined) return refuse('invalid_arguments', argumentError)
  const args = call.arguments as Record<string, unknown>
  if (policy === 'ask') return askedCall(run, task, tool, call, index)
  if (tool.delegate) return delegated(run, task, tool, call, index)
  if (isEngineAnswered(tool)) return { step: deferredCall(run, task, tool, call, index) }
  return begin(tool, newStep(run, 'tool_call', call, index), args)
}

function beyondWords({ work: { caller } }: Run): string {
  return `The caller of this task set max_tool_calls to ${caller?.max_tool_calls}; this call was not made. Answer without it.`
}

/** An approval permits exactly one call, with these arguments; no other is made. */
function approvedCall(
  run: Run,
  task: LockedTask,
  call: ModelToolCall,
  approval: Step,
  { index, argumentError, isBeyond }: Place,
): Planned {
  if (isBeyond) return { step: refused(run, call, index, 'too_many_calls', beyondWords(run)) }
  const { arguments: args, call_hash } = approval.output as ApprovedCall
  const tool = run.toolset.tools.get(call.name)
  if (!tool)
    return { step: refused(run, call, index, 'tool_not_found', `There is no tool named ${call.name} any more.`) }
  if (callHash(call.name, args) !== call_hash)
    return { step: refused(run, call, index, 'approval_mismatch', 'The approval was given for another call.') }
  if (argumentError !== undefined) return { step: refused(run, call, index, 'invalid_arguments', argumentError) }
  const approved = { ...call, arguments: args }
  if (tool.delegate) return delegated(run, task, tool, approved, index)
  if (isEngineAnswered(tool)) return { step: deferredCall(run, task, tool, approved, index) }
  return begin(tool, newStep(run, 'tool_call', approved, index), args)
}

/** Calls of these tools are not made by the engine: they make the task wait. */
function isEngineAnswered({ name, kind }: Tool): boolean {
  return kind === 'client' || (engineTools as readonly string[]).includes(name)
}

/** A call that becomes a task of another agent; a tool error if the tree has its maximum depth. */
function delegated(run: Run, { depth }: LockedTask, { delegate }: Tool, call: ModelToolCall, index: number): Planned {
  const { config, caller } = run.work
  const depth_max = caller?.depth_max ?? config.max_depth ?? bounds.config_max_depth_default
  if (depth >= depth_max) {
    const message = `This task has the depth ${depth}, and tasks may be delegated to a depth of ${depth_max} at most.`
    return { step: refused(run, call, index, 'delegation_too_deep', message) }
  }
  const { agent_id, version, takes_object } = delegate!
  const args = call.arguments as Record<string, unknown>
  const step = newStep(run, 'wait', call, index)
  const child_task_id = newId('task')
  return {
    step: { ...step, input: { ...inputOf(step), child_task_id } },
    delegation: {
      child_task_id,
      step_index: index,
      agent_id,
      agent_version: version,
      depth_max,
      input: takes_object ? args : String(args['input']),
    },
  }
}

/** A call that an earlier attempt started and did not complete: repeats it if that is safe, else asks a person. */
function startedCall(run: Run, task: LockedTask, step: Step): Planned | undefined {
  const { safety = 'unsafe' } = inputOf(step)
  if (safety === 'unsafe') return unknownCall(run, task, { ...step, status: 'unknown' })
  return again(run, task, step)
}

/**
 * A call of unknown outcome: asks a person to state the outcome, once per attempt. Undefined until the person answers.
 */
function unknownCall(run: Run, task: LockedTask, step: Step): Planned | undefined {
  const { repeat, approval_id, arguments: args } = inputOf(step)
  if (repeat === step.attempt) return again(run, task, step)
  if (approval_id !== undefined && repeat === undefined) return undefined
  const approval = question(run, task, step, 'recovery', args, null)
  const input: CallInput = { ...inputOf(step), approval_id: approval.id }
  delete input.repeat
  return { step: { ...step, status: 'unknown', input }, approval }
}

function again(run: Run, task: LockedTask, step: Step): Planned {
  const tool = run.toolset.tools.get(step.name)
  if (!tool) return { step: failedStep(step, 'tool_not_found', `There is no tool named ${step.name} any more.`) }
  // The call is offered again, with the full time.
  if (isCallers(step)) {
    const input = { ...inputOf(step), until: timeoutOf(run, task, tool) }
    return { step: { ...step, status: 'started', attempt: step.attempt + 1, input } }
  }
  const { waits_for, ...input } = inputOf(step)
  // A call that waited for a token was not made, so this is not another attempt.
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
  if (tool.kind === 'client') {
    const safety = safetyOf(tool, call.arguments as Record<string, unknown>)
    const until = timeoutOf(run, task, tool)
    const whose = { is_callers: true as const, ...(tool.is_projects && { is_projects: true as const }) }
    return { ...step, input: { ...inputOf(step), ...whose, safety, until } }
  }
  if (call.name !== 'wait') return step
  const { seconds } = call.arguments as { seconds: number }
  return { ...step, input: { ...inputOf(step), until: later(task, seconds) } }
}

/** The deadline of a call that is made outside the engine. */
function timeoutOf(run: Run, task: LockedTask, { timeout_seconds }: Tool): string {
  const { approval_timeout_seconds = approvalTimeout_seconds } = run.work.config
  return later(task, timeout_seconds ?? approval_timeout_seconds)
}

function later({ now }: LockedTask, seconds: number): string {
  return new Date(Date.parse(now) + seconds * 1000).toISOString()
}

function isDue(step: Step, { now }: LockedTask): boolean {
  const { until } = inputOf(step)
  return until !== undefined && Date.parse(until) <= Date.parse(now)
}

function waited(step: Step): Step {
  if (isCallers(step)) return failedStep(step, timeoutCode, 'No result came in time.')
  return { ...step, status: 'completed', output: { content: `It is ${inputOf(step).until} now.` } }
}

function begin(tool: Tool, step: Step, args: Record<string, unknown>): Planned {
  const safety: ToolSafety = safetyOf(tool, args)
  const started: Step = { ...step, status: 'started', input: { ...inputOf(step), safety } }
  return { step: started, call: { tool, step: started, arguments: args } }
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

/** The plan as a change, which is written before any of its calls is made. */
export function planned({ steps, approvals, tool_calls, delegations }: Plan): Change {
  return {
    steps,
    approvals,
    tool_calls,
    delegations,
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

/** A refused call was never started, but the model called it, so it has the event. */
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

/** The events of a step's new state. */
export function stepEvents(step: Step): NonNullable<Change['events']> {
  const { id, index, type, name, attempt, status, error } = step
  const of = { step_id: id, index, type, name }
  const tool = { step_id: id, index, tool: name, tool_call_id: inputOf(step).tool_call_id }
  const isCall = type === 'tool_call'
  const called = isCallers(step) ? { ...tool, call_id: callId(step) } : undefined
  if (status === 'started') {
    const { child_task_id } = inputOf(step)
    const started = { type: 'step.started' as const, data: { ...of, attempt, ...(child_task_id && { child_task_id }) } }
    if (called) {
      const { arguments: args, until = null } = inputOf(step)
      return [started, { type: 'tool.requested' as const, data: { ...called, arguments: args, expires_at: until } }]
    }
    return isCall ? [started, { type: 'tool.called' as const, data: { ...tool, attempt } }] : [started]
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
  if (status === 'unknown') return [failed]
  if (called) return [{ type: 'tool.resolved' as const, data: { ...called, error } }, failed]
  if (!isCall) return [failed]
  return [{ type: 'tool.failed' as const, data: { ...tool, error } }, failed]
}

const unknownWords = 'The call was interrupted; whether it took effect is unknown.'
