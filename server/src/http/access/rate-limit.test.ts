import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { buckets, type Bucket, type BucketName } from '#contract/core/limits.ts'
import { makeKey, makePerson, makeSession, makeToken, ownerOf, type Credential } from '../../../test/actors.ts'
import { sender, startAnother, startTestService, type Reply, type TestService } from '../../../test/harness.ts'
import { addressSubject, governingWindow, limitsOf } from './rate-limit.ts'

let test: TestService
let agents: string
before(async () => {
  test = await startTestService({ CADRE_RATE_LIMITS_SCALE: '1' })
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'limited' } })
  agents = `/api/v1/projects/${body.id}/agents`
})
after(() => test.stop())

const absentAgent = 'agent_00000000000000000000000000'
const absent = '/api/v1/projects/proj_999999'

/** A request that each bucket of credentials counts. Most of them fail, and are counted all the same. */
const requests: Partial<Record<BucketName, [method: string, path: string, status: number]>> = {
  general: ['GET', '/api/v1/hello', 200],
  'api_keys.create': ['POST', '/api/v1/auth/api-keys', 400],
  'api_keys.read': ['GET', '/api/v1/auth/api-keys', 200],
  'api_keys.write': ['DELETE', '/api/v1/auth/api-keys/key_1', 404],
  user: ['GET', '/api/v1/auth/user', 200],
  sessions: ['GET', '/api/v1/auth/sessions', 403],
  'agents.list': ['GET', `${absent}/agents`, 404],
  'agents.create': ['POST', `${absent}/agents`, 404],
  'agents.get': ['GET', `${absent}/agents/${absentAgent}`, 404],
  'agents.update': ['PUT', `${absent}/agents/${absentAgent}`, 404],
  'agents.delete': ['DELETE', `${absent}/agents/${absentAgent}`, 404],
  'agents.action': ['POST', `${absent}/agents/${absentAgent}/stop`, 404],
  'agents.logs': ['GET', `${absent}/agents/${absentAgent}/logs`, 404],
  'agents.metrics': ['GET', `${absent}/agents/${absentAgent}/metrics`, 404],
  'tasks.create': ['POST', `${absent}/agents/${absentAgent}/tasks`, 404],
  'tasks.read': ['GET', `${absent}/tasks`, 404],
  'tasks.action': ['POST', `${absent}/tasks/task_1/cancel`, 404],
  'tasks.stream': ['GET', `${absent}/tasks/task_1/events/stream`, 404],
  'work.claim': ['POST', '/api/v1/projects/proj_999999999/work/claim', 404],
  'work.lease': ['POST', '/api/v1/projects/proj_999999999/work/heartbeat', 403],
  'tool_calls.work': ['POST', '/api/v1/projects/proj_999999999/tool-calls/claim', 404],
  'audit.export': ['GET', '/api/v1/auth/audit/export', 200],
}

/** A key that has not been used yet. */
async function newKey(): Promise<{ id: string; key: string }> {
  return makeKey(test, ownerOf(test), ['admin'])
}

/**
 * Moves both windows of a bucket one window into the future, where they stay current until then, so no minute ends in
 * the middle of a test. `left` is the number of requests that remain in each.
 */
async function hold(subject: string, bucket: BucketName, used: { hour?: number; minute?: number } = {}): Promise<void> {
  await test.sql`
    insert into rate_window (subject, bucket, hour_start, hour_used, minute_start, minute_used, admitted)
    values (${subject}, ${bucket}, date_trunc('hour', now(), 'UTC') + interval '1 hour', ${used.hour ?? 0},
      date_trunc('minute', now(), 'UTC') + interval '1 minute', ${used.minute ?? 0}, true)
    on conflict (subject, bucket) do update set hour_start = excluded.hour_start, hour_used = excluded.hour_used,
      minute_start = excluded.minute_start, minute_used = excluded.minute_used`
}

async function used(subject: string, bucket: BucketName): Promise<{ hour: number; minute: number } | undefined> {
  const [row] = await test.sql<{ hour: number; minute: number }>`
    select hour_used as hour, minute_used as minute from rate_window where subject = ${subject} and bucket = ${bucket}`
  return row
}

const number = ({ headers }: Reply, name: string): number => Number(headers.get(name) ?? Number.NaN)
const standing = (reply: Reply): number[] =>
  ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset'].map((name) => number(reply, name))

/** Checks body and headers of a refusal (decision D89). */
function assertRefused(reply: Reply, bucket: string, limit: number): void {
  const { status, headers, body } = reply
  assert.equal(status, 429)
  const [, remaining, reset] = standing(reply)
  assert.deepEqual([number(reply, 'x-ratelimit-limit'), remaining], [limit, 0])
  const retry_after = Number(headers.get('retry-after'))
  assert.ok(Number.isInteger(retry_after) && retry_after >= 1, String(retry_after))
  assert.ok(Math.abs(reset! - Date.now() / 1000 - retry_after) < 5, `${reset} ${retry_after}`)
  const [, name, left] = /^"([a-z]+)";r=0;t=(\d+)$/.exec(headers.get('ratelimit') ?? '') ?? []
  assert.equal(Number(left), retry_after)
  const window_seconds = { burst: 60, hour: 3600, tokens: 3600 }[name!]
  assert.equal(headers.get('ratelimit-policy'), `"${name}";q=${limit};w=${window_seconds}`)
  assert.ok(['rate_limit_exceeded', 'RATE_LIMIT_EXCEEDED'].includes(body.error.code))
  assert.equal(body.error.retry_after, retry_after)
  assert.deepEqual(body.error.details, { limit, remaining: 0, reset, retry_after, bucket })
}

describe('a 429', () => {
  it('a 429 names the setting that raises the limit only to owners and admins', async () => {
    for (const [role, hint] of [
      ['owner', true],
      ['admin', true],
      ['member', false],
      ['viewer', false],
    ] as const) {
      const person = await makePerson(test, role)
      const { key, id } = await makeKey(test, person, ['agents:read'])
      await hold(id, 'agents.list', { minute: buckets['agents.list'].minute })
      const { status, body } = await test.send('GET', `${absent}/agents`, { key })
      assert.equal(status, 429)
      assert.equal(body.error.message.includes('CADRE_RATE_LIMITS_SCALE'), hint, role)
    }
  })
})

describe('every bucket of a credential', () => {
  const ofCredential = (Object.entries(buckets) as [BucketName, Bucket][]).filter(([, { per }]) => per === 'credential')
  for (const [name, { hour, minute }] of ofCredential) {
    it(`the bucket ${name} serves its last request, refuses the next, and does not count it (decisions D85, D87, D89)`, async () => {
      const request = requests[name]
      assert.ok(request, 'no request is known that it counts')
      const [method, path, status] = request
      const limit = minute ?? hour!
      const { id, key } = await newKey()
      const send = () =>
        test.send(method, path, { key, ...(method === 'POST' || method === 'PUT' ? { body: {} } : {}) })
      await hold(id, name, minute === undefined ? { hour: limit - 2 } : { minute: limit - 2 })
      for (const remaining of [1, 0]) {
        const reply = await send()
        assert.equal(reply.status, status, JSON.stringify(reply.body))
        assert.deepEqual(standing(reply).slice(0, 2), [limit, remaining])
      }
      const before = await used(id, name)
      for (let i = 0; i < 3; i++) assertRefused(await send(), name, limit)
      assert.deepEqual(await used(id, name), before)
      const buckets_used = await test.sql<{ bucket: string }>`select bucket from rate_window where subject = ${id}`
      assert.deepEqual(
        buckets_used.map(({ bucket }) => bucket),
        [name],
      )
    })
  }

  it('the first request of a credential is already counted', async () => {
    const { id, key } = await newKey()
    await hold(id, 'agents.create')
    const statuses: number[] = []
    for (let i = 0; i < 12; i++) statuses.push((await test.send('POST', `${absent}/agents`, { key, body: {} })).status)
    assert.deepEqual(statuses, [...Array.from({ length: 10 }, () => 404), 429, 429])
  })

  it('a request is counted whether it succeeds, is invalid or lacks a scope (decision D87)', async () => {
    const { id, key } = await makeKey(test, ownerOf(test), ['agents:write'])
    await hold(id, 'general')
    await hold(id, 'agents.create')
    await test.send('GET', '/api/v1/hello', { key })
    await test.send('GET', '/api/v1/projects', { key })
    await test.send('GET', `/api/v1/hello?name=${'x'.repeat(101)}`, { key })
    assert.deepEqual(await used(id, 'general'), { hour: 3, minute: 3 })
    for (const body of [{ name: 'counted' }, { name: 'counted' }, {}, '{'])
      await test.send('POST', agents, { key, body })
    assert.deepEqual(await used(id, 'agents.create'), { hour: 4, minute: 4 })
  })

  it('a request with an invalid credential is not counted', async () => {
    const [before] = await test.sql<{ count: number }>`select count(*) from rate_window`
    for (const key of [null, 'cadre_', `cadre_${'0'.repeat(32)}`])
      assert.equal((await test.send('GET', '/api/v1/hello', { key })).status, 401)
    const [after] = await test.sql<{ count: number }>`select count(*) from rate_window`
    assert.deepEqual(after, before)
  })

  it('the four actions of an agent share one bucket', async () => {
    const { id, key } = await newKey()
    await hold(id, 'agents.action', { minute: 46 })
    for (const [action, status] of [
      ['start', 404],
      ['pause', 404],
      ['stop', 404],
      ['restart', 404],
      ['start', 429],
      ['stop', 429],
    ] as const) {
      assert.equal((await test.send('POST', `${agents}/${absentAgent}/${action}`, { key })).status, status)
    }
  })
})

describe('the general limits', () => {
  it('the general limits hold for hour and minute, and the headers show the one with less left (decisions D85, D88)', async () => {
    const { id, key } = await newKey()
    const hello = () => test.send('GET', '/api/v1/hello', { key })
    await hold(id, 'general', { hour: 500, minute: 10 })
    assert.deepEqual(standing(await hello()).slice(0, 2), [100, 89])
    await hold(id, 'general', { hour: 970, minute: 10 })
    assert.deepEqual(standing(await hello()).slice(0, 2), [1000, 29])
    await hold(id, 'general', { hour: 999, minute: 0 })
    assert.equal((await hello()).status, 200)
    assertRefused(await hello(), 'general', 1000)
    await hold(id, 'general', { hour: 500, minute: 100 })
    assertRefused(await hello(), 'general', 100)
    assert.deepEqual(await used(id, 'general'), { hour: 500, minute: 100 })
  })

  it('Retry-After is the end of the hour if hour and minute are both spent', async () => {
    const { id, key } = await newKey()
    await hold(id, 'general', { hour: 1000, minute: 100 })
    const reply = await test.send('GET', '/api/v1/hello', { key })
    assertRefused(reply, 'general', 1000)
    assert.ok(Number(reply.headers.get('retry-after')) > 120)
  })

  it('an endpoint with a limit does not count in the general limits, nor the other way round', async () => {
    const { id, key } = await newKey()
    await hold(id, 'general', { hour: 1000, minute: 100 })
    const reply = await test.send('GET', agents, { key })
    assert.equal(reply.status, 200)
    assert.equal(number(reply, 'x-ratelimit-remaining-requests'), 0)
    await hold(id, 'agents.list', { minute: 100 })
    assertRefused(await test.send('GET', agents, { key }), 'agents.list', 100)
    await hold(id, 'general')
    assert.equal((await test.send('GET', '/api/v1/hello', { key })).status, 200)
  })
})

describe('a window', () => {
  it('a rate window is aligned to the minute or hour in UTC, and its count ends with it', async () => {
    const { id, key } = await newKey()
    const hello = () => test.send('GET', '/api/v1/hello', { key })
    const began = Math.floor(Date.now() / 1000)
    const first = await hello()
    const [, , reset] = standing(first)
    assert.equal(reset! % 60, 0)
    assert.ok(reset! > began && reset! <= began + 120)
    const hour = number(first, 'x-ratelimit-reset-requests')
    assert.equal(hour % 3600, 0)
    assert.ok(hour > began && hour <= began + 7200)

    await test.sql`
      update rate_window set minute_used = 100, minute_start = date_trunc('minute', now(), 'UTC') - interval '1 minute', hour_used = 7,
        hour_start = date_trunc('hour', now(), 'UTC') + interval '1 hour' where subject = ${id}`
    assert.deepEqual(standing(await hello()).slice(0, 2), [100, 99])
    assert.deepEqual(await used(id, 'general'), { hour: 8, minute: 1 })

    await test.sql`
      update rate_window set hour_used = 1000, hour_start = date_trunc('hour', now(), 'UTC') - interval '1 hour', minute_used = 50,
        minute_start = date_trunc('minute', now(), 'UTC') + interval '1 minute' where subject = ${id}`
    assert.equal((await hello()).status, 200)
    assert.deepEqual(await used(id, 'general'), { hour: 1, minute: 51 })
  })
})

describe('concurrent requests', () => {
  let other: Awaited<ReturnType<typeof startAnother>>
  before(async () => {
    other = await startAnother(test, { CADRE_RATE_LIMITS_SCALE: '1' })
  })
  after(() => other.stop())

  it('concurrent requests on two processes are admitted exactly as often as the limit allows', async () => {
    for (const [bucket, limit, count, method, path] of [
      ['agents.create', 10, 50, 'POST', `${absent}/agents`],
      ['agents.update', 20, 40, 'PUT', `${absent}/agents/${absentAgent}`],
      ['general', 100, 120, 'GET', '/api/v1/hello'],
    ] as const) {
      const { id, key } = await newKey()
      await hold(id, bucket)
      const sends = [sender(test.url, key), sender(other.url, key)]
      const replies = await Promise.all(
        Array.from({ length: count }, (_, i) => sends[i % 2]!(method, path, method === 'GET' ? {} : { body: {} })),
      )
      const admitted = replies.filter(({ status }) => status !== 429)
      assert.equal(admitted.length, limit, bucket)
      // Each response has a different number of remaining requests.
      assert.equal(new Set(admitted.map((reply) => number(reply, 'x-ratelimit-remaining'))).size, limit)
      assert.equal((await used(id, bucket))?.minute, limit)
    }
  })

  it('concurrent first requests of a credential are all counted', async () => {
    const { id, key } = await newKey()
    const sends = [sender(test.url, key), sender(other.url, key)]
    await Promise.all(Array.from({ length: 20 }, (_, i) => sends[i % 2]!('GET', '/api/v1/hello')))
    const row = await used(id, 'general')
    // The count starts again if an hour ends in between.
    assert.ok(row!.hour === 20 || new Date().getMinutes() === 0, JSON.stringify(row))
  })
})

describe('the subject of a bucket (decision D86)', () => {
  const hello = (credential: Credential) => test.send('GET', '/api/v1/hello', credential)

  it('each API key has a separate bucket', async () => {
    const [one, other] = [await newKey(), await newKey()]
    await hold(one.id, 'general', { minute: 100 })
    assert.equal((await hello({ key: one.key })).status, 429)
    assert.equal((await hello({ key: other.key })).status, 200)
  })

  it('all tokens of a grant share a bucket', async () => {
    const [one, other] = [
      await makeToken(test, ownerOf(test), ['admin']),
      await makeToken(test, ownerOf(test), ['admin']),
    ]
    await test.sql`update oauth_artifact set grant_id = ${one.grant_id} where grant_id = ${other.grant_id}`
    await hold(one.grant_id, 'general', { minute: 99 })
    assert.equal((await hello({ token: one.token })).status, 200)
    assert.equal((await hello({ token: other.token })).status, 429)
  })

  it('all cookies of a user share a bucket, with ten times the general limits and the usual other limits', async () => {
    const person = await makePerson(test)
    const [one, other] = [await makeSession(test, person), await makeSession(test, person)]
    await hold(person.user_id, 'general', { minute: 998 })
    const first = await hello({ cookie: one.cookie })
    assert.deepEqual(standing(first).slice(0, 2), [1000, 1])
    assert.equal(number(first, 'x-ratelimit-limit-requests'), 10_000)
    assert.equal((await hello({ cookie: other.cookie })).status, 200)
    assertRefused(await hello({ cookie: one.cookie }), 'general', 1000)
    assert.equal(number(await test.send('GET', '/api/v1/auth/user', { cookie: one.cookie }), 'x-ratelimit-limit'), 100)
  })
})

describe('the headers of every response to a credential (decision D88)', () => {
  const names = ['limit', 'remaining', 'reset'].flatMap((name) => [
    `x-ratelimit-${name}`,
    `x-ratelimit-${name}-requests`,
    `x-ratelimit-${name}-tokens`,
  ])

  it('every response to a credential has numeric rate limit headers, whatever its status', async () => {
    const { key } = await makeKey(test, ownerOf(test), ['read'])
    const spent = await newKey()
    await hold(spent.id, 'general', { minute: 100 })
    const replies = [
      await test.send('GET', '/api/v1/hello', { key }),
      await test.send('GET', '/api/v1/hello?name=a&name=b', { key }),
      await test.send('POST', '/api/v1/projects', { key, body: { name: 'abc' } }),
      await test.send('GET', `${absent}/agents`, { key }),
      await test.send('HEAD', '/api/v1/hello', { key }),
      await test.send('GET', '/api/v1/hello', { key: spent.key }),
    ]
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 400, 403, 404, 200, 429],
    )
    for (const reply of replies) {
      for (const name of names)
        assert.ok(Number.isInteger(number(reply, name)) && reply.headers.get(name) !== '', `${reply.status} ${name}`)
      assert.match(reply.headers.get('ratelimit-policy') ?? '', /^"burst";q=\d+;w=60$/, String(reply.status))
      assert.match(reply.headers.get('ratelimit') ?? '', /^"burst";r=\d+;t=\d+$/, String(reply.status))
    }
  })

  it('RateLimit-Policy and RateLimit show the window with less left, named burst for a minute and hour for an hour', async () => {
    const { id, key } = await newKey()
    const told = async () => {
      const { headers } = await test.send('GET', '/api/v1/hello', { key })
      const [, standing, left] = /^(.+);t=(\d+)$/.exec(headers.get('ratelimit') ?? '') ?? []
      const seconds = Number(headers.get('x-ratelimit-reset')) - Date.now() / 1000
      assert.ok(Math.abs(Number(left) - seconds) < 5, `${left} ${seconds}`)
      return [headers.get('ratelimit-policy'), standing]
    }
    await hold(id, 'general')
    assert.deepEqual(await told(), ['"burst";q=100;w=60', '"burst";r=99'])
    await hold(id, 'general', { hour: 950 })
    assert.deepEqual(await told(), ['"hour";q=1000;w=3600', '"hour";r=49'])
  })

  it('every response to a credential shows the general limit and the model tokens of the hour', async () => {
    const { id, key } = await newKey()
    await hold(id, 'general', { hour: 41 })
    await test.sql`insert into token_usage (subject, hour, tokens) values (${id}, date_trunc('hour', now(), 'UTC'), 250), (${id}, date_trunc('hour', now(), 'UTC') - interval '1 hour', 9000)`
    const reply = await test.send('GET', '/api/v1/hello', { key })
    assert.deepEqual(
      ['limit-requests', 'remaining-requests', 'limit-tokens', 'remaining-tokens'].map((name) =>
        number(reply, `x-ratelimit-${name}`),
      ),
      [1000, 958, 1_000_000, 999_750],
    )
    const listed = await test.send('GET', agents, { key })
    assert.deepEqual([number(listed, 'x-ratelimit-limit'), number(listed, 'x-ratelimit-remaining')], [100, 99])
  })
})

describe('model tokens (decision D90)', () => {
  it('without model tokens left, only start, restart and launch are refused until the hour ends', async () => {
    const { id, key } = await newKey()
    const { body: agent } = await test.send('POST', agents, { key, body: { name: 'thirsty' } })
    const act = (action: string) => test.send('POST', `${agents}/${agent.id}/${action}`, { key })
    assert.equal((await act('stop')).status, 200)
    await test.sql`insert into token_usage (subject, hour, tokens) values (${id}, date_trunc('hour', now(), 'UTC'), 1000000)`
    for (const action of ['start', 'restart']) assertRefused(await act(action), 'tokens', 1_000_000)
    const launched = await test.send('POST', '/api/v1/agents', {
      key,
      body: { name: 'thirsty', project_id: Number(agents.split('/')[4]) },
    })
    assertRefused(launched, 'tokens', 1_000_000)
    assert.equal(number(launched, 'x-ratelimit-remaining-tokens'), 0)
    assert.equal((await test.send('GET', `${agents}/${agent.id}`, { key })).body.status, 'stopped')
    assert.equal((await act('stop')).status, 200)
    await test.sql`update token_usage set hour = hour - interval '1 hour' where subject = ${id}`
    assert.equal((await act('start')).status, 200)
  })
})

describe('addresses', () => {
  it('an operation without credentials counts requests by address', async () => {
    await hold('ip:127.0.0.1', 'docs', { minute: 58 })
    const first = await test.send('GET', '/api/v1/docs', { key: null })
    assert.equal(first.status, 200)
    assert.deepEqual(standing(first).slice(0, 2), [60, 1])
    assert.equal(first.headers.get('ratelimit-policy'), '"burst";q=60;w=60')
    assert.equal((await test.send('GET', '/api/v1/docs')).status, 200)
    assertRefused(await test.send('GET', '/api/v1/docs'), 'docs', 60)
    for (let i = 0; i < 70; i++)
      assert.equal((await test.send('GET', '/api/v1/status', { key: null })).headers.get('x-ratelimit-limit'), null)
  })

  it('behind a trusted proxy the address of the client is counted, IPv6 by its /64 (decision D86)', async () => {
    const behind = await startAnother(test, { CADRE_RATE_LIMITS_SCALE: '1', CADRE_TRUSTED_PROXIES: '127.0.0.1' })
    try {
      const docs = async (address: string) => {
        const reply = await sender(behind.url, '')('GET', '/api/v1/docs', {
          key: null,
          headers: { 'x-forwarded-for': address },
        })
        return number(reply, 'x-ratelimit-remaining')
      }
      await Promise.all(
        ['ip:203.0.113.7', 'ip:203.0.113.8', 'ip:2001:db8:0:1::/64', 'ip:2001:db8:0:2::/64'].map((subject) =>
          hold(subject, 'docs'),
        ),
      )
      assert.deepEqual([await docs('203.0.113.7'), await docs('203.0.113.8'), await docs('203.0.113.7')], [59, 59, 58])
      assert.deepEqual(
        [await docs('2001:db8:0:1::1'), await docs('2001:db8:0:1:ffff::2'), await docs('2001:db8:0:2::1')],
        [59, 58, 59],
      )
      // Only the address that the proxy added counts, not those that the client sent.
      assert.equal(await docs('198.51.100.1, 203.0.113.7'), 57)
    } finally {
      await behind.stop()
    }
  })

  for (const [address, subject] of [
    ['203.0.113.7', 'ip:203.0.113.7'],
    ['::ffff:203.0.113.7', 'ip:203.0.113.7'],
    ['::FFFF:203.0.113.7', 'ip:203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', 'ip:2001:db8:1:2::/64'],
    ['2001:DB8:1:2::6', 'ip:2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002::', 'ip:2001:db8:1:2::/64'],
    ['2001:db8::1', 'ip:2001:db8:0:0::/64'],
    ['::1', 'ip:0:0:0:0::/64'],
    ['fe80::1%eth0', 'ip:fe80:0:0:0::/64'],
    ['1::2:3:4:5:6:7', 'ip:1:0:2:3::/64'],
    ['::', 'ip:0:0:0:0::/64'],
  ]) {
    it(`${address} is counted as ${subject}`, () => assert.equal(addressSubject(address!), subject))
  }
})

describe('the operator (decision D91)', () => {
  it('with rate limits off, nothing is counted and no response has rate limit headers', async () => {
    const off = await startAnother(test, { CADRE_RATE_LIMITS: 'off' })
    try {
      const { id, key } = await newKey()
      const send = sender(off.url, key)
      const replies = await Promise.all(
        Array.from({ length: 30 }, () => send('POST', `${absent}/agents`, { body: {} })),
      )
      replies.push(await send('GET', '/api/v1/docs'), await send('GET', '/api/v1/hello'))
      for (const { status, headers } of replies) {
        assert.notEqual(status, 429)
        assert.deepEqual(
          [...headers.keys()].filter((name) => name.startsWith('x-ratelimit')),
          [],
        )
      }
      assert.equal(await used(id, 'agents.create'), undefined)
      const { body } = await test.send('GET', `/api/v1/auth/api-keys/${id}`)
      assert.equal(body.usage_stats.total_requests, 31)
    } finally {
      await off.stop()
    }
  })

  it('rate limits can be scaled, down to one request', () => {
    const limits = (scale: number) => limitsOf('agents.create', { enabled: true, scale }).minute
    assert.deepEqual(
      [limits(1), limits(2), limits(0.5), limits(0.25), limits(0.001), limits(10_000)],
      [10, 20, 5, 2, 1, 100_000],
    )
    assert.equal(limitsOf('general', { enabled: true, scale: 2 }, 'session').hour, 20_000)
  })
})

describe('the governing window', () => {
  const at = (hour_used: number, minute_used: number) =>
    governingWindow(
      { admitted: true, hour_used, minute_used, hour_reset: 3600, minute_reset: 60, now: 0 },
      { hour: 1000, minute: 100 },
    )
  it('the governing window is the one with less left; if both are spent, the hour', () => {
    const hour = { name: 'hour', seconds: 3600, limit: 1000, reset: 3600 }
    const minute = { name: 'burst', seconds: 60, limit: 100, reset: 60 }
    assert.deepEqual(at(1, 1), { ...minute, remaining: 99 })
    assert.deepEqual(at(950, 1), { ...hour, remaining: 50 })
    assert.deepEqual(at(1000, 100), { ...hour, remaining: 0 })
    assert.deepEqual(at(999, 100), { ...minute, remaining: 0 })
    assert.deepEqual(at(2000, 5), { ...hour, remaining: 0 })
  })
})
