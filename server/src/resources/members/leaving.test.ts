import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Role } from '#contract/core/scopes.ts'
import { OAuthDriver } from '../../../test/oauth.ts'
import { hashOf } from '../../platform/crypto/hash-of.ts'
import { makeKey, makePerson, makeSession, makeToken, type Person } from '../../../test/actors.ts'
import { startTestService, type SendOptions, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let invite: TestService
let open: TestService
before(async () => {
  invite = await shareTestService()
  open = await startTestService({ CADRE_SIGNUP: 'open' })
})
after(async () => {
  await invite.stop()
  await open.stop()
})

const leave = (service: TestService, cookie: string, organization_id: string) =>
  service.send('POST', '/api/v1/auth/organization/leave', { cookie, body: { organization_id } })

/** A member of an organization with other owners, who also has an own organization. */
async function colleague(
  service: TestService,
  role: Role = 'member',
): Promise<{ owner: Person; person: Person; own: string }> {
  const owner = await makePerson(service)
  const { user_id, org_id: own } = await makePerson(service)
  await service.sql`insert into member (org_id, user_id, role) values (${owner.org_id}, ${user_id}, ${role})`
  return { owner, person: { user_id, org_id: owner.org_id, role }, own }
}

const statusOf = async (service: TestService, options: SendOptions): Promise<number> =>
  (await service.send('GET', '/api/v1/auth/organization', options)).status

describe('a member who leaves or is removed', () => {
  for (const how of ['removed', 'leaving'] as const) {
    const go = async (owner: Person, person: Person): Promise<void> => {
      const { status } =
        how === 'leaving'
          ? await leave(invite, (await makeSession(invite, person)).cookie, person.org_id)
          : await invite.send('DELETE', `/api/v1/auth/members/${person.user_id}`, {
              key: (await makeKey(invite, owner, ['admin'])).key,
            })
      assert.equal(status, 200)
    }

    it(`keys, tokens and cookies of a former member fail from the next request on, and those for other organizations work (${how})`, async () => {
      const { owner, person, own } = await colleague(invite)
      const elsewhere = { ...person, org_id: own }
      const inside: SendOptions[] = [
        { key: (await makeKey(invite, person, ['admin'])).key },
        { token: (await makeToken(invite, person, ['admin'])).token },
      ]
      const outside: SendOptions[] = [
        { key: (await makeKey(invite, elsewhere, ['admin'])).key },
        { token: (await makeToken(invite, elsewhere, ['admin'])).token },
      ]
      const { cookie } = await makeSession(invite, person)
      const inOrganization = { cookie, headers: { 'x-organization-id': person.org_id } }
      for (const options of [...inside, ...outside, inOrganization]) assert.equal(await statusOf(invite, options), 200)

      await go(owner, person)

      for (const options of inside) assert.equal(await statusOf(invite, options), 401)
      assert.equal(await statusOf(invite, inOrganization), 404)
      for (const options of [...outside, { cookie }]) assert.equal(await statusOf(invite, options), 200)
    })

    it(`a member who returns does not get old keys, grants and consents back (${how})`, async () => {
      const { owner, person } = await colleague(invite)
      const { key, id } = await makeKey(invite, person, ['admin'])
      const { token, grant_id } = await makeToken(invite, person, ['admin'])
      const { oauth_client_id } = invite.owner
      await invite.sql`
        insert into oauth_consent (user_id, client_id, org_id, scopes)
        values (${person.user_id}, ${oauth_client_id}, ${person.org_id}, '{read}')`
      await go(owner, person)
      await invite.sql`insert into member (org_id, user_id, role) values (${person.org_id}, ${person.user_id}, 'owner')`
      assert.equal(await statusOf(invite, { key }), 401)
      assert.equal(await statusOf(invite, { token }), 401)
      const consents = await invite.sql`select 1 from oauth_consent where user_id = ${person.user_id}`
      const artifacts = await invite.sql`select 1 from oauth_artifact where id = ${hashOf(token)}`
      assert.deepEqual([consents, artifacts], [[], []])

      const [entry] = await invite.sql<{ action: string; detail: Record<string, string[]> }>`
        select action, detail from audit where org_id = ${person.org_id} and target = ${person.user_id}`
      assert.equal(entry?.action, how === 'leaving' ? 'member.left' : 'member.removed')
      assert.deepEqual([entry.detail.api_keys_revoked, entry.detail.oauth_grants_ended], [[id], [grant_id]])
    })

    it(`an app of a former member needs a new consent, and its tokens are not refreshed (${how})`, async () => {
      const driver = new OAuthDriver(invite)
      const [email, password] = [`app-${how}@example.com`, 'seven grey herons']
      const { user_id, org_id: own } = await driver.user(email, password)
      const { org_id, user_id: owner_id } = invite.owner
      // One organization at a time, so that the app is let into it without a choice.
      await invite.sql`update member set org_id = ${org_id}, role = 'member' where user_id = ${user_id}`
      const client = await driver.client(`app-${how}`)
      const tokens = await driver.tokens(client, {}, { email, password })
      assert.equal(await driver.statusOf(tokens.access_token), 200)
      const { pages: before } = await driver.authorize(driver.authorizeUrl(client), { email, password })
      assert.deepEqual(before, ['login'], 'what was allowed is remembered')
      await invite.sql`insert into member (org_id, user_id, role) values (${own}, ${user_id}, 'owner')`

      await go({ user_id: owner_id, org_id, role: 'owner' }, { user_id, org_id, role: 'member' })

      assert.equal(await driver.statusOf(tokens.access_token), 401)
      const { status, body } = await driver.refresh(client, tokens.refresh_token)
      assert.deepEqual([status, body.error], [400, 'invalid_grant'])
      const { pages } = await driver.authorize(driver.authorizeUrl(client), { email, password })
      assert.deepEqual(pages, ['login', 'consent'])
    })

    it(`what a former member created stays (${how})`, async () => {
      const { owner, person } = await colleague(invite)
      const { key } = await makeKey(invite, person, ['admin'])
      const { body: project } = await invite.send('POST', '/api/v1/projects', { key, body: { name: `kept-${how}` } })
      const agents = `/api/v1/projects/${project.id}/agents`
      const { body: agent } = await invite.send('POST', agents, { key, body: { name: 'kept' } })
      await go(owner, person)
      const { key: ownersKey } = await makeKey(invite, owner, ['admin'])
      const { status, body } = await invite.send('GET', `${agents}/${agent.id}`, { key: ownersKey })
      assert.deepEqual([status, body.metadata.created_by], [200, person.user_id])
    })

    it(`invitation links of a former member no longer work (${how})`, async () => {
      const { owner, person } = await colleague(invite, 'admin')
      const { key } = await makeKey(invite, person, ['admin'])
      const { body: made } = await invite.send('POST', '/api/v1/auth/invitations', { key, body: { role: 'admin' } })
      const { key: ownersKey } = await makeKey(invite, owner, ['admin'])
      const { body: owners } = await invite.send('POST', '/api/v1/auth/invitations', {
        key: ownersKey,
        body: { role: 'viewer' },
      })
      await go(owner, person)
      const { cookie } = await makeSession(invite, person)
      const accept = (url: string) =>
        invite.send('POST', '/api/v1/auth/invitations/accept', { cookie, body: { token: url.split('/').at(-1) } })
      assert.equal((await accept(made.url)).status, 404)
      assert.equal((await accept(owners.url)).status, 200, 'they may by a link of another member')
    })
  }
})

describe('losing the right to invite', () => {
  it('losing the right to invite revokes the open links that were made with it, and no others', async () => {
    const owner = await makePerson(invite)
    const second = await makePerson(invite, 'owner', owner.org_id)
    const { key } = await makeKey(invite, second, ['admin'])
    const { key: ownersKey } = await makeKey(invite, owner, ['admin'])
    const make = async (role: Role): Promise<string> =>
      (await invite.send('POST', '/api/v1/auth/invitations', { key, body: { role } })).body.id
    const ids = { owner: await make('owner'), admin: await make('admin'), viewer: await make('viewer') }
    const statuses = async () => {
      const { body } = await invite.send('GET', '/api/v1/auth/invitations', { key: ownersKey })
      const all = new Map(body.invitations.map(({ id, status }: { id: string; status: string }) => [id, status]))
      return Object.values(ids).map((id) => all.get(id))
    }
    const demote = (role: Role) =>
      invite.send('PUT', `/api/v1/auth/members/${second.user_id}`, { key: ownersKey, body: { role } })
    await demote('admin')
    assert.deepEqual(await statuses(), ['revoked', 'pending', 'pending'])
    await demote('member')
    assert.deepEqual(await statuses(), ['revoked', 'revoked', 'revoked'])
  })
})

describe('the organization that a member leaves', () => {
  it('a member leaves the organization named in the body, so that a repeated request does not leave a second one', async () => {
    const { person, own } = await colleague(invite)
    const { cookie } = await makeSession(invite, person)
    assert.deepEqual((await leave(invite, cookie, person.org_id)).body, {
      message: 'Organization left',
      organization_id: person.org_id,
    })
    const again = await leave(invite, cookie, person.org_id)
    assert.deepEqual(
      [again.status, again.body.error.details],
      [404, { resource_type: 'organization', resource_id: person.org_id }],
    )
    assert.equal((await invite.send('GET', '/api/v1/auth/organization', { cookie })).body.id, own)
    assert.equal((await invite.send('POST', '/api/v1/auth/organization/leave', { cookie })).status, 400)
  })

  it('the last owner cannot leave an organization', async () => {
    const { person, own } = await colleague(invite)
    const { cookie } = await makeSession(invite, person)
    const { status, body } = await leave(invite, cookie, own)
    assert.deepEqual([status, body.error.code], [409, 'resource_conflict'])
  })

  it('keys and apps cannot leave an organization for their user', async () => {
    const { person } = await colleague(invite)
    for (const options of [
      { key: (await makeKey(invite, person, ['admin'])).key },
      { token: (await makeToken(invite, person, ['admin'])).token },
    ]) {
      const body = { organization_id: person.org_id }
      assert.equal((await invite.send('POST', '/api/v1/auth/organization/leave', { ...options, body })).status, 403)
    }
  })
})

describe("a user's only organization", () => {
  it('a user cannot leave the only organization while accounts are by invitation only', async () => {
    const owner = await makePerson(invite)
    const person = await makePerson(invite, 'member', owner.org_id)
    const { cookie } = await makeSession(invite, person)
    const { status, body } = await leave(invite, cookie, owner.org_id)
    assert.deepEqual(
      [status, body.error.message],
      [409, 'You cannot leave your only organization. An administrator can remove you.'],
    )
    assert.equal((await invite.send('GET', '/api/v1/auth/organization', { cookie })).status, 200)
  })

  it('an administrator can remove a user from the only organization, and the user then has none until invited again', async () => {
    const owner = await makePerson(invite)
    const person = await makePerson(invite, 'admin', owner.org_id)
    const { cookie } = await makeSession(invite, person)
    const { key } = await makeKey(invite, owner, ['admin'])
    assert.equal((await invite.send('DELETE', `/api/v1/auth/members/${person.user_id}`, { key })).status, 200)
    assert.equal((await invite.send('GET', '/api/v1/auth/organization', { cookie })).status, 403)
    assert.deepEqual((await invite.send('GET', '/api/v1/auth/user', { cookie })).body.organizations, [])
    const own = await invite.send('POST', '/api/v1/auth/organizations', { cookie, body: { name: 'Mine' } })
    assert.equal(own.status, 403)
    const { body } = await invite.send('POST', '/api/v1/auth/invitations', { key, body: { role: 'viewer' } })
    const token = body.url.split('/').at(-1)
    const back = await invite.send('POST', '/api/v1/auth/invitations/accept', { cookie, body: { token } })
    assert.deepEqual([back.status, back.body.organization.role], [200, 'viewer'])
    assert.equal((await invite.send('GET', '/api/v1/auth/organization', { cookie })).body.id, owner.org_id)
  })

  for (const how of ['removed', 'leaving'] as const) {
    it(`a user who loses the only organization gets a new one if sign-up is open: ${how} (decision D62)`, async () => {
      const owner = await makePerson(open)
      const person = await makePerson(open, 'member', owner.org_id)
      const { cookie } = await makeSession(open, person)
      const { key } = await makeKey(open, owner, ['admin'])
      const deleted =
        how === 'leaving'
          ? await leave(open, cookie, owner.org_id)
          : await open.send('DELETE', `/api/v1/auth/members/${person.user_id}`, { key })
      assert.equal(deleted.status, 200)
      const { body } = await open.send('GET', '/api/v1/auth/organization', { cookie })
      assert.deepEqual([body.name, body.role, body.member_count], ["Ada's organization", 'owner', 1])
      assert.notEqual(body.id, owner.org_id)
      const entries = await open.sql<{ action: string }>`select action from audit where org_id = ${body.id}`
      assert.deepEqual(entries, [{ action: 'organization.created' }])
    })
  }
})
