import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson } from '../../../test/actors.ts'
import { eventually, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { newId } from '../../platform/ids.ts'
import { sweepWebhookSecrets } from './webhooks.queries.ts'

let test: TestService
before(async () => {
  test = await shareTestService()
})
after(() => test.stop())

const base = '/api/v1/webhooks'
const valid = {
  url: 'https://hooks.example.com/cadre',
  events: ['agent.failed', 'error.occurred'],
  secret: 'canary-one',
  filters: { severity: ['high'] },
}

async function register(changes: object = {}): Promise<string> {
  const { status, body } = await test.send('POST', base, { body: { ...valid, ...changes } })
  assert.equal(status, 201, JSON.stringify(body))
  return body.id
}
const read = (id: string) => test.send('GET', `${base}/${id}`)
const put = (id: string, body: unknown, headers: Record<string, string> = {}) =>
  test.send('PUT', `${base}/${id}`, { body, headers })
const rotate = (id: string, body?: unknown, headers: Record<string, string> = {}) =>
  test.send('POST', `${base}/${id}/rotate-secret`, { headers, ...(body === undefined ? {} : { body }) })

/** The secrets that sign: the current one, and the one before it while it does. */
async function secretsOf(id: string): Promise<(string | null)[]> {
  const [row] = await test.sql<{ secret: Buffer; previous: Buffer | null }>`
    select secret, case when previous_secret_until > now() then previous_secret end as previous from webhook where id = ${id}`
  const { secrets } = test.service.context
  return [row!.secret, row!.previous].map((bytes) => bytes && secrets.decrypt('webhook-secret', bytes, id))
}

/** A delivery row that no process sends, because its webhook has no endpoint lease. */
async function insertDelivery(webhook_id: string, status: 'pending' | 'delivered' | 'failed'): Promise<string> {
  const id = newId('dlv')
  await test.sql`
    insert into delivery (id, webhook_id, org_id, event_id, event, status, failure, next_attempt_at, finished_at)
    values (${id}, ${webhook_id}, ${test.owner.org_id}, ${newId('evt')}, 'agent.failed', ${status},
      case when ${status}::text = 'failed' then 'attempts_exhausted' end,
      case when ${status}::text = 'pending' then now() + interval '1 hour' end,
      case when ${status}::text <> 'pending' then now() end)`
  return id
}
const deliveryOf = async (id: string) => {
  const [row] = await test.sql<{
    status: string
    failure: string | null
    next_attempt_at: string
    finished_at: string
  }>`
    select status, failure, next_attempt_at, finished_at from delivery where id = ${id}`
  return row!
}

describe('updating a webhook', () => {
  it('updating a webhook replaces the given members, keeps the others, and advances updated_at', async () => {
    const id = await register()
    const { body: first } = await read(id)
    assert.deepEqual(
      [first.disabled_reason, first.disabled_at, first.failing_since, first.previous_secret_expires_at],
      [null, null, null, null],
    )
    let before = first
    for (const changes of [
      { url: 'https://other.example.com/' },
      { events: ['task.*', 'agent.failed', 'task.*'] },
      { filters: { tool: ['pay', 5, null] } },
      { filters: null },
      { url: 'https://third.example.com/', events: ['budget.reached'], filters: { a: [] } },
    ]) {
      const { status, body } = await put(id, changes)
      assert.equal(status, 200, JSON.stringify(body))
      const expected = {
        ...before,
        ...changes,
        ...(changes.events ? { events: [...new Set(changes.events)] } : {}),
        ...(changes.filters === null ? { filters: {} } : {}),
        updated_at: body.updated_at,
      }
      assert.deepEqual(body, expected)
      assert.ok(body.updated_at > before.updated_at)
      assert.deepEqual((await read(id)).body, body)
      before = body
    }
  })

  it('updating a webhook without known members is refused', async () => {
    const id = await register()
    const { body: nothing } = await put(id, undefined)
    assert.deepEqual([nothing.error.code, nothing.error.details.field], ['INVALID_REQUEST', 'body'])
    const { status: refused, body: unknown } = await put(id, { nope: 1 })
    assert.deepEqual([refused, unknown.error.details.field], [400, 'nope'])
    for (const body of [{}, { id: 'wh_x', created_at: 'x' }]) {
      const { status, body: answer } = await put(id, body)
      assert.deepEqual([status, answer.error.code], [400, 'INVALID_REQUEST'])
      assert.deepEqual(answer.error.details, {
        field: 'body',
        issue: 'url, events, filters, secret or status is required',
      })
    }
  })

  for (const [field, values] of Object.entries({
    url: [null, '', 'x', 5, 'http://example.com/', 'https://10.0.0.1/', `https://example.com/${'x'.repeat(2048)}`],
    events: [null, [], ['nope'], 'task.*', ['task.*', 5], Array.from({ length: 17 }, () => 'task.*')],
    filters: [5, [], 'x', { a: 'x' }, { a: ['x'.repeat(4096)] }, { a: Array.from({ length: 65 }, () => 1) }],
    secret: [null, '', 5, {}, `canary${'x'.repeat(256)}`],
    status: [null, '', 'paused', 5, 'ACTIVE'],
  }))
    for (const value of values)
      it(`updating a webhook refuses ${field} ${JSON.stringify(value).slice(0, 40)}, and changes nothing`, async () => {
        const id = await register()
        const { body: before } = await read(id)
        const { status, body } = await put(id, { url: 'https://moved.example.com/', [field]: value })
        assert.deepEqual([status, body.error.code], [400, 'INVALID_REQUEST'])
        assert.deepEqual(Object.keys(body.error.details), ['field', 'issue'])
        assert.match(body.error.details.field, new RegExp(`^${field}`))
        assert.equal(JSON.stringify(body).includes('canary'), false)
        assert.deepEqual((await read(id)).body, before)
      })

  it('updating a webhook resets its failures with a new address, and not with any other change', async () => {
    const id = await register()
    const failing = () =>
      test.sql`update webhook set failing_since = '2026-11-01', slowed_until = now() + interval '1 hour' where id = ${id}`
    const slowed = async () =>
      (await test.sql`select 1 from webhook where id = ${id} and slowed_until is not null`).length
    await failing()
    for (const changes of [{ events: ['task.*'] }, { status: 'active' }, { url: valid.url }]) {
      assert.equal((await put(id, changes)).body.failing_since, '2026-11-01T00:00:00.000Z', JSON.stringify(changes))
      assert.equal(await slowed(), 1)
    }
    assert.equal((await put(id, { url: 'https://moved.example.com/' })).body.failing_since, null)
    assert.equal(await slowed(), 0)
  })
})

describe('disabling a webhook by hand', () => {
  it('disabling a webhook gives up pending deliveries, and does not change ended ones or other webhooks', async () => {
    const [id, other] = [await register(), await register()]
    const [waits, taken, failed, theirs] = [
      await insertDelivery(id, 'pending'),
      await insertDelivery(id, 'delivered'),
      await insertDelivery(id, 'failed'),
      await insertDelivery(other, 'pending'),
    ]
    const ended = await Promise.all([deliveryOf(taken), deliveryOf(failed), deliveryOf(theirs)])
    const { status, body } = await put(id, { status: 'disabled' })
    assert.deepEqual([status, body.status, body.disabled_reason], [200, 'disabled', 'requested'])
    assert.equal(body.disabled_at, body.updated_at)
    const { finished_at, ...rest } = await deliveryOf(waits)
    assert.deepEqual(rest, { status: 'failed', failure: 'webhook_disabled', next_attempt_at: null })
    assert.equal(finished_at, body.disabled_at)
    assert.deepEqual(await Promise.all([deliveryOf(taken), deliveryOf(failed), deliveryOf(theirs)]), ended)
  })

  it('disabling a webhook gives up a large backlog in several statements', async () => {
    const id = await register()
    await test.sql`
      insert into delivery (id, webhook_id, org_id, event_id, event, next_attempt_at)
      select 'dlv_' || substr(id_floor('x', now()), 3, 10) || to_char(n, 'FM0000000000000000'), ${id}, 'org_x', 'evt_x', 'agent.failed',
        now() + interval '1 hour'
      from generate_series(1, 12000) n`
    assert.equal((await put(id, { status: 'disabled' })).status, 200)
    await eventually(async () => {
      const [rest] = await test.sql`select 1 from delivery where webhook_id = ${id} and status = 'pending' limit 1`
      return !rest
    })
    assert.deepEqual(
      await test.sql`select status, failure, count(*) as count from delivery where webhook_id = ${id} group by 1, 2`,
      [{ status: 'failed', failure: 'webhook_disabled', count: 12_000 }],
    )
  })

  it('disabling a disabled webhook keeps the reason and time', async () => {
    const id = await register()
    await test.sql`
      update webhook set status = 'disabled', disabled_reason = 'failing', disabled_at = '2026-11-02', failing_since = '2026-10-28'
      where id = ${id}`
    const { body } = await put(id, { status: 'disabled', events: ['task.*'] })
    assert.deepEqual(
      [body.status, body.disabled_reason, body.disabled_at, body.failing_since],
      ['disabled', 'failing', '2026-11-02T00:00:00.000Z', '2026-10-28T00:00:00.000Z'],
    )
  })

  it('activating a disabled webhook clears the reason and the time of its failures', async () => {
    for (const reason of ['requested', 'gone', 'failing']) {
      const id = await register()
      await test.sql`
        update webhook set status = 'disabled', disabled_reason = ${reason}, disabled_at = now(),
          failing_since = now(), slowed_until = now() + interval '1 hour' where id = ${id}`
      const { body } = await put(id, { status: 'active' })
      assert.deepEqual(
        [body.status, body.disabled_reason, body.disabled_at, body.failing_since],
        ['active', null, null, null],
      )
      assert.equal((await test.sql`select 1 from webhook where id = ${id} and slowed_until is null`).length, 1)
    }
  })

  it('a disabled webhook gets no events of that time', async () => {
    const id = await register({ events: ['project.created'] })
    await put(id, { status: 'disabled' })
    await test.send('POST', '/api/v1/projects', { body: { name: 'unheard' } })
    const [event] = await test.sql<{ matched: boolean }>`
      select matched_at is not null as matched from event where type = 'project.created' order by id desc limit 1`
    assert.equal(event!.matched, true, 'there is nothing to deliver')
  })

  it('disabling a webhook and another concurrent change both take effect', async () => {
    for (let round = 0; round < 10; round++) {
      const id = await register()
      const pending = await insertDelivery(id, 'pending')
      const replies = await Promise.all([
        put(id, { status: 'disabled' }),
        put(id, { url: 'https://moved.example.com/' }),
        rotate(id),
        put(id, { events: ['task.*'] }),
      ])
      assert.deepEqual(
        replies.map(({ status }) => status),
        [200, 200, 200, 200],
      )
      const { body } = await read(id)
      assert.deepEqual([body.status, body.url, body.events], ['disabled', 'https://moved.example.com/', ['task.*']])
      assert.equal((await secretsOf(id))[1], 'canary-one')
      assert.equal((await deliveryOf(pending)).failure, 'webhook_disabled')
    }
  })
})

describe('the revision of a webhook (decision D99)', () => {
  it('the revision of a webhook is its ETag, advances with every change, and If-Match refuses an older one', async () => {
    const created = await test.send('POST', base, { body: valid })
    const { id } = created.body
    const first = created.headers.get('etag')!
    assert.match(first, /^"\d+"$/)
    assert.equal((await read(id)).headers.get('etag'), first)
    const changed = await put(id, { events: ['task.*'] }, { 'if-match': first })
    assert.equal(changed.status, 200)
    const second = changed.headers.get('etag')!
    assert.notEqual(second, first)
    for (const reply of [
      await put(id, { events: ['agent.failed'] }, { 'if-match': first }),
      await rotate(id, undefined, { 'if-match': first }),
      await test.send('DELETE', `${base}/${id}`, { headers: { 'if-match': first } }),
    ]) {
      assert.deepEqual([reply.status, reply.body.error.code], [412, 'PRECONDITION_FAILED'])
      assert.equal(reply.body.error.details.current, second)
    }
    assert.deepEqual((await read(id)).body, changed.body)
    const rotated = await rotate(id, undefined, { 'if-match': second })
    assert.equal(rotated.status, 200)
    assert.equal((await read(id)).headers.get('etag'), rotated.headers.get('etag'))
    const headers = { 'if-match': rotated.headers.get('etag')! }
    assert.equal((await test.send('DELETE', `${base}/${id}`, { headers })).status, 200)
  })

  it('If-Match lets only one of many concurrent changes of a webhook succeed', async () => {
    const id = await register()
    const tag = (await read(id)).headers.get('etag')!
    const replies = await Promise.all(
      Array.from({ length: 8 }, (_, i) => put(id, { url: `https://hooks.example.com/${i}` }, { 'if-match': tag })),
    )
    assert.equal(replies.filter(({ status }) => status === 200).length, 1)
    assert.equal(replies.filter(({ status }) => status === 412).length, 7)
  })
})

describe('rotating the secret', () => {
  it('rotating the secret creates one, returns it once, and the previous one also signs for 24 hours', async () => {
    const id = await register()
    const { status, body } = await rotate(id)
    assert.equal(status, 200)
    assert.match(body.secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.equal(Buffer.from(body.secret.slice(6), 'base64').length, 32)
    assert.deepEqual(await secretsOf(id), [body.secret, 'canary-one'])
    const overlap_ms = Date.parse(body.previous_secret_expires_at) - Date.parse(body.updated_at)
    assert.ok(Math.abs(overlap_ms - 86_400_000) < 1000, String(overlap_ms))
    const { body: shown } = await read(id)
    assert.equal(shown.previous_secret_expires_at, body.previous_secret_expires_at)
    assert.equal(JSON.stringify(shown).includes(body.secret), false)
    assert.notEqual((await rotate(id)).body.secret, body.secret)
  })

  it('rotating the secret accepts a given one, and does not return it', async () => {
    const id = await register()
    const { status, body } = await rotate(id, { secret: 'canary-two' })
    assert.deepEqual([status, 'secret' in body], [200, false])
    assert.deepEqual(await secretsOf(id), ['canary-two', 'canary-one'])
    assert.equal(JSON.stringify(body).includes('canary'), false)
  })

  it('rotating the secret to the current one changes nothing, as after a lost response', async () => {
    const id = await register()
    const { body: never } = await rotate(id, { secret: 'canary-one' })
    assert.equal(never.previous_secret_expires_at, null)
    assert.deepEqual(await secretsOf(id), ['canary-one', null])
    const { body: first } = await rotate(id, { secret: 'canary-two' })
    const { body: again } = await rotate(id, { secret: 'canary-two' })
    assert.deepEqual(again, first)
    assert.deepEqual(await secretsOf(id), ['canary-two', 'canary-one'])
    await put(id, { secret: 'canary-two' })
    assert.deepEqual(await secretsOf(id), ['canary-two', 'canary-one'])
  })

  it('rotating the secret by PUT does the same', async () => {
    const id = await register()
    const { body } = await put(id, { secret: 'canary-two' })
    assert.deepEqual(await secretsOf(id), ['canary-two', 'canary-one'])
    assert.ok(Date.parse(body.previous_secret_expires_at) > Date.now())
    await put(id, { url: 'https://moved.example.com/' })
    assert.deepEqual(await secretsOf(id), ['canary-two', 'canary-one'])
  })

  it('a second rotation ends the first secret at once', async () => {
    const id = await register()
    const [{ body: one }, { body: two }] = [await rotate(id), await rotate(id)]
    assert.deepEqual(await secretsOf(id), [two.secret, one.secret])
  })

  it('two concurrent rotations give two secrets that both sign', async () => {
    for (let round = 0; round < 10; round++) {
      const id = await register()
      const replies = await Promise.all([rotate(id), rotate(id)])
      const shown = replies.map(({ body }) => body.secret)
      assert.deepEqual(new Set(await secretsOf(id)), new Set(shown))
    }
  })

  it('rotating the secret again with the same Idempotency-Key returns the same secret, which is stored encrypted', async () => {
    const id = await register()
    const headers = { 'idempotency-key': newId('req') }
    const [one, two] = [await rotate(id, {}, headers), await rotate(id, {}, headers)]
    assert.deepEqual(two.body, one.body)
    assert.equal(two.headers.get('idempotency-replayed'), 'true')
    assert.deepEqual(await secretsOf(id), [one.body.secret, 'canary-one'])
    const [kept] = await test.sql<{ text: string }>`
      select encode(body, 'escape') as text from idempotency where key = ${headers['idempotency-key']}`
    assert.equal(kept!.text.includes('whsec_'), false)
  })

  it('rotating the secret leaves nothing of an expired secret', async () => {
    const [over, still] = [await register(), await register()]
    for (const id of [over, still]) await rotate(id, { secret: 'canary-two' })
    await test.sql`update webhook set previous_secret_until = now() - interval '1 second' where id = ${over}`
    await sweepWebhookSecrets(test.sql)
    const rows = await test.sql<{ id: string }>`
      select id from webhook where id = any(${[over, still]}) and previous_secret is not null`
    assert.deepEqual(rows, [{ id: still }])
    assert.deepEqual(await secretsOf(over), ['canary-two', null])
  })

  for (const secret of ['', 5, {}, ['canary'], `canary${'x'.repeat(256)}`, 'canary\u0000'])
    it(`rotating the secret refuses ${JSON.stringify(secret).slice(0, 30)}`, async () => {
      const id = await register()
      const { status, body } = await rotate(id, { secret })
      assert.deepEqual([status, body.error.code, body.error.details.field], [400, 'INVALID_REQUEST', 'secret'])
      assert.equal(JSON.stringify(body).includes('canary'), false)
      assert.deepEqual(await secretsOf(id), ['canary-one', null])
    })
})

describe('deleting a webhook', () => {
  it('deleting a webhook deletes its endpoint lease and hides its deliveries at once', async () => {
    const id = await register()
    const delivery = await insertDelivery(id, 'pending')
    await test.sql`insert into webhook_lane (webhook_id, due_at) values (${id}, now() + interval '1 hour')`
    assert.equal((await test.send('GET', `${base}/${id}/deliveries/${delivery}`)).status, 200)
    const { status, body } = await test.send('DELETE', `${base}/${id}`)
    assert.deepEqual([status, body], [200, { message: 'Webhook deleted', webhook_id: id }])
    assert.equal((await test.sql`select 1 from webhook_lane where webhook_id = ${id}`).length, 0)
    for (const [method, path, sent] of [
      ['GET', ''],
      ['PUT', '', { status: 'active' }],
      ['DELETE', ''],
      ['POST', '/test'],
      ['POST', '/rotate-secret'],
      ['POST', '/recover', { since: new Date().toISOString() }],
      ['GET', '/deliveries'],
      ['GET', `/deliveries/${delivery}`],
      ['POST', `/deliveries/${delivery}/redeliver`],
    ] as const) {
      const reply = await test.send(method, `${base}/${id}${path}`, sent ? { body: sent } : {})
      assert.deepEqual([reply.status, reply.body.error.code], [404, 'RESOURCE_NOT_FOUND'], `${method} ${path}`)
      assert.deepEqual(reply.body.error.details, { resource_type: 'webhook', resource_id: id })
    }
  })

  it('of concurrent deletions of a webhook one succeeds', async () => {
    const id = await register()
    const replies = await Promise.all(Array.from({ length: 6 }, () => test.send('DELETE', `${base}/${id}`)))
    assert.equal(replies.filter(({ status }) => status === 200).length, 1)
    assert.equal(replies.filter(({ status }) => status === 404).length, 5)
  })
})

describe('secrets of webhooks', () => {
  it('secrets of webhooks are in no response to any caller', async () => {
    const id = await register()
    const { key } = await makeKey(test, await makePerson(test, 'viewer', test.owner.org_id), ['read'])
    const answers = [
      await read(id),
      await put(id, { secret: 'canary-two' }),
      await rotate(id, { secret: 'canary-three' }),
      await test.send('GET', base),
      await test.send('GET', base, { key }),
      await test.send('GET', `${base}/${id}`, { key }),
      await test.send('POST', `${base}/${id}/test`),
      await test.send('GET', `${base}/${id}/deliveries`),
    ]
    for (const { status, body } of answers) {
      assert.ok(status < 300)
      assert.equal(JSON.stringify(body).includes('canary'), false)
    }
    const [row] = await test.sql<{ text: string }>`
      select concat(w::text, encode(secret, 'escape'), encode(previous_secret, 'escape')) as text from webhook w where id = ${id}`
    assert.equal(row!.text.includes('canary'), false)
  })
})
