/** States of an agent (spec 3). */
export const agentStates = ['creating', 'running', 'paused', 'stopped', 'error', 'updating'] as const
export type AgentState = (typeof agentStates)[number]

export type AgentAction = 'start' | 'pause' | 'stop' | 'restart'

/**
 * The states that each action moves an agent from and to. If the agent is already in the target state, nothing
 * changes and the action succeeds (decision D33). The provisioner ends `creating` and `updating` first, so an action
 * never sees them.
 */
export const agentActions: Record<AgentAction, { from: readonly AgentState[]; to: AgentState; done: string }> = {
  start: { from: ['paused', 'stopped'], to: 'running', done: 'Agent started' },
  pause: { from: ['running'], to: 'paused', done: 'Agent paused' },
  stop: { from: ['running', 'paused', 'error'], to: 'stopped', done: 'Agent stopped' },
  restart: { from: ['running', 'paused', 'stopped', 'error'], to: 'running', done: 'Agent restarted' },
}

/** States that an agent reaches when the provisioner ends `creating` or `updating` (decisions D34, D35). */
export const settledStates = ['running', 'paused', 'stopped'] as const

/**
 * The state after an update: the one before it, except running after `creating` and stopped after `error` (decision
 * D35).
 */
export function settlesTo(state: AgentState): (typeof settledStates)[number] | undefined {
  if (state === 'creating') return 'running'
  if (state === 'error') return 'stopped'
  return state === 'updating' ? undefined : state
}

/** Actions that are allowed in a state: those that move the agent, and those whose target state it already has. */
export function allowedActions(state: AgentState): AgentAction[] {
  const actions: AgentAction[] = ['start', 'pause', 'stop', 'restart']
  return actions.filter((action) => agentActions[action].from.includes(state) || agentActions[action].to === state)
}

/** Every transition of an agent's status. Tests check histories against it. */
export const agentMoves: Record<AgentState, readonly AgentState[]> = {
  creating: ['running', 'error', 'updating'],
  running: ['paused', 'stopped', 'running', 'error', 'updating'],
  paused: ['running', 'stopped', 'error', 'updating'],
  stopped: ['running', 'error', 'updating'],
  error: ['running', 'stopped', 'updating'],
  updating: ['running', 'paused', 'stopped', 'updating', 'error'],
}
