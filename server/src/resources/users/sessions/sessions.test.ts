import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { parseCookie, type Browser } from '../../../../test/browser.ts'
import { type TestService } from '../../../../test/harness.ts'
import { shareTestService } from '../../../../test/shared-service.ts'
import { OAuthDriver, type TestClient } from '../../../../test/oauth.ts'

const password = 'seven grey herons'

let service: TestService
let driver: OAuthDriver
let web: TestClient

before(async () => {
  service = await shareTestService()
  driver = new OAuthDriver(service)
  web = await driver.client('web')
})
after(() => service.stop())

interface SignedIn {
  cookie: string
  id: string
}

async function signIn(email: string): Promise<SignedIn> {
  const headers = { 'user-agent': `browser of ${email}` }
  const answer = await service.send('POST', '/api/v1/auth/login', { key: null, headers, body: { email, password } })
  const { value } = parseCookie(answer.headers.getSetCookie()[0] ?? '')
  return { cookie: `cadre_session=${value}`, id: answer.body.session.id }
}

const list = async (credential: { cookie: string } | { token: string }) =>
  (await service.send('GET', '/api/v1/auth/sessions', credential)).body.sessions

test('sign-ins and apps are both sessions, the current one marked', async () => {
  await driver.user('ada@example.com', password)
  const signedIn = await signIn('ada@example.com')
  const { access_token } = await driver.tokens(web, {}, { email: 'ada@example.com', password })
  const { body: grant } = await service.send('GET', '/api/v1/auth/session', { token: access_token })
  assert.deepEqual(Object.keys(grant).sort(), [
    'created_at',
    'expires_at',
    'id',
    'ip_address',
    'scopes',
    'user_agent',
    'user_id',
  ])
  assert.deepEqual(grant.scopes, ['read', 'write'])

  const sessions = await list({ token: access_token })
  assert.equal(sessions.length, 3, 'the sign-in, the browser of the authorization, the app')
  assert.deepEqual(Object.keys(sessions[0]).sort(), [
    'app',
    'created_at',
    'expires_at',
    'id',
    'ip_address',
    'is_current',
    'last_activity',
    'user_agent',
  ])
  assert.deepEqual(
    sessions.filter((session: { is_current: boolean }) => session.is_current).map(({ id }: { id: string }) => id),
    [grant.id],
  )
  const mine = (await list(signedIn)).find(({ id }: { id: string }) => id === signedIn.id)
  assert.equal(mine.is_current, true)
  assert.equal(mine.app, null)
  const { app } = sessions.find(({ id }: { id: string }) => id === grant.id)
  assert.deepEqual([app.client_id, app.scopes, app.resource], [web.client_id, ['read', 'write'], null])
  assert.equal(mine.user_agent, 'browser of ada@example.com')
  assert.equal(mine.ip_address, '127.0.0.1')
})

test('a grant as a session: expires with its refresh token, seen where it was last refreshed', async () => {
  await driver.user('grace@example.com', password)
  const { access_token, refresh_token } = await driver.tokens(web, {}, { email: 'grace@example.com', password })
  await service.sql`update oauth_grant set expires_at = now() + interval '1 day', ip = '203.0.113.7'`
  const before = (await service.send('GET', '/api/v1/auth/session', { token: access_token })).body
  assert.equal(before.ip_address, '203.0.113.7')
  await driver.post(
    '/oauth2/token',
    { grant_type: 'refresh_token', refresh_token, client_id: web.client_id, client_secret: web.client_secret },
    { 'user-agent': 'backend 1.0' },
  )
  const after = (await service.send('GET', '/api/v1/auth/session', { token: access_token })).body
  assert.equal(after.id, before.id)
  assert.equal(after.ip_address, '127.0.0.1')
  assert.equal(after.user_agent, 'backend 1.0')
  const days = (Date.parse(after.expires_at) - Date.now()) / 86_400_000
  assert.ok(days > 29.9 && days < 30.1, String(days))
})

test('ending one ends the cookie or the grant, with the next request', async () => {
  await driver.user('joan@example.com', password)
  const here = await signIn('joan@example.com')
  const there = await signIn('joan@example.com')
  const { access_token, refresh_token } = await driver.tokens(web, {}, { email: 'joan@example.com', password })
  const { body: grant } = await service.send('GET', '/api/v1/auth/session', { token: access_token })
  const end = (id: string) => service.send('DELETE', `/api/v1/auth/sessions/${id}`, { cookie: here.cookie })

  assert.deepEqual((await end(there.id)).body, { message: 'Session revoked', session_id: there.id })
  assert.equal((await service.send('GET', '/api/v1/auth/user', { cookie: there.cookie })).status, 401)
  assert.equal((await end(grant.id)).status, 200)
  assert.equal(await driver.statusOf(access_token), 401)
  assert.equal((await driver.refresh(web, refresh_token)).body.error, 'invalid_grant')
  assert.equal((await end(grant.id)).status, 404)
  const own = await end(here.id)
  assert.equal(own.status, 200, 'the current one may be ended too')
  assert.ok(parseCookie(own.headers.getSetCookie()[0] ?? '').expired)
  assert.equal((await end(there.id)).status, 401)
})

test('an app that its user has shut out is asked about again', async () => {
  await driver.user('edith@example.com', password)
  const person = { email: 'edith@example.com', password }
  const { browser } = await driver.authorize(driver.authorizeUrl(web), person)
  const again = async (browser: Browser) => (await driver.authorize(driver.authorizeUrl(web), { browser })).pages
  assert.deepEqual(await again(browser), [])
  const { cookie } = await signIn('edith@example.com')
  await service.send('DELETE', '/api/v1/auth/sessions', { cookie })
  assert.deepEqual((await driver.authorize(driver.authorizeUrl(web), person)).pages, ['login', 'consent'])
})

test('ending all others keeps the one that asks', async () => {
  await driver.user('hedy@example.com', password)
  const here = await signIn('hedy@example.com')
  const there = await signIn('hedy@example.com')
  const { access_token } = await driver.tokens(web, {}, { email: 'hedy@example.com', password })
  const { body } = await service.send('DELETE', '/api/v1/auth/sessions', { token: access_token })
  assert.deepEqual(body, { message: 'All other sessions revoked', revoked_count: 3 })
  for (const { cookie } of [here, there])
    assert.equal((await service.send('GET', '/api/v1/auth/user', { cookie })).status, 401)
  assert.equal((await list({ token: access_token })).length, 1)
  assert.equal((await service.send('DELETE', '/api/v1/auth/sessions', { token: access_token })).body.revoked_count, 0)
})

test('the sessions of others, and what is no session, do not exist', async () => {
  await driver.user('rosa@example.com', password)
  const rosa = await signIn('rosa@example.com')
  const owner = await driver.tokens(web)
  const { body: other } = await service.send('GET', '/api/v1/auth/session', { token: owner.access_token })
  for (const id of [
    other.id,
    'sess_00000000000000000000000000',
    'nope',
    `user_${other.id.slice(5)}`,
    '%00',
    "'; drop table session",
  ]) {
    const { status, body } = await service.send('DELETE', `/api/v1/auth/sessions/${encodeURI(id)}`, {
      cookie: rosa.cookie,
    })
    assert.equal(status, 404, id)
    assert.equal(body.error.details?.resource_type ?? 'session', 'session')
  }
  assert.equal(await driver.statusOf(owner.access_token), 200)
})

test('keys have no session', async () => {
  for (const [method, path] of [
    ['GET', 'session'],
    ['GET', 'sessions'],
    ['DELETE', 'sessions'],
    ['DELETE', 'sessions/sess_00000000000000000000000000'],
  ] as const) {
    const { status, body } = await service.send(method, `/api/v1/auth/${path}`)
    assert.equal(status, 403, path)
    assert.equal(body.error.code, 'insufficient_permissions')
  }
})

test('a token that may only read ends no session', async () => {
  const { access_token } = await driver.tokens(web, { scope: 'read' })
  const { status, body } = await service.send('DELETE', '/api/v1/auth/sessions', { token: access_token })
  assert.equal(status, 403)
  assert.equal(body.error.code, 'insufficient_scope')
})

test('the end of a session is audited with its user and reason', async () => {
  await driver.user('mary@example.com', password)
  const { cookie, id } = await signIn('mary@example.com')
  const { access_token } = await driver.tokens(web, {}, { email: 'mary@example.com', password })
  const { body: grant } = await service.send('GET', '/api/v1/auth/session', { token: access_token })
  await service.send('DELETE', `/api/v1/auth/sessions/${grant.id}`, { cookie })
  await service.send('DELETE', `/api/v1/auth/sessions/${id}`, { cookie })
  const entries = await service.sql<{ action: string; target: string; detail: object }>`
    select action, case action when 'user.signed_in' then credential_id else target end as target, detail from audit
    where target in (${grant.id}, ${id}) or (action = 'user.signed_in' and credential_id = ${id}) order by id`
  assert.deepEqual(
    entries.map(({ action, target }) => [action, target]),
    [
      ['user.signed_in', id],
      ['oauth_grant.created', grant.id],
      ['oauth_grant.revoked', grant.id],
      ['session.ended', id],
    ],
  )
  assert.deepEqual(entries[2]?.detail, { reason: 'ended_by_user', client_id: 'web' })
})
