import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'
import { sizeOf } from '../../../test/long-run.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../../test/fakes/webhook-receiver.ts'
import {
  aProject,
  insertBacklog,
  insertWebhooks,
  listDeliveries,
  registerWebhook,
  tell,
} from '../../../test/webhooks.ts'
import { givenUpMax } from './endpoint-lease-rows.ts'

/** How long a receiver that is slow takes to answer. */
const slow_ms = 6000
/**
 * Maximum delay of an event: an event that waits for a slow receiver, for the timeout of a dead one, or for a backlog
 * takes longer. `e2e/receivers` measures on a quiet machine that it is less than a second (promise R8).
 */
const delayMax_ms = 5000

function assertPrompt(all_ms: readonly number[]): void {
  assert.ok(Math.max(...all_ms) < delayMax_ms, `${all_ms.join(', ')} ms`)
}

let test: TestService
let receiver: WebhookReceiver
before(async () => {
  test = await startTestService()
  receiver = await startWebhookReceiver()
})
after(async () => {
  await receiver.close()
  await test.stop()
})

const happen = () => tell(test.sql, test.owner.org_id, 'project.created', aProject())
const forgetWebhooks = () => test.sql`delete from webhook`
/** How long a new event takes to reach a webhook. */
async function latency_ms(path: string): Promise<number> {
  const count = receiver.requests(path).length
  const start_ms = performance.now()
  await happen()
  const received = await receiver.received(path, count + 1)
  return received[count]!.at - start_ms
}

/** Deliveries of a webhook that another one must not wait for. */
const backlog = sizeOf({ short: 2000, long: 10_000 })

describe('a receiver that is well', () => {
  it(
    'a healthy receiver gets its events at once while others are dead or slow',
    { timeout: 12 * backlog },
    async () => {
      const [good, slow, hanging, refusing] = ['/well', '/slow', '/hanging', '/refusing']
      receiver.answer(hanging, 'never')
      receiver.answer(slow, { status: 200, delay_ms: slow_ms })
      receiver.answer(refusing, 'reset')
      const [, first] = await insertWebhooks(
        test,
        [
          good,
          ...Array.from({ length: 120 }, () => hanging),
          ...Array.from({ length: 40 }, () => slow),
          ...Array.from({ length: 40 }, () => refusing),
        ].map(receiver.url),
      )
      await insertBacklog(test, first!, 100)
      await latency_ms(good)
      await receiver.received(hanging, 120)
      const all_ms: number[] = []
      for (let i = 0; i < 10; i++) all_ms.push(await latency_ms(good))
      assertPrompt(all_ms)
      // Once one hangs no other is sent to it.
      assert.ok(receiver.requests(hanging).length <= 121, String(receiver.requests(hanging).length))
      await forgetWebhooks()
      receiver.letGo(hanging, 200)
    },
  )

  it(
    'a healthy receiver gets its events at once although another one has a large backlog',
    { timeout: 12 * backlog },
    async () => {
      const [, busy] = await insertWebhooks(test, ['/fair', '/busy'].map(receiver.url))
      receiver.answer('/busy', { status: 200, delay_ms: 50 })
      await latency_ms('/fair')
      await insertBacklog(test, busy!, backlog)
      await receiver.received('/busy', 100)
      const all_ms: number[] = []
      for (let i = 0; i < 10; i++) all_ms.push(await latency_ms('/fair'))
      assertPrompt(all_ms)
      assert.ok(receiver.requests('/busy').length < backlog)
      assert.equal(receiver.atOnce('/busy'), 4)
      await forgetWebhooks()
    },
  )

  it(
    'a healthy receiver gets its events at once while the backlog of a removed one is dropped',
    { timeout: 60_000 },
    async () => {
      receiver.answer('/gone', { status: 410 })
      const [, gone] = await insertWebhooks(test, ['/meanwhile', '/gone'].map(receiver.url))
      await latency_ms('/meanwhile')
      await insertBacklog(test, gone!, 2 * backlog)
      // The rest is due in hours: that it is given up has nothing to do with when it would have been sent.
      await test.sql`
      update delivery set next_attempt_at = now() + interval '10 hours' where webhook_id = ${gone!} and status = 'pending'`
      await happen()
      await receiver.received('/gone', 1)
      const isLeft = async () =>
        (await test.sql`select 1 from delivery where webhook_id = ${gone!} and status = 'pending' limit 1`).length > 0
      const all_ms: number[] = []
      do all_ms.push(await latency_ms('/meanwhile'))
      while (await isLeft())
      assertPrompt(all_ms)
      const transactions = await test.sql<{ failure: string; count: number }>`
      select failure, count(*) as count from delivery where webhook_id = ${gone!} and status = 'failed'
      group by failure, finished_at`
      assert.deepEqual(new Set(transactions.map(({ failure }) => failure)), new Set(['gone']))
      const max = Math.max(...transactions.map(({ count }) => count))
      // One more than at a time: the delivery itself that was answered so.
      assert.ok(max <= givenUpMax + 1, `${max} in one transaction`)
      assert.ok(receiver.requests('/gone').length <= 2)
      await forgetWebhooks()
    },
  )

  it('a healthy receiver gets new events while an earlier request hangs', async () => {
    const webhook_id = await registerWebhook(test, receiver.url('/partly'))
    // It has succeeded, and its endpoint lease is busy.
    receiver.answer('/partly', { status: 200 }, 'never', { status: 200 })
    // Both are due at once: a lease without a due delivery is released, and starts again with one request.
    await insertBacklog(test, webhook_id, 2)
    await receiver.received('/partly', 2)
    for (let i = 0; i < 3; i++) await latency_ms('/partly')
    receiver.letGo('/partly', 200)
    await eventually(async () =>
      (await listDeliveries(test.sql, webhook_id)).every(({ status }) => status === 'delivered'),
    )
    assert.equal(receiver.requests('/partly').length, 5)
  })
})
