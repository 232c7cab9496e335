import { agentActions, type AgentAction, type AgentState } from '#contract/resources/agent-lifecycle.ts'
import { api } from '../api/client.ts'

/** What can be done to an agent as it stands, in the order of the buttons. */
export const actions = ['start', 'pause', 'stop', 'restart'] as const satisfies readonly AgentAction[]

export const actionLabels: Record<AgentAction, string> = {
  start: 'Start',
  pause: 'Pause',
  stop: 'Stop',
  restart: 'Restart',
}

/** Why an agent in this state cannot do that; undefined where it can. The contract's table of transitions decides. */
export function reasonAgainst(action: AgentAction, state: AgentState): string | undefined {
  const { from, to } = agentActions[action]
  if (from.includes(state)) return undefined
  if (state === to) return `The agent is ${state} already`
  if (state === 'creating' || state === 'updating') return `The agent is ${state}; wait a moment`
  return `An agent that is ${state} cannot ${action}: only one that is ${from.join(' or ')}`
}

/** Does it. */
export function act(project_id: string, agent_id: string, action: AgentAction | 'delete'): Promise<unknown> {
  return Promise.resolve(api.agents[action](project_id, agent_id))
}

/** Where the action leads to. */
export function stateAfter(action: AgentAction): AgentState {
  return agentActions[action].to
}

/** What brings an agent back to the state that it had; undefined where nothing does. */
export function undoOf(action: AgentAction, was: AgentState): AgentAction | undefined {
  if (action === 'pause' || action === 'stop') return was === 'running' ? 'start' : undefined
  if (action === 'start') return was === 'paused' ? 'pause' : was === 'stopped' ? 'stop' : undefined
  return undefined
}

/** An agent and what is to be done to it. */
export interface AgentStep {
  agent_id: string
  action: AgentAction
}

/** Requests of one bulk action in flight at once. */
const concurrency = 4

/** Does all of them, and returns what failed. */
export async function actOnEach(project_id: string, steps: readonly AgentStep[]): Promise<unknown[]> {
  const failures: unknown[] = []
  const waiting = steps.values()
  const next = async (): Promise<void> => {
    for (const { agent_id, action } of waiting)
      await act(project_id, agent_id, action).catch((error: unknown) => failures.push(error))
  }
  await Promise.all(Array.from({ length: concurrency }, next))
  return failures
}
