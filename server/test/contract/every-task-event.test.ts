import assert from 'node:assert/strict'
import { after, before, describe, it, type TestContext } from 'node:test'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { eventPayloads } from '#contract/events/event-payloads.ts'
import { taskEventNames, type TaskEventName } from '#contract/events/events.ts'
import { hasTaskSubscription } from '../../src/engine/journal/task-outbox.ts'
import { check } from '../../src/http/validation.ts'
import { newId } from '../../src/platform/ids.ts'
import { script, startEventWorld, type EventWorld } from './event-world.ts'
import type { Agent } from './expected-events.ts'
import { eventually } from '../harness.ts'

/** Webhook events of tasks, approvals and budgets, caused from outside. */
let world: EventWorld
let receiver: Server
before(async () => {
  receiver = createServer((_request, response) => void response.writeHead(204).end()).listen(0, '127.0.0.1')
  world = await startEventWorld()
})
after(async () => {
  await world.stop()
  receiver.closeAllConnections()
  receiver.close()
})

interface JournalNotice {
  type: TaskEventName
  project_id: number
  agent_id: string
  occurred_at: string
  is_matched: boolean
  data: any
}
/** The events written for a task, in order. */
const subscriptionsOf = ({ id }: { id: string }) =>
  world.test.sql<JournalNotice>`
    select type, project_id, agent_id, occurred_at, matched_at is not null as is_matched, data from event
    where data->'task'->>'id' = ${id} and data ? 'sequence' order by id`
/** The events of a task that webhooks may subscribe to, as the task itself has them. */
const eventsOf = async ({ id }: { id: string }) => {
  const { events } = (await world.call('GET', `/tasks/${id}/events?limit=1000`)).body
  return (events as { sequence: number; type: TaskEventName; created_at: string; data: any }[]).filter(({ type }) =>
    taskEventNames.includes(type),
  )
}
const reaches = (task: { id: string }, status: string) =>
  eventually(async () => {
    const { body } = await world.call('GET', `/tasks/${task.id}`)
    return body.status === status && body
  })

/** A webhook that has subscribed until the test is over, or `end` is called. */
async function subscribe(t: TestContext, ...events: string[]): Promise<{ end(): Promise<unknown> }> {
  const { port } = receiver.address() as AddressInfo
  const body = { url: `http://127.0.0.1:${port}/`, events, secret: 'x' }
  const { id } = (await world.test.send('POST', '/api/v1/webhooks', { body })).body
  const end = () => world.test.send('DELETE', `/api/v1/webhooks/${id}`)
  t.after(end)
  return { end }
}

/** The part of the data that every event of a task has. */
function common(agent: Agent, task: any, status: string, sequence: number) {
  const { id, agent_id, project_id, agent_version, thread_id, retried_from } = task
  return {
    task: { id, agent_id, project_id, agent_version, thread_id, retried_from, status },
    agent: { id: agent.id, name: agent.name, project_id: agent.project_id },
    sequence,
    truncated: false,
  }
}
/** Usage of a task, as in webhook events. */
function totals({ usage: { by_model: _byModel, total: _total, ...rest } }: any) {
  return rest
}

describe('what happens to a task, to its approvals and budgets', () => {
  it('events of tasks, approvals and budgets are not written without a subscription', async (t: TestContext) => {
    const agent = await world.createAgent()
    const others = await subscribe(t, 'agent.completed', 'error.occurred', 'project.created')
    const { body: task } = await world.give(agent, script({ text: 'Hello.' }))
    assert.equal(task.status, 'completed')
    assert.deepEqual(await subscriptionsOf(task), [])
    await others.end()
    await (await subscribe(t, 'task.*')).end()
    const { sql, owner } = world.test
    const stranger = newId('org')
    await sql`insert into organization (id, name) values (${stranger}, 'Strangers')`
    await sql`
      insert into webhook (id, org_id, url, events, secret, status, created_by)
      select id, org_id, 'https://hooks.example.com/', '{task.*}', '', status, ${owner.user_id}
      from (values (${newId('wh')}, ${stranger}, 'active'), (${newId('wh')}, ${owner.org_id}, 'disabled')) as w(id, org_id, status)`
    const { body: next } = await world.give(agent, script({ text: 'Hello again.' }))
    assert.deepEqual(await subscriptionsOf(next), [])
  })

  it('events of tasks, approvals and budgets cost no more with many webhooks for other events', async () => {
    const { sql, owner } = world.test
    const plan = await sql.begin(async (tx) => {
      await tx`set local enable_seqscan = off`
      return tx.run<{ 'QUERY PLAN': string }>(tx.fragment`
        explain (costs off) select from webhook w where w.org_id = ${owner.org_id} and ${hasTaskSubscription}`)
    })
    const text = plan.map((line) => line['QUERY PLAN']).join('\n')
    assert.match(text, /using webhook_of_task_events/)
    assert.doesNotMatch(text, /Filter/, 'every webhook in the index gets the event')
  })

  it('events of tasks, approvals and budgets are sent only to webhooks that subscribe to them by name', async (t: TestContext) => {
    const agent = await world.createAgent()
    await subscribe(t, 'task.failed', 'budget.reached')
    const good = (await world.give(agent, script({ text: 'Hello.' }))).body
    const bad = (await world.give(agent, script({ error: { code: 'provider_refused_request', message: 'No.' } }))).body
    assert.deepEqual(await subscriptionsOf(good), [])
    const events = await eventsOf(bad)
    const { sequence, created_at } = events.at(-1)!
    const { is_matched: _isMatched, ...received } = (await subscriptionsOf(bad))[0]!
    assert.deepEqual(received, {
      type: 'task.failed',
      project_id: world.project.id,
      agent_id: agent.id,
      occurred_at: created_at,
      data: { ...common(agent, bad, 'failed', sequence), error: bad.error, usage: totals(bad) },
    })
    assert.equal((await subscriptionsOf(bad)).length, 1)
  })

  it('events of tasks, approvals and budgets are sent completely, in order, and as the contract defines', async (t: TestContext) => {
    const { call, give } = world
    await subscribe(t, 'task.*', 'approval.*', 'budget.*')
    const agent = await world.createAgent({
      tools: ['current_time', 'wait'],
      tool_policies: { current_time: 'ask' },
      retry: { initial_delay_seconds: 0.01 },
    })
    const calls = { tool_calls: [{ name: 'current_time', arguments: { time_zone: 'UTC' } }] }

    const approved = (await give(agent, script(calls, { text: 'A long answer.' }))).body
    const [approval_id] = approved.wait.approval_ids
    await call('POST', `/approvals/${approval_id}/resolve`, { decision: 'approve' })
    const done = await reaches(approved, 'completed')
    const late = (await give(agent, script(calls, { text: 'x' }), { timeout_seconds: 1 })).body
    const expired = await reaches(late, 'expired')
    const faulty = script({ error: { code: 'provider_unavailable', times: 1 } }, { text: 'x' })
    const retried = (await give(agent, faulty)).body
    const canceled = (await give(agent, script(calls))).body
    await call('POST', `/tasks/${canceled.id}/cancel`, { reason: 'No longer needed.' })
    const failed = (await give(agent, script({ error: { code: 'provider_refused_request' } }))).body
    const again = (await call('POST', `/tasks/${failed.id}/retry?wait=20`, {})).body

    const seen = new Set<TaskEventName>()
    for (const task of [approved, late, retried, canceled, failed, again]) {
      const [events, published] = [await eventsOf(task), await subscriptionsOf(task)]
      assert.deepEqual(
        published.map(({ type, occurred_at, data }) => [type, occurred_at, data.sequence, data.task.id]),
        events.map(({ type, created_at, sequence }) => [type, created_at, sequence, task.id]),
      )
      for (const { type, project_id, agent_id, data } of published) {
        seen.add(type)
        assert.deepEqual([project_id, agent_id], [world.project.id, agent.id])
        assert.deepEqual(check(eventPayloads[type], data), [], type)
        assert.equal('output' in data, type === 'task.completed')
      }
    }
    // Events of client tools are tested with the tools.
    const below: TaskEventName[] = [
      'approval.expired',
      'budget.warning',
      'budget.reached',
      'tool.requested',
      'tool.resolved',
    ]
    assert.deepEqual([...seen, ...below].toSorted(), taskEventNames.toSorted())

    const of = async (task: any, type: TaskEventName) =>
      (await subscriptionsOf(task)).find((event) => event.type === type)!.data
    const place = async (task: any, type: TaskEventName) =>
      (await eventsOf(task)).find((event) => event.type === type)!.sequence
    const { step_id } = (await eventsOf(approved)).find(({ type }) => type === 'approval.requested')!.data
    const about = { approval_id, step_id, kind: 'tool_call', tool: 'current_time' }
    assert.deepEqual(await of(approved, 'task.created'), common(agent, approved, 'queued', 1))
    assert.deepEqual(await of(approved, 'approval.requested'), {
      ...common(agent, approved, 'waiting', await place(approved, 'approval.requested')),
      ...about,
      arguments: { time_zone: 'UTC' },
      expires_at: (await call('GET', `/approvals/${approval_id}`)).body.expires_at,
    })
    assert.deepEqual(await of(approved, 'approval.resolved'), {
      ...common(agent, approved, 'waiting', await place(approved, 'approval.resolved')),
      ...about,
      decision: 'approve',
      reason: null,
      resolved_by: world.user_id,
    })
    assert.deepEqual(await of(approved, 'task.completed'), {
      ...common(agent, approved, 'completed', done.last_sequence),
      output: done.output,
      usage: totals(done),
    })
    assert.deepEqual((await of(late, 'task.expired')).error, expired.error)
    assert.equal((await of(canceled, 'task.canceled')).reason, 'No longer needed.')
    assert.deepEqual(await of(again, 'task.created'), { ...common(agent, again, 'queued', 1), from_step: 0 })
    assert.equal(again.retried_from, failed.id)
  })

  it('budgets publish events when they are nearly spent and when they are spent', async (t: TestContext) => {
    await subscribe(t, 'budget.*')
    const agent = await world.createAgent({ tools: ['current_time'] })
    const spends = script({ usage: { input_tokens: 100, output_tokens: 45 } }, { text: 'x' })
    const near = (await world.give(agent, spends, { budget: { max_tokens: 180 } })).body
    const calls = script({ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'x' })
    const limited = (await world.give(agent, calls, { budget: { max_tool_calls: 0 } })).body
    assert.equal(limited.wait.reason, 'budget')
    for (const [task, type] of [
      [near, 'budget.warning'],
      [limited, 'budget.reached'],
    ] as const) {
      const event = (await eventsOf(task)).find((one) => one.type === type)!
      const received = await subscriptionsOf(task)
      const data = { ...common(agent, task, task.status, event.sequence), ...event.data }
      assert.deepEqual(
        received.map((one) => [one.type, one.data]),
        [[type, data]],
      )
      assert.deepEqual(check(eventPayloads[type], data), [])
    }
  })

  it('events of tasks and approvals are sent for a deleted agent, and for approvals that time out', async (t: TestContext) => {
    await subscribe(t, 'task.canceled', 'approval.*')
    const agent = await world.createAgent({
      tools: ['current_time'],
      tool_policies: { current_time: 'ask' },
      approval_timeout_seconds: 60,
    })
    const calls = script({ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'x' })
    const { body: asked } = await world.give(agent, calls)
    await world.test.sql`update approval set expires_at = now() where task_id = ${asked.id}`
    await reaches(asked, 'completed')
    const expired = (await subscriptionsOf(asked)).find(({ type }) => type === 'approval.expired')
    assert.equal(expired!.data.on_timeout, 'reject')
    assert.deepEqual(check(eventPayloads['approval.expired'], expired!.data), [])
    const { body: open } = await world.give(agent, calls)
    await world.call('DELETE', `/agents/${agent.id}`)
    const canceled = (await subscriptionsOf(open)).find(({ type }) => type === 'task.canceled')
    assert.deepEqual([canceled!.data.agent.name, canceled!.data.reason], [agent.name, 'The agent was deleted.'])
  })
})
