import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { bounds } from '#contract/core/limits.ts'
import type { Role } from '#contract/core/scopes.ts'
import { newId } from '../../platform/ids.ts'
import { makeKey, makePerson, makeSession, makeToken, type Person } from '../../../test/actors.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
let open: TestService
before(async () => {
  test = await shareTestService()
  open = await startTestService({ CADRE_SIGNUP: 'open' })
})
after(async () => {
  await test.stop()
  await open.stop()
})

const path = '/api/v1/auth/organization'
const joins = (who: Person, org_id: string, role: Role, at = 'now()', service = test) =>
  service.sql.query(`insert into member (org_id, user_id, role, joined_at) values ($1, $2, $3, ${at})`, [
    org_id,
    who.user_id,
    role,
  ])

describe('the current organization', () => {
  it('the current organization is shown to every member, with their own role', async () => {
    const owner = await makePerson(test)
    const viewer = await makePerson(test, 'viewer', owner.org_id)
    const { key } = await makeKey(test, viewer, ['organizations:read'])
    const { status, body } = await test.send('GET', path, { key })
    assert.equal(status, 200)
    const { created_at, updated_at, ...rest } = body
    assert.deepEqual(rest, {
      ...{ id: owner.org_id, name: 'Analytical Engines', role: 'viewer', member_count: 2 },
      client_documents: true,
    })
    assert.equal(created_at, updated_at)
  })

  it('only owners and admins rename the current organization, which is audited', async () => {
    const owner = await makePerson(test)
    for (const [role, expected] of [
      ['owner', 200],
      ['admin', 200],
      ['member', 403],
      ['viewer', 403],
    ] as const) {
      const person = role === 'owner' ? owner : await makePerson(test, role, owner.org_id)
      const { key } = await makeKey(test, person, ['admin'])
      const name = `Engines of the ${role}`
      const { status, body } = await test.send('PUT', path, { key, body: { name } })
      assert.equal(status, expected, role)
      if (status === 200) assert.deepEqual([body.name, body.updated_at > body.created_at], [name, true])
      else assert.equal(body.error.code, 'insufficient_permissions')
    }
    const entries = await test.sql<{ actor: string; before: unknown; after: unknown }>`
      select actor, before, after from audit where org_id = ${owner.org_id} and action = 'organization.updated' order by id`
    assert.deepEqual(
      entries.map(({ before, after }) => [before, after]),
      [
        [{ name: 'Analytical Engines' }, { name: 'Engines of the owner' }],
        [{ name: 'Engines of the owner' }, { name: 'Engines of the admin' }],
      ],
    )
  })

  it('the name of an organization has 1 to 100 characters, at least one of them visible', async () => {
    const { cookie } = await makeSession(test, await makePerson(test))
    for (const [name, code] of [
      ['', 'required'],
      [' ', 'invalid_format'],
      ['x'.repeat(bounds.organization_name + 1), 'too_long'],
      ['a\nb', 'invalid_format'],
      [5, 'invalid_format'],
      [null, 'required'],
    ]) {
      const { status, body } = await test.send('PUT', path, { cookie, body: { name } })
      assert.deepEqual([status, body.error.details[0].code], [400, code], JSON.stringify(name))
    }
    assert.equal((await test.send('PUT', path, { cookie, body: { name: '😀'.repeat(100) } })).status, 200)
  })
})

describe('making an organization', () => {
  const create = (service: TestService, cookie: string, name = 'Second') =>
    service.send('POST', '/api/v1/auth/organizations', { cookie, body: { name } })

  it('only owners and administrators create an organization while accounts are by invitation only', async () => {
    const owner = await makePerson(test)
    for (const [role, expected] of [
      ['owner', 201],
      ['admin', 201],
      ['member', 403],
      ['viewer', 403],
    ] as const) {
      const person = role === 'owner' ? owner : await makePerson(test, role, owner.org_id)
      const { status, body } = await create(test, (await makeSession(test, person)).cookie)
      assert.equal(status, expected, role)
      if (status === 201) assert.deepEqual([body.name, body.role, body.member_count], ['Second', 'owner', 1])
    }
  })

  it('every user can create an organization if sign-up is open', async () => {
    const viewer = await makePerson(open, 'viewer', open.owner.org_id)
    const { cookie } = await makeSession(open, viewer)
    const { status, body } = await create(open, cookie)
    assert.equal(status, 201)
    const { body: user } = await open.send('GET', '/api/v1/auth/user', { cookie })
    assert.deepEqual(
      user.organizations.map(({ id, role }: { id: string; role: Role }) => [id, role]),
      [
        [viewer.org_id, 'viewer'],
        [body.id, 'owner'],
      ],
    )
  })

  it('a user cannot own more organizations than allowed, also by concurrent requests', async () => {
    const owner = await makePerson(test)
    const { cookie } = await makeSession(test, owner)
    await test.sql`
      with made as (
        insert into organization (id, name)
        select ${newId('org').slice(0, -3)} || to_char(n, 'FM000'), 'One of many' from generate_series(1, ${bounds.organizations_owned - 2}) n
        returning id)
      insert into member (org_id, user_id, role) select id, ${owner.user_id}, 'owner' from made`
    const statuses = (await Promise.all([1, 2, 3].map(() => create(test, cookie)))).map(({ status }) => status)
    assert.deepEqual(
      statuses.toSorted((a, b) => a - b),
      [201, 409, 409],
    )
  })
})

describe('X-Organization-ID', () => {
  it('X-Organization-ID selects the organization of a cookie request: its projects, agents, tasks, keys and members', async () => {
    const first = await makePerson(test)
    const second = await makePerson(test)
    await joins(first, second.org_id, 'admin')
    const { cookie } = await makeSession(test, first)
    const inSecond = { cookie, headers: { 'x-organization-id': second.org_id } }
    const post = async (at: string, body: unknown, options: object = inSecond) => {
      const reply = await test.send('POST', at, { ...options, body })
      assert.ok(reply.status < 300, JSON.stringify(reply.body))
      return reply.body
    }
    const project = await post('/api/v1/projects', { name: 'second-one' })
    const agents = `/api/v1/projects/${project.id}/agents`
    const agent = await post(agents, { name: 'one', config: { model: 'builtin/echo' } })
    const task = await post(`${agents}/${agent.id}/tasks`, { input: 'Hello.' })
    const key = await post('/api/v1/auth/api-keys', { name: 'second', scopes: ['projects:read'] })

    for (const one of [agents, `${agents}/${agent.id}`, `/api/v1/projects/${project.id}/tasks/${task.id}`]) {
      assert.equal((await test.send('GET', one, inSecond)).status, 200, one)
      assert.equal((await test.send('GET', one, { cookie })).status, 404, one)
    }
    const names = async (options: object) => {
      const { body: projects } = await test.send('GET', '/api/v1/projects', options)
      const { body: keys } = await test.send('GET', '/api/v1/auth/api-keys', options)
      const { body: members } = await test.send('GET', '/api/v1/auth/members', options)
      const { body: current } = await test.send('GET', path, options)
      return {
        projects: projects.projects.map(({ name }: { name: string }) => name),
        keys: keys.api_keys.map(({ name }: { name: string }) => name),
        members: members.members.map(({ user_id }: { user_id: string }) => user_id),
        current: [current.id, current.role],
      }
    }
    assert.deepEqual(await names(inSecond), {
      projects: ['second-one'],
      keys: ['second'],
      members: [second.user_id, first.user_id],
      current: [second.org_id, 'admin'],
    })
    assert.deepEqual(await names({ cookie }), {
      projects: [],
      keys: [],
      members: [first.user_id],
      current: [first.org_id, 'owner'],
    })
    // A key belongs to the organization that it was made in, whatever its requests say.
    const byKey = { key: key.key, headers: { 'x-organization-id': first.org_id } }
    const { body } = await test.send('GET', '/api/v1/projects', byKey)
    assert.deepEqual(
      body.projects.map(({ name }: { name: string }) => name),
      ['second-one'],
    )
  })

  it('X-Organization-ID gives a cookie the role of the organization that it names', async () => {
    const first = await makePerson(test)
    const second = await makePerson(test)
    await joins(first, second.org_id, 'viewer')
    const { cookie } = await makeSession(test, first)
    const headers = { 'x-organization-id': second.org_id }
    const body = { name: 'not-mine' }
    assert.equal((await test.send('POST', '/api/v1/projects', { cookie, headers, body })).status, 403)
    assert.equal((await test.send('POST', '/api/v1/projects', { cookie, body })).status, 201)
    const { body: permissions } = await test.send('GET', '/api/v1/auth/permissions', { cookie, headers })
    assert.equal(permissions.scopes.includes('admin'), false)
  })

  it('X-Organization-ID gives the same 404 for an organization of others and for one that does not exist', async () => {
    const { cookie } = await makeSession(test, await makePerson(test))
    const { org_id: foreign } = await makePerson(test)
    const operations: [string, string, unknown?][] = [
      ['GET', path],
      ['PUT', path, { name: 'Mine now' }],
      ['GET', '/api/v1/auth/members'],
      ['GET', '/api/v1/auth/invitations'],
      ['POST', '/api/v1/auth/invitations', { role: 'admin' }],
      ['GET', '/api/v1/auth/organization/api-keys'],
      ['GET', '/api/v1/projects'],
      ['POST', '/api/v1/projects', { name: 'theirs' }],
      ['POST', '/api/v1/auth/api-keys', { name: 'theirs', scopes: ['read'] }],
      ['POST', '/api/v1/auth/organizations', { name: 'Another' }],
    ]
    for (const [method, at, body] of operations) {
      for (const org_id of [foreign, newId('org'), 'org_x']) {
        const headers = { 'x-organization-id': org_id }
        const reply = await test.send(method, at, { cookie, headers, ...(body === undefined ? {} : { body }) })
        const code = at === '/api/v1/projects' ? 'RESOURCE_NOT_FOUND' : 'resource_not_found'
        assert.deepEqual([reply.status, reply.body.error.code], [404, code], `${method} ${at} ${org_id}`)
        assert.deepEqual(reply.body.error.details, { resource_type: 'organization', resource_id: org_id })
      }
    }
  })

  it('without X-Organization-ID a cookie acts in the organization joined first', async () => {
    const person = await makePerson(test)
    const { org_id: earlier } = await makePerson(test)
    await joins(person, earlier, 'member', `now() - interval '1 day'`)
    const { cookie } = await makeSession(test, person)
    assert.equal((await test.send('GET', path, { cookie })).body.id, earlier)
  })
})

describe('a user without an organization', () => {
  it('a user without an organization gets an error that says so, and can still manage the own account', async () => {
    const person = await makePerson(test)
    await test.sql`delete from member where user_id = ${person.user_id}`
    const { cookie, id } = await makeSession(test, person)
    for (const at of [path, '/api/v1/auth/members', '/api/v1/auth/api-keys', '/api/v1/projects', '/api/v1/hello']) {
      const { status, body } = await test.send('GET', at, { cookie })
      assert.deepEqual(
        [status, body.error.message],
        [403, 'You belong to no organization. Ask for an invitation to one.'],
        at,
      )
    }
    const { body: user } = await test.send('GET', '/api/v1/auth/user', { cookie })
    assert.deepEqual([user.id, user.organizations], [person.user_id, []])
    const { body: session } = await test.send('GET', '/api/v1/auth/session', { cookie })
    assert.deepEqual([session.id, session.scopes], [id, []])
    const { body: permissions } = await test.send('GET', '/api/v1/auth/permissions', { cookie })
    assert.deepEqual(
      Object.values(permissions.permissions).flatMap((one) => Object.values(one as object)),
      Array.from({ length: 10 }, () => false),
    )
    const renamed = await test.send('PUT', '/api/v1/auth/user', { cookie, body: { name: 'Renamed' } })
    assert.deepEqual([renamed.status, renamed.body.name], [200, 'Renamed'])
    assert.equal((await test.send('DELETE', '/api/v1/auth/sessions', { cookie })).status, 200)
    const made = await test.send('POST', '/api/v1/auth/organizations', { cookie, body: { name: 'Mine' } })
    assert.equal(made.status, 403)
    assert.equal((await test.send('POST', '/api/v1/auth/logout', { cookie })).status, 200)
  })

  it('a user without an organization cannot act in one by naming it', async () => {
    const person = await makePerson(test)
    await test.sql`delete from member where user_id = ${person.user_id}`
    const { cookie } = await makeSession(test, person)
    const headers = { 'x-organization-id': person.org_id }
    for (const at of ['/api/v1/auth/user', '/api/v1/auth/members'])
      assert.equal((await test.send('GET', at, { cookie, headers })).status, 404, at)
  })

  it('keys and tokens of a user without an organization do not work', async () => {
    const person = await makePerson(test)
    const { key } = await makeKey(test, person, ['admin'])
    const { token } = await makeToken(test, person, ['admin'])
    await test.sql`delete from member where user_id = ${person.user_id}`
    assert.equal((await test.send('GET', '/api/v1/auth/user', { key })).status, 401)
    assert.equal((await test.send('GET', '/api/v1/auth/user', { token })).status, 401)
  })

  it('requests of a user without an organization count against rate limits', async () => {
    const limited = await startTestService({ CADRE_RATE_LIMITS_SCALE: '0.02' })
    try {
      const person = await makePerson(limited)
      await limited.sql`delete from member where user_id = ${person.user_id}`
      const { cookie } = await makeSession(limited, person)
      const statuses = []
      for (let i = 0; i < 4; i++) statuses.push((await limited.send('GET', '/api/v1/auth/user', { cookie })).status)
      assert.ok(statuses.includes(200) && statuses.includes(429), statuses.join())
    } finally {
      await limited.stop()
    }
  })
})
