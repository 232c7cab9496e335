import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson, makeSession, ownerOf } from '../../../test/actors.ts'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'

const path = '/api/v1/system'
const secret = 'sk-canary-of-the-system'
/** A process that only answers requests. */
const apiOnly = 'worker_11111111111111111111111111'

describe('the system', () => {
  let service: TestService
  before(async () => {
    service = await startTestService({ OPENAI_API_KEY: secret, CADRE_LOG_RETENTION_DAYS: '3' })
  })
  after(() => service.stop())

  it('the system is shown with its workers, queues, database and settings, and without secrets', async () => {
    const { status, body, text } = await read()
    assert.equal(status, 200)
    const { database, workers, queue, settings } = body.installation
    assert.match(database.version, /^\d+/)
    assert.ok(database.bytes > 1_000_000)
    const [row] = await service.sql<{ last: number }>`select max(version) as last from schema_migration`
    assert.equal(database.schema_version, row!.last)
    assert.deepEqual(
      workers.map(({ id, is_alive, running_tasks }: Record<string, unknown>) => ({ id, is_alive, running_tasks })),
      [{ id: (await service.sql<{ id: string }>`select id from worker`)[0]!.id, is_alive: true, running_tasks: 0 }],
    )
    assert.equal(queue.queued, 0)
    const named = (name: string) => settings.find((one: { name: string }) => one.name === name)
    assert.equal(named('CADRE_LOG_RETENTION_DAYS').value, '3')
    assert.equal(named('CADRE_LOG_RETENTION_DAYS').source, 'environment')
    assert.equal(named('CADRE_CONSOLE').source, 'default')
    assert.deepEqual(
      { ...named('OPENAI_API_KEY'), section: '' },
      { section: '', name: 'OPENAI_API_KEY', value: null, is_secret: true, source: 'environment' },
    )
    assert.ok(!text.includes(secret))
  })

  it('an administrator can have expired data removed', async () => {
    await service.sql`
      insert into refusal_hour (org_id, hour, subject, bucket, user_id, refused, last_at)
      select id, now() - interval '60 days', 'key_x', 'general', 'user_x', 1, now() - interval '60 days' from organization`
    const { status, body } = await service.send('POST', `${path}/purge`, {})
    assert.equal(status, 200)
    assert.equal(body.is_complete, true)
    assert.deepEqual(await service.sql`select 1 from refusal_hour where hour < now() - interval '59 days'`, [])
  })

  it('an administrator drains a worker until it is resumed, and each is audited once', async () => {
    const [worker] = (await read()).body.installation.workers
    const drain = () => service.send('POST', `${path}/workers/${worker.id}/drain`, {})
    const { status, body } = await drain()
    assert.equal(status, 200)
    assert.deepEqual([body.id, body.drained_at], [worker.id, null])
    assert.ok(Date.parse(body.draining_since) <= Date.now())
    assert.equal((await drain()).body.draining_since, body.draining_since)
    const shown = await eventually(async () => {
      const [now] = (await read()).body.installation.workers
      return now.drained_at !== null && now
    })
    assert.equal(shown.draining_since, body.draining_since)
    const resumed = await service.send('POST', `${path}/workers/${worker.id}/resume`, {})
    assert.deepEqual([resumed.body.draining_since, resumed.body.drained_at], [null, null])
    const entries = await service.sql<{ action: string }>`
      select action from audit where target = ${worker.id} order by id`
    assert.deepEqual(
      entries.map(({ action }) => action),
      ['worker.drained', 'worker.resumed'],
    )
  })

  it('a draining worker whose row was removed by another process is still draining', async () => {
    const { worker_id } = service.service.context.engine
    await service.send('POST', `${path}/workers/${worker_id}/drain`, {})
    const row = () => service.sql<{ drained_at: string | null }>`select drained_at from worker where id = ${worker_id}`
    await eventually(async () => (await row())[0]!.drained_at !== null)
    await service.sql`delete from worker where id = ${worker_id}`
    await eventually(async () => (await row())[0]?.drained_at != null)
    await service.send('POST', `${path}/workers/${worker_id}/resume`, {})
  })

  it('only administrators can drain a worker, and only an existing one that takes tasks', async () => {
    const { worker_id } = service.service.context.engine
    const of = (id: string, verb: string) => `${path}/workers/${id}/${verb}`
    const { org_id } = ownerOf(service)
    for (const verb of ['drain', 'resume']) {
      assert.equal((await service.send('POST', of(worker_id, verb), { key: null })).status, 401)
      const reader = await makeKey(service, ownerOf(service), ['read'])
      assert.equal((await service.send('POST', of(worker_id, verb), { key: reader.key })).status, 403)
      for (const role of ['viewer', 'member'] as const) {
        const { key } = await makeKey(service, await makePerson(service, role, org_id), ['admin'])
        assert.equal((await service.send('POST', of(worker_id, verb), { key })).status, 403, `${role} ${verb}`)
      }
      for (const id of ['worker_00000000000000000000000000', 'nobody']) {
        const { status, body } = await service.send('POST', of(id, verb), {})
        assert.deepEqual([status, body.error.code], [404, 'RESOURCE_NOT_FOUND'])
      }
    }
    await service.sql`insert into worker (id, instance, slots) values (${apiOnly}, 'elsewhere', 0)`
    const { status, body } = await service.send('POST', of(apiOnly, 'drain'), {})
    assert.deepEqual([status, body.error.code], [409, 'RESOURCE_CONFLICT'])
    await service.sql`delete from worker where id = ${apiOnly}`
    const [row] = await service.sql<{ draining_since: string | null }>`
      select draining_since from worker where id = ${worker_id}`
    assert.equal(row!.draining_since, null)
  })

  it('only administrators see the system, and no user does on an installation with several organizations', async () => {
    const reader = await makeKey(service, ownerOf(service), ['read'])
    assert.equal((await service.send('GET', path, { key: reader.key })).status, 403)
    const stranger = await makeKey(service, await makePerson(service), ['admin'])
    for (const options of [{ key: stranger.key }, {}])
      assert.equal((await service.send('GET', path, options)).body.installation, null)
    const { worker_id } = service.service.context.engine
    for (const verb of ['drain', 'resume'])
      assert.equal((await service.send('POST', `${path}/workers/${worker_id}/${verb}`, {})).status, 404)
  })

  it('recent requests are listed by filters, without query strings and without reads of the console', async () => {
    const owner = ownerOf(service)
    const { key, id } = await makeKey(service, owner, ['read'])
    const missing = `/api/v1/projects/999999/agents?search=${secret}`
    const { headers } = await service.send('GET', missing, { key })
    const request_id = headers.get('x-request-id')
    const list = async (query: string) => (await service.send('GET', `/api/v1/requests?${query}`, {})).body.requests
    const [found] = await eventually(async () => {
      const requests = await list(`request_id=${request_id}`)
      return requests.length > 0 && requests
    })
    assert.deepEqual(
      [found.method, found.path, found.status, found.credential_kind, found.credential_id],
      ['GET', '/api/v1/projects/999999/agents', 404, 'api_key', id],
    )
    assert.ok(found.rate_limit.limit > 0 && found.rate_limit.remaining <= found.rate_limit.limit)
    assert.equal((await list(`credential_id=${id}&outcome=client_error&method=GET&path=agents`)).length, 1)
    assert.deepEqual(await list(`credential_id=${id}&outcome=success`), [])
    const { cookie } = await makeSession(service, owner)
    await service.send('GET', '/api/v1/projects', { key: null, headers: { cookie } })
    assert.ok(!(await list('limit=100')).some((one: { credential_kind: string }) => one.credential_kind === 'session'))
    const stranger = await makeKey(service, await makePerson(service), ['admin'])
    const theirs = await service.send('GET', '/api/v1/requests?limit=100', { key: stranger.key })
    assert.deepEqual(
      theirs.body.requests.filter((one: { credential_id: string }) => one.credential_id !== stranger.id),
      [],
    )
    assert.equal((await service.send('GET', '/api/v1/requests', { key })).status, 403)
  })

  async function read() {
    const answer = await service.send('GET', path, {})
    return { ...answer, text: JSON.stringify(answer.body) }
  }
})
