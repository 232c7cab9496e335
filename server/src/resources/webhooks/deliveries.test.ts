import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { eventExamples } from '#contract/events/event-examples.ts'
import { bounds } from '#contract/core/limits.ts'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { newId } from '../../platform/ids.ts'

let test: TestService
let webhook: string
before(async () => {
  test = await shareTestService()
})
after(() => test.stop())
beforeEach(async () => {
  webhook = await register()
})

const base = '/api/v1/webhooks'
const day_ms = 86_400_000

async function register(): Promise<string> {
  const body = { url: 'https://hooks.invalid/', events: ['project.deleted'], secret: 'canary' }
  const reply = await test.send('POST', base, { body })
  assert.equal(reply.status, 201, JSON.stringify(reply.body))
  return reply.body.id
}
const disable = () => test.send('PUT', `${base}/${webhook}`, { body: { status: 'disabled' } })
const at = (path: string) => `${base}/${webhook}/deliveries${path}`
const ago = (ms: number): string => new Date(Date.now() - ms).toISOString()
const recover = (since: unknown, headers: Record<string, string> = {}) =>
  test.send('POST', `${base}/${webhook}/recover`, { body: { since }, headers })

/** A delivery row that no process sends, because its webhook has no endpoint lease. */
interface Stored {
  status: 'pending' | 'delivered' | 'failed'
  event: string
  failure: string | null
  attempts: number
  created_at: string
  finished_at: string | null
}
async function insert(changes: Partial<Stored> = {}): Promise<string> {
  const { status = 'failed', event = 'agent.failed', attempts = 0 } = changes
  const { failure = status === 'failed' ? 'attempts_exhausted' : null, created_at = ago(0) } = changes
  const { finished_at = status === 'pending' ? null : ago(0) } = changes
  const id = newId('dlv')
  await test.sql`
    insert into delivery (id, webhook_id, org_id, event_id, event, status, failure, attempts, round_attempts, created_at,
      finished_at, next_attempt_at)
    values (${id}, ${webhook}, ${test.owner.org_id}, ${newId('evt')}, ${event}, ${status}, ${failure}, ${attempts}, ${attempts},
      ${created_at}, ${finished_at}, case when ${status}::text = 'pending' then now() + interval '10 hours' end)`
  return id
}
const statusOf = async (id: string) => {
  const [row] = await test.sql<{ status: string }>`select status from delivery where id = ${id}`
  return row!.status
}

describe('the deliveries of a webhook', () => {
  const list = async (query = '') => {
    const { status, body } = await test.send('GET', `${at('')}?${query}`)
    assert.equal(status, 200, JSON.stringify(body))
    return body
  }
  const found = async (query: string): Promise<string[]> => (await list(query)).deliveries.map(({ id }: any) => id)

  it('the deliveries of a webhook are listed newest first, with exactly their members', async () => {
    const [one, two] = [await insert({ status: 'delivered', attempts: 2 }), await insert({ status: 'pending' })]
    const { deliveries, pagination } = await list()
    assert.deepEqual(
      deliveries.map(({ id }: any) => id),
      [two, one],
    )
    assert.deepEqual(pagination, {
      ...{ page: 1, limit: 20, total: 2, pages: 1, has_next: false, has_prev: false },
      next_cursor: null,
    })
    const { event_id, next_attempt_at, created_at, ...rest } = deliveries[0]
    assert.match(event_id, /^evt_/)
    assert.ok(next_attempt_at > created_at)
    assert.deepEqual(rest, {
      id: two,
      event: 'agent.failed',
      status: 'pending',
      failure: null,
      attempts: 0,
      is_redelivery: false,
      is_test: false,
      last_response_status: null,
      finished_at: null,
    })
    assert.deepEqual([deliveries[1].attempts, deliveries[1].next_attempt_at], [2, null])
  })

  it('the deliveries of a webhook are those of this webhook alone', async () => {
    const mine = await insert()
    webhook = await register()
    assert.deepEqual((await list()).deliveries, [])
    for (const [method, path] of [
      ['GET', ''],
      ['POST', '/redeliver'],
    ] as const) {
      const { status, body } = await test.send(method, at(`/${mine}${path}`))
      assert.deepEqual([status, body.error.code], [404, 'RESOURCE_NOT_FOUND'])
      assert.deepEqual(body.error.details, { resource_type: 'delivery', resource_id: mine })
    }
    assert.equal(await statusOf(mine), 'failed')
  })

  it('the deliveries of a webhook are found by state, event and time of creation', async () => {
    const timestamp = ago(3 * day_ms)
    const earlier = new Date(Date.parse(timestamp) - 1).toISOString()
    // Identifiers are made in the order of time.
    const id = `dlv_${'0'.repeat(26)}`
    const made = async (created_at: string, last: string): Promise<string> => {
      const [row] = await test.sql<{ id: string }>`
        insert into delivery (id, webhook_id, org_id, event_id, event, status, created_at)
        values (overlay(id_floor('dlv', ${created_at}) placing ${last} from ${id.length}), ${webhook}, 'org_x', 'evt_x', 'task.failed', 'delivered', ${created_at})
        returning id`
      return row!.id
    }
    const [old, exact] = [await made(earlier, '1'), await made(timestamp, '2')]
    const [failed, waits] = [await insert(), await insert({ status: 'pending', event: 'webhook.test' })]
    assert.deepEqual(await found('status=failed'), [failed])
    assert.deepEqual(await found('status=pending'), [waits])
    assert.deepEqual(await found('status=delivered'), [exact, old])
    assert.deepEqual(await found('event=webhook.test'), [waits])
    assert.deepEqual(await found('event=task.failed&status=failed'), [])
    assert.deepEqual(await found(`created_after=${timestamp}`), [waits, failed, exact])
    assert.deepEqual(await found(`created_before=${timestamp}`), [old])
    assert.deepEqual(await found(`created_after=${earlier}&created_before=${timestamp}`), [old])
    assert.deepEqual(await found('created_after=0001-01-01&created_before=9999-12-31&limit=1&page=3'), [exact])
  })

  for (const [field, query] of [
    ['status', 'status=nope'],
    ['event', 'event=task.*'],
    ['event', 'event=nope'],
    ['created_after', 'created_after=nope'],
    ['limit', 'limit=101'],
    ['page', 'page=0'],
  ] as const)
    it(`the deliveries of a webhook are not listed for ${query}`, async () => {
      const { status, body } = await test.send('GET', `${at('')}?${query}`)
      assert.deepEqual([status, body.error.code, body.error.details.field], [400, 'VALIDATION_ERROR', field])
    })

  it('the deliveries of a webhook are read with the body that was sent and every attempt', async () => {
    const { body: started } = await test.send('POST', `${base}/${webhook}/test`)
    // Deliveries that no process sent; the attempt that was made may be written before or after.
    await disable()
    const answer = Buffer.concat([Buffer.from('x'.repeat(1023)), Buffer.from('ä').subarray(0, 1)])
    await test.sql`
      insert into delivery_attempt (delivery_id, attempt, at, duration_ms, request_url, request_headers, response_status,
        response_headers, response_body, error)
      values (${started.id}, 11, '2026-11-20T09:30:00Z', 5001, 'https://old.example.com/', '{"webhook-id": "evt_x"}', null, null, null, 'no connection'),
        (${started.id}, 12, '2026-11-20T09:30:05Z', 12, 'https://hooks.example.com/', '{"webhook-id": "evt_x"}', 500, '{"server": "x"}', ${answer}, 'answered 500')`
    const { status, body } = await test.send('GET', at(`/${started.id}`))
    assert.equal(status, 200)
    assert.deepEqual(
      body.attempts.filter(({ attempt }: { attempt: number }) => attempt > 10),
      [
        {
          attempt: 11,
          at: '2026-11-20T09:30:00.000Z',
          duration_ms: 5001,
          request: { url: 'https://old.example.com/', headers: { 'webhook-id': 'evt_x' } },
          response: null,
          error: 'no connection',
        },
        {
          attempt: 12,
          at: '2026-11-20T09:30:05.000Z',
          duration_ms: 12,
          request: { url: 'https://hooks.example.com/', headers: { 'webhook-id': 'evt_x' } },
          response: { status: 500, headers: { server: 'x' }, body: 'x'.repeat(1023) },
          error: 'answered 500',
        },
      ],
    )
    const { timestamp, ...payload } = JSON.parse(body.payload)
    assert.match(timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.deepEqual(payload, {
      event: 'webhook.test',
      data: { ...eventExamples['webhook.test'], webhook_id: webhook, user_id: test.owner.user_id },
    })
  })

  it('the deliveries of a webhook have no body once their event is deleted', async () => {
    const id = await insert()
    const { status, body } = await test.send('GET', at(`/${id}`))
    assert.deepEqual([status, body.payload, body.attempts], [200, null, []])
  })
})

describe('testing a webhook', () => {
  it('testing a webhook creates one delivery, of an event that no other webhook gets', async () => {
    const other = await register()
    const { status, body } = await test.send('POST', `${base}/${webhook}/test`)
    assert.equal(status, 202)
    assert.deepEqual(
      [body.event, body.status, body.is_test, body.is_redelivery, body.attempts],
      ['webhook.test', 'pending', true, false, 0],
    )
    const [event] = await test.sql<{ type: string; org_id: string; matched: boolean }>`
      select type, org_id, matched_at is not null as matched from event where id = ${body.event_id}`
    assert.deepEqual(event, { type: 'webhook.test', org_id: test.owner.org_id, matched: true })
    assert.deepEqual(await test.sql`select webhook_id from delivery where event_id = ${body.event_id}`, [
      { webhook_id: webhook },
    ])
    assert.equal((await test.send('GET', `${base}/${other}/deliveries`)).body.pagination.total, 0)
  })

  it('testing a webhook sends a sample of any event, whatever its subscriptions and filters', async () => {
    await test.send('PUT', `${base}/${webhook}`, { body: { filters: { severity: ['critical'], reason: ['x'] } } })
    for (const [event, data] of Object.entries(eventExamples)) {
      const { status, body } = await test.send('POST', `${base}/${webhook}/test`, { body: { event } })
      assert.deepEqual([status, body.event], [202, event])
      const { body: delivery } = await test.send('GET', at(`/${body.id}`))
      const payload = JSON.parse(delivery.payload)
      assert.equal(payload.event, event)
      if (event !== 'webhook.test') assert.deepEqual(payload.data, data)
    }
  })

  for (const event of ['task.*', 'nope', '', 5, {}])
    it(`testing a webhook of ${JSON.stringify(event)} is refused`, async () => {
      const { status, body } = await test.send('POST', `${base}/${webhook}/test`, { body: { event } })
      assert.deepEqual([status, body.error.code, body.error.details.field], [400, 'INVALID_REQUEST', 'event'])
    })

  it('testing a webhook twice with one Idempotency-Key creates one delivery', async () => {
    const headers = { 'idempotency-key': newId('req') }
    const replies = [1, 2].map(() => test.send('POST', `${base}/${webhook}/test`, { headers }))
    const [one, two] = await Promise.all(replies)
    const ids = [one!, two!].filter(({ status }) => status === 202).map(({ body }) => body.id)
    assert.equal(new Set(ids).size, 1)
    assert.equal((await test.send('GET', at(''))).body.pagination.total, 1)
  })
})

describe('delivering again', () => {
  for (const status of ['failed', 'delivered', 'pending'] as const)
    it(`redelivering a delivery that is ${status} makes it due at once, with a new schedule of retries`, async () => {
      const id = await insert({ status, attempts: 7 })
      const { body: before } = await test.send('GET', at(`/${id}`))
      const reply = await test.send('POST', at(`/${id}/redeliver`))
      assert.equal(reply.status, 202)
      const { next_attempt_at, ...rest } = reply.body
      assert.ok(Math.abs(Date.parse(next_attempt_at) - Date.now()) < 10_000)
      const { payload: _, attempts: __, next_attempt_at: ___, ...was } = before
      assert.deepEqual(rest, {
        ...was,
        status: 'pending',
        failure: null,
        attempts: 7,
        is_redelivery: true,
        finished_at: null,
      })
      assert.equal((await test.sql`select 1 from webhook_lane where webhook_id = ${webhook}`).length, 1)
    })

  it('concurrent redeliveries of one delivery send it once', async () => {
    const id = await insert()
    const replies = await Promise.all(Array.from({ length: 8 }, () => test.send('POST', at(`/${id}/redeliver`))))
    assert.deepEqual([...new Set(replies.map(({ status }) => status))], [202])
    assert.equal((await test.send('GET', at(''))).body.pagination.total, 1)
  })

  it('redelivering concurrently with disabling the webhook never leaves a delivery pending', async () => {
    for (let round = 0; round < 10; round++) {
      webhook = await register()
      const ids = await Promise.all([insert(), insert(), insert()])
      const replies = await Promise.all([
        ...ids.map((id) => test.send('POST', at(`/${id}/redeliver`))),
        test.send('POST', `${base}/${webhook}/test`),
        disable(),
        recover(ago(day_ms)),
      ])
      for (const { status } of replies) assert.ok([200, 202, 400].includes(status), String(status))
      const left = await test.sql`select id from delivery where webhook_id = ${webhook} and status = 'pending'`
      assert.deepEqual(left, [])
    }
  })
})

describe('recovering', () => {
  it('recovering redelivers what was given up at that time or later, and nothing else', async () => {
    const since = ago(2 * day_ms)
    const before = await insert({ finished_at: new Date(Date.parse(since) - 1).toISOString() })
    const exact = await insert({ finished_at: since, created_at: ago(6 * day_ms) })
    const later = await insert({ finished_at: ago(day_ms), failure: 'webhook_disabled' })
    const deleted = await insert({ finished_at: ago(1000), failure: 'gone' })
    const [taken, waits] = [await insert({ status: 'delivered' }), await insert({ status: 'pending' })]
    const [unchanged] = await test.sql<{ at: string }>`select next_attempt_at as at from delivery where id = ${waits}`
    const { status, body } = await recover(since)
    assert.deepEqual(
      [status, body],
      [202, { message: '3 deliveries are due again', webhook_id: webhook, recovered: 3, has_more: false }],
    )
    const again = await test.sql<{ id: string }>`
      select id from delivery where webhook_id = ${webhook} and is_redelivery order by id`
    assert.deepEqual(
      again.map(({ id }) => id),
      [exact, later, deleted],
    )
    assert.deepEqual([await statusOf(before), await statusOf(taken)], ['failed', 'delivered'])
    const [still] = await test.sql<{ at: string }>`select next_attempt_at as at from delivery where id = ${waits}`
    assert.deepEqual(still, unchanged)
  })

  it('the message of recovering is correct for no delivery and for one', async () => {
    const { body } = await recover(ago(1000))
    assert.deepEqual([body.message, body.recovered], ['0 deliveries are due again', 0])
    await insert()
    assert.equal((await recover(ago(60_000))).body.message, '1 delivery is due again')
  })

  it('recovering is limited, and continues with another request', async () => {
    await test.sql`update webhook set status = 'active' where id = ${webhook}`
    const more = 7
    await test.sql`
      insert into delivery (id, webhook_id, org_id, event_id, event, status, failure, finished_at)
      select 'dlv_' || substr(id_floor('x', now()), 3, 10) || to_char(n, 'FM0000000000000000'), ${webhook}, 'org_x', 'evt_x', 'agent.failed',
        'failed', 'webhook_disabled', now() - interval '1 hour' + n * interval '1 millisecond'
      from generate_series(1, ${bounds.recovered_deliveries + more}::int) n`
    const first = await recover(ago(day_ms))
    assert.deepEqual([first.body.recovered, first.body.has_more], [bounds.recovered_deliveries, true])
    const left = await test.sql<{ n: number }>`
      select right(id, 16)::int as n from delivery
      where webhook_id = ${webhook} and status = 'failed' and not is_redelivery order by id`
    assert.deepEqual(
      left.map(({ n }) => n),
      Array.from({ length: more }, (_, i) => bounds.recovered_deliveries + 1 + i),
      'the oldest come first',
    )
    const second = await recover(ago(day_ms))
    assert.deepEqual([second.body.recovered, second.body.has_more], [more, false])
  })

  it('two concurrent recoveries redeliver each delivery once', async () => {
    for (let i = 0; i < 20; i++) await insert()
    const replies = await Promise.all([recover(ago(day_ms)), recover(ago(day_ms)), recover(ago(day_ms))])
    assert.equal(
      replies.reduce((sum, { body }) => sum + body.recovered, 0),
      20,
    )
  })

  it('recovering twice with one Idempotency-Key returns the same response', async () => {
    await insert()
    const headers = { 'idempotency-key': newId('req') }
    const since = ago(day_ms)
    const [one, two] = [await recover(since, headers), await recover(since, headers)]
    assert.deepEqual([one.body.recovered, two.body], [1, one.body])
  })

  it('recovering reaches back over the retention of deliveries, and not into the future', async () => {
    assert.equal((await recover(ago(bounds.recover_days * day_ms - 60_000))).status, 202)
    for (const since of [ago(bounds.recover_days * day_ms + 60_000), ago(-60_000), '0001-01-01', '9999-12-31']) {
      const { status, body } = await recover(since)
      assert.deepEqual([status, body.error.code], [400, 'INVALID_REQUEST'], since)
      assert.deepEqual(body.error.details, {
        field: 'since',
        issue: `must not be in the future, nor more than ${bounds.recover_days} days ago`,
      })
    }
  })

  for (const since of [undefined, null, '', 'yesterday', 5, {}])
    it(`since ${JSON.stringify(since)} is refused`, async () => {
      const { status, body } = await recover(since)
      assert.deepEqual([status, body.error.code, body.error.details.field], [400, 'INVALID_REQUEST', 'since'])
    })
})

describe('a webhook that is disabled', () => {
  it('a disabled webhook cannot be tested, and nothing is redelivered to it', async () => {
    const id = await insert()
    await disable()
    for (const reply of [
      await test.send('POST', `${base}/${webhook}/test`),
      await test.send('POST', at(`/${id}/redeliver`)),
      await recover(ago(day_ms)),
    ]) {
      assert.deepEqual([reply.status, reply.body.error.code], [400, 'INVALID_REQUEST'])
      assert.deepEqual(reply.body.error.details, {
        field: 'status',
        issue: 'must be active: the webhook is disabled',
      })
    }
    assert.equal(await statusOf(id), 'failed')
    assert.equal((await test.send('GET', at(''))).body.pagination.total, 1)
  })
})
