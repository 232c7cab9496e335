import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eventExamples } from '#contract/events/event-examples.ts'
import { eventPayloads } from '#contract/events/event-payloads.ts'
import { subscriptions, taskEventNames, testEventName, type OutboxEventName } from '#contract/events/events.ts'
import { taskEventBounds } from '#contract/events/task-event-payloads.ts'
import { webhookBody } from '#contract/events/webhook-delivery.ts'
import { check } from '../../http/validation.ts'
import { taskOutbox, type PublishedTask } from './task-outbox.ts'

/** A delivery of an event of a task is smaller than this, whatever happened in it. */
const bytesMax = 20_000

const task: PublishedTask = {
  id: eventExamples['task.created'].task.id,
  project_id: 42,
  agent_id: eventExamples['task.created'].agent.id,
  agent_version: 3,
  thread_id: null,
  retried_from: null,
  status: 'waiting',
  agent_name: 'support-agent',
}

/** The data of an event with every text and every list in it as long as it comes; tools have names without strange characters. */
function enlarge(value: unknown, name = ''): unknown {
  if (name === 'tool') return 'x'.repeat(500)
  if (typeof value === 'string') return value.includes(' ') ? '\u0001'.repeat(5000) : value
  if (Array.isArray(value))
    return Array.from({ length: 500 }, () =>
      enlarge(value[0] ?? { step_id: eventExamples['task.failed'].error.step_id, tool: '' }),
    )
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([member, one]) => [member, enlarge(one, member)]))
}

describe('the payload of an event', () => {
  it('every event has a payload schema and a valid example', () => {
    const names = [...subscriptions.filter((name) => !name.endsWith('*')), testEventName] as OutboxEventName[]
    assert.deepEqual(Object.keys(eventPayloads).toSorted(), names.toSorted())
    for (const event of names) {
      const data = eventExamples[event]
      assert.deepEqual(check(eventPayloads[event], data), [], event)
      assert.deepEqual(check(webhookBody, { event, timestamp: '2026-11-20T09:30:00.000Z', data }), [], event)
    }
  })

  it('the payload of one event is not valid for another', () => {
    const wrong = { event: 'agent.stopped', timestamp: '2026-11-20T09:30:00.000Z', data: eventExamples['agent.failed'] }
    assert.notDeepEqual(check(webhookBody, wrong), [])
  })
})

describe('webhook events of a task', () => {
  it('webhook events of a task match the contract, cut or not', () => {
    for (const type of taskEventNames) {
      const { task: shown, agent: _agent, sequence, truncated, ...own } = eventExamples[type]
      const more = { by_model: {} }
      const [published] = taskOutbox(
        { ...task, status: shown.status },
        [type],
        [{ type, sequence, data: { ...own, ...more } }],
      )
      assert.deepEqual(published, { type, data: eventExamples[type] })
      assert.equal(truncated, false)
    }
  })

  it('a large webhook event is cut to its bound, says so, and stays valid', () => {
    for (const type of taskEventNames) {
      const { task: _task, agent: _agent, sequence, truncated: _truncated, ...own } = eventExamples[type]
      const data = enlarge({ ...own, arguments: { body: 'x'.repeat(5000) } }) as Record<string, unknown>
      const name = '😀'.repeat(100)
      const [published] = taskOutbox({ ...task, agent_name: name }, [type], [{ type, sequence, data }])
      assert.deepEqual(check(eventPayloads[type], published!.data), [], type)
      const bytes = Buffer.byteLength(JSON.stringify(published))
      assert.ok(bytes < bytesMax, `${type}: ${bytes}`)
      const isLong = ['task.completed', 'task.failed', 'task.expired', 'task.canceled', 'task.waiting'].includes(type)
      assert.equal(published!.data.truncated, isLong || type.startsWith('approval.') || type === 'tool.requested', type)
    }
  })

  it('webhook events cut texts between characters', () => {
    const data = { reason: `${'😀'.repeat(taskEventBounds.text)}!`, effects: [], uncertain: [] }
    const [published] = taskOutbox(task, ['task.*'], [{ type: 'task.canceled', sequence: 2, data }])
    assert.equal((published!.data as { reason: string }).reason, '😀'.repeat(taskEventBounds.text))
  })

  it('only events that a webhook subscribes to are made, by name or by wildcard', () => {
    const types = ['task.started', 'step.started', 'budget.reached', 'task.failed', 'usage.updated'] as const
    const events = types.map((type, i) => ({ type, sequence: i + 2, data: {} }))
    const reportOf = (subscribed: string[]) => taskOutbox(task, subscribed, events).map(({ type }) => type)
    assert.deepEqual(reportOf(['task.*']), ['task.started', 'task.failed'])
    assert.deepEqual(reportOf(['task.failed', 'budget.*']), ['budget.reached', 'task.failed'])
    assert.deepEqual(reportOf(['approval.*', 'agent.failed', 'step.*']), [])
  })

  it('webhook events of a task leave out the name of a deleted agent', () => {
    const [published] = taskOutbox(
      { ...task, agent_name: undefined },
      ['task.*'],
      [{ type: 'task.created', sequence: 1, data: {} }],
    )
    assert.deepEqual(published!.data.agent, { id: task.agent_id, project_id: 'proj_42' })
  })
})
