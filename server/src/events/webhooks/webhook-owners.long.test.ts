import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import {
  eventually,
  makeTestDatabase,
  sender,
  startAnother,
  startOn,
  startTestService,
  type TestService,
} from '../../../test/harness.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../../test/fakes/webhook-receiver.ts'
import { aProject, insertBacklog, listDeliveries, registerWebhook, tell } from '../../../test/webhooks.ts'
import { newId } from '../../platform/ids.ts'
import type { Service } from '../../service.ts'

let receiver: WebhookReceiver
let test: TestService
let others: Service[]
before(async () => {
  receiver = await startWebhookReceiver()
})
after(() => receiver.close())
beforeEach(async () => {
  test = await startTestService()
  others = []
})
afterEach(async () => {
  for (const other of others) await other.stop()
  await test.stop()
})

const another = async (): Promise<Service> => {
  const service = await startAnother(test)
  others.push(service)
  return service
}
const happen = () => tell(test.sql, test.owner.org_id, 'project.created', aProject())
const leaseOf = async (webhook_id: string) => {
  const [lease] = await test.sql<{ owner: string | null; due_at: string | null; is_due: boolean }>`
    select owner, due_at, due_at <= now() as is_due from webhook_lane where webhook_id = ${webhook_id}`
  return lease!
}
const allDelivered = (webhook_id: string) =>
  eventually(async () => {
    const deliveries = await listDeliveries(test.sql, webhook_id)
    return deliveries.every(({ status }) => status === 'delivered') && deliveries
  }, 30_000)

describe('processes that deliver', () => {
  it('processes that deliver never send a webhook more than four requests at a time together', async () => {
    await another()
    await another()
    receiver.answer('/together', { status: 200, delay_ms: 30 })
    const webhook_id = await registerWebhook(test, receiver.url('/together'))
    // In portions, so that the lease is released and taken again between them.
    for (let i = 0; i < 6; i++) {
      await insertBacklog(test, webhook_id, 20)
      await receiver.received('/together', 20 * (i + 1))
    }
    const deliveries = await allDelivered(webhook_id)
    assert.equal(deliveries.length, 120)
    assert.equal(receiver.requests('/together').length, 120)
    assert.equal(receiver.atOnce('/together'), 4)
  })

  it('processes take over the deliveries of a dead one, although its endpoint lease has nothing due', async () => {
    const webhook_id = await registerWebhook(test, receiver.url('/orphaned'))
    await insertBacklog(test, webhook_id, 1)
    await allDelivered(webhook_id)
    await eventually(async () => (await leaseOf(webhook_id)).owner === null)
    await test.sql.begin(async (tx) => {
      await tx`update webhook_lane set owner = ${newId('worker')}, due_at = null where webhook_id = ${webhook_id}`
      await tx`
        update delivery set status = 'pending', next_attempt_at = now(), finished_at = null where webhook_id = ${webhook_id}`
    })
    await receiver.received('/orphaned', 2)
    await allDelivered(webhook_id)
  })

  it('processes that deliver leave a webhook to its owner for as long as that lives', async () => {
    const webhook_id = await registerWebhook(test, receiver.url('/owned'))
    const owner = newId('worker')
    await test.sql`insert into worker (id, instance, slots) values (${owner}, 'elsewhere', 0)`
    await test.sql`insert into webhook_lane (webhook_id, owner) values (${webhook_id}, ${owner})`
    const marker_id = await registerWebhook(test, receiver.url('/marker'))
    await happen()
    await allDelivered(marker_id)
    assert.equal(receiver.requests('/owned').length, 0)
    await test.sql`delete from worker where id = ${owner}`
    await receiver.received('/owned', 1)
  })

  it('processes that deliver write nothing any more once another one owns the webhook', async () => {
    receiver.answer('/lost', 'never')
    const webhook_id = await registerWebhook(test, receiver.url('/lost'))
    await happen()
    await receiver.received('/lost', 1)
    const thief = newId('worker')
    await test.sql`insert into worker (id, instance, slots) values (${thief}, 'elsewhere', 0)`
    await test.sql`update webhook_lane set owner = ${thief} where webhook_id = ${webhook_id}`
    receiver.letGo('/lost', 500)
    // Another webhook's result is written by the same loop afterwards.
    const marker_id = await registerWebhook(test, receiver.url('/lost-marker'))
    await happen()
    await allDelivered(marker_id)
    for (const { attempts, status } of await listDeliveries(test.sql, webhook_id))
      assert.deepEqual([attempts, status], [0, 'pending'])
    assert.equal((await leaseOf(webhook_id)).owner, thief)
    // Nor is it written when the lease comes back, because the delivery had another attempt meanwhile.
    receiver.answer('/lost', { status: 200 })
    await test.sql`delete from worker where id = ${thief}`
    for (const { attempts } of await allDelivered(webhook_id)) assert.equal(attempts, 1)
  })

  it('processes that deliver give back what they own when they stop, and another one goes on at once', async () => {
    const database = await makeTestDatabase()
    const first = await startOn(database.connection)
    const second = await startOn(database.connection)
    const { api_key, org_id } = first.first_owner!
    receiver.answer('/stopped', 'never')
    const webhook_id = await registerWebhook({ send: sender(first.url, api_key) }, receiver.url('/stopped'))
    await tell(first.context.sql, org_id, 'project.created', aProject())
    await receiver.received('/stopped', 1)
    const [lease] = await first.context.sql<{ owner: string }>`
      select owner from webhook_lane where webhook_id = ${webhook_id}`
    const [owner, other] = lease!.owner === first.context.engine.worker_id ? [first, second] : [second, first]
    assert.equal(lease!.owner, owner.context.engine.worker_id)
    receiver.answer('/stopped', { status: 200 })
    const start = performance.now()
    await owner.stop()
    const took_ms = performance.now() - start
    assert.ok(took_ms < 15_000, `${took_ms} ms`)
    await receiver.received('/stopped', 2)
    await eventually(async () => {
      const [delivery] = await listDeliveries(other.context.sql, webhook_id)
      return delivery!.status === 'delivered' && delivery!.attempts === 1
    })
    await other.stop()
    await database.drop()
  })

  it('processes that deliver wait for requests under way when they stop, and keep what they came to', async () => {
    const database = await makeTestDatabase()
    const first = await startOn(database.connection)
    const owner = first.first_owner!
    receiver.answer('/finished', { status: 202, delay_ms: 1000 })
    const webhook_id = await registerWebhook({ send: sender(first.url, owner.api_key) }, receiver.url('/finished'))
    await tell(first.context.sql, owner.org_id, 'project.created', aProject())
    await receiver.received('/finished', 1)
    await first.stop()
    const next = await startOn(database.connection)
    const [delivery] = await listDeliveries(next.context.sql, webhook_id)
    assert.deepEqual([delivery!.status, delivery!.attempts, delivery!.last_response_status], ['delivered', 1, 202])
    assert.equal(receiver.requests('/finished').length, 1)
    await next.stop()
    await database.drop()
  })
})
