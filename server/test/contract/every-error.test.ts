import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it, type TestContext } from 'node:test'
import { script, startEventWorld, whileRefused, type EventWorld } from './event-world.ts'
import { startFakeModelServer, type FakeModelServer } from '../fake-models/fake-model-server.ts'
import type { Reply } from '../harness.ts'
import { startLocalServer } from '../fakes/local-server.ts'
import { OAuthDriver } from '../oauth.ts'

/**
 * The errors of decision D94 besides failed tasks. Each is caused from outside, and its stored and its delivered event
 * are compared completely.
 */
let world: EventWorld
let provider: FakeModelServer
before(async () => {
  provider = await startFakeModelServer()
  world = await startEventWorld({ OPENAI_BASE_URL: provider.base_url, OPENAI_API_KEY: 'sk-fake-0123456789' })
})
afterEach(() => world.events.next())
after(async () => {
  await world.stop()
  await provider.close()
})

describe('an error of critical severity', () => {
  it('an error of critical severity is a task whose provider refuses the credentials', async () => {
    const agent = await world.makeAgent({ model: 'openai/gpt-4o-mini' })
    provider.next({ do: 'status', status: 401, message: 'Incorrect API key.' })
    const refused = await world.give(agent, 'Hello')
    assert.equal(refused.body.error.code, 'provider_credentials_refused')
    await world.events.next(...world.expected.failed(agent, refused, 'critical'))
  })

  it('an error of critical severity is a task that fails with an internal error', async () => {
    const agent = await world.makeAgent()
    const broke = await whileRefused(world.test, 'task_step', () => world.give(agent, script({ text: 'x' })))
    assert.equal(broke.body.error.code, 'internal_error')
    await world.events.next(...world.expected.failed(agent, broke, 'critical'))
  })

  it('an error of critical severity is a request that fails with an internal error, and names its resource', async () => {
    const { events, act, user_id } = world
    const agent = await world.makeAgent()
    const answer = await whileRefused(world.test, 'agent_log', () => act(agent, 'pause'))
    assert.equal(answer.status, 500)
    const { code, message } = answer.body.error
    const error = { code, message, severity: 'critical' as const, affected_resources: [agent.project_id, agent.id] }
    const request_id = answer.headers.get('x-request-id')
    await events.next({ type: 'error.occurred', data: { error, user_id, request_id } })
  })
})

describe('an error of high severity', () => {
  it('an error of high severity is an agent that goes into error by its tasks, and a stop clears it', async () => {
    const { events, expected, give, act } = world
    const agent = await world.makeAgent({ model: 'builtin/nothing' })
    const replies: Reply[] = []
    for (let i = 0; i < 3; i++) replies.push(await give(agent, 'x'))
    const tasks = replies.map(({ body }) => body.id).toReversed()
    const message = '3 tasks in a row failed because of its configuration (model_not_found).'
    const request_id = replies[2]!.headers.get('x-request-id')
    await events.next(
      ...replies.flatMap((reply) => expected.failed(agent, reply, 'medium')),
      ...expected.broken(agent, { code: 'agent_error', message }, { tasks, request_id }),
    )
    await act(agent, 'stop')
    await events.next(expected.stopped(agent, 'requested'))
  })

  it('an error of high severity is an agent that cannot be provisioned; a launch by name restarts it', async () => {
    const { test, events, expected, settled, project } = world
    const agent = await world.makeAgent()
    // Like a value encrypted with another CADRE_SECRET_KEY a minute ago.
    await test.sql`
      update agent set environment = ${Buffer.from('not ours to read')}, status = 'updating', settles_to = 'running',
        updated_at = now() - interval '61 seconds' where id = ${agent.id}`
    await settled(agent, 'error')
    const message =
      'The stored environment variables cannot be read: they were encrypted with another CADRE_SECRET_KEY.'
    const failure = { code: 'provisioning_failed', message }
    await events.next(...expected.broken(agent, failure, { tasks: [], request_id: null }))
    await test.sql`update agent set environment = null where id = ${agent.id}`
    await test.send('POST', '/api/v1/agents', { body: { name: agent.name, project_id: project.id } })
    await events.next(expected.launched(agent, 'launch'))
  })

  it('an error of high severity is a refresh token of an app that is used twice', async () => {
    const { test, events, user_id } = world
    const oauth = new OAuthDriver(test)
    const app = await oauth.client('shop')
    const { refresh_token } = await oauth.tokens(app)
    await oauth.refresh(app, refresh_token)
    const [grant] = await test.sql<{ id: string }>`select id from oauth_grant where client_id = ${app.client_id}`
    const reuse = await oauth.refresh(app, refresh_token)
    const code = 'refresh_token_reused'
    const message = 'A token of an OAuth app was used twice and may have been stolen. Its access has been revoked.'
    const error = { code, message, severity: 'high' as const, affected_resources: [grant!.id, app.client_id] }
    const request_id = reuse.headers.get('x-request-id')
    await events.next({ type: 'error.occurred', data: { error, user_id, request_id } })
  })

  it('an error of high severity is a webhook that is disabled because its receiver is gone', async (t: TestContext) => {
    const { test, events, user_id } = world
    const receiver = await startLocalServer(t, (_request, response) => void response.writeHead(410).end())
    const body = { url: `${receiver.url}/`, events: ['project.created'], secret: 'x' }
    const { id } = (await test.send('POST', '/api/v1/webhooks', { body })).body
    const project = (await test.send('POST', '/api/v1/projects', { body: { name: 'sent-to-none' } })).body
    const error = {
      code: 'webhook_disabled',
      message: 'A webhook was disabled: its receiver answered 410.',
      severity: 'high' as const,
      affected_resources: [id],
    }
    await events.next(
      { type: 'project.created', project_id: project.id, data: { project, user_id } },
      { type: 'error.occurred', data: { error, user_id, request_id: null } },
    )
  })
})
