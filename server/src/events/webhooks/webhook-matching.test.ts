import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, makeTestDatabase, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../../test/fakes/webhook-receiver.ts'
import { aProject, listDeliveries, registerWebhook, tell } from '../../../test/webhooks.ts'
import { openDatabase, type Database } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { matchEvents } from './match-events.ts'
import { emit } from '../outbox.ts'

describe('the webhooks that an event is sent to', () => {
  let test: TestService
  let receiver: WebhookReceiver
  before(async () => {
    test = await shareTestService()
    receiver = await startWebhookReceiver()
  })
  after(async () => {
    await test.stop()
    await receiver.close()
  })
  const error = (severity: 'low' | 'high' | 'critical') =>
    tell(test.sql, test.owner.org_id, 'error.occurred', {
      error: { code: severity, message: 'x', severity, affected_resources: [] },
      user_id: 'user_x',
      request_id: null,
    })
  const happen = (name: string) => tell(test.sql, test.owner.org_id, 'project.created', aProject(name))
  /** Sent last, so that everything before it was matched and delivered. */
  const nothingElse = async (path: string): Promise<unknown[]> => {
    const marker = `/marker-${newId('evt')}`
    const marker_id = await registerWebhook(test, receiver.url(marker))
    await happen('marker')
    await receiver.received(marker, 1)
    await test.sql`delete from webhook where id = ${marker_id}`
    await eventually(async () => {
      const [row] = await test.sql`
        select 1 from event where matched_at is null and org_id = ${test.owner.org_id}
        union all
        select 1 from delivery d join webhook w on w.id = d.webhook_id
        where d.org_id = ${test.owner.org_id} and d.status = 'pending' and d.next_attempt_at <= now()`
      return !row
    })
    return receiver.requests(path).map(({ body }) => JSON.parse(body))
  }

  it('an event is sent to the webhooks that subscribe to it by name or by kind, and to no others', async () => {
    await registerWebhook(test, receiver.url('/named'), { events: ['project.created', 'agent.failed'] })
    await registerWebhook(test, receiver.url('/kind'), { events: ['task.*'] })
    await registerWebhook(test, receiver.url('/other'), { events: ['project.deleted'] })
    await happen('named')
    await tell(test.sql, test.owner.org_id, 'task.started', {
      task: {
        id: 'task_x',
        project_id: 'proj_1',
        agent_id: 'agent_x',
        agent_version: 1,
        thread_id: null,
        retried_from: null,
        status: 'running',
      },
      agent: { id: 'agent_x', name: 'x', project_id: 'proj_1' },
      sequence: 2,
      truncated: false,
      attempt: 1,
    })
    await receiver.received('/named', 1)
    await receiver.received('/kind', 1)
    assert.deepEqual(await nothingElse('/other'), [])
    assert.equal(JSON.parse(receiver.requests('/kind')[0]!.body).event, 'task.started')
    assert.equal(receiver.requests('/kind').length, 1)
  })

  it('a filter by severity limits error.occurred and lets all other events pass', async () => {
    await registerWebhook(test, receiver.url('/severe'), {
      events: ['error.occurred', 'project.created'],
      filters: { severity: ['high', 'critical'] },
    })
    for (const severity of ['low', 'high', 'critical'] as const) await error(severity)
    await happen('severe')
    const reported = await nothingElse('/severe')
    const codes = reported.map((body: any) => body.data.error?.code ?? body.data.project.name)
    assert.deepEqual(
      codes.filter((code) => code !== 'marker').toSorted((a, b) => a.localeCompare(b)),
      ['critical', 'high', 'severe'],
    )
  })

  it('an event is never sent to a webhook of another organization, nor to a disabled one', async () => {
    const webhook_id = await registerWebhook(test, receiver.url('/foreign'))
    const org_id = newId('org')
    await test.sql`insert into organization (id, name) values (${org_id}, 'elsewhere')`
    await test.sql`
      insert into webhook (id, org_id, url, events, secret, created_by)
      select ${newId('wh')}, ${org_id}, url || '-elsewhere', events, secret, created_by from webhook where id = ${webhook_id}`
    await tell(test.sql, org_id, 'project.created', aProject('elsewhere'))
    await eventually(async () => !(await test.sql`select 1 from event where matched_at is null`)[0])
    assert.equal((await listDeliveries(test.sql, webhook_id)).length, 0)
    await test.sql`update webhook set status = 'disabled' where id = ${webhook_id}`
    await happen('while disabled')
    assert.deepEqual(await nothingElse('/foreign'), [])
  })

  it('an event of a rolled-back transaction is sent to no webhook', async () => {
    await registerWebhook(test, receiver.url('/rolled-back'))
    const undone = test.sql.begin(async (tx) => {
      await emit(tx, 'project.created', { org_id: test.owner.org_id }, aProject('never'))
      throw new Error('not to be')
    })
    await assert.rejects(undone, /not to be/)
    const names = (await nothingElse('/rolled-back')).map((body: any) => body.data.project.name)
    assert.deepEqual(names, ['marker'])
  })

  it('an event of a process that died is matched by polling', async () => {
    await registerWebhook(test, receiver.url('/orphan'))
    await test.sql`
      insert into event (id, org_id, type, data)
      values (${newId('evt')}, ${test.owner.org_id}, 'project.created', '{"project": {"name": "orphan"}}')`
    const [request] = await receiver.received('/orphan', 1)
    assert.equal(JSON.parse(request!.body).data.project.name, 'orphan')
  })
})

describe('matching events', () => {
  let test: Awaited<ReturnType<typeof makeTestDatabase>>
  let database: Database
  before(async () => {
    test = await makeTestDatabase()
    database = openDatabase({ connection: test.connection })
    await database.sql`insert into organization (id, name) values ('org_1', 'one')`
  })
  after(async () => {
    await database.close()
    await test.drop()
  })
  const insertWebhooks = (count: number) => database.sql`
    insert into webhook (id, org_id, url, events, secret, created_by)
    select 'wh_' || lpad(i::text, 6, '0'), 'org_1', 'https://hooks.example.com/', '{project.created}', '', 'user_x'
    from generate_series(1, ${count}::int) i on conflict do nothing`
  const countDeliveries = async () => {
    const [row] = await database.sql<{ all: number; distinct: number; leases: number }>`
      select count(*) as all, count(distinct (webhook_id, event_id)) as distinct,
        (select count(*) from webhook_lane where due_at <= now()) as leases from delivery`
    return row!
  }
  const drain = async () => {
    let more = true
    while (more) ({ more } = await matchEvents(database.sql))
  }

  it('matching events takes a few statements for a thousand webhooks', async () => {
    await insertWebhooks(1000)
    await tell(database.sql, 'org_1', 'project.created', aProject())
    const statements: unknown[] = []
    const client = await database.pool.connect()
    const query = client.query.bind(client)
    Object.assign(client, { query: (...args: Parameters<typeof query>) => (statements.push(args[0]), query(...args)) })
    client.release()
    assert.deepEqual(await matchEvents(database.sql), { started: 1000, more: false })
    Reflect.deleteProperty(client, 'query')
    assert.ok(statements.length > 3 && statements.length <= 10, String(statements.length))
    assert.deepEqual(await countDeliveries(), { all: 1000, distinct: 1000, leases: 1000 })
  })

  it('matching events begins each delivery once, however many processes match, and with more events than one takes', async () => {
    await database.sql`delete from webhook where id > 'wh_000003'`
    await database.sql`delete from delivery`
    for (let i = 0; i < 5; i++)
      await database.sql.begin(async (tx) => {
        for (let j = 0; j < 50; j++) await emit(tx, 'project.created', { org_id: 'org_1' }, aProject())
      })
    await Promise.all([drain(), drain(), drain(), drain()])
    assert.deepEqual(await countDeliveries(), { all: 750, distinct: 750, leases: 3 })
    const [left] = await database.sql`select 1 from event where matched_at is null`
    assert.equal(left, undefined)
  })

  it('matching events leaves nothing half done where it fails, and goes on afterwards', async () => {
    await database.sql`delete from delivery`
    await tell(database.sql, 'org_1', 'project.created', aProject())
    await database.sql.script(`
      create function refuse() returns trigger language plpgsql as $$ begin raise 'no'; end $$;
      create trigger refuse before update on event for each row execute function refuse()`)
    await assert.rejects(matchEvents(database.sql), /no/)
    assert.equal((await countDeliveries()).all, 0)
    await database.sql.script('drop trigger refuse on event')
    await drain()
    assert.equal((await countDeliveries()).all, 3)
  })

  it('matching events asks for next to nothing where nothing happened', async () => {
    assert.deepEqual(await matchEvents(database.sql), { started: 0, more: false })
  })
})
