import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, makeTestDatabase, sender, startOn, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { createProject } from '../../../test/fixtures.ts'

let test: TestService
let agents: string
before(async () => {
  test = await shareTestService()
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'settling' } })
  agents = `/api/v1/projects/proj_${body.id}/agents`
})
after(() => test.stop())

let names = 0
const get = async (id: string) => (await test.send('GET', `${agents}/${id}`)).body
const settled = (id: string, status: string) => eventually(async () => (await get(id)).status === status)
async function make(body: object = {}): Promise<any> {
  return (await test.send('POST', agents, { body: { name: `agent-${++names}`, ...body } })).body
}
const eventsOf = (id: string) =>
  test.sql<{ type: string; data: any }>`select type, data from event where agent_id = ${id} order by id`

/** As if the process that created it had died with another secret key than ours. */
async function makeUnreadable(): Promise<string> {
  const { id } = await make({ config: { environment_variables: { A: 'x' } } })
  await settled(id, 'running')
  await test.sql`update agent set environment = ${Buffer.from('not ours to read')} where id = ${id}`
  await test.sql`delete from event where agent_id = ${id}`
  await test.sql`delete from agent_log where agent_id = ${id}`
  return id
}

describe('an agent that is being created (decision D34)', () => {
  it('a new agent is returned as creating and then runs, with a log entry for each state, one event and one audit entry', async () => {
    const { id, name, project_id, status, created_at, updated_at } = await make()
    assert.equal(status, 'creating')
    assert.equal((await get(id)).status, 'running')
    const [audited] = await test.sql<{ after: any }>`select after from audit where target = ${id}`
    assert.deepEqual(
      [audited!.after.name, audited!.after.created_at, audited!.after.updated_at],
      [name, created_at, updated_at],
    )
    assert.deepEqual(await eventsOf(id), [
      {
        type: 'agent.launched',
        data: { agent: { id, name, project_id, status: 'running' }, trigger: 'create', user_id: test.owner.user_id },
      },
    ])
    const log = await test.sql<{
      level: string
      message: string
    }>`select level, message from agent_log where agent_id = ${id} order by timestamp, id`
    assert.deepEqual(log, [
      { level: 'info', message: 'Agent creating' },
      { level: 'info', message: 'Agent creating → running' },
    ])
    assert.equal((await get(id)).updated_at, updated_at)
  })

  it('an agent that is being created also runs if the process that created it has died', async () => {
    const { id } = await make()
    await settled(id, 'running')
    await test.sql`delete from event where agent_id = ${id}`
    await test.sql`update agent set status = 'creating', settles_to = 'running', launch_trigger = 'create' where id = ${id}`
    await settled(id, 'running')
    assert.deepEqual(
      (await eventsOf(id)).map(({ type }) => type),
      ['agent.launched'],
    )
  })

  it('many agents created at once all run, each launched once', async () => {
    const made = await Promise.all(Array.from({ length: 40 }, () => make()))
    await Promise.all(made.map(({ id }) => settled(id, 'running')))
    for (const { id } of made) assert.equal((await eventsOf(id)).length, 1)
  })
})

describe('an agent whose environment cannot be read', () => {
  it('an agent whose environment cannot be read is in error after three attempts, with the reason in its log and events (decisions D34, D36, D94)', async () => {
    const id = await makeUnreadable()
    await test.sql`update agent set status = 'creating', settles_to = 'running', launch_trigger = 'create', settle_attempts = 1, updated_at = now() where id = ${id}`
    await settled(id, 'error')
    const events = await eventsOf(id)
    assert.deepEqual(
      events.map(({ type }) => type),
      ['agent.failed', 'error.occurred'],
    )
    const [failed, occurred] = events.map(({ data }) => data)
    assert.deepEqual([failed.agent.status, failed.task, failed.error.code], ['error', null, 'provisioning_failed'])
    assert.deepEqual(Object.keys(failed.error).sort(), ['code', 'message'])
    assert.deepEqual(
      [occurred.error.severity, occurred.error.affected_resources, occurred.user_id, occurred.request_id],
      ['high', [id], test.owner.user_id, null],
    )
    const log = await test.sql<{
      level: string
      context: any
    }>`select level, context from agent_log where agent_id = ${id} order by timestamp, id`
    assert.deepEqual(
      log.map(({ level }) => level),
      ['error', 'error'],
    )
    assert.deepEqual(log.at(-1)?.context, { from: 'creating', to: 'error' })
  })

  it('an agent whose environment cannot be read is in error at once if it has waited for a minute', async () => {
    const id = await makeUnreadable()
    await test.sql`update agent set status = 'updating', settles_to = 'paused', settle_attempts = 0, updated_at = now() - interval '61 seconds' where id = ${id}`
    await settled(id, 'error')
    assert.deepEqual(
      (await eventsOf(id)).map(({ type }) => type),
      ['agent.failed', 'error.occurred'],
    )
  })

  it('an agent whose environment cannot be read defers its tasks when it enters error, as a stop does', async () => {
    const { id } = await make({ config: { model: 'builtin/script', environment_variables: { A: 'x' } } })
    await settled(id, 'running')
    const script = JSON.stringify([{ delay_ms: 60_000 }, { text: 'too late' }])
    const { body: task } = await test.send('POST', `${agents}/${id}/tasks`, { body: { input: script } })
    const read = async () => (await test.send('GET', `${agents.replace('/agents', '')}/tasks/${task.id}`)).body
    await eventually(async () => (await read()).status === 'running')
    await test.sql`
      update agent set environment = ${Buffer.from('not ours to read')}, status = 'updating', settles_to = 'running',
        updated_at = now() - interval '61 seconds' where id = ${id}`
    await settled(id, 'error')
    const deferred = await eventually(async () => {
      const now = await read()
      return now.status === 'waiting' && now
    })
    assert.equal(deferred.wait.reason, 'agent_stopped')
  })

  it('an agent whose environment cannot be read can still be read, listed, renamed and deleted; new variables repair it', async () => {
    const id = await makeUnreadable()
    await test.sql`update agent set status = 'error' where id = ${id}`
    const { body, status } = await test.send('GET', `${agents}/${id}`)
    assert.deepEqual([status, body.status, 'environment_variables' in body.config], [200, 'error', false])
    const renamed = await test.send('PUT', `${agents}/${id}`, { body: { name: 'still-unreadable' } })
    assert.deepEqual([renamed.status, renamed.body.status], [200, 'updating'])
    const [row] = await test.sql<{ environment: Buffer }>`select environment from agent where id = ${id}`
    assert.equal(row!.environment.toString(), 'not ours to read')
    const healed = await test.send('PUT', `${agents}/${id}`, {
      body: { config: { environment_variables: { B: 'new' } } },
    })
    assert.deepEqual([healed.status, healed.body.config.environment_variables], [200, { B: 'new' }])
    await settled(id, 'stopped')
    const other = await makeUnreadable()
    assert.equal((await test.send('DELETE', `${agents}/${other}`)).status, 200)
  })
})

describe('an agent that was in error before it ever ran', () => {
  it('an agent that failed before it ever ran is launched by a restart, and not again by an update', async () => {
    const { id } = await make()
    await settled(id, 'running')
    await test.sql`delete from event where agent_id = ${id}`
    await test.sql`update agent set status = 'error', launch_trigger = 'create' where id = ${id}`
    assert.equal((await test.send('POST', `${agents}/${id}/restart`)).body.status, 'running')
    await test.send('PUT', `${agents}/${id}`, { body: { description: 'x' } })
    await settled(id, 'running')
    assert.deepEqual(
      (await eventsOf(id)).map(({ data }) => data.trigger),
      ['restart'],
    )
  })
})

describe('a service that is started with another secret key', () => {
  it('after a start with another secret key, new agents with environment variables go into error and the others run', async () => {
    const database = await makeTestDatabase()
    const first = await startOn(database.connection)
    const send = sender(first.url, first.first_owner!.api_key)
    const project = await createProject(send, 'moved')
    const path = `${project.path}/agents`
    const { body: secret } = await send('POST', path, {
      body: { name: 'secret', config: { environment_variables: { A: 'canary' } } },
    })
    const { body: plain } = await send('POST', path, { body: { name: 'plain' } })
    await first.context.sql`update agent set status = 'creating', settles_to = 'running', settle_attempts = 2`
    await first.stop()

    const second = await startOn(database.connection, {
      CADRE_SECRET_KEY: 'another secret key, of 32 characters or more',
      CADRE_SECRET_KEY_LOST: 'acknowledged',
    })
    try {
      const again = sender(second.url, first.first_owner!.api_key)
      const statusOf = async (id: string) => (await again('GET', `${path}/${id}`)).body.status
      await eventually(async () => (await statusOf(secret.id)) === 'error')
      await eventually(async () => (await statusOf(plain.id)) === 'running')
      assert.equal(JSON.stringify((await again('GET', `${path}/${secret.id}`)).body).includes('canary'), false)
    } finally {
      await second.stop()
      await database.drop()
    }
  })
})
