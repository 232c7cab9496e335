import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, beforeEach, describe, it } from 'node:test'
import { bounds } from '#contract/core/limits.ts'
import { roles, type Role } from '#contract/core/scopes.ts'
import { newId } from '../../platform/ids.ts'
import { makeKey, makePerson, makeSession, makeToken, type Person } from '../../../test/actors.ts'
import {
  localUrl,
  sender,
  startTestService,
  type Reply,
  type SendOptions,
  type TestService,
} from '../../../test/harness.ts'
import { sweepInvitations } from './invitations.queries.ts'

let test: TestService
before(async () => {
  test = await startTestService({ CADRE_PUBLIC_URL: 'https://cadre.example.com' })
  test.send = sender(localUrl(test), test.owner.api_key)
})
after(() => test.stop())
beforeEach(() => test.sql`delete from rate_window`)

const path = '/api/v1/auth/invitations'
const admin = async (person: Person): Promise<SendOptions> => ({ key: (await makeKey(test, person, ['admin'])).key })
const tokenOf = ({ body }: Reply): string => body.url.split('/').at(-1)

async function invite(person: Person, body: object = {}): Promise<Reply> {
  return test.send('POST', path, { ...(await admin(person)), body: { role: 'member', ...body } })
}

async function accept(person: Person, token: string): Promise<Reply> {
  return test.send('POST', `${path}/accept`, { cookie: (await makeSession(test, person)).cookie, body: { token } })
}

function signUp(email: string, invitation?: string, more: object = {}): Promise<Reply> {
  const body = { email, name: 'Grace', password: 'nine black swans', ...more, ...(invitation ? { invitation } : {}) }
  return test.send('POST', '/api/v1/auth/signup', { key: null, body })
}

const addressOf = ({ user_id }: Person): string => `${user_id}@example.com`

describe('an invitation', () => {
  it('an invitation is a link, shown once, that works for 7 days', async () => {
    const owner = await makePerson(test)
    const { status, body } = await invite(owner, { email: 'grace@example.com' })
    assert.equal(status, 201)
    const { id, url, created_at, expires_at, ...rest } = body
    assert.match(id, /^inv_[0-7][0-9a-hjkmnp-tv-z]{25}$/)
    assert.match(url, /^https:\/\/cadre\.example\.com\/invite\/[A-Za-z0-9_-]{43}$/)
    assert.equal(Date.parse(expires_at) - Date.parse(created_at), 7 * 86_400_000)
    assert.deepEqual(rest, {
      role: 'member',
      email: 'grace@example.com',
      status: 'pending',
      created_by: owner.user_id,
      accepted_at: null,
      accepted_by: null,
      revoked_at: null,
    })
  })

  it('an invitation can last from a minute to 30 days', async () => {
    const owner = await makePerson(test)
    for (const [expires_in_seconds, expected] of [
      [60, 201],
      [30 * 86_400, 201],
      [59, 400],
      [30 * 86_400 + 1, 400],
      [1.5, 400],
      ['60', 400],
    ]) {
      const { status, body } = await invite(owner, { expires_in_seconds })
      assert.equal(status, expected, String(expires_in_seconds))
      if (status === 201)
        assert.equal(Date.parse(body.expires_at) - Date.parse(body.created_at), Number(expires_in_seconds) * 1000)
    }
    for (const body of [{ role: 'boss' }, { role: undefined }, { email: 'nobody' }, { email: 'a b@example.com' }])
      assert.equal((await invite(owner, body)).status, 400, JSON.stringify(body))
  })

  it('the token of an invitation is not in the database, lists, the audit log or stored responses', async () => {
    const owner = await makePerson(test)
    const options = await admin(owner)
    const headers = { 'idempotency-key': 'once' }
    const made = await test.send('POST', path, { ...options, headers, body: { role: 'viewer' } })
    const token = tokenOf(made)
    const again = await test.send('POST', path, { ...options, headers, body: { role: 'viewer' } })
    assert.notEqual(again.body.id, made.body.id, 'what is not kept cannot be given again')
    const [row] = await test.sql<{ token_hash: Buffer }>`
      select token_hash from invitation where id = ${made.body.id}`
    assert.deepEqual(row?.token_hash, createHash('sha256').update(token).digest())

    const { body: list } = await test.send('GET', path, options)
    assert.equal(list.invitations.length, 2)
    const revoked = await test.send('DELETE', `${path}/${made.body.id}`, options)
    for (const text of [JSON.stringify(list), JSON.stringify(revoked.body)]) assert.equal(text.includes(token), false)
    await accept(await makePerson(test), tokenOf(again))
    const tables = await test.sql<{ name: string }>`
      select c.oid::regclass::text as name from pg_class c
      where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace and not c.relispartition`
    for (const { name } of tables) {
      for (const secret of [token, tokenOf(again)]) {
        const { rows } = await test.sql.query(`select 1 from ${name} t where t::text like '%' || $1 || '%'`, [secret])
        assert.equal(rows.length, 0, name)
      }
    }
  })

  it('only owners and admins create invitations, and only owners those for owners', async () => {
    const owner = await makePerson(test)
    for (const by of roles) {
      const person = by === 'owner' ? owner : await makePerson(test, by, owner.org_id)
      for (const role of roles) {
        const may = by === 'owner' || (by === 'admin' && role !== 'owner')
        const { status, body } = await invite(person, { role })
        assert.equal(status, may ? 201 : 403, `${by} invites ${role}`)
        if (!may) assert.equal(body.error.code, 'insufficient_permissions')
      }
    }
    const { key } = await makeKey(test, owner, ['organizations:read', 'write', 'api_keys:write'])
    for (const [method, at, body] of [
      ['POST', path, { role: 'member' }],
      ['GET', path],
      ['DELETE', `${path}/${newId('inv')}`],
    ] as const) {
      const reply = await test.send(method, at, { key, ...(body ? { body } : {}) })
      assert.deepEqual([reply.status, reply.body.error.required_scopes], [403, ['organizations:write']])
    }
  })

  it('an organization has at most 500 pending invitations', async () => {
    const owner = await makePerson(test)
    await test.sql`
      insert into invitation (id, org_id, token_hash, role, created_by, expires_at)
      select 'inv_' || lpad(n::text, 26, '0'), ${owner.org_id}, sha256((${owner.org_id} || n)::bytea), 'viewer', ${owner.user_id}, now() + interval '1 day'
      from generate_series(1, ${bounds.invitations_pending}) n`
    assert.deepEqual((await invite(owner)).body.error.details, {
      resource_type: 'invitation',
      conflicting_field: 'status',
      conflicting_value: 'pending',
    })
    await test.sql`
      update invitation set expires_at = now() where org_id = ${owner.org_id} and id = 'inv_00000000000000000000000001'`
    assert.equal((await invite(owner)).status, 201)
    assert.equal((await invite(owner)).status, 409)
  })
})

describe('invitations', () => {
  it('invitations are listed newest first, filtered by status', async () => {
    const owner = await makePerson(test)
    const options = await admin(owner)
    const made: Reply[] = []
    for (let i = 0; i < 4; i++) made.push(await invite(owner))
    const [pending, accepted, expired, revoked] = made.map(({ body }) => body.id as string)
    const guest = await makePerson(test)
    await accept(guest, tokenOf(made[1]!))
    await test.sql`update invitation set expires_at = now() where id = ${expired}`
    await test.send('DELETE', `${path}/${revoked}`, options)
    const list = async (query: string) => (await test.send('GET', `${path}?${query}`, options)).body
    const all = await list('')
    assert.deepEqual(
      all.invitations.map(({ id, status }: { id: string; status: string }) => [id, status]),
      [
        [revoked, 'revoked'],
        [expired, 'expired'],
        [accepted, 'accepted'],
        [pending, 'pending'],
      ],
    )
    assert.equal(all.invitations[2].accepted_by, guest.user_id)
    for (const { id, status } of all.invitations) {
      const { invitations, pagination } = await list(`status=${status}`)
      assert.deepEqual([invitations.map((one: { id: string }) => one.id), pagination.total], [[id], 1])
    }
    const { invitations, pagination } = await list('limit=1&offset=3')
    assert.deepEqual([invitations[0].id, pagination], [pending, { total: 4, limit: 1, offset: 3, has_more: false }])
  })

  it('a pending invitation is revoked once and no longer works', async () => {
    const owner = await makePerson(test)
    const options = await admin(owner)
    const made = await invite(owner)
    const { status, body } = await test.send('DELETE', `${path}/${made.body.id}`, options)
    assert.equal(status, 200)
    assert.deepEqual([body.message, body.invitation_id], ['Invitation revoked', made.body.id])
    assert.ok(Date.parse(body.revoked_at) > 0)
    assert.equal((await accept(await makePerson(test), tokenOf(made))).status, 404)
    const again = await test.send('DELETE', `${path}/${made.body.id}`, options)
    assert.deepEqual([again.status, again.body.error.details.conflicting_value], [409, 'revoked'])
  })

  it('invitations of other organizations are neither listed nor revoked', async () => {
    const theirs = await invite(await makePerson(test))
    const options = await admin(await makePerson(test))
    assert.deepEqual((await test.send('GET', path, options)).body.invitations, [])
    for (const id of [theirs.body.id, newId('inv'), 'x']) {
      const { status, body } = await test.send('DELETE', `${path}/${id}`, options)
      assert.deepEqual([status, body.error.details], [404, { resource_type: 'invitation', resource_id: id }])
    }
  })

  it('invitations are removed 90 days after their end', async () => {
    const owner = await makePerson(test)
    const ids: string[] = []
    for (let i = 0; i < 6; i++) ids.push((await invite(owner)).body.id)
    const [accepted, revoked, expired, ...kept] = ids
    const old = `now() - interval '91 days'`
    const set = (id: string | undefined, what: string) =>
      test.sql.query(`update invitation set ${what} where id = $1`, [id])
    await set(accepted, `accepted_at = ${old}`)
    await set(revoked, `revoked_at = ${old}`)
    await set(expired, `expires_at = ${old}`)
    await set(kept[0], `accepted_at = now() - interval '89 days', expires_at = ${old}`)
    await set(kept[1], `revoked_at = now() - interval '89 days'`)
    await sweepInvitations(test.sql)
    const left = await test.sql<{ id: string }>`select id from invitation where org_id = ${owner.org_id} order by id`
    assert.deepEqual(
      left.map(({ id }) => id),
      kept,
    )
  })
})

describe('accepting', () => {
  it('accepting an invitation makes the signed-in user a member with its role, once', async () => {
    for (const role of roles) {
      const owner = await makePerson(test)
      const made = await invite(owner, { role })
      const guest = await makePerson(test)
      const { status, body } = await accept(guest, tokenOf(made))
      assert.equal(status, 200)
      const { joined_at, ...organization } = body.organization
      assert.deepEqual(
        [body.message, organization],
        ['Organization joined', { id: owner.org_id, name: 'Analytical Engines', role }],
      )
      assert.ok(Date.parse(joined_at) > 0)
      assert.equal((await accept(await makePerson(test), tokenOf(made))).status, 404)
    }
  })

  it('accepting a used, expired, revoked or unknown link gives the same error, without the token', async () => {
    const owner = await makePerson(test)
    const [used, expired, revoked] = [await invite(owner), await invite(owner), await invite(owner)]
    await accept(await makePerson(test), tokenOf(used))
    await test.sql`update invitation set expires_at = now() where id = ${expired.body.id}`
    await test.send('DELETE', `${path}/${revoked.body.id}`, await admin(owner))
    const guest = await makePerson(test)
    for (const token of [tokenOf(used), tokenOf(expired), tokenOf(revoked), 'x'.repeat(43), 'x', '\u{1f600}']) {
      const { status, body } = await accept(guest, token)
      const { request_id: _, timestamp: __, ...error } = body.error
      assert.deepEqual(
        [status, error],
        [
          404,
          {
            code: 'resource_not_found',
            message: 'There is no such invitation, or it was used, has expired or was withdrawn.',
            details: { resource_type: 'invitation' },
          },
        ],
      )
    }
    const { body } = await accept(guest, 'y'.repeat(129))
    assert.equal(JSON.stringify(body).includes('yyy'), false)
  })

  it('accepting an invitation as a member is refused: the role stays, and the link can still be used', async () => {
    const owner = await makePerson(test)
    const viewer = await makePerson(test, 'viewer', owner.org_id)
    const made = await invite(owner, { role: 'owner' })
    const { status, body } = await accept(viewer, tokenOf(made))
    assert.deepEqual([status, body.error.code, body.error.details.resource_type], [409, 'resource_conflict', 'member'])
    const [row] = await test.sql<{ role: Role }>`select role from member where user_id = ${viewer.user_id}`
    assert.equal(row?.role, 'viewer')
    assert.equal((await accept(await makePerson(test), tokenOf(made))).status, 200)
  })

  it('accepting an invitation requires the account with its address, ignoring case', async () => {
    const owner = await makePerson(test)
    const guest = await makePerson(test)
    const made = await invite(owner, { email: addressOf(guest).toUpperCase() })
    const wrong = await accept(await makePerson(test), tokenOf(made))
    assert.deepEqual([wrong.status, wrong.body.error.code], [403, 'insufficient_permissions'])
    assert.equal(JSON.stringify(wrong.body).includes('example.com'), false, 'whose it is, is not said')
    assert.equal((await accept(guest, tokenOf(made))).status, 200)
  })

  it('keys and apps cannot accept an invitation', async () => {
    const made = await invite(await makePerson(test))
    const guest = await makePerson(test)
    for (const options of [await admin(guest), { token: (await makeToken(test, guest, ['admin'])).token }]) {
      const { status } = await test.send('POST', `${path}/accept`, { ...options, body: { token: tokenOf(made) } })
      assert.equal(status, 403)
    }
  })

  it('creating, accepting and revoking an invitation are in the audit log of its organization', async () => {
    const owner = await makePerson(test)
    const made = await invite(owner, { role: 'admin' })
    const guest = await makePerson(test)
    await accept(guest, tokenOf(made))
    const other = await invite(owner)
    await test.send('DELETE', `${path}/${other.body.id}`, await admin(owner))
    const entries = await test.sql<{ action: string; actor: string; target: string; after: unknown }>`
      select action, actor, target, after from audit where org_id = ${owner.org_id} order by id`
    assert.deepEqual(
      entries.map(({ action, actor, target }) => [action, actor, target]),
      [
        ['invitation.created', owner.user_id, made.body.id],
        ['invitation.accepted', guest.user_id, made.body.id],
        ['invitation.created', owner.user_id, other.body.id],
        ['invitation.revoked', owner.user_id, other.body.id],
      ],
    )
    assert.deepEqual(entries[1]?.after, { user_id: guest.user_id, role: 'admin' })
  })

  it('accepting an invitation has the rate limit of signing in for each IP address', async () => {
    const limited = await startTestService({ CADRE_RATE_LIMITS_SCALE: '0.05' })
    try {
      const statuses: number[] = []
      for (let i = 0; i < 8; i++) {
        const { cookie } = await makeSession(limited, await makePerson(limited))
        const body = { token: 'x'.repeat(43) }
        statuses.push((await limited.send('POST', `${path}/accept`, { cookie, body })).status)
      }
      // Three a minute, which may end while the test runs.
      assert.equal(statuses[0], 404)
      assert.ok(statuses.includes(429), statuses.join())
    } finally {
      await limited.stop()
    }
  })
})

describe('making an account by an invitation', () => {
  it('an invitation allows sign-up while it is by invitation only, and the account joins only that organization (decision D62)', async () => {
    const owner = await makePerson(test)
    assert.equal((await signUp('grace.none@example.com')).status, 403)
    const made = await invite(owner, { role: 'admin' })
    const { status, headers, body } = await signUp('grace@example.com', tokenOf(made))
    assert.equal(status, 201, JSON.stringify(body))
    const [cookie = ''] = headers.getSetCookie()
    const { body: user } = await test.send('GET', '/api/v1/auth/user', { cookie: cookie.split(';')[0]! })
    assert.deepEqual(
      user.organizations.map(({ id, role }: { id: string; role: Role }) => [id, role]),
      [[owner.org_id, 'admin']],
    )
    assert.equal(user.email_verified, false, 'a link proves no address')
    const actions = await test.sql<{ action: string }>`
      select action from audit where org_id = ${owner.org_id} and actor = ${user.id} and action <> 'user.signed_in' order by id`
    assert.deepEqual(
      actions.map(({ action }) => action),
      ['invitation.accepted', 'user.created'],
    )
  })

  it('sign-up with a link that does not work, or is for another address, creates no account', async () => {
    const owner = await makePerson(test)
    const used = await invite(owner)
    await accept(await makePerson(test), tokenOf(used))
    const bound = await invite(owner, { email: 'only@example.com' })
    const deleted = await signUp('late@example.com', tokenOf(used))
    assert.deepEqual([deleted.status, deleted.body.error.code], [404, 'resource_not_found'])
    const wrong = await signUp('late@example.com', tokenOf(bound))
    assert.deepEqual(
      [wrong.status, wrong.body.error.details],
      [400, [{ field: 'email', message: 'must be the address that was invited', code: 'invalid_choice' }]],
    )
    assert.deepEqual(await test.sql`select 1 from app_user where email = 'late@example.com'`, [])
    assert.equal((await signUp('ONLY@example.com', tokenOf(bound))).status, 201)
  })

  it('a failed sign-up by an invitation leaves the link usable', async () => {
    const made = await invite(await makePerson(test))
    assert.equal((await signUp('weak@example.com', tokenOf(made), { password: 'short' })).status, 400)
    assert.equal((await signUp('owner@example.com', tokenOf(made))).status, 409, 'an address that is taken')
    assert.equal((await signUp('strong@example.com', tokenOf(made))).status, 201)
  })
})
