import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { expandScopes, scopes, scopesOfRole, type Scope } from '#contract/core/scopes.ts'
import { makeKey, makePerson, makeSession, makeToken, ownerOf, type Person } from '../../../test/actors.ts'
import { type SendOptions, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
before(async () => {
  test = await shareTestService()
})
after(() => test.stop())

const path = '/api/v1/auth/api-keys'
const create = (body: object, options: SendOptions = {}) =>
  test.send('POST', path, { body: { name: 'test', scopes: ['read'], ...body }, ...options })
const faults = (body: any): string[] => body.error.details.map(({ field, code }: any) => `${field} ${code}`)
const inSeconds = (seconds: number): string => new Date(Date.now() + seconds * 1000).toISOString()

/** A new user with a key for everything. */
async function newUser(): Promise<Person & { id: string; key: string }> {
  const person = await makePerson(test)
  return { ...person, ...(await makeKey(test, person, ['admin'])) }
}

describe('creating a key (decisions D52–D55)', () => {
  it('creating a key returns the secret once, and the key works at once', async () => {
    const { status, body } = await create({
      name: 'ci',
      description: 'Deploys.',
      scopes: ['agents:read', 'agents:write'],
    })
    assert.equal(status, 201)
    assert.match(body.id, /^key_[0-7][0-9a-hjkmnp-tv-z]{25}$/)
    assert.match(body.key, /^cadre_[0-9a-f]{32}$/)
    assert.match(body.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const { id, key, created_at } = body
    assert.deepEqual(body, {
      id,
      name: 'ci',
      description: 'Deploys.',
      key,
      scopes: ['agents:read', 'agents:write'],
      created_at,
      expires_at: null,
      last_used: null,
    })
    assert.equal((await test.send('GET', '/api/v1/hello', { key })).status, 200)
  })

  it('creating a key shows the secret nowhere else, and keeps only its hash (decision D54)', async () => {
    const { body: made } = await create({ name: 'secretive' })
    const replies = [
      await test.send('GET', `${path}/${made.id}`),
      await test.send('GET', path),
      await test.send('PUT', `${path}/${made.id}`, { body: { name: 'still' } }),
      await test.send('DELETE', `${path}/${made.id}`),
    ]
    for (const { status, body } of replies) {
      assert.equal(status, 200)
      assert.equal(JSON.stringify(body).includes(made.key.slice(14)), false)
    }
    const preview = `${made.key.slice(0, 14)}***`
    assert.deepEqual([replies[0]!.body.key_preview, replies[2]!.body.key_preview], [preview, preview])
    const [row] = await test.sql<{
      hash: Buffer
      text: string
    }>`select hash, k::text as text from api_key k where id = ${made.id}`
    assert.deepEqual(row!.hash, createHash('sha256').update(made.key).digest())
    assert.equal(row!.text.includes(made.key.slice(14)), false)
  })

  it('creating a key needs a name and at least one scope', async () => {
    const cases: [object, string[]][] = [
      [{ name: undefined }, ['name required']],
      [{ scopes: undefined }, ['scopes required']],
      [{ name: undefined, scopes: undefined }, ['name required', 'scopes required']],
      [{ scopes: [] }, ['scopes required']],
      [{ name: '' }, ['name required']],
      [{ name: ' ' }, ['name invalid_format']],
      [{ name: null, scopes: null }, ['name required', 'scopes required']],
      [{ name: 5, scopes: 'read' }, ['name invalid_format', 'scopes invalid_format']],
      [{ scopes: ['read', 'nope'] }, ['scopes[1] invalid_choice']],
      [{ scopes: ['READ'] }, ['scopes[0] invalid_choice']],
      [{ scopes: ['read', 5, 'x'] }, ['scopes[1] invalid_format', 'scopes[2] invalid_choice']],
      [{ name: 'x'.repeat(101) }, ['name too_long']],
      [{ description: 'x'.repeat(501) }, ['description too_long']],
      [{ scopes: Array.from({ length: 33 }, () => 'read') }, ['scopes too_long']],
    ]
    for (const [body, expected] of cases) {
      const { status, body: answer } = await create(body)
      assert.deepEqual([status, faults(answer)], [400, expected], JSON.stringify(body))
    }
    const { status } = await create({
      name: '😀'.repeat(100),
      description: 'x'.repeat(500),
      scopes: Array.from({ length: 32 }, () => 'read'),
    })
    assert.equal(status, 201)
  })

  it('creating a key takes every scope once', async () => {
    const { body } = await create({ scopes: [...scopes, ...scopes] })
    assert.deepEqual(body.scopes, scopes)
  })

  it('creating a key accepts any future expiry, none, or null', async () => {
    for (const [expires_at, kept] of [
      ['2999-01-01', '2999-01-01T00:00:00.000Z'],
      ['2999-01-01T12:00:00+02:00', '2999-01-01T10:00:00.000Z'],
      ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59.000Z'],
      [null, null],
      [undefined, null],
    ]) {
      const { status, body } = await create({ expires_at })
      assert.deepEqual([status, body.expires_at], [201, kept])
    }
    const soon = inSeconds(60)
    assert.equal((await create({ expires_at: soon })).body.expires_at, soon)
    for (const past of [inSeconds(-1), '2020-01-01', '0001-01-01'])
      assert.deepEqual(faults((await create({ expires_at: past })).body), ['expires_at out_of_range'])
    for (const none of ['tomorrow', '', 5, '2999-02-30', {}])
      assert.deepEqual(faults((await create({ expires_at: none })).body), ['expires_at invalid_format'])
  })
})

describe('no caller gives more than they hold (decisions D53, D70)', () => {
  const holds = (held: readonly Scope[], wanted: Scope): boolean =>
    wanted === 'admin'
      ? held.includes('admin')
      : [...expandScopes([wanted])].every((fine) => expandScopes(held).has(fine))

  it('a key can create keys with exactly the scopes that it has itself', async () => {
    for (const held of scopes) {
      const written: Scope[] = [...new Set<Scope>(['api_keys:write', held])]
      const { key } = await makeKey(test, ownerOf(test), written)
      for (const wanted of scopes) {
        const { status, body } = await create({ scopes: [wanted] }, { key })
        const may = holds(written, wanted)
        assert.equal(status, may ? 201 : 403, `${held} gives ${wanted}`)
        if (may) continue
        assert.deepEqual([body.error.code, body.error.required_scopes], ['insufficient_scope', [wanted]])
        assert.deepEqual(body.error.details, { required_scopes: [wanted], provided_scopes: written })
      }
    }
  })

  it('a refused creation of a key names all missing scopes', async () => {
    const { key } = await makeKey(test, ownerOf(test), ['api_keys:write', 'read'])
    const { body } = await create({ scopes: ['projects:read', 'agents:write', 'admin'] }, { key })
    assert.deepEqual(body.error.required_scopes, ['agents:write', 'admin'])
  })

  it('a role limits the scopes that its keys can pass on, whatever scopes the keys have', async () => {
    for (const role of ['member', 'viewer'] as const) {
      const { key } = await makeKey(test, await makePerson(test, role), ['admin'])
      for (const wanted of scopes) {
        const may = wanted !== 'admin' && [...expandScopes([wanted])].every((fine) => scopesOfRole(role).has(fine))
        assert.equal((await create({ scopes: [wanted] }, { key })).status, may ? 201 : 403, `${role} gives ${wanted}`)
      }
    }
  })

  it('an update cannot widen a key, not even the calling one', async () => {
    const person = ownerOf(test)
    const own = await makeKey(test, person, ['api_keys:write', 'read'])
    const { status, body } = await test.send('PUT', `${path}/${own.id}`, {
      key: own.key,
      body: { scopes: ['api_keys:write', 'write'] },
    })
    assert.deepEqual([status, body.error.required_scopes], [403, ['write']])
    assert.equal((await test.send('POST', '/api/v1/projects', { key: own.key, body: { name: 'widened' } })).status, 403)
    assert.equal(
      (await test.send('PUT', `${path}/${own.id}`, { key: own.key, body: { scopes: ['api_keys:write'] } })).status,
      200,
    )
    assert.equal((await test.send('GET', '/api/v1/projects', { key: own.key })).status, 403)
  })

  it('an app with write cannot make a key that outlives its grant (decision D71)', async () => {
    const { token } = await makeToken(test, ownerOf(test), ['read', 'write'])
    assert.equal((await create({}, { token })).status, 403)
  })

  it('tokens and cookies can also create keys', async () => {
    const person = ownerOf(test)
    const { token } = await makeToken(test, person, ['api_keys:write', 'agents:read'])
    assert.deepEqual(
      [
        (await create({ scopes: ['agents:read'] }, { token })).status,
        (await create({ scopes: ['agents:write'] }, { token })).status,
      ],
      [201, 403],
    )
    const { cookie } = await makeSession(test, person)
    assert.equal((await create({ scopes: ['admin'] }, { cookie })).status, 201)
  })
})

describe('listing keys (decisions D55, D56, D59)', () => {
  it("listing keys shows one's own in the organization, newest first, with a preview and without statistics", async () => {
    const me = await newUser()
    const made = []
    for (const name of ['a', 'b', 'c']) made.push((await create({ name }, { key: me.key })).body)
    const colleague = await makePerson(test, 'admin', me.org_id)
    await makeKey(test, colleague, ['read'])
    const { body } = await test.send('GET', path, { key: me.key })
    assert.deepEqual(
      body.api_keys.map(({ id }: any) => id),
      [...made.map(({ id }) => id).toReversed(), me.id],
    )
    assert.deepEqual(body.pagination, { total: 4, limit: 20, offset: 0, has_more: false })
    for (const key of body.api_keys)
      // The key that asked has the address of its last use as soon as that is written, which may be before this answer.
      assert.deepEqual(
        Object.keys(key)
          .filter((name) => name !== 'last_ip')
          .sort(),
        ['created_at', 'description', 'expires_at', 'id', 'key_preview', 'last_used', 'name', 'scopes'],
      )
    const step = await test.send('GET', `${path}?limit=2&offset=1`, { key: me.key })
    assert.deepEqual(
      step.body.api_keys.map(({ name }: any) => name),
      ['b', 'a'],
    )
    assert.deepEqual(step.body.pagination, { total: 4, limit: 2, offset: 1, has_more: true })
    for (const query of ['limit=0', 'limit=101', 'offset=-1', 'active_only=1'])
      assert.equal((await test.send('GET', `${path}?${query}`, { key: me.key })).status, 400)
  })

  it('listing keys omits revoked keys, and expired keys unless requested', async () => {
    const me = await newUser()
    const expired = await makeKey(test, me, ['read'], inSeconds(-1))
    const lasting = await makeKey(test, me, ['read'], inSeconds(3600))
    const revoked = await makeKey(test, me, ['read'])
    await test.send('DELETE', `${path}/${revoked.id}`, { key: me.key })
    const ids = async (query: string) =>
      (await test.send('GET', `${path}${query}`, { key: me.key })).body.api_keys.map(({ id }: any) => id)
    assert.deepEqual(await ids(''), [lasting.id, me.id])
    assert.deepEqual(await ids('?active_only=true'), [lasting.id, me.id])
    assert.deepEqual(await ids('?active_only=false'), [lasting.id, expired.id, me.id])
    for (const method of ['GET', 'PUT', 'DELETE']) {
      assert.equal(
        (
          await test.send(method, `${path}/${revoked.id}`, {
            key: me.key,
            ...(method === 'PUT' ? { body: { name: 'x' } } : {}),
          })
        ).status,
        404,
      )
    }
    assert.equal((await test.send('GET', `${path}/${expired.id}`, { key: me.key })).status, 200)
    assert.equal((await test.send('PUT', `${path}/${expired.id}`, { key: me.key, body: { name: 'over' } })).status, 200)
    assert.equal((await test.send('DELETE', `${path}/${expired.id}`, { key: me.key })).status, 200)
  })

  it('keys of a user in two organizations each belong to one of them', async () => {
    const me = await newUser()
    const second = await makePerson(test)
    await test.sql`insert into member (org_id, user_id, role, joined_at) values (${second.org_id}, ${me.user_id}, 'member', now() + interval '1 second')`
    const { cookie } = await makeSession(test, me)
    const there = { cookie, headers: { 'x-organization-id': second.org_id } }
    const { body: made } = await create({ name: 'there' }, there)
    assert.deepEqual(
      (await test.send('GET', path, there)).body.api_keys.map(({ id }: any) => id),
      [made.id],
    )
    assert.deepEqual(
      (await test.send('GET', path, { cookie })).body.api_keys.map(({ id }: any) => id),
      [me.id],
    )
    assert.equal((await test.send('GET', `${path}/${made.id}`, { cookie })).status, 404)
    assert.deepEqual((await test.send('GET', '/api/v1/projects', { key: made.key })).body.projects, [])
  })

  it('keys of other users are 404, even for an administrator', async () => {
    const owner = await newUser()
    const member = await makePerson(test, 'member', owner.org_id)
    const theirs = await makeKey(test, member, ['read'])
    for (const me of [owner, await newUser()]) {
      for (const method of ['GET', 'PUT', 'DELETE']) {
        const { status, body } = await test.send(method, `${path}/${theirs.id}`, {
          key: me.key,
          ...(method === 'PUT' ? { body: { name: 'x' } } : {}),
        })
        assert.deepEqual(
          [status, body.error.code, body.error.details],
          [404, 'resource_not_found', { resource_type: 'api_key', resource_id: theirs.id }],
        )
      }
    }
    assert.equal((await test.send('GET', '/api/v1/hello', { key: theirs.key })).status, 200)
  })
})

describe('updating a key', () => {
  it('updating a key changes the given members and updated_at', async () => {
    const { body: made } = await create({ name: 'before', description: 'text' })
    const update = (body: object) => test.send('PUT', `${path}/${made.id}`, { body })
    const { key: _, ...shown } = made
    const key_preview = `${made.key.slice(0, 14)}***`
    const renamed = await update({ name: 'after' })
    assert.equal(renamed.status, 200)
    assert.deepEqual(renamed.body, { ...shown, key_preview, name: 'after', updated_at: renamed.body.updated_at })
    assert.ok(renamed.body.updated_at > made.created_at)
    const emptied = await update({ description: null, scopes: ['agents:read', 'agents:read'] })
    assert.deepEqual(emptied.body, {
      ...renamed.body,
      description: '',
      scopes: ['agents:read'],
      updated_at: emptied.body.updated_at,
    })
    assert.ok(emptied.body.updated_at > renamed.body.updated_at)
    assert.equal((await test.send('GET', `${path}/${made.id}`)).body.updated_at, emptied.body.updated_at)
  })

  it('updating a key leaves secret, end and owner as they are', async () => {
    const { body: made } = await create({ expires_at: inSeconds(3600) })
    const sent = {
      name: 'x',
      key: `cadre_${'0'.repeat(32)}`,
      expires_at: null,
      id: 'key_x',
      created_at: '2000-01-01',
      last_used: '2000-01-01',
    }
    const { body } = await test.send('PUT', `${path}/${made.id}`, { body: sent })
    assert.deepEqual(
      [body.id, body.expires_at, body.created_at, body.last_used],
      [made.id, made.expires_at, made.created_at, null],
    )
    assert.equal((await test.send('GET', '/api/v1/hello', { key: made.key })).status, 200)
  })

  it('updating a key without members or with invalid ones is refused', async () => {
    const { body: made } = await create({})
    const cases: [unknown, string[]][] = [
      [{}, ['body required']],
      [{ expires_at: '2999-01-01' }, ['body required']],
      [{ name: null }, ['name required']],
      [{ name: '' }, ['name required']],
      [{ scopes: [] }, ['scopes required']],
      [{ scopes: null }, ['scopes required']],
      [{ scopes: ['x'] }, ['scopes[0] invalid_choice']],
      [{ name: 'x'.repeat(101), description: 'x'.repeat(501) }, ['name too_long', 'description too_long']],
    ]
    for (const [body, expected] of cases) {
      const { status, body: answer } = await test.send('PUT', `${path}/${made.id}`, { body })
      assert.deepEqual([status, faults(answer)], [400, expected], JSON.stringify(body))
    }
  })
})

describe('revoking a key (decision D57)', () => {
  it('revoking a key returns the time, once, and takes effect at once', async () => {
    const { body: made } = await create({})
    const { status, body } = await test.send('DELETE', `${path}/${made.id}`)
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(body).sort(), ['key_id', 'message', 'revoked_at'])
    assert.equal(body.key_id, made.id)
    assert.ok(Math.abs(Date.parse(body.revoked_at) - Date.now()) < 60_000)
    assert.equal((await test.send('GET', '/api/v1/hello', { key: made.key })).status, 401)
    assert.equal((await test.send('DELETE', `${path}/${made.id}`)).status, 404)
  })

  it('of twenty concurrent revocations of a key one succeeds', async () => {
    const { body: made } = await create({})
    const replies = await Promise.all(Array.from({ length: 20 }, () => test.send('DELETE', `${path}/${made.id}`)))
    assert.deepEqual(
      replies.map(({ status }) => status).sort((a, b) => a - b),
      [200, ...Array.from({ length: 19 }, () => 404)],
    )
  })

  it('revoking a key keeps the row for the audit, without leaving the hash usable', async () => {
    const { body: made } = await create({})
    await test.send('DELETE', `${path}/${made.id}`)
    assert.equal((await test.sql`select 1 from api_key where id = ${made.id} and revoked_at is not null`).length, 1)
  })
})

describe('use of a key (decision D58)', () => {
  it('use of a key is counted for every request that it authenticates, also refused ones, and for no other', async () => {
    const { body: made } = await create({ scopes: ['projects:read'] })
    const usage = async () => (await test.send('GET', `${path}/${made.id}`)).body
    assert.deepEqual(
      [(await usage()).last_used, (await usage()).usage_stats],
      [null, { total_requests: 0, requests_last_24h: 0, requests_last_7d: 0, requests_last_30d: 0 }],
    )
    const requests: [string, string, number, SendOptions?][] = [
      ['GET', '/api/v1/hello', 200],
      ['GET', '/api/v1/projects?limit=0', 400],
      ['POST', '/api/v1/projects', 403],
      ['GET', '/api/v1/auth/api-keys', 403],
      ['GET', '/api/v1/projects/999999', 404],
      ['GET', '/api/v1/nope', 404],
      ['PATCH', '/api/v1/hello', 405],
      ['GET', '/api/v1/status', 200],
    ]
    for (const [method, url, status] of requests)
      assert.equal((await test.send(method, url, { key: made.key })).status, status, url)
    const { last_used, usage_stats } = await usage()
    assert.ok(Math.abs(Date.parse(last_used) - Date.now()) < 60_000)
    assert.deepEqual(usage_stats, {
      total_requests: 5,
      requests_last_24h: 5,
      requests_last_7d: 5,
      requests_last_30d: 5,
    })
  })

  it('use of a key is counted exactly for concurrent requests', async () => {
    const { body: made } = await create({})
    await Promise.all(Array.from({ length: 40 }, () => test.send('GET', '/api/v1/hello', { key: made.key })))
    assert.equal((await test.send('GET', `${path}/${made.id}`)).body.usage_stats.total_requests, 40)
  })

  it('use of a key is reported for a day, a week, a month and all time', async () => {
    const { body: made } = await create({})
    await test.sql`
      insert into api_key_usage (key_id, hour, requests, last_at)
      select ${made.id}, date_trunc('hour', now(), 'UTC') - days, requests, now() - interval '1 hour'
      from (values (interval '2 hours', 1), (interval '3 days', 10), (interval '20 days', 100), (interval '40 days', 1000)) v(days, requests)`
    const { usage_stats } = (await test.send('GET', `${path}/${made.id}`)).body
    assert.deepEqual(usage_stats, {
      total_requests: 1111,
      requests_last_24h: 1,
      requests_last_7d: 11,
      requests_last_30d: 111,
    })
  })

  it('use of an expired key is not counted', async () => {
    const me = ownerOf(test)
    const { id, key } = await makeKey(test, me, ['read'], inSeconds(-1))
    assert.equal((await test.send('GET', '/api/v1/hello', { key })).status, 401)
    assert.equal((await test.send('GET', `${path}/${id}`)).body.usage_stats.total_requests, 0)
  })
})

describe('the revision of a key (decision D99)', () => {
  it('the revision of a key is its ETag, is not changed by use, and If-Match refuses an older one', async () => {
    const { key } = await newUser()
    const created = await create({}, { key })
    const one = `${path}/${created.body.id}`
    const first = created.headers.get('etag')!
    assert.match(first, /^"\d+"$/)
    assert.equal((await test.send('GET', '/api/v1/hello', { key: created.body.key })).status, 200)
    assert.equal((await test.send('GET', one, { key })).headers.get('etag'), first)
    const change = (name: string, tag: string) =>
      test.send('PUT', one, { key, body: { name }, headers: { 'if-match': tag } })
    const changed = await change('second', first)
    const second = changed.headers.get('etag')!
    assert.deepEqual([changed.status, second === first], [200, false])
    assert.equal((await test.send('GET', one, { key })).headers.get('etag'), second)
    const revoke = (tag: string) => test.send('DELETE', one, { key, headers: { 'if-match': tag } })
    for (const { status, body } of [await change('third', first), await revoke(first)])
      assert.deepEqual([status, body.error.code, body.error.details.current], [412, 'precondition_failed', second])
    assert.equal((await test.send('GET', one, { key })).body.name, 'second')
    assert.equal((await revoke(second)).status, 200)
  })
})
