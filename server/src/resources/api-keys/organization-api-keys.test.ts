import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { roles, type Role } from '#contract/core/scopes.ts'
import { makeKey, makePerson, makeSession, type Person } from '../../../test/actors.ts'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
before(async () => {
  test = await shareTestService()
})
after(() => test.stop())

const path = '/api/v1/auth/organization/api-keys'

/** An organization with a key of a member of each role. */
async function company(): Promise<Record<Role, Person & { id: string; key: string }>> {
  const owner = await makePerson(test)
  const entries = []
  for (const role of roles) {
    const person = role === 'owner' ? owner : await makePerson(test, role, owner.org_id)
    entries.push([role, { ...person, ...(await makeKey(test, person, ['admin'])) }])
  }
  return Object.fromEntries(entries)
}

describe('the keys of all members (decision D59)', () => {
  it('the keys of all members are listed with their owners, only for owners and admins, and without secrets', async () => {
    const people = await company()
    const expected = roles.map((role) => [people[role].id, people[role].user_id]).toReversed()
    for (const role of roles) {
      const { status, body } = await test.send('GET', path, { key: people[role].key })
      assert.equal(status, role === 'owner' || role === 'admin' ? 200 : 403, role)
      if (status !== 200) continue
      assert.deepEqual(
        body.api_keys.map(({ id, user }: { id: string; user: { id: string } }) => [id, user.id]),
        expected,
      )
      assert.deepEqual(body.api_keys[0].user, {
        id: people.viewer.user_id,
        name: 'Ada',
        email: `${people.viewer.user_id}@example.com`,
      })
      for (const { key } of Object.values(people)) assert.equal(JSON.stringify(body).includes(key.slice(14)), false)
    }
    const { key } = await makeKey(test, people.owner, ['api_keys:read', 'api_keys:write', 'organizations:write'])
    assert.deepEqual((await test.send('GET', path, { key })).body.error.required_scopes, ['admin'])
    const { cookie } = await makeSession(test, people.admin)
    assert.equal((await test.send('GET', path, { cookie })).status, 200)
  })

  it('the keys of all members are listed by member and page, with expired ones if requested', async () => {
    const { owner, member } = await company()
    const expired = await makeKey(test, member, ['read'], new Date(Date.now() - 1000).toISOString())
    const list = async (query: string): Promise<[string[], object]> => {
      const { body } = await test.send('GET', `${path}?${query}`, { key: owner.key })
      return [body.api_keys.map(({ id }: { id: string }) => id), body.pagination]
    }
    assert.deepEqual((await list(`user_id=${member.user_id}`))[0], [member.id])
    assert.deepEqual((await list(`user_id=${member.user_id}&active_only=false`))[0], [expired.id, member.id])
    assert.deepEqual(await list('user_id=unknown'), [[], { total: 0, limit: 20, offset: 0, has_more: false }])
    assert.deepEqual(await list('limit=1&offset=2'), [
      [(await list(''))[0][2]],
      { total: 4, limit: 1, offset: 2, has_more: true },
    ])
  })

  it('the keys of all members are revoked by owners and admins, with the next request, once', async () => {
    for (const role of roles) {
      const people = await company()
      for (const whose of roles.filter((one) => one !== role)) {
        const { status, body } = await test.send('DELETE', `${path}/${people[whose].id}`, { key: people[role].key })
        const may = role === 'owner' || role === 'admin'
        assert.equal(status, may ? 200 : 403, `${role} revokes the key of ${whose}`)
        assert.equal((await test.send('GET', '/api/v1/hello', { key: people[whose].key })).status, may ? 401 : 200)
        if (!may) continue
        assert.deepEqual([body.message, body.key_id], ['API key revoked', people[whose].id])
        const again = await test.send('DELETE', `${path}/${people[whose].id}`, { key: people[role].key })
        assert.equal(again.status, 404)
        const entries = await test.sql`
          select actor, detail from audit where action = 'api_key.revoked' and target = ${people[whose].id}`
        assert.deepEqual(entries, [{ actor: people[role].user_id, detail: { owner: people[whose].user_id } }])
      }
    }
  })

  it('keys of members of other organizations are neither listed nor revoked', async () => {
    const [ours, theirs] = [await company(), await company()]
    for (const id of [theirs.member.id, 'key_00000000000000000000000000', 'x']) {
      const { status, body } = await test.send('DELETE', `${path}/${id}`, { key: ours.owner.key })
      assert.deepEqual([status, body.error.details], [404, { resource_type: 'api_key', resource_id: id }])
    }
    assert.equal((await test.send('GET', '/api/v1/hello', { key: theirs.member.key })).status, 200)
    const { body } = await test.send('GET', `${path}?user_id=${theirs.member.user_id}`, { key: ours.owner.key })
    assert.deepEqual(body.api_keys, [])
  })
})
