import type { ModelCallOutput } from '../conversation/conversation.ts'
import type { ModelToolCall } from '../models/model.ts'
import type { Step, CallInput } from '../task.ts'

/** Output of an approval's step after it was approved: the only call that it permits. */
export interface ApprovedCall {
  arguments: Record<string, unknown>
  call_hash: string
}

/**
 * State of a tool call.
 * - `fresh`: the journal has nothing of it.
 * - `asked`: its approval is pending.
 * - `approved`: it may be made now.
 * - `started`: an attempt started it and did not complete it.
 * - `unknown`: its outcome is unknown.
 * - `waiting`: it waits for a time, a message, or a result from outside the engine.
 * - `done`: the model can read its result.
 */
export type CallState =
  | { state: 'fresh' | 'done' }
  | { state: 'asked' | 'approved' | 'started' | 'unknown' | 'waiting'; step: Step }

export interface OpenCall {
  call: ModelToolCall
  at: CallState
}

/** The tool calls of the model's last answer with their states; none while that answer is incomplete. */
export function callsOf(steps: readonly Step[]): OpenCall[] {
  const last = steps.findLastIndex(({ type }) => type === 'model_call')
  const answer = steps[last]
  if (answer?.status !== 'completed') return []
  const later = steps.slice(last + 1)
  const { tool_calls } = answer.output as ModelCallOutput
  return tool_calls.map((call) => ({
    call,
    at: stateOf(later.filter((step) => inputOf(step).tool_call_id === call.id)),
  }))
}

export function stateOf(steps: readonly Step[]): CallState {
  // The call's step has more recent information than its approval's.
  const step = steps.find(({ type }) => type !== 'approval') ?? steps[0]
  if (!step) return { state: 'fresh' }
  if (step.status === 'unknown') return { state: 'unknown', step }
  if (step.type === 'approval' && step.status === 'completed') return { state: 'approved', step }
  if (step.status !== 'started') return { state: 'done' }
  return { state: step.type === 'approval' ? 'asked' : step.type === 'wait' ? 'waiting' : 'started', step }
}

export function inputOf(step: Step): CallInput {
  return step.input as CallInput
}

/** The error code of a call whose caller sent no result in time. */
export const timeoutCode = 'tool_timeout'

/** Whether a step is a tool call that is made outside the engine, by the caller or by a process of the project. */
export function isCallers({ type, input }: Pick<Step, 'type' | 'input'>): boolean {
  return type === 'wait' && (input as CallInput).is_callers === true
}

/** The id of a caller's tool call: its step's id with another prefix. */
export function callId({ id }: Pick<Step, 'id'>): string {
  return `call_${id.slice('step_'.length)}`
}
