import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, ownerOf } from '../../test/actors.ts'
import { eventually, startTestService, type TestService } from '../../test/harness.ts'

describe('concurrent requests of one key', () => {
  let test: TestService
  before(async () => (test = await startTestService({ CADRE_RATE_LIMITS_SCALE: '1' })))
  after(() => test.stop())

  const hello = (key: string) => test.send('GET', '/api/v1/auth/user', { key })
  /** Concurrent requests, each with a different number of requests left. */
  const atOnce = (key: string, count: number) => Promise.all(Array.from({ length: count }, () => hello(key)))

  it('concurrent requests of one key are all counted in its windows and as uses, and each gets separate rate limit headers', async () => {
    const { id, key } = await makeKey(test, ownerOf(test), ['admin'])
    const replies = await atOnce(key, 40)
    assert.deepEqual([...new Set(replies.map(({ status }) => status))], [200])
    const left = replies.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')))
    // If a minute ended meanwhile there are two counts: a number may occur twice, but none is missing.
    const [row] = await test.sql<{ minute: number; hour: number }>`
      select minute_used as minute, hour_used as hour from rate_window where subject = ${id} and bucket = 'user'`
    const max = Math.max(...left)
    assert.ok(new Set(left).size >= row!.minute, `${left}`)
    assert.equal(max, 99)
    const [uses] = await test.sql<{ n: number }>`
      select sum(requests)::bigint as n from api_key_usage where key_id = ${id}`
    assert.equal(uses!.n, 40)
  })

  it('of concurrent requests of one key as many are admitted as fit, and each refusal is counted once', async () => {
    const { id, key } = await makeKey(test, ownerOf(test), ['admin'])
    await test.sql`
      insert into rate_window (subject, bucket, hour_start, hour_used, minute_start, minute_used, admitted)
      values (${id}, 'user', date_trunc('hour', now(), 'UTC') + interval '1 hour', 0,
        date_trunc('minute', now(), 'UTC') + interval '1 minute', 83, true)`
    const replies = await atOnce(key, 40)
    const statuses = replies.map(({ status }) => status)
    assert.equal(statuses.filter((status) => status === 200).length, 17)
    assert.equal(statuses.filter((status) => status === 429).length, 23)
    const [row] = await test.sql<{ minute: number; refused: number }>`
      select minute_used as minute, hour_refused as refused from rate_window where subject = ${id} and bucket = 'user'`
    assert.deepEqual(row, { minute: 100, refused: 23 })
    const [uses] = await test.sql<{ n: number }>`
      select sum(requests)::bigint as n from api_key_usage where key_id = ${id}`
    assert.equal(uses!.n, 40)
  })

  it('a revoked key is refused with the next request, however many of its requests are in flight', async () => {
    const { id, key } = await makeKey(test, ownerOf(test), ['admin'])
    let revoked = false
    const refusedAfter: number[] = []
    const caller = async (): Promise<void> => {
      for (let after = 0; after < 3;) {
        const wasRevoked = revoked
        const { status } = await hello(key)
        if (status !== 429) assert.equal(status === 401 || !wasRevoked, true, `${status} after it was revoked`)
        if (wasRevoked) {
          refusedAfter.push(status)
          after++
        }
      }
    }
    const callers = Promise.all(Array.from({ length: 16 }, caller))
    assert.equal((await test.send('DELETE', `/api/v1/auth/api-keys/${id}`)).status < 300, true)
    revoked = true
    await callers
    assert.deepEqual([...new Set(refusedAfter)], [401])
    assert.equal(refusedAfter.length, 48)
  })
})

describe('requests of one key while its statement fails', () => {
  let test: TestService
  // Long timeouts of locks and statements: a slow machine must not fail these tests.
  before(async () => (test = await startTestService({ CADRE_RATE_LIMITS_SCALE: '1' }, { timeoutMultiplier: 20 })))
  after(() => test.stop())

  const path = '/api/v1/auth/user'
  /** The process of PostgreSQL in which a statement of authentication waits for a lock. */
  const waits = (but?: number) =>
    eventually(async () => {
      const rows = await test.sql<{ pid: number }>`
        select pid from pg_stat_activity where datname = current_database()
          and application_name = 'cadre authentication' and wait_event_type = 'Lock'`
      assert.ok(rows.length <= 1, 'requests of one key ask one at a time')
      return rows.find(({ pid }) => pid !== but)?.pid
    })
  const end = (pid: number) => test.sql`select pg_terminate_backend(${pid})`

  it('a broken connection fails at most one request of its key and none of other keys, and none is counted twice', async () => {
    const { id, key } = await makeKey(test, ownerOf(test), ['admin'])
    await test.sql`
      insert into rate_window (subject, bucket, hour_start, hour_used, minute_start, minute_used, admitted)
      values (${id}, 'user', date_trunc('hour', now(), 'UTC') + interval '1 hour', 0,
        date_trunc('minute', now(), 'UTC') + interval '1 minute', 0, true)`
    let arrived = 0
    test.service.app.server.on('request', () => void arrived++)
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const { promise: locked, resolve: lock } = Promise.withResolvers<void>()
    const holder = test.sql.begin(async (tx) => {
      await tx`select from rate_window where subject = ${id} and bucket = 'user' for update`
      lock()
      await released
    })
    try {
      await locked
      const first = test.send('GET', path, { key })
      const alone = await waits()
      const others = Promise.all(Array.from({ length: 19 }, () => test.send('GET', path, { key })))
      await eventually(async () => arrived === 20)

      await end(alone)
      const { status, headers } = await first
      assert.equal(status, 503)
      assert.ok(Number(headers.get('retry-after')) >= 1)

      const shared = await waits(alone)
      assert.equal((await test.send('GET', path)).status, 200)
      await end(shared)
      await waits(shared)
      release()
      assert.deepEqual([...new Set((await others).map((reply) => reply.status))], [200])
    } finally {
      release()
      await holder
    }
    const [row] = await test.sql<{ minute: number }>`
      select minute_used as minute from rate_window where subject = ${id} and bucket = 'user'`
    assert.equal(row!.minute, 19)
    const [uses] = await test.sql<{ n: number }>`
      select sum(requests)::bigint as n from api_key_usage where key_id = ${id}`
    assert.equal(uses!.n, 19)
  })
})
