import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import { script, startEventWorld, type EventWorld } from './event-world.ts'
import type { Agent } from './expected-events.ts'

/**
 * Causes every event of decision D93 from outside, and compares the stored event and the webhook delivery completely.
 * There are no other events: each test begins where the previous one has read to the end.
 */
let world: EventWorld
before(async () => {
  world = await startEventWorld()
})
afterEach(() => world.events.next())
after(() => world.stop())

describe('a project', () => {
  it('a project publishes events when it is created, renamed and deleted, and none for an unchanged name', async () => {
    const { test, events, user_id } = world
    const made = (await test.send('POST', '/api/v1/projects', { body: { name: 'brief' } })).body
    const path = `/api/v1/projects/${made.id}`
    await test.send('PUT', path, { body: { name: 'brief' } })
    const renamed = (await test.send('PUT', path, { body: { name: 'longer' } })).body
    await test.send('DELETE', path)
    const project_id = made.id
    await events.next(
      { type: 'project.created', project_id, data: { project: made, user_id } },
      { type: 'project.updated', project_id, data: { project: renamed, changed: ['name'], user_id } },
      { type: 'project.deleted', project_id, data: { project: { id: made.id, name: 'longer' }, user_id } },
    )
  })
})

describe('an agent', () => {
  it('an agent publishes events when it is started and stopped, and none for a pause or without a change', async () => {
    const { events, expected, act } = world
    const agent = await world.makeAgent()
    for (const action of ['start', 'pause', 'pause', 'start', 'stop', 'stop', 'start', 'pause', 'stop'])
      assert.equal((await act(agent, action)).status, 200, action)
    await events.next(
      expected.launched(agent, 'start'),
      expected.stopped(agent, 'requested'),
      expected.launched(agent, 'start'),
      expected.stopped(agent, 'requested'),
    )
    assert.equal((await act(agent, 'pause')).status, 409)
  })

  it('an agent that is restarted publishes a stop only if it was running', async () => {
    const { events, expected, act } = world
    const agent = await world.makeAgent()
    for (const action of ['restart', 'pause', 'restart', 'stop', 'restart']) await act(agent, action)
    await events.next(
      expected.stopped(agent, 'restart'),
      expected.launched(agent, 'restart'),
      expected.launched(agent, 'restart'),
      expected.stopped(agent, 'requested'),
      expected.launched(agent, 'restart'),
    )
  })

  it('an agent that is still being created is launched first by the next action', async () => {
    const { events, expected, call, act } = world
    for (const action of ['start', 'pause', 'stop', 'restart'] as const) {
      const { id, name } = (await call('POST', '/agents', { name: `early ${action}` })).body
      const agent: Agent = { id, name, project_id: `proj_${world.project.id}`, status: 'running' }
      await act(agent, action)
      const then = {
        start: [],
        pause: [],
        stop: [expected.stopped(agent, 'requested')],
        restart: [expected.stopped(agent, 'restart'), expected.launched(agent, 'restart')],
      }
      await events.next(expected.launched(agent, 'create'), ...then[action])
    }
  })

  it('an agent that is updated publishes no event, whatever its next state', async () => {
    const { call, act, settled } = world
    const agent = await world.makeAgent()
    for (const [action, status] of [
      ['start', 'running'],
      ['pause', 'paused'],
    ] as const) {
      await act(agent, action)
      assert.equal((await call('PUT', `/agents/${agent.id}`, { description: status })).body.status, 'updating')
      await settled(agent, status)
    }
  })

  it('launching an agent by name creates it, leaves a running one unchanged, and starts a stopped one', async () => {
    const { test, events, expected, call, project } = world
    const launch = () => test.send('POST', '/api/v1/agents', { body: { name: 'by name', project_id: project.id } })
    assert.equal((await launch()).status, 201)
    const [{ id, name }] = (await call('GET', '/agents?sort=-created_at&limit=1')).body.agents
    const agent: Agent = { id, name, project_id: `proj_${project.id}`, status: 'running' }
    await events.next(expected.launched(agent, 'launch'))
    assert.equal((await launch()).status, 200)
    await world.act(agent, 'stop')
    assert.equal((await launch()).status, 200)
    await events.next(expected.stopped(agent, 'requested'), expected.launched(agent, 'launch'))
  })

  it('an agent that is deleted publishes a stop if it was running or paused', async () => {
    const { events, expected, call, act } = world
    const [running, paused, resting] = [await world.makeAgent(), await world.makeAgent(), await world.makeAgent()]
    await act(paused, 'pause')
    await act(resting, 'stop')
    await events.next(expected.stopped(resting, 'requested'))
    for (const { id } of [running, paused, resting]) await call('DELETE', `/agents/${id}`)
    await events.next(expected.stopped(running, 'deleted'), expected.stopped(paused, 'deleted'))
  })
})

describe('a task', () => {
  it('a task that completes publishes the completion of its agent', async () => {
    const agent = await world.makeAgent()
    const { body: task } = await world.give(agent, script({ text: 'Done.' }))
    await world.events.next(world.expected.completed(agent, task))
  })

  it('a task that is canceled or deleted with its agent publishes no event of its agent', async () => {
    const { events, expected, call } = world
    const agent = await world.makeAgent()
    const begin = () => call('POST', `/agents/${agent.id}/tasks`, { input: script({ delay_ms: 600_000 }) })
    const [one, other] = [(await begin()).body, (await begin()).body]
    await call('POST', `/tasks/${one.id}/cancel`)
    assert.equal((await call('GET', `/tasks/${one.id}?wait=20`)).body.status, 'canceled')
    await call('DELETE', `/agents/${agent.id}`)
    assert.equal((await call('GET', `/tasks/${other.id}`)).status, 404)
    await events.next(expected.stopped(agent, 'deleted'))
  })

  it('a task that fails or expires publishes a failure of its agent and an error of medium severity (decision D94)', async () => {
    const { events, expected, give } = world
    const agent = await world.makeAgent()
    const refused = await give(agent, script({ error: { code: 'provider_refused_request', message: 'No.' } }))
    await events.next(...expected.failed(agent, refused, 'medium'))
    const late = await give(agent, script({ delay_ms: 600_000 }), { timeout_seconds: 1 })
    assert.equal(late.body.status, 'expired')
    await events.next(...expected.failed(agent, late, 'medium'))
    await world.act(agent, 'pause')
    const queued = await give(agent, 'x', { queue_ttl_seconds: 1 })
    assert.deepEqual([queued.body.status, queued.body.started_at], ['expired', null])
    await events.next(...expected.failed({ ...agent, status: 'paused' }, queued, 'medium'))
  })
})
