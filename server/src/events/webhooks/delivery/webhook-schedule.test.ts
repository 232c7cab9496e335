import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, type TestService } from '../../../../test/harness.ts'
import { shareTestService } from '../../../../test/shared-service.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../../../test/fakes/webhook-receiver.ts'
import { aProject, attempted, listDeliveries, passTime, registerWebhook, tell } from '../../../../test/webhooks.ts'

let test: TestService
let receiver: WebhookReceiver
/** Receives every error event: the failure of a webhook is sent to the other webhooks. */
let watcher_id: string
before(async () => {
  test = await shareTestService()
  receiver = await startWebhookReceiver()
  watcher_id = await registerWebhook(test, receiver.url('/watcher'), { events: ['error.occurred'] })
})
after(async () => {
  await test.stop()
  await receiver.close()
})

const happen = () => tell(test.sql, test.owner.org_id, 'project.created', aProject())
/** As decision D97 says it, in seconds. */
const promised_seconds = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]

interface SeenWebhook {
  status: string
  disabled_reason: string | null
  failing_since: string | null
  slowed_seconds: number | null
}
async function readWebhook(id: string): Promise<SeenWebhook> {
  const [row] = await test.sql<SeenWebhook>`
    select status, disabled_reason, failing_since, extract(epoch from slowed_until - now()) as slowed_seconds
    from webhook where id = ${id}`
  return row!
}
/** Error events about a webhook that the watcher received. */
const errorsOf = (webhook_id: string) =>
  receiver
    .requests('/watcher')
    .map(({ body }) => JSON.parse(body).data.error)
    .filter(({ affected_resources }) => affected_resources.includes(webhook_id))
/** Everything that happened was matched and delivered, as far as it is due. */
const settled = () =>
  eventually(async () => {
    const [row] = await test.sql<{ is_settled: boolean }>`
      select not exists (select from event where matched_at is null and org_id = ${test.owner.org_id})
        and not exists (
          select from delivery where org_id = ${test.owner.org_id} and status = 'pending' and next_attempt_at <= now())
        and not exists (
          select from webhook_lane l join webhook w on w.id = l.webhook_id
          where w.org_id = ${test.owner.org_id} and l.owner is not null) as is_settled`
    return row!.is_settled
  })

describe('the schedule of a delivery (decision D97)', () => {
  it('the schedule of a delivery has ten attempts, each after its time; then it is given up, and an error of low severity says so', async () => {
    receiver.answer('/ten', { status: 500 })
    const webhook_id = await registerWebhook(test, receiver.url('/ten'))
    await happen()
    for (const [i, wait_seconds] of promised_seconds.entries()) {
      const delivery = await attempted(test.sql, webhook_id, i + 1)
      assert.equal(delivery.status, 'pending')
      const waited = delivery.wait_seconds!
      assert.ok(waited >= wait_seconds * 0.8 - 0.1 && waited <= wait_seconds * 1.2 + 3, `${i + 1}: ${waited} s`)
      await passTime(test.sql, webhook_id)
    }
    const last = await attempted(test.sql, webhook_id, 10)
    assert.deepEqual([last.status, last.failure, last.next_attempt_at], ['failed', 'attempts_exhausted', null])
    assert.ok(last.finished_at)
    await receiver.received('/watcher', 1)
    const [error] = errorsOf(webhook_id)
    assert.deepEqual(
      [error.code, error.severity, error.affected_resources],
      ['webhook_delivery_failed', 'low', [webhook_id, last.id]],
    )
    assert.match(error.message, /project\.created .* The receiver answered 500\./)
    await settled()
    assert.equal(receiver.requests('/ten').length, 10)
    assert.equal(errorsOf(webhook_id).length, 1)
  })

  it('the schedule of a delivery is not begun before it is due', async () => {
    receiver.answer('/early', { status: 500 }, { status: 200 })
    const webhook_id = await registerWebhook(test, receiver.url('/early'))
    await happen()
    const first = await attempted(test.sql, webhook_id, 1)
    const lease = await eventually(async () => {
      const [row] = await test.sql<{ due_at: string }>`
        select due_at from webhook_lane where webhook_id = ${webhook_id} and owner is null`
      return row
    })
    assert.equal(lease.due_at, first.next_attempt_at)
    // Another event is delivered meanwhile, and brings the first one no nearer.
    await happen()
    await receiver.received('/early', 2)
    const again = await eventually(async () => {
      const [one, two] = await listDeliveries(test.sql, webhook_id)
      return two?.status === 'delivered' && one
    })
    assert.deepEqual([again.attempts, again.next_attempt_at], [1, first.next_attempt_at])
  })

  it('the schedule of a delivery is sent without a signal when it is due', async () => {
    receiver.answer('/second', { status: 503 }, { status: 200 })
    const webhook_id = await registerWebhook(test, receiver.url('/second'))
    await happen()
    const [one, two] = await receiver.received('/second', 2, 15_000)
    const waited_ms = two!.at - one!.at
    assert.ok(waited_ms >= 4000 && waited_ms < 10_000, String(waited_ms))
    assert.equal((await attempted(test.sql, webhook_id, 2)).status, 'delivered')
  })

  it('the schedule of a delivery waits as long as the receiver asks, in seconds or until a date, at most 24 hours', async () => {
    for (const [path, asked, min, max] of [
      ['/seconds', '120', 120, 121],
      ['/date', new Date(Date.now() + 3_600_000).toUTCString(), 3590, 3601],
      ['/too-long', '1000000', 86_400, 86_401],
      ['/shorter', '1', 4, 6.1],
    ] as const) {
      receiver.answer(path, { status: 429, headers: { 'retry-after': asked } })
      const webhook_id = await registerWebhook(test, receiver.url(path))
      await happen()
      const { wait_seconds } = await attempted(test.sql, webhook_id, 1)
      assert.ok(wait_seconds! >= min - 0.1 && wait_seconds! <= max + 3, `${path}: ${wait_seconds} s`)
    }
  })
})

describe('the health of a webhook (decision D97)', () => {
  it('410 disables it at once, gives up its pending deliveries, and is sent to the other webhooks', async () => {
    receiver.answer('/gone', { status: 500 }, { status: 410 })
    const webhook_id = await registerWebhook(test, receiver.url('/gone'), {
      events: ['project.created', 'error.occurred'],
    })
    await happen()
    await attempted(test.sql, webhook_id, 1)
    await happen()
    await eventually(async () => (await readWebhook(webhook_id)).status === 'disabled')
    assert.equal((await readWebhook(webhook_id)).disabled_reason, 'gone')
    const deliveries = await listDeliveries(test.sql, webhook_id)
    assert.deepEqual(
      deliveries.map(({ status, failure }) => [status, failure]),
      [
        ['failed', 'gone'],
        ['failed', 'gone'],
      ],
    )
    await eventually(async () => errorsOf(webhook_id).length > 0)
    const before = receiver.requests('/gone').length
    await happen()
    await settled()
    assert.equal(receiver.requests('/gone').length, before)
    assert.deepEqual(
      errorsOf(webhook_id).map(({ code, severity }) => [code, severity]),
      [['webhook_disabled', 'high']],
    )
    const [entry] = await test.sql<{ actor: string | null; after: object }>`
      select actor, after from audit where action = 'webhook.disabled' and target = ${webhook_id}`
    assert.deepEqual(entry, { actor: null, after: { status: 'disabled', disabled_reason: 'gone' } })
  })

  it('429, 502 and 504 halve its requests at a time for ten minutes', async () => {
    for (const status of [429, 502, 504]) {
      const path = `/slowed-${status}`
      receiver.answer(path, { status })
      const webhook_id = await registerWebhook(test, receiver.url(path))
      await happen()
      await attempted(test.sql, webhook_id, 1)
      const { slowed_seconds } = await readWebhook(webhook_id)
      assert.ok(slowed_seconds! > 590 && slowed_seconds! <= 600, String(slowed_seconds))
      // One proves that it takes requests again, then there are two at a time.
      receiver.answer(path, { status: 200 }, 'never')
      for (let i = 0; i < 6; i++) await happen()
      await receiver.received(path, 4)
      assert.equal(receiver.atOnce(path), 2)
      receiver.answer(path, { status: 200 })
      receiver.letGo(path, 200)
      await receiver.received(path, 7)
      assert.equal(receiver.atOnce(path), 2)
    }
  })

  it('four requests are sent at a time once one has succeeded, and one at a time while it fails', async () => {
    receiver.answer('/four', { status: 200 }, 'never')
    await registerWebhook(test, receiver.url('/four'))
    for (let i = 0; i < 9; i++) await happen()
    await receiver.received('/four', 5)
    assert.equal(receiver.atOnce('/four'), 4)
    receiver.answer('/four', { status: 500 }, 'never')
    receiver.letGo('/four', 500)
    await receiver.received('/four', 7)
    await settledBut('/four', 7)
    receiver.answer('/four', { status: 200 })
    receiver.letGo('/four', 200)
  })

  it('five days of failures disable it, and the other webhooks get an event', async () => {
    receiver.answer('/failing', { status: 500 })
    const webhook_id = await registerWebhook(test, receiver.url('/failing'))
    await happen()
    const { id } = await attempted(test.sql, webhook_id, 1)
    assert.ok((await readWebhook(webhook_id)).failing_since)
    // One failure five days ago is not enough: nothing was tried since.
    await test.sql`update webhook set failing_since = now() - interval '121 hours' where id = ${webhook_id}`
    await test.sql`update delivery_attempt set at = now() - interval '121 hours' where delivery_id = ${id}`
    await passTime(test.sql, webhook_id)
    await attempted(test.sql, webhook_id, 2)
    assert.equal((await readWebhook(webhook_id)).status, 'active')
    // Another one 13 hours ago is.
    await test.sql`update delivery_attempt set at = now() - interval '13 hours' where delivery_id = ${id} and attempt = 2`
    await happen()
    await eventually(async () => (await readWebhook(webhook_id)).status === 'disabled')
    assert.equal((await readWebhook(webhook_id)).disabled_reason, 'failing')
    for (const { status, failure } of await listDeliveries(test.sql, webhook_id))
      assert.deepEqual([status, failure], ['failed', 'webhook_disabled'])
    await eventually(async () => errorsOf(webhook_id).length > 0)
    assert.deepEqual(
      errorsOf(webhook_id).map(({ code, severity }) => [code, severity]),
      [['webhook_disabled', 'high']],
    )
  })

  it('a success ends the days of failures', async () => {
    receiver.answer('/recovered', { status: 500 }, { status: 200 })
    const webhook_id = await registerWebhook(test, receiver.url('/recovered'))
    await happen()
    await attempted(test.sql, webhook_id, 1)
    assert.ok((await readWebhook(webhook_id)).failing_since)
    await passTime(test.sql, webhook_id)
    await attempted(test.sql, webhook_id, 2)
    assert.equal((await readWebhook(webhook_id)).failing_since, null)
  })

  it('a redelivered delivery has ten more attempts, and its failures do not count against the webhook', async () => {
    receiver.answer('/redelivered', { status: 500 })
    const webhook_id = await registerWebhook(test, receiver.url('/redelivered'))
    await happen()
    const { id } = await attempted(test.sql, webhook_id, 1)
    await test.sql`
      update delivery set status = 'failed', failure = 'attempts_exhausted', next_attempt_at = null, finished_at = now(),
        attempts = 10, round_attempts = 10 where id = ${id}`
    await test.sql`update webhook set failing_since = null where id = ${webhook_id}`
    const reply = await test.send('POST', `/api/v1/webhooks/${webhook_id}/deliveries/${id}/redeliver`)
    assert.equal(reply.status, 202)
    const again = await attempted(test.sql, webhook_id, 11)
    assert.deepEqual([again.status, again.round_attempts], ['pending', 1])
    assert.equal((await readWebhook(webhook_id)).failing_since, null)
    assert.ok(again.wait_seconds! < 7, String(again.wait_seconds))
    const ids = receiver.requests('/redelivered').map(({ headers }) => headers['webhook-id'])
    assert.deepEqual(ids, [again.event_id, again.event_id])
  })

  it('the health of a webhook is disabled at once by a person: nothing more is sent, pending deliveries are given up', async () => {
    receiver.answer('/switched-off', { status: 500 })
    const webhook_id = await registerWebhook(test, receiver.url('/switched-off'))
    await happen()
    await attempted(test.sql, webhook_id, 1)
    // Its second attempt would come after 4 to 6 s, for which a busy machine may stand still.
    await test.sql`update delivery set next_attempt_at = now() + interval '1 hour' where webhook_id = ${webhook_id}`
    await test.send('PUT', `/api/v1/webhooks/${webhook_id}`, { body: { status: 'disabled' } })
    await happen()
    // One that slipped through is given up when its turn comes.
    await test.sql`
      insert into delivery (id, webhook_id, org_id, event_id, event, next_attempt_at)
      select id || 'z', webhook_id, org_id, event_id, event, now() from delivery where webhook_id = ${webhook_id}`
    await passTime(test.sql, webhook_id)
    await settled()
    assert.deepEqual(
      (await listDeliveries(test.sql, webhook_id)).map(({ status, failure }) => [status, failure]),
      [
        ['failed', 'webhook_disabled'],
        ['failed', 'webhook_disabled'],
      ],
    )
    assert.equal(receiver.requests('/switched-off').length, 1)
  })

  it('a failed delivery of an error event makes no further error event', async () => {
    receiver.answer('/watcher', { status: 500 })
    const delivered = receiver.requests('/watcher').length
    await tell(test.sql, test.owner.org_id, 'error.occurred', {
      error: { code: 'x', message: 'x', severity: 'low', affected_resources: [] },
      user_id: 'user_x',
      request_id: null,
    })
    await eventually(async () => {
      const last = (await listDeliveries(test.sql, watcher_id)).at(-1)
      return last?.status === 'pending' && last.attempts === 1
    })
    await test.sql`update delivery set round_attempts = 9 where webhook_id = ${watcher_id} and status = 'pending'`
    await passTime(test.sql, watcher_id)
    await eventually(async () => (await listDeliveries(test.sql, watcher_id)).at(-1)?.status === 'failed')
    await settled()
    assert.equal(receiver.requests('/watcher').length, delivered + 2)
    const [row] = await test.sql<{ count: number }>`
      select count(*) as count from event where data->'error'->'affected_resources' ? ${watcher_id}`
    assert.equal(row!.count, 0)
  })
})

/** So many requests came, and no other while this one waits for its answer. */
async function settledBut(path: string, count: number): Promise<void> {
  const marker = `${path}-marker`
  await registerWebhook(test, receiver.url(marker))
  await happen()
  await receiver.received(marker, 1)
  assert.equal(receiver.requests(path).length, count)
}
