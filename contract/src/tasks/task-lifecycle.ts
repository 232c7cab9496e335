/** States of a task. */
export const taskStates = ['queued', 'running', 'waiting', 'completed', 'failed', 'canceled', 'expired'] as const
export type TaskState = (typeof taskStates)[number]

/** Every transition of a task's status. The last four states are final. */
export const taskMoves: Record<TaskState, readonly TaskState[]> = {
  queued: ['running', 'waiting', 'canceled', 'expired'],
  running: ['waiting', 'completed', 'failed', 'canceled', 'expired'],
  waiting: ['running', 'canceled', 'expired'],
  completed: [],
  failed: [],
  canceled: [],
  expired: [],
}

/** States that are not final. */
export const openStates = taskStates.filter((state) => taskMoves[state].length > 0)

export function isFinished(state: TaskState): boolean {
  return taskMoves[state].length === 0
}

/** How the specification's statistics and metrics count each state; null means not at all. */
export const countedAs: Record<TaskState, 'in_progress' | 'completed' | 'failed' | null> = {
  queued: 'in_progress',
  running: 'in_progress',
  waiting: 'in_progress',
  completed: 'completed',
  failed: 'failed',
  canceled: null,
  expired: 'failed',
}

/** Why a task waits. */
export const waitReasons = [
  'approval',
  'input',
  'tool',
  'child',
  'budget',
  'credential',
  'unknown_outcome',
  'provider',
  'agent_paused',
  'agent_stopped',
  'timer',
  'worker',
] as const
export type WaitReason = (typeof waitReasons)[number]

/** Waits that end when the agent runs again. */
export const agentWaitReasons = ['agent_paused', 'agent_stopped'] as const satisfies readonly WaitReason[]

/**
 * Waits that end when a person or a program responds: an approval is resolved, or a message or a tool result arrives.
 */
export const personWaitReasons = [
  'approval',
  'unknown_outcome',
  'input',
  'tool',
] as const satisfies readonly WaitReason[]

/** Waits that end with a result from outside the task: from a person, a program, or a delegated task. */
export const answeredWaitReasons = [...personWaitReasons, 'child'] as const satisfies readonly WaitReason[]

/** Whether a call is repeated after a crash: `safe` and `keyed` are; for `unsafe` a person is asked. */
export const toolSafeties = ['safe', 'keyed', 'unsafe'] as const
export type ToolSafety = (typeof toolSafeties)[number]

/** States of a call of a client tool. */
export const toolCallStates = ['pending', 'claimed', 'completed', 'failed', 'timed_out', 'canceled', 'unknown'] as const
export type ToolCallState = (typeof toolCallStates)[number]

/**
 * Every transition of such a call. When its lease expires, it becomes pending again, or `unknown` if the tool is
 * `unsafe`. A person gives the outcome of an unknown call, or lets it be offered again.
 */
export const toolCallMoves: Record<ToolCallState, readonly ToolCallState[]> = {
  pending: ['claimed', 'completed', 'failed', 'timed_out', 'canceled'],
  claimed: ['pending', 'completed', 'failed', 'timed_out', 'canceled', 'unknown'],
  completed: [],
  failed: [],
  timed_out: [],
  canceled: [],
  unknown: ['pending', 'completed', 'failed', 'canceled'],
}

/** States of such a call that are not final. */
export const openToolCallStates = toolCallStates.filter((state) => toolCallMoves[state].length > 0)

/** Policies of an agent for a tool, by name. */
export const toolPolicies = ['auto', 'ask', 'deny'] as const
export type ToolPolicy = (typeof toolPolicies)[number]

/** Kinds of approvals: permission for a call, or the outcome of a call whose outcome is unknown. */
export const approvalKinds = ['tool_call', 'recovery'] as const
export type ApprovalKind = (typeof approvalKinds)[number]

/** States of an approval; only `pending` changes. */
export const approvalStates = ['pending', 'approved', 'rejected', 'expired'] as const
export type ApprovalState = (typeof approvalStates)[number]

/** What happens to a call whose approval timed out. */
export const approvalTimeouts = ['reject', 'cancel'] as const
export type ApprovalTimeout = (typeof approvalTimeouts)[number]

/** Kinds of steps. */
export const stepTypes = ['model_call', 'tool_call', 'approval', 'wait', 'compaction'] as const
export type StepType = (typeof stepTypes)[number]

export const stepStates = ['started', 'completed', 'failed', 'unknown'] as const
export type StepState = (typeof stepStates)[number]

/** Stored events of a task. A terminal event is the last one of its task. */
export const taskEventTypes = [
  'task.created',
  'task.started',
  'task.waiting',
  'task.resumed',
  'task.retrying',
  'task.completed',
  'task.failed',
  'task.canceled',
  'task.expired',
  'step.started',
  'step.completed',
  'step.failed',
  'message.completed',
  'message.discarded',
  'tool.called',
  'tool.completed',
  'tool.failed',
  'tool.requested',
  'tool.resolved',
  'artifact.created',
  'approval.requested',
  'approval.resolved',
  'approval.expired',
  'usage.updated',
  'budget.warning',
  'budget.reached',
  'credential.expired',
  'model.fallback',
  'context.compacted',
  'cancel.requested',
] as const
export type TaskEventType = (typeof taskEventTypes)[number]

/** Events that only a stream carries: they are not stored and have no sequence number. */
export const liveEventTypes = ['task.snapshot', 'message.snapshot', 'message.delta', 'reasoning.delta'] as const
export type LiveEventType = (typeof liveEventTypes)[number]

const terminalEventTypes: ReadonlySet<string> = new Set([
  'task.completed',
  'task.failed',
  'task.canceled',
  'task.expired',
])

/** Whether an event is the last of its task: streams close after it. */
export function isTerminalEvent(type: string): boolean {
  return terminalEventTypes.has(type)
}

/** Whether tasks of the agent may start steps. An agent that is `updating` counts as in its state afterwards. */
export function agentMayWork(agent: { status: string; settles_to: string | null }): boolean {
  const state = agent.status === 'updating' ? agent.settles_to : agent.status
  return state === 'running' || agent.status === 'creating'
}

/** Whether the agent accepts tasks. A paused agent queues them. */
export function agentAcceptsTasks(agent: { status: string; settles_to: string | null }): boolean {
  const state = agent.status === 'updating' ? agent.settles_to : agent.status
  return state === 'running' || state === 'paused' || agent.status === 'creating'
}
