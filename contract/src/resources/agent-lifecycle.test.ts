import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  agentActions,
  agentMoves,
  agentStates,
  allowedActions,
  settledStates,
  settlesTo,
  type AgentAction,
  type AgentState,
} from './agent-lifecycle.ts'

type Settled = Exclude<AgentState, 'creating' | 'updating'>

/** Spec 3 with decision D33: the state after an action in each settled state; null if the action is refused. */
const table: Record<Settled, Record<AgentAction, AgentState | null>> = {
  running: { start: 'running', pause: 'paused', stop: 'stopped', restart: 'running' },
  paused: { start: 'running', pause: 'paused', stop: 'stopped', restart: 'running' },
  stopped: { start: 'running', pause: null, stop: 'stopped', restart: 'running' },
  error: { start: null, pause: null, stop: 'stopped', restart: 'running' },
}

describe('the life of an agent', () => {
  it('an agent has the six states of the specification', () => {
    assert.deepEqual([...agentStates], ['creating', 'running', 'paused', 'stopped', 'error', 'updating'])
  })

  for (const [state, row] of Object.entries(table) as [Settled, Record<AgentAction, AgentState | null>][]) {
    for (const [action, to] of Object.entries(row) as [AgentAction, AgentState | null][]) {
      it(`the action ${action} on an agent that is ${state} ${to === null ? 'is refused' : `leads to ${to}`}`, () => {
        const { from, to: target } = agentActions[action]
        const result = from.includes(state) ? target : target === state ? state : null
        assert.equal(result, to)
        assert.equal(allowedActions(state).includes(action), to !== null)
      })
    }
  }

  it('restart is allowed in every settled state, including running', () => {
    assert.deepEqual([...agentActions.restart.from].sort(), ['error', 'paused', 'running', 'stopped'])
  })

  it('actions are defined only for settled states', () => {
    for (const { from, to } of Object.values(agentActions)) {
      for (const state of [...from, to]) assert.equal(['creating', 'updating'].includes(state), false)
    }
  })

  it('an update leads back to the state before it, creating to running, error to stopped (decision D35)', () => {
    const back = Object.fromEntries(agentStates.map((state) => [state, settlesTo(state)]))
    assert.deepEqual(back, {
      creating: 'running',
      running: 'running',
      paused: 'paused',
      stopped: 'stopped',
      error: 'stopped',
      updating: undefined,
    })
  })

  it('the transitions are exactly those of actions, provisioning, updates and failures', () => {
    const moves = Object.fromEntries(agentStates.map((state) => [state, new Set<AgentState>()])) as Record<
      AgentState,
      Set<AgentState>
    >
    for (const { from, to } of Object.values(agentActions)) for (const state of from) moves[state].add(to)
    for (const state of agentStates) moves[state].add('updating')
    for (const state of agentStates) if (state !== 'error') moves[state].add('error')
    moves.creating.add('running')
    for (const state of settledStates) moves.updating.add(state)
    for (const state of agentStates) assert.deepEqual([...agentMoves[state]].sort(), [...moves[state]].sort(), state)
  })
})
