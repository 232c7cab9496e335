import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { post, signed } from '../../../test/fakes/delivery-sender.ts'
import { secret, TriggerWorld } from '../../../test/fakes/trigger-world.ts'
import { type TestService } from '../../../test/harness.ts'
import { sweepTriggerDeliveries } from './deliveries.queries.ts'

let world: TriggerWorld
let test: TestService
let project: string
before(async () => {
  world = await TriggerWorld.start('replay')
  ;({ test, project } = world)
})
after(() => world.stop())
const make: TriggerWorld['make'] = (...given) => world.make(...given)
const act: TriggerWorld['act'] = (...given) => world.act(...given)
const deliveriesOf: TriggerWorld['deliveriesOf'] = (...given) => world.deliveriesOf(...given)
const taskOf: TriggerWorld['taskOf'] = (...given) => world.taskOf(...given)
const tasksOf: TriggerWorld['tasksOf'] = (...given) => world.tasksOf(...given)

describe('a paused trigger', () => {
  it('a paused trigger stores deliveries and starts tasks only when they are replayed', async () => {
    const trigger = await make()
    await act(trigger.id, 'pause')
    const { status, body } = await post(trigger.url, signed(secret, { n: 1 }))
    assert.deepEqual([status, body.status, body.task_id], [202, 'filtered', null])
    assert.equal((await deliveriesOf(trigger.id))[0].reason, 'paused')
    const replayed = await act(trigger.id, `deliveries/${body.delivery_id}/replay`)
    assert.deepEqual([replayed.status, replayed.body.status], [202, 'accepted'])
    assert.ok((await taskOf(replayed.body.task_id)).input.includes('{"n":1}'))
  })
})

describe('a replay', () => {
  it('a replay is a new delivery of the same bytes with the current trigger settings, as a task of the calling user', async () => {
    const filter = [{ path: 'headers.x-kind', op: 'eq', value: 'a' }]
    const trigger = await make({ filter, input: 'First: {{body.n}}', dedupe: 'body.n' })
    const sent = signed(secret, { n: 1 }, { 'x-kind': 'b' })
    const first = (await post(trigger.url, sent)).body
    assert.equal(first.status, 'filtered')
    await test.send('PUT', `${project}/triggers/${trigger.id}`, {
      body: { filter: [], input: 'Now: {{body.n}} {{headers.x-kind}}' },
    })
    const { status, body } = await act(trigger.id, `deliveries/${first.delivery_id}/replay`)
    assert.equal(status, 202, JSON.stringify(body))
    assert.notEqual(body.delivery_id, first.delivery_id)
    const task = await taskOf(body.task_id)
    assert.match(task.input, /Now: <data-\w{8}>1<\/data-\w{8}> <data-\w{8}>b</)
    assert.equal(task.created_by, test.owner.user_id)
    // A replay claims no key, so it is never a duplicate.
    const twice = await act(trigger.id, `deliveries/${first.delivery_id}/replay`)
    assert.equal(twice.body.status, 'accepted')
    assert.equal((await post(trigger.url, sent)).body.status, 'duplicate')
    const rows = await deliveriesOf(trigger.id)
    assert.deepEqual(
      rows.map(({ replay_of }: any) => replay_of),
      [first.delivery_id, first.delivery_id, null],
    )
    const entries = await test.sql<{ detail: { delivery_id: string } }>`
      select detail from audit where target = ${trigger.id} and action = 'trigger.replayed' order by id`
    assert.deepEqual(
      entries.map(({ detail }) => detail.delivery_id),
      [body.delivery_id, twice.body.delivery_id],
    )
    const other = await make()
    assert.equal((await act(other.id, `deliveries/${first.delivery_id}/replay`)).status, 404)
  })

  it('a replay is possible for 30 days', async () => {
    const trigger = await make()
    const { delivery_id } = (await post(trigger.url, signed(secret, { n: 1 }))).body
    const aged = delivery_id.replace(/^tdlv_.{10}/, '')
    const [old] = await test.sql<{ id: string }>`
      select left(id_floor('tdlv', now() - interval '30 days 1 minute'), 15) || right(${delivery_id}, 16) as id`
    assert.ok(old!.id.endsWith(aged))
    await test.sql`update trigger_delivery set id = ${old!.id} where id = ${delivery_id}`
    await test.sql`update trigger_key set expires_at = now() - interval '1 second' where trigger_id = ${trigger.id}`
    const young = (await post(trigger.url, signed(secret, { n: 2 }))).body.delivery_id
    while ((await sweepTriggerDeliveries(test.sql)) > 0);
    assert.deepEqual(
      (await deliveriesOf(trigger.id)).map(({ id }: any) => id),
      [young],
    )
    const keys = await test.sql`select 1 from trigger_key where trigger_id = ${trigger.id}`
    assert.equal(keys.length, 1)
  })
})

describe('a test', () => {
  it('a test of a trigger previews a sample, and starts a real task without preview', async () => {
    const trigger = await make({
      filter: [{ path: 'body.action', op: 'eq', value: 'opened' }],
      ...{ input: 'Sort {{body.title}}', thread_key: '{{body.title}}' },
    })
    const sample = { action: 'opened', title: 'door', nothing: null }
    const dry = (await act(trigger.id, 'test', { sample, preview: true })).body
    assert.deepEqual(
      [dry.status, dry.reason, dry.thread_key, dry.delivery_id, dry.task_id],
      ['accepted', null, 'door', null, null],
    )
    assert.match(dry.input, /Sort <data-\w+>door</)
    const filtered = (await act(trigger.id, 'test', { sample: { action: 'closed' }, preview: true })).body
    assert.deepEqual([filtered.status, filtered.reason, filtered.input], ['filtered', 'filter', null])
    assert.deepEqual([await deliveriesOf(trigger.id), await tasksOf(trigger.id)], [[], []])
    const real = (await act(trigger.id, 'test', { sample })).body
    assert.ok((await taskOf(real.task_id)).input.includes('door'))
    const [row] = await deliveriesOf(trigger.id)
    assert.deepEqual([row.id, row.is_test], [real.delivery_id, true])
    const whole = await world.deliveryOf(trigger.id, row.id)
    assert.deepEqual(JSON.parse(whole.payload), sample)
    // A sample claims no key, so the real delivery is not a duplicate.
    assert.equal((await post(trigger.url, signed(secret, JSON.stringify(sample)))).body.status, 'accepted')
  })
})
