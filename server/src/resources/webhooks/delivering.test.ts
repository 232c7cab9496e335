import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { testEventName } from '#contract/events/events.ts'
import { eventually, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { startWebhookReceiver, verify, type WebhookReceiver } from '../../../test/fakes/webhook-receiver.ts'
import { aProject, registerWebhook, tell, testSecret } from '../../../test/webhooks.ts'

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

const base = '/api/v1/webhooks'
const put = (id: string, body: unknown) => test.send('PUT', `${base}/${id}`, { body })
const rotate = (id: string) => test.send('POST', `${base}/${id}/rotate-secret`)
const sendTest = (id: string, event?: string) =>
  test.send('POST', `${base}/${id}/test`, event === undefined ? {} : { body: { event } })
const createProject = (name: string) => tell(test.sql, test.owner.org_id, 'project.created', aProject(name))
const read = async (id: string, delivery: string) =>
  (await test.send('GET', `${base}/${id}/deliveries/${delivery}`)).body
const list = async (id: string, query = '') =>
  (await test.send('GET', `${base}/${id}/deliveries?${query}`)).body.deliveries
/** Resolves with the webhook's only delivery as soon as it is in this state. */
const only = (id: string, status: string) =>
  eventually(async () => {
    const [one, ...more] = await list(id)
    assert.deepEqual(more, [])
    return one?.status === status && one
  })

describe('a test of a webhook', () => {
  it('a test of a webhook arrives signed at it alone, and is shown as it was sent', async () => {
    const id = await registerWebhook(test, receiver.url('/tested'))
    await registerWebhook(test, receiver.url('/neighbour'))
    receiver.answer('/tested', { status: 201, headers: { 'x-mine': 'yes' }, body: 'thank you' })
    const { body: started } = await sendTest(id)
    const [request] = await receiver.received('/tested', 1)
    assert.equal(request!.headers['webhook-id'], started.event_id)
    const { data, event } = verify(request!, testSecret)
    assert.deepEqual([event, data.webhook_id, data.user_id], [testEventName, id, test.owner.user_id])
    await only(id, 'delivered')
    const shown = await read(id, started.id)
    assert.equal(shown.payload, request!.body)
    assert.deepEqual([shown.is_test, shown.last_response_status, shown.attempts.length], [true, 201, 1])
    const [attempt] = shown.attempts
    assert.equal(attempt.request.url, receiver.url('/tested'))
    assert.equal(attempt.request.headers['webhook-id'], started.event_id)
    assert.deepEqual(
      [attempt.response.status, attempt.response.headers['x-mine'], attempt.response.body, attempt.error],
      [201, 'yes', 'thank you', null],
    )
    assert.equal(JSON.stringify(shown).includes(testSecret), false)
    assert.deepEqual(receiver.requests('/neighbour'), [])
  })

  it('a test of a webhook is counted in the list of webhooks, which sums up the latest 50 deliveries', async () => {
    const id = await registerWebhook(test, receiver.url('/counted'))
    await sendTest(id)
    const delivery = await only(id, 'delivered')
    const recent = async () => {
      const { body } = await test.send('GET', `${base}?search=%2Fcounted`)
      return body.webhooks[0].recent_deliveries
    }
    const { created_at: last_at } = await read(id, delivery.id)
    assert.deepEqual(await recent(), { delivered: 1, failed: 0, pending: 0, last_at, last_status: 'delivered' })
    await test.sql`
      insert into delivery (id, webhook_id, org_id, event_id, event, status, created_at, finished_at)
      select substr(id, 1, length(id) - 2) || lpad(n::text, 2, '0'), webhook_id, org_id, event_id, event,
        case when n % 2 = 0 then 'failed' else 'delivered' end, created_at + interval '1 second', now()
      from delivery, generate_series(0, 99) n where id = ${delivery.id}
      on conflict do nothing`
    const { delivered, failed, pending } = await recent()
    assert.deepEqual([delivered + failed, pending], [50, 0])
    assert.ok(failed >= 24 && failed <= 26, String(failed))
  })

  it('a test of a webhook arrives whatever the webhook subscribed to and filters', async () => {
    const changes = { events: ['budget.*'], filters: { severity: ['critical'], reason: [] } }
    const id = await registerWebhook(test, receiver.url('/filtered'), changes)
    for (const event of ['error.occurred', 'agent.stopped', 'approval.requested']) await sendTest(id, event)
    const requests = await receiver.received('/filtered', 3)
    const events = new Set(requests.map(({ body }) => JSON.parse(body).event))
    assert.deepEqual(events, new Set(['error.occurred', 'agent.stopped', 'approval.requested']))
  })
})

describe('while a secret is being replaced', () => {
  it('during the overlap both secrets sign, and after it only the new one', async () => {
    const id = await registerWebhook(test, receiver.url('/rotated'))
    const { body: rotated } = await rotate(id)
    await sendTest(id)
    const [both] = await receiver.received('/rotated', 1)
    for (const secret of [rotated.secret, testSecret]) assert.ok(verify(both!, secret))
    await test.sql`update webhook set previous_secret_until = now() - interval '1 second' where id = ${id}`
    await sendTest(id)
    const [, one] = await receiver.received('/rotated', 2)
    assert.ok(verify(one!, rotated.secret))
    assert.throws(() => verify(one!, testSecret), /No matching signature/)
    assert.equal((await test.send('GET', `${base}/${id}`)).body.previous_secret_expires_at, null)
  })

  it('after two concurrent rotations the secrets of both responses sign', async () => {
    const id = await registerWebhook(test, receiver.url('/raced'))
    const secrets = (await Promise.all([rotate(id), rotate(id)])).map(({ body }) => body.secret)
    await sendTest(id)
    const [request] = await receiver.received('/raced', 1)
    for (const secret of secrets) assert.ok(verify(request!, secret))
    assert.throws(() => verify(request!, testSecret), /No matching signature/)
  })
})

describe('delivering again', () => {
  it('redelivering sends the same event with the same identifier, signed with the current secret, to the current address', async () => {
    const id = await registerWebhook(test, receiver.url('/before'))
    await createProject('again')
    const [first] = await receiver.received('/before', 1)
    const { id: delivery } = await only(id, 'delivered')
    const secret = 'a new secret'
    await put(id, { url: receiver.url('/after'), secret })
    await test.sql`update webhook set previous_secret_until = now() where id = ${id}`
    const reply = await test.send('POST', `${base}/${id}/deliveries/${delivery}/redeliver`)
    assert.deepEqual([reply.status, reply.body.is_redelivery], [202, true])
    const [second] = await receiver.received('/after', 1)
    assert.equal(second!.headers['webhook-id'], first!.headers['webhook-id'])
    assert.equal(second!.body, first!.body)
    assert.ok(verify(second!, secret))
    await only(id, 'delivered')
    const { attempts, payload } = await read(id, delivery)
    assert.deepEqual(
      attempts.map(({ attempt, request }: any) => [attempt, request.url]),
      [
        [1, receiver.url('/before')],
        [2, receiver.url('/after')],
      ],
    )
    assert.equal(payload, second!.body)
  })

  it('redelivering sends a delivery that waits for its next attempt at once', async () => {
    const id = await registerWebhook(test, receiver.url('/later'))
    receiver.answer('/later', { status: 503, headers: { 'retry-after': '3600' } }, { status: 200 })
    await createProject('later')
    const waits = await eventually(async () => (await list(id)).find(({ attempts }: any) => attempts === 1))
    assert.equal(waits.status, 'pending')
    assert.ok(Date.parse(waits.next_attempt_at) > Date.now() + 3_500_000)
    await test.send('POST', `${base}/${id}/deliveries/${waits.id}/redeliver`)
    await receiver.received('/later', 2)
    assert.equal((await only(id, 'delivered')).attempts, 2)
  })

  it('deliveries given up while the webhook was disabled are recovered', async () => {
    const id = await registerWebhook(test, receiver.url('/recovered'))
    receiver.answer('/recovered', { status: 500 })
    const since = new Date().toISOString()
    for (const name of ['one', 'two', 'three']) await createProject(name)
    // No delivery is in flight any more.
    await eventually(async () => (await list(id)).filter(({ attempts }: any) => attempts === 1).length === 3)
    await put(id, { status: 'disabled' })
    assert.deepEqual(
      (await list(id)).map(({ status, failure }: any) => `${status} ${failure}`),
      Array.from({ length: 3 }, () => 'failed webhook_disabled'),
    )
    receiver.answer('/recovered', { status: 200 })
    await put(id, { status: 'active' })
    const { body } = await test.send('POST', `${base}/${id}/recover`, { body: { since } })
    assert.equal(body.recovered, 3)
    await eventually(async () => (await list(id, 'status=delivered')).length === 3)
    const taken = new Set(
      receiver
        .requests('/recovered')
        .slice(-3)
        .map(({ body: sent }) => JSON.parse(sent).data.project.name),
    )
    assert.deepEqual(taken, new Set(['one', 'two', 'three']))
  })
})

describe('while it is being delivered to', () => {
  it('a webhook can be deleted during deliveries: nothing more is sent, and the service continues', async () => {
    const id = await registerWebhook(test, receiver.url('/deleted'))
    const other = await registerWebhook(test, receiver.url('/other'))
    receiver.answer('/deleted', 'never')
    for (const name of ['a', 'b', 'c']) await createProject(name)
    await receiver.received('/deleted', 1)
    assert.equal((await test.send('DELETE', `${base}/${id}`)).status, 200)
    const before = receiver.requests('/deleted').length
    receiver.letGo('/deleted', 500)
    await sendTest(other)
    await receiver.received('/other', 4)
    assert.equal(receiver.requests('/deleted').length, before)
    assert.equal((await test.send('GET', `${base}/${id}/deliveries`)).status, 404)
  })

  it('a webhook can be disabled during deliveries: the current ones may arrive, and nothing is left pending', async () => {
    const id = await registerWebhook(test, receiver.url('/disabled'))
    receiver.answer('/disabled', 'never')
    for (const name of ['a', 'b', 'c']) await createProject(name)
    await receiver.received('/disabled', 1)
    await eventually(async () => (await list(id)).length === 3)
    await put(id, { status: 'disabled' })
    receiver.letGo('/disabled', 200)
    await eventually(async () => (await list(id, 'status=delivered')).length === 1)
    assert.deepEqual((await list(id, 'status=failed')).length, 2)
    assert.equal(receiver.requests('/disabled').length, 1)
  })

  it('a webhook can be changed during deliveries: waiting ones go to the new address', async () => {
    const id = await registerWebhook(test, receiver.url('/old'))
    receiver.answer('/old', { status: 500, headers: { 'retry-after': '3600' } })
    await createProject('moved')
    const waits = await eventually(async () => (await list(id)).find(({ attempts }: any) => attempts === 1))
    assert.ok((await test.send('GET', `${base}/${id}`)).body.failing_since)
    const { body } = await put(id, { url: receiver.url('/new') })
    assert.equal(body.failing_since, null)
    await test.send('POST', `${base}/${id}/deliveries/${waits.id}/redeliver`)
    const [request] = await receiver.received('/new', 1)
    assert.equal(request!.headers['webhook-id'], waits.event_id)
    assert.equal(receiver.requests('/old').length, 1)
  })
})
