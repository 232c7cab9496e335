import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson, makeSession, ownerOf } from '../../../test/actors.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'

interface Limit {
  name: string
  window: string
  limit: number
  used: number
  remaining: number
  resets_at: string
}

describe('where limits stand', () => {
  let test: TestService
  before(async () => {
    test = await startTestService({ CADRE_RATE_LIMITS_SCALE: '1', CADRE_TASK_RETENTION_DAYS: '0' })
  })
  after(() => test.stop())

  const path = '/api/v1/auth/limits'
  const find = (limits: Limit[], name: string, window: string): Limit =>
    limits.find((limit) => limit.name === name && limit.window === window) ?? assert.fail(`no ${name} a ${window}`)

  it('the state of the limits counts used and refused requests of a credential, and none of others', async () => {
    const { id, key } = await makeKey(test, ownerOf(test), ['admin'])
    const send = (method: string, url: string) => test.send(method, url, { key })
    // A whole window ahead, where it counts as the running one, so that no hour ends in the middle of the test.
    await test.sql`
      insert into rate_window (subject, bucket, hour_start, hour_used, minute_start, minute_used, admitted)
      values (${id}, 'general', date_trunc('hour', now(), 'UTC') + interval '1 hour', 998,
        date_trunc('minute', now(), 'UTC') + interval '1 minute', 3, true)`
    const statuses = []
    for (let sent = 0; sent < 5; sent += 1) statuses.push((await send('GET', '/api/v1/hello')).status)
    assert.deepEqual(statuses, [200, 200, 429, 429, 429])

    const { status, body } = await send('GET', path)
    assert.equal(status, 200)
    assert.equal(body.is_enforced, true)
    const hour = find(body.limits, 'general', 'hour')
    assert.deepEqual([hour.limit, hour.used, hour.remaining], [1000, 1000, 0])
    assert.ok(Date.parse(hour.resets_at) > Date.now() - 60_000)
    assert.equal(find(body.limits, 'general', 'minute').used, 5)
    assert.deepEqual(
      body.refusals.map(({ last_at, ...rest }: { last_at: string }) => [rest, Number.isNaN(Date.parse(last_at))]),
      [[{ name: 'general', this_hour: 3, previous_hour: 0 }, false]],
    )
    assert.equal(find(body.limits, 'tokens', 'hour').used, 0)

    const other = await makeKey(test, ownerOf(test), ['read'])
    const untouched = (await test.send('GET', path, { key: other.key })).body
    assert.equal(find(untouched.limits, 'general', 'hour').used, 0)
    assert.deepEqual(untouched.refusals, [])
  })

  it('the state of the limits separates refusals of the previous hour, and drops older ones', async () => {
    const { id, key } = await makeKey(test, ownerOf(test), ['admin'])
    const send = (method: string, url: string) => test.send(method, url, { key })
    const refusals = async (hours: number) => {
      await test.sql`
        insert into rate_window (subject, bucket, hour_start, hour_used, hour_refused, previous_hour_refused,
          refused_at, minute_start, minute_used, admitted)
        values (${id}, 'general', date_trunc('hour', now(), 'UTC') - make_interval(hours => ${hours}), 1000, 7, 2,
          now() - interval '1 hour', now(), 1, true)
        on conflict (subject, bucket) do update set hour_start = excluded.hour_start, hour_refused = 7, previous_hour_refused = 2`
      return (await send('GET', path)).body.refusals.map((refused: { this_hour: number; previous_hour: number }) => [
        refused.this_hour,
        refused.previous_hour,
      ])
    }
    assert.deepEqual(await refusals(0), [[7, 2]])
    assert.deepEqual(await refusals(1), [[0, 7]])
    assert.deepEqual(await refusals(2), [])
    // The next counted request moves them on in the row itself.
    await refusals(1)
    assert.equal((await send('GET', '/api/v1/hello')).status, 200)
    const [row] =
      await test.sql`select hour_refused, previous_hour_refused from rate_window where subject = ${id} and bucket = 'general'`
    assert.deepEqual(row, { hour_refused: 0, previous_hour_refused: 7 })
  })

  it('the state of the limits has the larger limits of sessions, and the retention of data', async () => {
    const { cookie } = await makeSession(test, ownerOf(test))
    const { body } = await test.send('GET', path, { cookie })
    assert.equal(find(body.limits, 'general', 'hour').limit, 10_000)
    const kept = Object.fromEntries(
      body.retention.map((of: { kind: string; days: number | null }) => [of.kind, of.days]),
    )
    assert.deepEqual(kept, {
      tasks: null,
      files: 30,
      agent_logs: 30,
      events: 90,
      webhook_deliveries: 30,
      usage: 400,
      audit_log: 400,
      refusals: 30,
      trigger_deliveries: 30,
    })
  })

  it('the state of the limits shows only owners how much data of each kind is stored', async () => {
    const bytesFor = async (options: object): Promise<(number | null)[]> =>
      (await test.send('GET', path, options)).body.retention.map((of: { bytes: number | null }) => of.bytes)
    const stored = await bytesFor({})
    assert.ok(
      stored.every((bytes) => bytes !== null && bytes >= 8192),
      String(stored),
    )
    const [row] = await test.sql<{ bytes: number }>`select pg_total_relation_size('audit')::bigint as bytes`
    const { body } = await test.send('GET', path)
    assert.equal(body.retention.find((of: { kind: string }) => of.kind === 'audit_log').bytes, row!.bytes)
    const reader = await makeKey(test, ownerOf(test), ['read'])
    assert.deepEqual(new Set(await bytesFor({ key: reader.key })), new Set([null]))
    // Another organization's data stands in the same tables.
    const stranger = await makeKey(test, await makePerson(test), ['admin'])
    assert.deepEqual(new Set(await bytesFor({ key: stranger.key })), new Set([null]))
    assert.deepEqual(new Set(await bytesFor({})), new Set([null]))
  })

  it('the state of the limits reports that nothing is counted if limits are off', async () => {
    const off = await startTestService({ CADRE_RATE_LIMITS: 'off' })
    try {
      const { body } = await off.send('GET', path)
      assert.equal(body.is_enforced, false)
      assert.ok(body.limits.every(({ used }: Limit) => used === 0))
    } finally {
      await off.stop()
    }
  })
})
