/** States of an agent (spec 3). */
export const agentStates = ['creating', 'running', 'paused', 'stopped', 'error', 'updating'] as const
export type AgentState = (typeof agentStates)[number]

export type AgentAction = 'start' | 'pause' | 'stop' | 'restart'

/**
 * What an action does: from which states it moves an agent, and where to. An agent that is already there stays as it
 * is, and the action succeeds (decision D33). `creating` and `updating` are settled first, so they are never met here.
 */
export const agentActions: Record<AgentAction, { from: readonly AgentState[]; to: AgentState; done: string }> = {
  start: { from: ['paused', 'stopped'], to: 'running', done: 'Agent started' },
  pause: { from: ['running'], to: 'paused', done: 'Agent paused' },
  stop: { from: ['running', 'paused', 'error'], to: 'stopped', done: 'Agent stopped' },
  restart: { from: ['running', 'paused', 'stopped', 'error'], to: 'running', done: 'Agent restarted' },
}

/** Where an agent goes when its creation or update is settled (decisions D34, D35). */
export const settledStates = ['running', 'paused', 'stopped'] as const

/** The state that an update leads back to: the one before it; `creating` to running, `error` to stopped (decision D35). */
export function settlesTo(state: AgentState): (typeof settledStates)[number] | undefined {
  if (state === 'creating') return 'running'
  if (state === 'error') return 'stopped'
  return state === 'updating' ? undefined : state
}

/** Actions that move an agent from a settled state, or leave it where it already is. */
export function allowedActions(state: AgentState): AgentAction[] {
  const actions: AgentAction[] = ['start', 'pause', 'stop', 'restart']
  return actions.filter((action) => agentActions[action].from.includes(state) || agentActions[action].to === state)
}

/** Every move that an agent's status can make: what an audit of the log is checked against. */
export const agentMoves: Record<AgentState, readonly AgentState[]> = {
  creating: ['running', 'error', 'updating'],
  running: ['paused', 'stopped', 'running', 'error', 'updating'],
  paused: ['running', 'stopped', 'error', 'updating'],
  stopped: ['running', 'error', 'updating'],
  error: ['running', 'stopped', 'updating'],
  updating: ['running', 'paused', 'stopped', 'updating', 'error'],
}
