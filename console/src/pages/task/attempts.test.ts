import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TaskEvent } from '../../task-parts/types.ts'
import { attemptsOf } from './attempts.ts'

/** Events of a task, a second apart. */
const eventsOf = (...all: [type: string, data?: object][]): TaskEvent[] =>
  all.map(([type, data = {}], index) => ({
    ...{ type, data, sequence: index + 1 },
    created_at: new Date(Date.UTC(2026, 0, 1, 0, 0, index)).toISOString(),
  })) as unknown as TaskEvent[]

const briefly = (events: TaskEvent[]): unknown[] =>
  attemptsOf(events).map(({ number, state, work, ending, notes }) => [
    ...[number, state, work, ending],
    notes.map(({ text }) => text),
  ])

test('an attempt tells its steps and the end of its task', () => {
  const events = eventsOf(
    ['task.created'],
    ['task.started', { attempt: 1 }],
    ['step.started', { type: 'model_call', index: 0 }],
    ['step.completed', { type: 'model_call', index: 0 }],
    ['step.started', { type: 'tool_call', index: 1 }],
    ['step.started', { type: 'model_call', index: 2 }],
    ['task.failed', { error: { message: 'The provider refused the call.' } }],
  )
  const [attempt, ...others] = attemptsOf(events)
  assert.deepEqual(others, [])
  assert.equal(attempt!.started_at, events[1]!.created_at)
  assert.equal(attempt!.ended_at, events[6]!.created_at)
  assert.deepEqual(briefly(events), [[1, 'failed', '2 model calls, 1 tool call', 'The provider refused the call.', []]])
})

test('an attempt whose worker was lost ends where another one takes over', () => {
  const events = eventsOf(
    ['task.started', { attempt: 1 }],
    ['step.started', { type: 'model_call', index: 0 }],
    ['task.retrying', { attempt: 2, reason: 'worker_lost' }],
    ['task.completed'],
  )
  assert.deepEqual(briefly(events), [
    [2, 'completed', '', '', []],
    [1, 'lost', '1 model call', 'The worker died or was cut off.', []],
  ])
})

test('an attempt ends with a wait, and the next one says why it began', () => {
  const events = eventsOf(
    ['task.started', { attempt: 1 }],
    ['task.waiting', { wait: { reason: 'approval' } }],
    ['approval.resolved'],
    ['task.resumed', { attempt: 2, reason: 'approval' }],
  )
  assert.deepEqual(briefly(events), [
    [2, 'running', '', '', []],
    [1, 'waiting', '', 'Waited for an approval.', []],
  ])
  assert.equal(attemptsOf(events)[0]!.reason, 'Resumed after an approval was resolved.')
})

test('an attempt notes failed steps, repeated calls, other models and summaries', () => {
  const events = eventsOf(
    ['task.started', { attempt: 1 }],
    ['step.failed', { index: 0, name: 'a/b', error: { message: 'Too many requests.' }, will_retry: true }],
    ['task.retrying', { retry_in_seconds: 2 }],
    ['model.fallback', { index: 0, from: 'a/b', to: 'c/d', error: { message: 'Overloaded.' } }],
    ['context.compacted', { index: 3, before_step: 2 }],
  )
  assert.deepEqual(
    attemptsOf(events)[0]!.notes.map(({ text }) => text),
    [
      'Step 0, a/b, failed and is tried again: Too many requests.',
      'The model call is repeated in 2.00 s.',
      'c/d took over from a/b: Overloaded.',
      'A summary replaced the steps before step 2.',
    ],
  )
})

test('steps of an attempt that began before the events belong to an attempt without a number', () => {
  const events = eventsOf(['step.started', { type: 'tool_call', index: 7 }], ['task.completed'])
  assert.deepEqual(briefly(events), [[undefined, 'completed', '1 tool call', '', []]])
})
