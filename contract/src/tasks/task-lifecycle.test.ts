import assert from 'node:assert/strict'
import { it } from 'node:test'
import {
  agentAcceptsTasks,
  agentMayWork,
  countedAs,
  isFinished,
  isTerminalEvent,
  openStates,
  taskEventTypes,
  taskMoves,
  taskStates,
} from './task-lifecycle.ts'

it('every state is reachable, and the four final states are never left', () => {
  const reached = new Set(Object.values(taskMoves).flat())
  assert.deepEqual(
    taskStates.filter((state) => state !== 'queued' && !reached.has(state)),
    [],
  )
  assert.deepEqual(taskStates.filter(isFinished), ['completed', 'failed', 'canceled', 'expired'])
  assert.deepEqual(openStates, ['queued', 'running', 'waiting'])
})

it('an open task can always be canceled, and only an open one is in progress', () => {
  for (const state of openStates) assert.ok(taskMoves[state].includes('canceled'))
  for (const state of taskStates) assert.equal(countedAs[state] === 'in_progress', !isFinished(state))
})

it('a finished state and its event have one name', () => {
  const terminal = taskEventTypes.filter(isTerminalEvent)
  assert.deepEqual(
    terminal,
    taskStates.filter(isFinished).map((state) => `task.${state}`),
  )
})

it('an agent works while it runs, accepts tasks while it runs or is paused, and an update counts as the state after it', () => {
  const states = ['creating', 'running', 'paused', 'stopped', 'error'].map((status) => ({ status, settles_to: null }))
  assert.deepEqual(
    states.filter(agentMayWork).map(({ status }) => status),
    ['creating', 'running'],
  )
  assert.deepEqual(
    states.filter(agentAcceptsTasks).map(({ status }) => status),
    ['creating', 'running', 'paused'],
  )
  for (const settles_to of ['running', 'paused', 'stopped']) {
    const updating = { status: 'updating', settles_to }
    assert.deepEqual(
      [agentMayWork(updating), agentAcceptsTasks(updating)],
      [settles_to === 'running', settles_to !== 'stopped'],
    )
  }
})
