import type { ModelCallOutput } from '../conversation/conversation.ts'
import type { ModelToolCall } from '../models/model.ts'
import type { Step, CallInput } from '../task.ts'

/** What the step of an approval holds once it is given: the call that may be made, and no other. */
export interface ApprovedCall {
  arguments: Record<string, unknown>
  call_hash: string
}

/**
 * State of a call. `fresh`: nothing is recorded. `asked`: its approval is pending. `approved`: it may be made now.
 * `begun`: an attempt began it and did not finish. `unknown`: its outcome is unknown. `deferred`: it waits for a time
 * or a message. `done`: the model can read its result.
 */
export type CallState =
  | { state: 'fresh' | 'done' }
  | { state: 'asked' | 'approved' | 'started' | 'unknown' | 'parked'; step: Step }

export interface OpenCall {
  call: ModelToolCall
  at: CallState
}

/** The calls of the last answer with where they stand; none while that answer is not there. */
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
  // The call itself says more than the approval that came before it.
  const step = steps.find(({ type }) => type !== 'approval') ?? steps[0]
  if (!step) return { state: 'fresh' }
  if (step.status === 'unknown') return { state: 'unknown', step }
  if (step.type === 'approval' && step.status === 'completed') return { state: 'approved', step }
  if (step.status !== 'started') return { state: 'done' }
  return { state: step.type === 'approval' ? 'asked' : step.type === 'wait' ? 'parked' : 'started', step }
}

export function inputOf(step: Step): CallInput {
  return step.input as CallInput
}

/** The code of a call whose caller gave no result in time. */
export const timeoutCode = 'tool_timeout'

/** Whether a step is a call of a tool on the caller's side. */
export function isCallers({ type, input }: Pick<Step, 'type' | 'input'>): boolean {
  return type === 'wait' && (input as CallInput).is_callers === true
}

/** The identifier by which the caller answers a call: that of its step, with another beginning. */
export function callId({ id }: Pick<Step, 'id'>): string {
  return `call_${id.slice('step_'.length)}`
}
