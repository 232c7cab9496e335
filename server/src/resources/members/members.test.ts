import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { roles, type Role } from '#contract/core/scopes.ts'
import { makeKey, makePerson, makeSession, makeToken, type Person } from '../../../test/actors.ts'
import { newId } from '../../platform/ids.ts'
import { type SendOptions, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
before(async () => {
  test = await shareTestService()
})
after(() => test.stop())

const path = '/api/v1/auth/members'
const admin = async (person: Person): Promise<SendOptions> => ({ key: (await makeKey(test, person, ['admin'])).key })

/** An organization with a member of each role, and a second owner, so that either may leave. */
async function company(): Promise<Record<Role | 'second', Person>> {
  const owner = await makePerson(test)
  const [second, administrator, member, viewer] = await Promise.all(
    (['owner', 'admin', 'member', 'viewer'] as const).map((role) => makePerson(test, role, owner.org_id)),
  )
  return { owner, second: second!, admin: administrator!, member: member!, viewer: viewer! }
}

const roleOf = async ({ user_id, org_id }: Person): Promise<string | undefined> => {
  const [row] = await test.sql<{
    role: string
  }>`select role from member where org_id = ${org_id} and user_id = ${user_id}`
  return row?.role
}

describe('members', () => {
  it('members are listed in the order in which they joined, page by page', async () => {
    const { owner, ...others } = await company()
    let later = 0
    for (const { user_id } of Object.values(others))
      await test.sql`update member set joined_at = now() + make_interval(secs => ${++later}) where user_id = ${user_id}`
    const expected = [owner, ...Object.values(others)].map(({ user_id }) => user_id)
    const options = await admin(owner)
    const seen: string[] = []
    for (let offset = 0; offset < 5; offset += 2) {
      const { body } = await test.send('GET', `${path}?limit=2&offset=${offset}`, options)
      assert.deepEqual(body.pagination, { total: 5, limit: 2, offset, has_more: offset < 4 })
      seen.push(...body.members.map(({ user_id }: { user_id: string }) => user_id))
    }
    assert.deepEqual(seen, expected)
  })

  it('members are found by name, by address and by role', async () => {
    const { owner, member, viewer } = await company()
    await test.sql`update app_user set name = 'Grace 100%_\\ Hopper' where id = ${member.user_id}`
    const options = await admin(owner)
    const find = async (query: string): Promise<string[]> => {
      const { body } = await test.send('GET', `${path}?${query}`, options)
      assert.equal(body.pagination.total, body.members.length)
      return body.members.map(({ user_id }: { user_id: string }) => user_id)
    }
    assert.deepEqual(await find('search=grace'), [member.user_id])
    assert.deepEqual(await find(`search=${encodeURIComponent('100%_\\')}`), [member.user_id])
    assert.deepEqual(await find('search=%25'), [member.user_id])
    assert.deepEqual(await find(`search=${viewer.user_id.toUpperCase()}`), [viewer.user_id], 'in the address')
    assert.deepEqual(await find('search=unknown'), [])
    assert.deepEqual(await find('role=viewer'), [viewer.user_id])
    assert.equal((await find('role=owner')).length, 2)
    assert.equal((await test.send('GET', `${path}?role=boss`, options)).status, 400)
  })

  it('addresses of members are shown to managers and to the member, and only those can search by them', async () => {
    const people = await company()
    const managers: [string, SendOptions][] = [
      ['owner', await admin(people.owner)],
      ['admin', { cookie: (await makeSession(test, people.admin)).cookie }],
      ['key that writes', { key: (await makeKey(test, people.admin, ['organizations:write', 'read'])).key }],
    ]
    for (const [what, options] of managers) {
      const { body } = await test.send('GET', path, options)
      for (const { user_id, email } of body.members) assert.equal(email, `${user_id}@example.com`, what)
    }
    const readers: [Person, SendOptions][] = [
      [people.member, { cookie: (await makeSession(test, people.member)).cookie }],
      [people.viewer, await admin(people.viewer)],
      [people.owner, { token: (await makeToken(test, people.owner, ['read'])).token }],
      [people.admin, { key: (await makeKey(test, people.admin, ['organizations:read'])).key }],
    ]
    for (const [who, options] of readers) {
      const { body } = await test.send('GET', path, options)
      for (const { user_id, ...rest } of body.members) {
        const expected = user_id === who.user_id ? `${user_id}@example.com` : undefined
        assert.equal(rest.email, expected)
      }
      const other = who === people.member ? people.viewer : people.member
      const { body: one } = await test.send('GET', `${path}/${other.user_id}`, options)
      assert.deepEqual([one.user_id, 'email' in one], [other.user_id, false])
      const { body: found } = await test.send('GET', `${path}?search=${other.user_id}`, options)
      assert.deepEqual(found.members, [], 'an address that is not shown is not found')
    }
  })
})

describe('the last activity of a member', () => {
  const at = (day: number) => `2026-03-0${day}T12:00:00.000Z`
  const lastActive = async (options: SendOptions, { user_id }: Person): Promise<string | null | undefined> =>
    (await test.send('GET', `${path}/${user_id}`, options)).body.last_active

  it('the last activity of a member is the latest of sessions, and of keys, apps and actions in this organization', async () => {
    const { owner, member } = await company()
    const options = await admin(owner)
    const { sql } = test
    const elsewhere = await makePerson(test)
    await sql`insert into member (org_id, user_id, role) values (${elsewhere.org_id}, ${member.user_id}, 'member')`
    const there = { ...member, org_id: elsewhere.org_id }
    const used = async (person: Person, day: number, key: Promise<{ id: string }> = makeKey(test, person, ['read'])) =>
      sql`insert into api_key_usage (key_id, hour, last_at) values (${(await key).id}, date_trunc('hour', ${at(day)}::timestamptz), ${at(day)})`
    const granted = async (person: Person, day: number) =>
      sql`update oauth_grant set last_activity = ${at(day)} where id = ${(await makeToken(test, person, ['read'])).grant_id}`
    const did = (action: string, org_id: string, day: number) =>
      sql`insert into audit (id, at, org_id, actor, action) values (${newId('aud')}, ${at(day)}, ${org_id}, ${member.user_id}, ${action})`
    await used(there, 9)
    await granted(there, 9)
    await did('agent.created', there.org_id, 9)
    await did('user.sign_in_failed', member.org_id, 9)
    assert.equal(await lastActive(options, member), null, 'nothing of this organization')
    await did('user.signed_in', member.org_id, 1)
    assert.equal(await lastActive(options, member), at(1))
    const key = makeKey(test, member, ['read'])
    await used(member, 3, key)
    await used(member, 2, key)
    assert.equal(await lastActive(options, member), at(3))
    await granted(member, 4)
    assert.equal(await lastActive(options, member), at(4))
    const session = await makeSession(test, member)
    await sql`update session set last_activity = ${at(5)} where id = ${session.id}`
    assert.equal(await lastActive(options, member), at(5))
    const { body } = await test.send('GET', path, options)
    assert.equal(body.members.find(({ user_id }: Person) => user_id === member.user_id).last_active, at(5))
  })

  it('the last activity of a member is shown to managers and to the member', async () => {
    const { admin: administrator, member, viewer } = await company()
    assert.equal(await lastActive(await admin(administrator), member), null)
    for (const person of [member, viewer]) {
      const { cookie } = await makeSession(test, person)
      assert.equal((await lastActive({ cookie }, person))?.slice(0, 2), '20')
      assert.equal(await lastActive({ cookie }, administrator), undefined)
    }
  })
})

describe('roles: who may do what to whom', () => {
  /** What happens when `by` gives a member of role `from` the role `to`; owners are two, so the last one is no matter. */
  const mayChange = (by: Role, from: Role, to: Role): boolean =>
    by === 'owner' || (by === 'admin' && from !== 'owner' && to !== 'owner')

  for (const by of roles) {
    it(`the role ${by} changes exactly the roles of members that it may`, async () => {
      for (const from of roles) {
        for (const to of roles) {
          const people = await company()
          const target = from === 'owner' ? people.second : await makePerson(test, from, people.owner.org_id)
          const { status, body } = await test.send('PUT', `${path}/${target.user_id}`, {
            ...(await admin(people[by])),
            body: { role: to },
          })
          const may = mayChange(by, from, to)
          assert.equal(status, may ? 200 : 403, `${by}: ${from} to ${to} ${JSON.stringify(body)}`)
          if (may) assert.deepEqual([body.user_id, body.role], [target.user_id, to])
          else assert.equal(body.error.code, 'insufficient_permissions')
          assert.equal(await roleOf(target), may ? to : from)
        }
      }
    })

    it(`the role ${by} removes exactly the members that it may`, async () => {
      for (const from of roles) {
        const people = await company()
        const target = from === 'owner' ? people.second : await makePerson(test, from, people.owner.org_id)
        const { status, body } = await test.send('DELETE', `${path}/${target.user_id}`, await admin(people[by]))
        const may = by === 'owner' || (by === 'admin' && from !== 'owner')
        assert.equal(status, may ? 200 : 403, `${by} removes ${from}`)
        if (may) assert.deepEqual(body, { message: 'Member removed', user_id: target.user_id })
        assert.equal(await roleOf(target), may ? undefined : from)
      }
    })

    it(`the role ${by} finds no member of another organization`, async () => {
      const { owner: theirs } = await company()
      const people = await company()
      const options = await admin(people[by])
      for (const [method, body] of [['GET'], ['PUT', { role: 'viewer' }], ['DELETE']] as const) {
        for (const id of [theirs.user_id, 'user_00000000000000000000000000', 'me']) {
          const reply = await test.send(method, `${path}/${id}`, { ...options, ...(body ? { body } : {}) })
          assert.deepEqual(
            [reply.status, reply.body.error.details],
            [404, { resource_type: 'member', resource_id: id }],
            `${method} ${id}`,
          )
        }
      }
      assert.equal(await roleOf(theirs), 'owner')
    })
  }

  it('a read-only scope cannot change members, whatever the role', async () => {
    const { owner, member } = await company()
    const { key } = await makeKey(test, owner, ['read', 'write', 'organizations:read', 'api_keys:write'])
    for (const [method, body] of [['PUT', { role: 'viewer' }], ['DELETE']] as const) {
      const reply = await test.send(method, `${path}/${member.user_id}`, { key, ...(body ? { body } : {}) })
      assert.deepEqual([reply.status, reply.body.error.required_scopes], [403, ['organizations:write']])
    }
  })

  it('a new role applies from the next request on, for keys, tokens and cookies', async () => {
    const { owner, admin: administrator, member } = await company()
    const credentials: SendOptions[] = [
      await admin(administrator),
      { token: (await makeToken(test, administrator, ['admin'])).token },
      { cookie: (await makeSession(test, administrator)).cookie },
    ]
    const change = (options: SendOptions) =>
      test.send('PUT', `${path}/${member.user_id}`, { ...options, body: { role: 'member' } })
    for (const options of credentials) assert.equal((await change(options)).status, 200)
    await test.send('PUT', `${path}/${administrator.user_id}`, { ...(await admin(owner)), body: { role: 'member' } })
    for (const options of credentials) assert.equal((await change(options)).status, 403)
  })

  it('the last owner can be neither demoted nor removed, and a disabled owner does not count', async () => {
    const owner = await makePerson(test)
    const options = await admin(owner)
    const member = await makePerson(test, 'member', owner.org_id)
    const disabled = await makePerson(test, 'owner', owner.org_id)
    await test.sql`update app_user set disabled_at = now() where id = ${disabled.user_id}`
    for (const [method, body] of [['PUT', { role: 'admin' }], ['DELETE']] as const) {
      const reply = await test.send(method, `${path}/${owner.user_id}`, { ...options, ...(body ? { body } : {}) })
      assert.deepEqual([reply.status, reply.body.error.code], [409, 'resource_conflict'])
      assert.equal(reply.body.error.message, 'An organization needs an owner. Make another member an owner first.')
    }
    assert.equal(
      (await test.send('PUT', `${path}/${owner.user_id}`, { ...options, body: { role: 'owner' } })).status,
      200,
      'who stays an owner is no matter',
    )
    await test.send('PUT', `${path}/${member.user_id}`, { ...options, body: { role: 'owner' } })
    const stepped = await test.send('PUT', `${path}/${owner.user_id}`, { ...options, body: { role: 'viewer' } })
    assert.deepEqual([stepped.status, stepped.body.role], [200, 'viewer'])
  })

  it('changes of roles are in the audit log, and requests without effect are not', async () => {
    const { owner, member } = await company()
    const options = await admin(owner)
    await test.send('PUT', `${path}/${member.user_id}`, { ...options, body: { role: 'admin' } })
    await test.send('PUT', `${path}/${member.user_id}`, { ...options, body: { role: 'admin' } })
    await test.send('DELETE', `${path}/${member.user_id}`, options)
    const entries = await test.sql<{ action: string; actor: string; before: unknown; after: unknown }>`
      select action, actor, before, after from audit where org_id = ${owner.org_id} and target = ${member.user_id} order by id`
    assert.deepEqual(entries, [
      { action: 'member.updated', actor: owner.user_id, before: { role: 'member' }, after: { role: 'admin' } },
      { action: 'member.removed', actor: owner.user_id, before: { role: 'admin' }, after: null },
    ])
  })
})
