import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { eventually, type TestService } from '../../../../test/harness.ts'
import { shareTestService } from '../../../../test/shared-service.ts'
import { insertBacklog, insertWebhooks } from '../../../../test/webhooks.ts'
import type { Sql } from '../../../platform/postgres/database.ts'
import { newId } from '../../../platform/ids.ts'
import { writeAttempts } from './attempts.queries.ts'
import { openDeliveries } from './deliveries.queries.ts'
import type { AttemptResult, DeliveryStore } from './delivery-store.ts'

const backlog = 5000
/** An endpoint lease reads the deliveries that it sends next, and those in flight. */
const rowsMax = 50

let test: TestService
const owner = newId('worker')
let webhook_id: string
before(async () => {
  test = await shareTestService()
  const [id] = await insertWebhooks(test, ['https://hooks.example.com/'])
  webhook_id = id!
  // Owned by a process that lives and sends nothing, so that what is pending stays.
  await test.sql`insert into worker (id, instance, slots, seen_at) values (${owner}, 'elsewhere', 0, 'infinity')`
  await test.sql`insert into webhook_lane (webhook_id, owner) values (${webhook_id}, ${owner})`
  await insertBacklog(test, webhook_id, backlog)
  await test.sql.script('analyze delivery')
})
after(() => test.stop())

/** The result of work on a lease, and how many rows of deliveries it read. The work is rolled back. */
async function reading<T>(
  work: (store: Omit<DeliveryStore, 'write'>, tx: Sql) => Promise<T>,
  tables = '^delivery_[0-9]+$',
): Promise<{ given: T; rows: number }> {
  let read: { given: T; rows: number } | undefined
  const undone = new Error('undone')
  await test.sql
    .begin(async (tx) => {
      const count = async (): Promise<number> => {
        const [sum] = await tx<{ rows: number }>`
          select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) as rows from pg_stat_xact_user_tables
          where relname ~ ${tables}`
        return sum!.rows
      }
      const before = await count()
      const given = await work(openDeliveries(tx, owner), tx)
      read = { given, rows: (await count()) - before }
      throw undone
    }, 'forceIndexPlan')
    .catch((error: unknown) => assert.equal(error, undone))
  return read!
}

it('the next due delivery of a webhook is found without reading all that wait', async () => {
  await test.sql`update delivery set next_attempt_at = now() + interval '1 hour' where webhook_id = ${webhook_id}`
  const { given, rows } = await reading((store) => store.rest([{ webhook_id, except: [] }], { leave: false }))
  assert.deepEqual([...given], [[webhook_id, 'given_back']])
  assert.ok(rows > 0 && rows <= rowsMax, `${rows} rows were read`)
})

it('an endpoint lease rests until the first delivery that is not in flight', async () => {
  await test.sql`update delivery set next_attempt_at = now() + interval '1 hour' where webhook_id = ${webhook_id}`
  const sending = await test.sql<{
    id: string
  }>`select id from delivery where webhook_id = ${webhook_id} order by id limit 4`
  const except = sending.map(({ id }) => id)
  await test.sql`update delivery set next_attempt_at = now() - interval '1 minute' where id = any(${except})`
  const { given, rows } = await reading(async (store, tx) => {
    const rests = await store.rest([{ webhook_id, except }], { leave: false })
    const [lease] =
      await tx`select due_at > now() + interval '59 minutes' as is_later from webhook_lane where webhook_id = ${webhook_id}`
    return { rests: [...rests], lease }
  })
  assert.deepEqual(given, { rests: [[webhook_id, 'waiting']], lease: { is_later: true } })
  assert.ok(rows > 0 && rows <= rowsMax, `${rows} rows were read`)
})

it('an endpoint lease without a pending delivery rests until there is one', async () => {
  const { given } = await reading(async (store, tx) => {
    await tx`update delivery set status = 'delivered', next_attempt_at = null where webhook_id = ${webhook_id}`
    const rests = await store.rest([{ webhook_id, except: [] }], { leave: false })
    const [lease] = await tx`select due_at, owner from webhook_lane where webhook_id = ${webhook_id}`
    return { rests: [...rests], lease }
  })
  assert.deepEqual(given, { rests: [[webhook_id, 'given_back']], lease: { due_at: null, owner: null } })
})

it('deliveries are found without looking at all that waits', async () => {
  await test.sql`update delivery set next_attempt_at = now() - interval '1 minute' where webhook_id = ${webhook_id}`
  const { given, rows } = await reading((store) => store.find([{ webhook_id, count: 4, except: [] }]))
  assert.equal(given[0]?.due.length, 4)
  assert.ok(rows > 0 && rows <= rowsMax, `${rows} rows were read`)
})

it('a webhook that is disabled while its lease is read is sent nothing more', async () => {
  const ids = await insertWebhooks(test, ['https://held.example.com/', 'https://off.example.com/'])
  const [held, off] = ids
  await test.sql`update webhook set status = 'disabled', disabled_reason = 'requested', disabled_at = now() where id = ${held}`
  for (const id of ids) {
    await test.sql`insert into webhook_lane (webhook_id, owner) values (${id}, ${owner})`
    await insertBacklog(test, id, 1)
  }
  const leases = ids.map((id) => ({ webhook_id: id, count: 4, except: [] }))
  const found = await test.sql.begin(async (tx) => {
    // What waits for the other webhook is given up between the two statements: that is held up here.
    await tx`select from webhook where id = ${held} for update`
    const finding = openDeliveries(test.sql, owner).find(leases)
    await eventually(async () => {
      const rows = await test.sql`
        select from pg_locks l join pg_stat_activity a using (pid)
        where not l.granted and a.datname = current_database() and a.query like '%for share%'`
      return rows.length > 0
    })
    await test.sql`update webhook set status = 'disabled', disabled_reason = 'requested', disabled_at = now() where id = ${off}`
    return { finding }
  })
  assert.deepEqual(
    new Map((await found.finding).map(({ webhook_id: id, due }) => [id, due.length])),
    new Map(ids.map((id) => [id, 0])),
  )
})

it('whether a webhook failed before is found without looking at the attempts of others', async () => {
  const [failing] = await insertWebhooks(test, ['https://failing.example.com/'])
  await test.sql`insert into webhook_lane (webhook_id, owner) values (${failing}, ${owner})`
  await insertBacklog(test, failing!, 2)
  const [first, second] = await test.sql<{
    id: string
  }>`select id from delivery where webhook_id = ${failing} order by id`
  await test.sql`
    insert into delivery_attempt (delivery_id, attempt, at, duration_ms, request_url, request_headers, error)
    select id, 1, now() - interval '1 day', 1, '', '{}', 'failed' from delivery where webhook_id = ${webhook_id} or id = ${first!.id}`
  await test.sql`update delivery set attempts = 1 where webhook_id = ${webhook_id} or id = ${first!.id}`
  await test.sql`update webhook set failing_since = now() - interval '6 days' where id = ${failing}`
  const result: AttemptResult = {
    delivery_id: second!.id,
    webhook_id: failing!,
    attempts: 0,
    at: new Date(),
    duration_ms: 1,
    request_url: 'https://failing.example.com/',
    request_headers: {},
    status: 500,
    response_headers: {},
    body: null,
    error: 'The receiver answered 500.',
    retry_after_ms: undefined,
  }
  const { given, rows } = await reading(async (_store, tx) => {
    await writeAttempts(tx, owner, [result], () => 0.5)
    return tx`select disabled_reason from webhook where id = ${failing}`
  }, '^delivery_attempt_[0-9]+$')
  assert.deepEqual(given, [{ disabled_reason: 'failing' }])
  assert.ok(rows > 0 && rows <= rowsMax, `${rows} rows were read`)
})
