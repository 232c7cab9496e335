import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import type { Scope } from '#contract/core/scopes.ts'
import { makeKey, makePerson, makeSession, makeToken, type Person } from '../../../test/actors.ts'
import { type Reply, type SendOptions, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { sweepPreviousSecrets } from './rotation.queries.ts'

let test: TestService
before(async () => {
  test = await shareTestService()
})
after(() => test.stop())

const path = '/api/v1/auth/api-keys'

/** A new user with a key for everything. */
async function newUser(scopes: Scope[] = ['admin']): Promise<Person & { id: string; key: string }> {
  const person = await makePerson(test)
  return { ...person, ...(await makeKey(test, person, scopes)) }
}

const rotate = (id: string, options: SendOptions, body?: object): Promise<Reply> =>
  test.send('POST', `${path}/${id}/rotate`, { ...options, ...(body === undefined ? {} : { body }) })
const statusOf = async (key: string): Promise<number> => (await test.send('GET', '/api/v1/hello', { key })).status
const seconds = (from: string, to: string): number => (Date.parse(to) - Date.parse(from)) / 1000

describe('rotating a key', () => {
  it('rotating a key returns a new secret once, and the old one works for another day', async () => {
    const { id, key } = await newUser()
    const { status, body } = await rotate(id, { key })
    assert.equal(status, 200)
    assert.match(body.key, /^cadre_[0-9a-f]{32}$/)
    assert.notEqual(body.key, key)
    assert.deepEqual([await statusOf(key), await statusOf(body.key)], [200, 200])
    assert.equal(seconds(body.updated_at, body.previous_expires_at), 86_400)
    const { key: _, created_at, updated_at, previous_expires_at, ...rest } = body
    assert.ok(updated_at > created_at)
    assert.deepEqual(
      { ...rest, last_used: null },
      {
        id,
        name: 'test',
        description: '',
        scopes: ['admin'],
        expires_at: null,
        last_used: null,
      },
    )
    const { body: read } = await test.send('GET', `${path}/${id}`, { key })
    assert.deepEqual([read.key_preview, read.previous_expires_at], [`${body.key.slice(0, 14)}***`, previous_expires_at])
    const { body: list } = await test.send('GET', path, { key })
    assert.equal(list.api_keys[0].previous_expires_at, previous_expires_at)
    assert.equal(JSON.stringify([read, list]).includes(body.key.slice(14)), false)
  })

  it('rotating a key stores only hashes of both secrets, and neither is in the audit log or a stored response', async () => {
    const { id, key, org_id, user_id } = await newUser()
    const headers = { 'idempotency-key': 'once' }
    const { body } = await rotate(id, { key, headers })
    const again = await rotate(id, { key: body.key, headers })
    assert.notEqual(again.body.key, body.key, 'what is not kept cannot be given again')
    const [row] = await test.sql<{ hash: Buffer; previous_hash: Buffer }>`
      select hash, previous_hash from api_key where id = ${id}`
    const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()
    assert.deepEqual([row?.hash, row?.previous_hash], [sha256(again.body.key), sha256(body.key)])
    const entries = await test.sql<{ actor: string; all: string }>`
      select actor, a::text as all from audit a where org_id = ${org_id} and action = 'api_key.rotated' and target = ${id}`
    assert.deepEqual(
      entries.map(({ actor }) => actor),
      [user_id, user_id],
    )
    for (const secret of [key, body.key, again.body.key])
      for (const { all } of entries) assert.equal(all.includes(secret.slice(14)), false)
    assert.deepEqual(await test.sql`select 1 from idempotency where subject = ${id}`, [])
  })

  it('rotating a key ends the old secret after the overlap: at once if it is 0, after 30 days at the latest', async () => {
    const { id, key } = await newUser()
    const none = await rotate(id, { key }, { overlap_seconds: 0 })
    assert.deepEqual([none.status, none.body.previous_expires_at], [200, null])
    assert.deepEqual([await statusOf(key), await statusOf(none.body.key)], [401, 200])
    const { body: read } = await test.send('GET', `${path}/${id}`, { key: none.body.key })
    assert.equal('previous_expires_at' in read, false)

    const long = await rotate(id, { key: none.body.key }, { overlap_seconds: 30 * 86_400 })
    assert.equal(seconds(long.body.updated_at, long.body.previous_expires_at), 30 * 86_400)
    await test.sql`update api_key set previous_expires_at = now() where id = ${id}`
    const { status, body } = await test.send('GET', '/api/v1/auth/user', { key: none.body.key })
    assert.deepEqual([status, body.error.code], [401, 'invalid_api_key'])
    const { body: over } = await test.send('GET', `${path}/${id}`, { key: long.body.key })
    assert.equal('previous_expires_at' in over, false)

    for (const overlap_seconds of [-1, 30 * 86_400 + 1, 1.5, '60']) {
      const reply = await rotate(id, { key: long.body.key }, { overlap_seconds })
      assert.deepEqual([reply.status, reply.body.error.details[0].field], [400, 'overlap_seconds'])
    }
  })

  it('rotating a key again during the overlap ends the oldest secret', async () => {
    const { id, key: first } = await newUser()
    const { key: second } = (await rotate(id, { key: first })).body
    const { key: third } = (await rotate(id, { key: first })).body
    assert.deepEqual(await Promise.all([first, second, third].map(statusOf)), [401, 200, 200])
  })

  it('rotating a key leaves one key: revoking it ends both secrets, usage and limits are counted together', async () => {
    const { id, key } = await newUser()
    const { key: second } = (await rotate(id, { key })).body
    await statusOf(key)
    await statusOf(second)
    const { body } = await test.send('GET', `${path}/${id}`, { key: second })
    // The rotation, two greetings, and this request itself.
    assert.equal(body.usage_stats.total_requests, 4)
    const subjects = await test.sql<{ subject: string }>`
      select distinct subject from rate_window where subject = ${id}`
    assert.equal(subjects.length, 1)
    assert.equal((await test.send('DELETE', `${path}/${id}`, { key })).status, 200)
    assert.deepEqual([await statusOf(key), await statusOf(second)], [401, 401])
  })

  it('rotating a key keeps its expiry for both secrets, and an expired key cannot be rotated', async () => {
    const owner = await newUser()
    const expires_at = new Date(Date.now() + 3600_000).toISOString()
    const { id, key } = await makeKey(test, owner, ['read'], expires_at)
    const { body } = await rotate(id, { key: owner.key })
    assert.deepEqual([body.expires_at, body.previous_expires_at], [expires_at, expires_at])
    await test.sql`update api_key set expires_at = now() where id = ${id}`
    assert.deepEqual([await statusOf(key), await statusOf(body.key)], [401, 401])
    const { status, body: refused } = await rotate(id, { key: owner.key })
    assert.deepEqual([status, refused.error.details.conflicting_field], [409, 'expires_at'])
  })

  it('rotating a key takes the time of the database, so that the overlap is the same for every process', async () => {
    const { id, key } = await newUser()
    await rotate(id, { key }, { overlap_seconds: 60 })
    const [row] = await test.sql<{ seconds: number }>`
      select extract(epoch from previous_expires_at - updated_at)::float8 as seconds from api_key where id = ${id}`
    assert.ok(Math.abs(row!.seconds - 60) < 0.01)
  })
})

describe('who rotates which key', () => {
  it('a key rotates itself, whatever its scopes are, if it may write keys', async () => {
    const both = await newUser(['api_keys:write', 'agents:write'])
    assert.equal((await rotate(both.id, { key: both.key })).status, 200)
    const reader = await newUser(['read'])
    const { status, body } = await rotate(reader.id, { key: reader.key })
    assert.deepEqual([status, body.error.required_scopes], [403, ['api_keys:write']])
  })

  it('another key can be rotated only by a caller with all of its scopes', async () => {
    const person = await makePerson(test)
    const powerful = await makeKey(test, person, ['admin'])
    const small = await makeKey(test, person, ['agents:read'])
    const { key } = await makeKey(test, person, ['api_keys:write', 'agents:read'])
    const { status, body } = await rotate(powerful.id, { key })
    assert.deepEqual([status, body.error.code, body.error.required_scopes], [403, 'insufficient_scope', ['admin']])
    assert.equal(await statusOf(powerful.key), 200)
    assert.equal((await rotate(small.id, { key })).status, 200)
    const { token } = await makeToken(test, person, ['write', 'api_keys:write'])
    assert.equal((await rotate(powerful.id, { token })).status, 403)
    const { cookie } = await makeSession(test, person)
    assert.equal((await rotate(powerful.id, { cookie })).status, 200)
  })

  it('another key can be rotated only by a caller with all of its queues', async () => {
    const person = await newUser()
    const make = async (queues?: string[]): Promise<{ id: string; key: string }> => {
      const body = { name: 'worker', scopes: ['work:execute', 'api_keys:write'], ...(queues && { queues }) }
      return (await test.send('POST', path, { key: person.key, body })).body
    }
    const [narrow, same, other, every] = [await make(['a']), await make(['a']), await make(['a', 'b']), await make()]
    assert.equal((await rotate(same.id, narrow)).status, 200)
    assert.equal((await rotate(narrow.id, every)).status, 200)
    for (const { id } of [other, every]) {
      const { status, body } = await rotate(id, narrow)
      assert.deepEqual([status, body.error.code], [403, 'insufficient_permissions'])
    }
  })

  it('a user whose role was lowered cannot regain the old scopes by rotating another key', async () => {
    const owner = await makePerson(test)
    const person = await makePerson(test, 'admin', owner.org_id)
    const powerful = await makeKey(test, person, ['admin'])
    await test.sql`update member set role = 'member' where user_id = ${person.user_id}`
    const { cookie } = await makeSession(test, person)
    assert.equal((await rotate(powerful.id, { cookie })).status, 403)
  })

  it('no key of another user or organization, and no revoked key, can be rotated', async () => {
    const owner = await newUser()
    const colleague = await makePerson(test, 'admin', owner.org_id)
    const theirs = await makeKey(test, colleague, ['read'])
    const foreign = await newUser()
    const revoked = await makeKey(test, owner, ['read'])
    await test.send('DELETE', `${path}/${revoked.id}`, { key: owner.key })
    for (const id of [theirs.id, foreign.id, revoked.id, 'key_00000000000000000000000000', 'x']) {
      const { status, body } = await rotate(id, { key: owner.key })
      assert.deepEqual([status, body.error.details], [404, { resource_type: 'api_key', resource_id: id }])
    }
    assert.equal(await statusOf(theirs.key), 200)
  })
})

describe('a secret of before a rotation', () => {
  it('a secret from before a rotation is deleted after its time, and not earlier', async () => {
    const over = await newUser()
    const running = await newUser()
    for (const { id, key } of [over, running]) await rotate(id, { key })
    await test.sql`update api_key set previous_expires_at = now() - interval '1 second' where id = ${over.id}`
    await sweepPreviousSecrets(test.sql)
    const rows = await test.sql<{ id: string; kept: boolean }>`
      select id, previous_hash is not null as kept from api_key where id = any(${[over.id, running.id]}) order by id`
    assert.deepEqual(rows, [
      { id: over.id, kept: false },
      { id: running.id, kept: true },
    ])
    assert.equal(await statusOf(running.key), 200)
  })
})
