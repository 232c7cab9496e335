import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson, ownerOf } from '../../../test/actors.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'

const path = '/api/v1/system'
const secret = 'sk-canary-of-the-system'

describe('the system', () => {
  let service: TestService
  before(async () => {
    service = await startTestService({ OPENAI_API_KEY: secret, CADRE_LOG_RETENTION_DAYS: '3' })
  })
  after(() => service.stop())

  it('is shown with its workers, queues, database and settings, and without secrets', async () => {
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

  it('removes expired data when an administrator asks for it', async () => {
    await service.sql`
      insert into refusal_hour (org_id, hour, subject, bucket, user_id, refused, last_at)
      select id, now() - interval '60 days', 'key_x', 'general', 'user_x', 1, now() - interval '60 days' from organization`
    const { status, body } = await service.send('POST', `${path}/purge`, {})
    assert.equal(status, 200)
    assert.equal(body.is_complete, true)
    assert.deepEqual(await service.sql`select 1 from refusal_hour where hour < now() - interval '59 days'`, [])
  })

  it('is for administrators, and is not shown where organizations share it', async () => {
    const reader = await makeKey(service, ownerOf(service), ['read'])
    assert.equal((await service.send('GET', path, { key: reader.key })).status, 403)
    const stranger = await makeKey(service, await makePerson(service), ['admin'])
    for (const options of [{ key: stranger.key }, {}])
      assert.equal((await service.send('GET', path, options)).body.installation, null)
  })

  async function read() {
    const answer = await service.send('GET', path, {})
    return { ...answer, text: JSON.stringify(answer.body) }
  }
})
