import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Service } from '../../service.ts'
import { makeKey, makePerson, makeSession, type Person } from '../../../test/actors.ts'
import { sizeOf } from '../../../test/long-run.ts'
import { sender, startAnother, type Send, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

/** Rounds of each race: without the lock or the check it is about, several of them go wrong. */
const rounds = sizeOf({ short: 5, long: 40 })

let test: TestService
let another: Service
/** Requests of a race go to both processes. */
let sends: [Send, Send]
before(async () => {
  test = await shareTestService()
  another = await startAnother(test)
  sends = [test.send, sender(another.url, test.owner.api_key)]
})
after(async () => {
  await another.stop()
  await test.stop()
})

const members = '/api/v1/auth/members'
const invitations = '/api/v1/auth/invitations'

async function keyOf(person: Person): Promise<string> {
  return (await makeKey(test, person, ['admin'])).key
}

async function ownersOf(org_id: string): Promise<number> {
  const rows = await test.sql`select 1 from member where org_id = ${org_id} and role = 'owner'`
  return rows.length
}

async function invite(owner: Person, role = 'member'): Promise<{ id: string; token: string }> {
  const { body } = await test.send('POST', invitations, { key: await keyOf(owner), body: { role } })
  return { id: body.id, token: body.url.split('/').at(-1) }
}

const accept = (send: Send, cookie: string, token: string) =>
  send('POST', `${invitations}/accept`, { cookie, body: { token } })

describe('an organization keeps an owner', () => {
  const ways: Record<
    string,
    (send: Send, key: string, cookie: string, self: Person, other: Person) => ReturnType<Send>
  > = {
    'when two owners demote each other at once': (send, key, _cookie, _self, other) =>
      send('PUT', `${members}/${other.user_id}`, { key, body: { role: 'viewer' } }),
    'when two owners step down at once': (send, key, _cookie, self) =>
      send('PUT', `${members}/${self.user_id}`, { key, body: { role: 'admin' } }),
    'when two owners remove each other at once': (send, key, _cookie, _self, other) =>
      send('DELETE', `${members}/${other.user_id}`, { key }),
    'when two owners leave at once': (send, _key, cookie, self) =>
      send('POST', '/api/v1/auth/organization/leave', { cookie, body: { organization_id: self.org_id } }),
  }
  for (const [what, go] of Object.entries(ways)) {
    it(`an organization keeps an owner ${what}`, async () => {
      for (let round = 0; round < rounds; round++) {
        const { org_id } = await makePerson(test, 'viewer')
        const [one, two] = [await makePerson(test, 'owner', org_id), await makePerson(test, 'owner', org_id)]
        for (const { user_id } of [one, two]) {
          const { org_id: elsewhere } = await makePerson(test)
          await test.sql`insert into member (org_id, user_id, role) values (${elsewhere}, ${user_id}, 'viewer')`
        }
        const keys = [await keyOf(one), await keyOf(two)] as const
        const cookies = [(await makeSession(test, one)).cookie, (await makeSession(test, two)).cookie] as const
        const replies = await Promise.all([
          go(sends[0], keys[0], cookies[0], one, two),
          go(sends[1], keys[1], cookies[1], two, one),
        ])
        const statuses = replies.map(({ status }) => status)
        assert.equal(await ownersOf(org_id), 1, statuses.join())
        assert.equal(statuses.filter((status) => status === 200).length, 1, statuses.join())
      }
    })
  }
})

it('leaving two organizations concurrently never leaves a user without one', async () => {
  for (let round = 0; round < rounds; round++) {
    const [one, two] = [await makePerson(test), await makePerson(test)]
    const person = await makePerson(test, 'member', one.org_id)
    await test.sql`insert into member (org_id, user_id, role) values (${two.org_id}, ${person.user_id}, 'member')`
    const { cookie } = await makeSession(test, person)
    const replies = await Promise.all(
      [one, two].map(({ org_id }, i) =>
        sends[i]!('POST', '/api/v1/auth/organization/leave', { cookie, body: { organization_id: org_id } }),
      ),
    )
    assert.deepEqual(
      replies.map(({ status }) => status).toSorted((a, b) => a - b),
      [200, 409],
    )
    const left = await test.sql`select 1 from member where user_id = ${person.user_id}`
    assert.equal(left.length, 1)
  }
})

describe('a link works once', () => {
  it('of users who accept one link concurrently exactly one joins', async () => {
    for (let round = 0; round < rounds; round++) {
      const owner = await makePerson(test)
      const { id, token } = await invite(owner)
      const people = await Promise.all([1, 2, 3, 4].map(() => makePerson(test)))
      const cookies = await Promise.all(people.map(async (person) => (await makeSession(test, person)).cookie))
      const replies = await Promise.all(cookies.map((cookie, i) => accept(sends[i % 2]!, cookie, token)))
      assert.deepEqual(
        replies.map(({ status }) => status).toSorted((a, b) => a - b),
        [200, 404, 404, 404],
      )
      const winner = people[replies.findIndex(({ status }) => status === 200)]!
      const joined = await test.sql<{ user_id: string }>`
        select user_id from member where org_id = ${owner.org_id} and user_id <> ${owner.user_id}`
      assert.deepEqual(joined, [{ user_id: winner.user_id }])
      const [row] = await test.sql<{ accepted_by: string }>`select accepted_by from invitation where id = ${id}`
      assert.equal(row?.accepted_by, winner.user_id)
    }
  })

  it('of concurrent sign-ups with one link exactly one creates an account', async () => {
    for (let round = 0; round < sizeOf({ short: 2, long: 5 }); round++) {
      const owner = await makePerson(test)
      const { token } = await invite(owner)
      const emails = [1, 2, 3].map((n) => `racer-${round}-${n}@example.com`)
      const replies = await Promise.all(
        emails.map((email, i) =>
          sends[i % 2]!('POST', '/api/v1/auth/signup', {
            key: null,
            body: { email, name: 'Racer', password: 'nine black swans', invitation: token },
          }),
        ),
      )
      assert.deepEqual(
        replies.map(({ status }) => status).toSorted((a, b) => a - b),
        [201, 404, 404],
      )
      const users = await test.sql<{ email: string }>`select email from app_user where email = any(${emails})`
      assert.deepEqual(users, [{ email: emails[replies.findIndex(({ status }) => status === 201)] }])
    }
  })

  it('a link that is accepted and revoked concurrently is either accepted or revoked, never both', async () => {
    for (let round = 0; round < rounds; round++) {
      const owner = await makePerson(test)
      const key = await keyOf(owner)
      const { id, token } = await invite(owner)
      const person = await makePerson(test)
      const { cookie } = await makeSession(test, person)
      const [accepted, revoked] = await Promise.all([
        accept(sends[0], cookie, token),
        sends[1]('DELETE', `${invitations}/${id}`, { key }),
      ])
      const outcome = `${accepted.status} ${revoked.status}`
      assert.ok(['200 409', '404 200'].includes(outcome), outcome)
      const rows = await test.sql`select 1 from member where org_id = ${owner.org_id} and user_id = ${person.user_id}`
      assert.equal(rows.length, accepted.status === 200 ? 1 : 0)
    }
  })

  it('a link is not used up by a user who joins by another link concurrently', async () => {
    for (let round = 0; round < rounds; round++) {
      const owner = await makePerson(test)
      const links = [await invite(owner, 'member'), await invite(owner, 'viewer')]
      const { cookie } = await makeSession(test, await makePerson(test))
      const replies = await Promise.all(links.map(({ token }, i) => accept(sends[i]!, cookie, token)))
      assert.deepEqual(
        replies.map(({ status }) => status).toSorted((a, b) => a - b),
        [200, 409],
      )
      const open = await test.sql<{ id: string }>`
        select id from invitation where org_id = ${owner.org_id} and accepted_at is null`
      assert.deepEqual(open, [{ id: links[replies.findIndex(({ status }) => status === 409)]!.id }])
    }
  })
})

it('no link outlives the right of its creator to invite, also one created while the right ends', async () => {
  for (let round = 0; round < rounds; round++) {
    const owner = await makePerson(test)
    const leaver = await makePerson(test, 'admin', owner.org_id)
    const [key, leaversKey] = [await keyOf(owner), await keyOf(leaver)]
    const [created, removed] = await Promise.all([
      sends[0]('POST', invitations, { key: leaversKey, body: { role: 'admin' } }),
      sends[1]('DELETE', `${members}/${leaver.user_id}`, { key }),
    ])
    assert.equal(removed.status, 200)
    assert.ok([201, 401, 403].includes(created.status), String(created.status))
    const open = await test.sql`select 1 from invitation where org_id = ${owner.org_id} and revoked_at is null`
    assert.equal(open.length, 0)
  }
})
