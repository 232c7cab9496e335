import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { insertBacklog, insertWebhooks } from '../../../test/webhooks.ts'
import { newId } from '../../platform/ids.ts'
import { isBehind } from './webhook-backlog.queries.ts'

describe('the status of the service (decision D102)', () => {
  let test: TestService
  let webhook_id: string
  before(async () => {
    test = await shareTestService()
    const [id] = await insertWebhooks(test, ['https://hooks.example.com/'])
    webhook_id = id!
    // Owned by a process that lives and sends nothing, so that what is due stays.
    const owner = newId('worker')
    await test.sql`insert into worker (id, instance, slots, seen_at) values (${owner}, 'elsewhere', 0, 'infinity')`
    await test.sql`insert into webhook_lane (webhook_id, owner) values (${webhook_id}, ${owner})`
    await insertBacklog(test, webhook_id, 1)
  })
  after(() => test.stop())

  const status = async (): Promise<[string, string]> => {
    const { body } = await test.send('GET', '/api/v1/status', { key: null })
    return [body.status, body.checks.webhooks]
  }
  const dueFor = (minutes: number) =>
    test.sql.begin(async (tx) => {
      await tx`update delivery set next_attempt_at = now() - make_interval(mins => ${minutes}) where webhook_id = ${webhook_id}`
      await tx`update webhook_lane set due_at = now() - make_interval(mins => ${minutes}) where webhook_id = ${webhook_id}`
    })

  it('the status of the service is degraded while a delivery that was never tried has been due for ten minutes', async () => {
    await dueFor(9)
    assert.deepEqual(await status(), ['operational', 'ok'])
    await dueFor(11)
    assert.deepEqual(await status(), ['degraded', 'behind'])
  })

  it('the status of the service is not where it waits for a retry, was tried, or was asked for again', async () => {
    for (const [column, value] of [
      ['attempts', 1],
      ['is_redelivery', true],
      ['is_test', true],
    ] as const) {
      await test.sql.query(`update delivery set ${column} = $1`, [value])
      assert.deepEqual(await status(), ['operational', 'ok'], column)
      await test.sql.query(`update delivery set ${column} = default`)
      assert.deepEqual(await status(), ['degraded', 'behind'], column)
    }
    await test.sql`update delivery set next_attempt_at = now() + interval '1 hour'`
    assert.deepEqual(await status(), ['operational', 'ok'])
  })

  it('the status of the service is not where the receiver fails or is slow', async () => {
    await dueFor(11)
    await test.sql`update webhook_lane set is_troubled = true`
    assert.deepEqual(await status(), ['operational', 'ok'])
  })

  it('the status of the service is degraded while an event has been unmatched for ten minutes', async () => {
    await test.sql`delete from delivery`
    for (const [minutes, expected] of [
      [9, false],
      [11, true],
    ] as const)
      await test.sql.begin(async (tx) => {
        // No other process sees it, so it stays unmatched.
        await tx`
          insert into event (id, org_id, type, data)
          select id_floor('evt', now() - make_interval(mins => ${minutes})), ${test.owner.org_id}, 'project.created', '{}'`
        assert.equal(await isBehind(tx), expected)
        await tx`update event set matched_at = now() where matched_at is null`
        assert.equal(await isBehind(tx), false)
      })
  })
})
