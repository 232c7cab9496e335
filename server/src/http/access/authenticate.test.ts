import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import {
  makeKey,
  makePerson,
  makeSession,
  makeToken,
  ownerOf,
  type Credential,
  type Person,
} from '../../../test/actors.ts'
import { type SendOptions, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { rawSend } from '../../../test/raw-http.ts'

let test: TestService
let person: Person
let good: { key: string; token: string; cookie: string }
let agents: string
before(async () => {
  test = await shareTestService()
  person = ownerOf(test)
  good = {
    key: test.owner.api_key,
    token: (await makeToken(test, person, ['admin'])).token,
    cookie: (await makeSession(test, person)).cookie,
  }
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'authentication' } })
  agents = `/api/v1/projects/${body.id}/agents`
})
after(() => test.stop())

/** How a credential is refused by the three kinds of endpoint: `/auth/*`, agents, and those of `control` (decision D23). */
async function refusals(options: SendOptions): Promise<{ codes: [string, string, string]; challenge: string | null }> {
  const codes: string[] = []
  let challenge: string | null = null
  for (const path of ['/api/v1/auth/user', agents, '/api/v1/hello']) {
    const { status, headers, body } = await test.send('GET', path, { key: null, ...options })
    assert.equal(status, 401, `${path} ${JSON.stringify(body)}`)
    assert.equal('details' in body.error, false)
    assert.equal(headers.get('x-ratelimit-limit'), null)
    codes.push(body.error.code)
    challenge = headers.get('www-authenticate')
  }
  return { codes: codes as [string, string, string], challenge }
}

const bare = 'Bearer realm="cadre"'
const withError = 'Bearer realm="cadre", error="invalid_token"'

describe('a request without a valid credential', () => {
  it('a request without a credential is 401 (decisions D20, D23)', async () => {
    assert.deepEqual(await refusals({}), { codes: ['unauthorized', 'unauthorized', 'UNAUTHORIZED'], challenge: bare })
    assert.deepEqual(await refusals({ cookie: 'other=1; cadre_sessions=x' }), {
      codes: ['unauthorized', 'unauthorized', 'UNAUTHORIZED'],
      challenge: bare,
    })
  })

  const keys: [string, () => string | Promise<string>][] = [
    ['empty', () => ''],
    ['unknown', () => `cadre_${'0'.repeat(32)}`],
    ['truncated', () => good.key.slice(0, -1)],
    ['lengthened', () => `${good.key}0`],
    ['in upper case', () => good.key.toUpperCase()],
    ['partly in upper case', () => `cadre_${good.key.slice(6).toUpperCase()}`],
    ['of another prefix', () => good.key.replace('cadre', 'other')],
    ['without prefix', () => good.key.slice(6)],
    ['that is SQL', () => "' or 1=1 --"],
    ['twice', () => `${good.key}, ${good.key}`],
    ['expired', async () => (await makeKey(test, person, ['admin'], new Date(Date.now() - 1000).toISOString())).key],
    [
      'revoked',
      async () => {
        const { id, key } = await makeKey(test, person, ['admin'])
        assert.equal((await test.send('DELETE', `/api/v1/auth/api-keys/${id}`)).status, 200)
        return key
      },
    ],
    [
      'whose user left the organization',
      async () => {
        const leaver = await makePerson(test, 'member', person.org_id)
        const { key } = await makeKey(test, leaver, ['admin'])
        assert.equal((await test.send('GET', '/api/v1/hello', { key })).status, 200)
        await test.sql`delete from member where user_id = ${leaver.user_id}`
        return key
      },
    ],
    [
      'whose user is disabled',
      async () => {
        const leaver = await makePerson(test, 'member', person.org_id)
        const { key } = await makeKey(test, leaver, ['admin'])
        await test.sql`update app_user set disabled_at = now() where id = ${leaver.user_id}`
        return key
      },
    ],
  ]
  for (const [what, make] of keys) {
    it(`an API key is refused as invalid: ${what}`, async () => {
      const expected = { codes: ['invalid_api_key', 'unauthorized', 'UNAUTHORIZED'], challenge: bare }
      assert.deepEqual(await refusals({ key: await make() }), expected)
    })
  }

  const authorizations: [string, () => string | Promise<string>][] = [
    ['empty', () => ''],
    ['a scheme alone', () => 'Bearer'],
    ['unknown', () => `Bearer ${'x'.repeat(43)}`],
    ['truncated', () => `Bearer ${good.token.slice(0, -1)}`],
    ['two', () => `Bearer ${good.token} ${good.token}`],
    ['of another scheme', () => `Basic ${good.token}`],
    ['without scheme', () => good.token],
    ['very long', () => `Bearer ${'x'.repeat(8000)}`],
    ['SQL', () => "Bearer ' or 1=1 --"],
    [
      'of a grant that was revoked',
      async () => {
        const { grant_id, token } = await makeToken(test, person, ['admin'])
        await test.sql`delete from oauth_grant where id = ${grant_id}`
        return `Bearer ${token}`
      },
    ],
  ]
  for (const [what, make] of authorizations) {
    it(`an Authorization header is refused as an invalid token: ${what}`, async () => {
      const expected = { codes: ['invalid_token', 'unauthorized', 'UNAUTHORIZED'], challenge: withError }
      assert.deepEqual(await refusals({ headers: { authorization: await make() } }), expected)
    })
  }

  it('an expired access token is refused as expired', async () => {
    const { token } = await makeToken(test, person, ['admin'], new Date(Date.now() - 1000).toISOString())
    assert.deepEqual(await refusals({ token }), {
      codes: ['expired_token', 'unauthorized', 'UNAUTHORIZED'],
      challenge: withError,
    })
  })

  const cookies: [string, () => string | Promise<string>][] = [
    ['unsigned', () => good.cookie.split('.')[0]!],
    ['signed with another key', () => `${good.cookie.split('.')[0]}.${'A'.repeat(43)}`],
    ['of another value', () => good.cookie.replace('cadre_session=', 'cadre_session=x')],
    ['empty', () => 'cadre_session='],
    ['very long', () => `cadre_session=${'x'.repeat(8000)}`],
    ['malformed', () => 'cadre_session=%zz.%zz'],
    [
      'past its end',
      async () => {
        const { id, cookie } = await makeSession(test, person)
        await test.sql`update session set expires_at = now() where id = ${id}`
        return cookie
      },
    ],
    [
      'idle for too long',
      async () => {
        const { id, cookie } = await makeSession(test, person)
        await test.sql`update session set idle_expires_at = now() where id = ${id}`
        return cookie
      },
    ],
    [
      'ended',
      async () => {
        const { id, cookie } = await makeSession(test, person)
        await test.sql`delete from session where id = ${id}`
        return cookie
      },
    ],
  ]
  for (const [what, make] of cookies) {
    it(`a session cookie is refused: ${what}`, async () => {
      assert.deepEqual(await refusals({ cookie: await make() }), {
        codes: ['unauthorized', 'unauthorized', 'UNAUTHORIZED'],
        challenge: bare,
      })
    })
  }
})

describe('a valid credential', () => {
  it('each kind of credential is accepted, with the Bearer scheme in any case', async () => {
    const each: SendOptions[] = [
      { key: good.key },
      { token: good.token },
      { cookie: good.cookie },
      { key: null, headers: { authorization: `bearer ${good.token}` } },
      { key: null, headers: { authorization: `BEARER  ${good.token}` } },
      { key: null, cookie: `a=b; ${good.cookie}; c=d` },
      { key: null, headers: { authorization: `Bearer ${good.key}` } },
    ]
    for (const options of each)
      assert.equal((await test.send('GET', '/api/v1/auth/user', options)).status, 200, JSON.stringify(options))
  })

  it('a revoked API key is refused by every process with the next request', async () => {
    const { id, key } = await makeKey(test, person, ['admin'])
    assert.equal((await test.send('GET', '/api/v1/hello', { key })).status, 200)
    assert.equal((await test.send('DELETE', `/api/v1/auth/api-keys/${id}`, { key })).status, 200)
    assert.equal((await test.send('GET', '/api/v1/hello', { key })).status, 401)
  })
})

describe('an API key as a bearer', () => {
  const send = (authorization: string, headers: Record<string, string> = {}) =>
    test.send('GET', '/api/v1/auth/user', { key: null, headers: { authorization, ...headers } })

  it('an API key as a bearer that is wrong, cut or revoked gets the error of an invalid API key', async () => {
    const { id, key } = await makeKey(test, person, ['admin'])
    assert.equal((await send(`Bearer ${key}`)).status, 200)
    await test.send('DELETE', `/api/v1/auth/api-keys/${id}`, { key })
    for (const bad of [key, `cadre_${'0'.repeat(32)}`, good.key.slice(0, -1), 'cadre_']) {
      const { status, body } = await send(`Bearer ${bad}`)
      assert.deepEqual([status, body.error.code], [401, 'invalid_api_key'], bad)
    }
  })

  it('an API key as a bearer takes precedence over a key in X-API-Key', async () => {
    assert.equal((await send(`Bearer ${good.key}`, { 'x-api-key': 'cadre_wrong' })).status, 200)
    assert.equal((await send('Bearer cadre_wrong', { 'x-api-key': good.key })).status, 401)
  })

  it('requests with an API key as a bearer count in the rate windows of the key', async () => {
    const { key } = await makeKey(test, person, ['admin'])
    const remaining = async (headers: Record<string, string>) =>
      Number((await test.send('GET', '/api/v1/hello', { key: null, headers })).headers.get('x-ratelimit-remaining'))
    const before = await remaining({ 'x-api-key': key })
    assert.equal(await remaining({ authorization: `Bearer ${key}` }), before - 1)
  })
})

describe('several credentials in one request', () => {
  it('of several credentials in a request only the first of Authorization, X-API-Key and cookie counts (decision D20)', async () => {
    const bad = {
      authorization: `Bearer ${'x'.repeat(43)}`,
      'x-api-key': `cadre_${'0'.repeat(32)}`,
      cookie: 'cadre_session=x.y',
    }
    const all = { authorization: `Bearer ${good.token}`, 'x-api-key': good.key, cookie: good.cookie }
    const kinds = ['authorization', 'x-api-key', 'cookie'] as const
    const codes = { authorization: 'invalid_token', 'x-api-key': 'invalid_api_key', cookie: 'unauthorized' }
    for (let mask = 1; mask < 27; mask++) {
      const headers: Record<string, string> = {}
      const states = kinds.map((kind, i) => [kind, Math.floor(mask / 3 ** i) % 3] as const)
      for (const [kind, state] of states) if (state > 0) headers[kind] = state === 1 ? all[kind] : bad[kind]
      const [kind, state] = states.find(([, state]) => state > 0)!
      const { status, body } = await test.send('GET', '/api/v1/auth/user', { key: null, headers })
      assert.equal(status, state === 1 ? 200 : 401, JSON.stringify(states))
      if (state === 2) assert.equal(body.error.code, codes[kind])
    }
  })

  it('of two Authorization headers the first counts, and two X-API-Key headers are refused', async () => {
    const send = (...headers: string[]) =>
      rawSend(test.url, {
        method: 'GET',
        path: '/api/v1/auth/user',
        headers: ['host', 'localhost', ...headers] as never,
      })
    assert.equal((await send('authorization', `Bearer ${good.token}`, 'authorization', 'Bearer x')).status, 200)
    assert.equal((await send('authorization', 'Bearer x', 'authorization', `Bearer ${good.token}`)).status, 401)
    assert.equal((await send('x-api-key', good.key, 'x-api-key', good.key)).status, 401)
  })
})

describe('scopes (decision D22)', () => {
  it('a missing scope is named in the error and in its details, with the scopes provided', async () => {
    const { key } = await makeKey(test, person, ['projects:read', 'api_keys:read'])
    const a = await test.send('POST', agents, { key, body: { name: 'x' } })
    assert.deepEqual([a.status, a.body.error.code], [403, 'insufficient_scope'])
    assert.deepEqual(a.body.error.required_scopes, ['agents:write'])
    assert.deepEqual(a.body.error.details, {
      required_scopes: ['agents:write'],
      provided_scopes: ['projects:read', 'api_keys:read'],
    })
    const b = await test.send('POST', '/api/v1/projects', { key, body: { name: 'xyz' } })
    assert.deepEqual([b.status, b.body.error.code], [403, 'FORBIDDEN'])
    assert.deepEqual(b.body.error.required_scopes, ['projects:write'])
    assert.deepEqual(b.body.error.details, {
      required_scopes: ['projects:write'],
      provided_scopes: ['projects:read', 'api_keys:read'],
    })
  })

  it('a requirement that any of several scopes meets is reported as one entry (decision D72)', async () => {
    const { key } = await makeKey(test, person, ['read'])
    const { status, body } = await test.send('PUT', '/api/v1/auth/user', { key, body: { name: 'x' } })
    assert.deepEqual([status, body.error.code, body.error.required_scopes], [403, 'insufficient_scope', ['write']])
  })

  it('an access token has its own scopes, not those of its grant', async () => {
    const { grant_id, token } = await makeToken(test, person, ['projects:read'])
    await test.sql`update oauth_grant set scopes = ${['admin']} where id = ${grant_id}`
    assert.equal((await test.send('POST', '/api/v1/projects', { token, body: { name: 'narrow' } })).status, 403)
  })
})

describe('kinds of credential (decision D60)', () => {
  it('an API key is refused by operations on sessions', async () => {
    for (const [method, path] of [
      ['GET', '/api/v1/auth/session'],
      ['GET', '/api/v1/auth/sessions'],
      ['DELETE', '/api/v1/auth/sessions'],
      ['DELETE', '/api/v1/auth/sessions/sess_1'],
    ] as const) {
      const { status, body } = await test.send(method, path)
      assert.deepEqual(
        [status, body.error.code, body.error.message],
        [
          403,
          'insufficient_permissions',
          'This operation does not accept an API key. Use an access token or a session cookie.',
        ],
      )
    }
  })
})

describe('the order of checks (decision D3)', () => {
  const stranger = `/api/v1/projects/proj_999999/agents/agent_1`
  const each = async (options: Credential & { body?: unknown }): Promise<number> =>
    (await test.send('PUT', stranger, options)).status

  it('requests are checked for credential, scope, syntax, existence, role and fields, in this order', async () => {
    const viewer = await makePerson(test, 'viewer', person.org_id)
    const { key: reader } = await makeKey(test, person, ['read'])
    const { key: tooLow } = await makeKey(test, viewer, ['admin'])
    const { body: agent } = await test.send('POST', agents, { body: { name: 'ordered' } })
    const fault = { config: { temperature: 3 } }

    assert.equal(await each({ key: null, body: '{' }), 401)
    assert.equal(await each({ key: reader, body: '{' }), 403)
    assert.equal(await each({ key: good.key, body: '{' }), 400)
    assert.equal(await each({ key: good.key, body: fault }), 404)
    assert.equal(await each({ key: tooLow, body: '{' }), 400)
    assert.equal(await each({ key: tooLow, body: fault }), 404)
    const role = await test.send('PUT', `${agents}/${agent.id}`, { key: tooLow, body: fault })
    assert.deepEqual([role.status, role.body.error.code], [403, 'insufficient_permissions'])
    assert.equal((await test.send('PUT', `${agents}/${agent.id}`, { body: fault })).status, 400)
    assert.equal((await test.send('PUT', `${agents}/${agent.id}`, { body: { name: 'ordered', ...fault } })).status, 400)
  })
})

describe('the organization of a cookie (decision D62)', () => {
  it('a cookie acts in the organization that its user joined first, or the one in X-Organization-ID', async () => {
    const person = await makePerson(test)
    const second = await makePerson(test)
    await test.sql`insert into member (org_id, user_id, role, joined_at) values (${second.org_id}, ${person.user_id}, 'viewer', now() + interval '1 second')`
    const { cookie } = await makeSession(test, person)
    const create = (headers: Record<string, string>, name: string) =>
      test.send('POST', '/api/v1/projects', { cookie, headers, body: { name } })
    assert.equal((await create({}, 'first-org')).status, 201)
    assert.equal((await create({ 'x-organization-id': person.org_id }, 'first-too')).status, 201)
    // The user is a viewer of the second organization.
    assert.equal((await create({ 'x-organization-id': second.org_id }, 'second-org')).status, 403)
    const names = async (org_id: string) =>
      (await test.sql<{ name: string }>`select name from project where org_id = ${org_id} order by id`).map(
        ({ name }) => name,
      )
    assert.deepEqual(await names(person.org_id), ['first-org', 'first-too'])
    assert.deepEqual(await names(second.org_id), [])
  })

  it('a cookie with an X-Organization-ID of which its user is no member, or that is no id, gets 404', async () => {
    for (const id of [(await makePerson(test)).org_id, 'org_00000000000000000000000000', 'x', '1', "' or 1=1"]) {
      const { status, body } = await test.send('GET', '/api/v1/auth/user', {
        cookie: good.cookie,
        headers: { 'x-organization-id': id },
      })
      assert.deepEqual(
        [status, body.error.code, body.error.details],
        [404, 'resource_not_found', { resource_type: 'organization', resource_id: id }],
      )
    }
  })

  it('X-Organization-ID is ignored with a key or a token', async () => {
    const other = await makePerson(test)
    for (const credential of [{ key: good.key }, { token: good.token }]) {
      const { status, body } = await test.send('GET', '/api/v1/projects', {
        ...credential,
        headers: { 'x-organization-id': other.org_id },
      })
      assert.equal(status, 200)
      assert.ok(body.projects.length > 0)
    }
  })
})
