import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { parseCookie, type Cookie } from '../../../../test/browser.ts'
import { localUrl, sender, startTestService, type Reply, type TestService } from '../../../../test/harness.ts'
import { shareTestService } from '../../../../test/shared-service.ts'
import { OAuthDriver } from '../../../../test/oauth.ts'

const email = 'ada@example.com'
const password = 'seven grey herons'

let service: TestService
let driver: OAuthDriver
let user_id: string

before(async () => {
  service = await startTestService({ CADRE_SIGNUP: 'open' })
  driver = new OAuthDriver(service)
  user_id = (await driver.user(email, password)).user_id
})
after(() => service.stop())
beforeEach(() => service.sql`delete from login_attempt`)

const login = (body: object = { email, password }, headers: Record<string, string> = {}): Promise<Reply> =>
  service.send('POST', '/api/v1/auth/login', { key: null, body, headers })
const cookieOf = ({ headers }: Reply): Cookie =>
  parseCookie(headers.getSetCookie().find((text) => text.startsWith('cadre_session=')) ?? '')
const signedIn = async (): Promise<string> => `cadre_session=${cookieOf(await login()).value}`
const get = (cookie: string, path = '/api/v1/auth/session'): Promise<Reply> => service.send('GET', path, { cookie })

test('signing in gives user, session and a cookie with the right flags', async () => {
  const answer = await login()
  assert.equal(answer.status, 200)
  assert.equal(answer.body.user.id, user_id)
  assert.deepEqual(Object.keys(answer.body.session).sort(), [
    'created_at',
    'expires_at',
    'id',
    'ip_address',
    'scopes',
    'user_agent',
    'user_id',
  ])
  assert.ok(answer.body.session.scopes.includes('admin'), 'the owner of an own organization')
  const { text, value } = cookieOf(answer)
  assert.match(text, /; Max-Age=2592000; Path=\/; HttpOnly; SameSite=Lax$/)
  assert.match(value, /^[\w-]{43}\./)
  assert.ok(!JSON.stringify(answer.body).includes(value.slice(0, 43)))
  assert.match(answer.headers.get('cache-control') ?? '', /no-store/)
  const session = await get(`cadre_session=${value}`)
  assert.deepEqual(session.body, answer.body.session)
})

test('the cookies are Secure wherever the service is reached by https, and nothing leads to http', async () => {
  const https = await startTestService({ CADRE_PUBLIC_URL: 'https://cadre.example' })
  try {
    const send = sender(localUrl(https), https.owner.api_key)
    const { email, password, oauth_client_id } = https.owner
    assert.match(
      cookieOf(await send('POST', '/api/v1/auth/login', { key: null, body: { email, password } })).text,
      /; Secure/,
    )
    const query = {
      client_id: oauth_client_id,
      redirect_uri: 'https://client.example/cb',
      response_type: 'code',
      scope: 'read',
      state: 'x',
    }
    const started = await send('GET', `/oauth2/authorize?${new URLSearchParams(query)}`, { key: null })
    assert.equal(started.status, 303)
    const cookies = started.headers.getSetCookie()
    assert.equal(cookies.length, 4)
    for (const cookie of cookies) assert.match(cookie, /; secure; httponly$/)
    assert.equal(
      (await send('GET', '/.well-known/oauth-authorization-server', { key: null })).body.token_endpoint,
      'https://cadre.example/oauth2/token',
    )
  } finally {
    await https.stop()
  }
})

test('a wrong password, an unknown address and a disabled account are one answer', async () => {
  await driver.user('disabled@example.com', password)
  await service.sql`update app_user set disabled_at = now() where email = 'disabled@example.com'`
  const answers = await Promise.all([
    login({ email, password: 'wrong wrong wrong' }),
    login({ email: 'unknown@example.com', password }),
    login({ email: 'disabled@example.com', password }),
  ])
  for (const { status, body, headers } of answers) {
    assert.equal(status, 401)
    assert.equal(body.error.code, 'unauthorized')
    assert.equal(body.error.message, answers[0].body.error.message)
    assert.equal(headers.getSetCookie().length, 0)
  }
})

test('addresses are compared without regard to case', async () => {
  assert.equal((await login({ email: 'ADA@Example.COM', password })).status, 200)
})

/** That a 429 says of the limit of failures, and not of that of requests, when it ends (spec 7.2, decision D89). */
function tellsLimit({ status, body: { error }, headers }: Reply, limit: number, window_seconds: number): void {
  assert.equal(status, 429)
  const { retry_after, details } = error
  const { reset } = details
  assert.deepEqual(details, { limit, remaining: 0, reset, retry_after, bucket: 'login' })
  assert.ok(Math.abs(reset - Date.now() / 1000 - retry_after) < 120)
  const named = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after']
  assert.deepEqual(
    named.map((name) => Number(headers.get(name))),
    [limit, 0, reset, retry_after],
  )
  assert.deepEqual(
    ['ratelimit-policy', 'ratelimit'].map((name) => headers.get(name)),
    [`"failures";q=${limit};w=${window_seconds}`, `"failures";r=0;t=${retry_after}`],
  )
}

test('five failures of an account from an address: then 429, also with the right password; others are not touched', async () => {
  await driver.user('bob@example.com', password)
  for (let i = 0; i < 5; i++) assert.equal((await login({ email, password: `wrong wrong ${i}` })).status, 401)
  const refused = await login()
  assert.equal(refused.status, 429)
  assert.equal(refused.body.error.code, 'rate_limit_exceeded')
  tellsLimit(refused, 5, 900)
  assert.ok(refused.body.error.retry_after > 800 && refused.body.error.retry_after <= 900)
  assert.equal((await login({ email: 'bob@example.com', password })).status, 200)
  await service.sql`update login_attempt set at = at - interval '15 minutes'`
  assert.equal((await login()).status, 200, 'no account is locked out forever')
})

test('a success clears the failures', async () => {
  for (let round = 0; round < 3; round++) {
    for (let i = 0; i < 4; i++) assert.equal((await login({ email, password: `wrong wrong ${i}` })).status, 401)
    assert.equal((await login()).status, 200)
  }
})

test('twenty failures of an account in an hour from anywhere, a hundred from an address for any account', async () => {
  await service.sql`insert into login_attempt (account, ip) select ${email}, 'ip:10.0.0.' || n from generate_series(1, 20) n`
  tellsLimit(await login(), 20, 3600)
  await service.sql`delete from login_attempt`
  await service.sql`insert into login_attempt (account, ip) select 'user' || n, 'ip:127.0.0.1' from generate_series(1, 100) n`
  const refused = await login()
  tellsLimit(refused, 100, 3600)
  assert.ok(refused.body.error.retry_after > 3000 && refused.body.error.retry_after <= 3600)
})

test('guesses that come together are not let through together', async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => login({ email, password: `wrong wrong ${i}` })),
  )
  assert.equal(answers.filter(({ status }) => status === 401).length, 5)
  assert.equal(answers.filter(({ status }) => status === 429).length, 15)
})

test('every sign-in has a new identifier, and the old session of that browser ends', async () => {
  const first = await signedIn()
  const again = await login({ email, password }, { cookie: first })
  assert.notEqual(cookieOf(again).value, first.slice('cadre_session='.length))
  assert.equal((await get(first)).status, 401)
  assert.equal((await get(`cadre_session=${cookieOf(again).value}`)).status, 200)
  const planted = await login({ email, password }, { cookie: 'cadre_session=chosen-by-another' })
  assert.ok(!cookieOf(planted).value.includes('chosen'))
})

test('a cookie whose signature is wrong, missing or moved is worth nothing', async () => {
  const cookie = await signedIn()
  const other = await signedIn()
  const [value = '', signature = ''] = cookie.split('.')
  const [otherValue = ''] = other.split('.')
  for (const tampered of [
    value,
    `${value}.`,
    `${value}.${signature.startsWith('x') ? 'y' : 'x'}${signature.slice(1)}`,
    `${otherValue}.${signature}`,
    `${value.slice(0, -1)}.${signature}`,
    `${value}%00.${signature}`,
  ]) {
    const { status, body } = await get(tampered)
    assert.equal(status, 401, tampered)
    assert.equal(body.error.code, 'unauthorized')
  }
  assert.equal((await get(cookie)).status, 200)
})

test('signing out ends the session for every holder of the cookie, and clears it', async () => {
  const cookie = await signedIn()
  const answer = await service.send('POST', '/api/v1/auth/logout', { cookie })
  assert.equal(answer.status, 200)
  assert.deepEqual(answer.body, { message: 'Signed out' })
  assert.ok(cookieOf(answer).expired)
  assert.equal((await get(cookie)).status, 401)
  assert.equal((await service.send('POST', '/api/v1/auth/logout', { cookie })).status, 401)
  assert.equal((await service.send('POST', '/api/v1/auth/logout')).status, 403, 'a key has no session')
})

test('a session ends after a week without use, and after 30 days', async () => {
  const idle = await signedIn()
  await service.sql`update session set idle_expires_at = now() - interval '1 second'`
  assert.equal((await get(idle)).status, 401)
  const old = await signedIn()
  await service.sql`update session set expires_at = now() - interval '1 second'`
  assert.equal((await get(old)).status, 401)
})

test('requests that other sites send with the cookie are refused, whatever they may read', async () => {
  const cookie = await signedIn()
  const change = (headers: Record<string, string>) =>
    service.send('PUT', '/api/v1/auth/user', { cookie, headers, body: { name: 'Ada' } })
  const own = service.url
  for (const [headers, status] of [
    [{}, 200],
    [{ 'sec-fetch-site': 'same-origin' }, 200],
    [{ 'sec-fetch-site': 'none' }, 200],
    [{ 'sec-fetch-site': 'same-origin', origin: own }, 200],
    [{ origin: own }, 200],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ 'sec-fetch-site': 'cross-site', origin: own }, 403],
    [{ 'sec-fetch-site': 'cross-site', origin: 'null' }, 403],
    [{ origin: 'https://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: `${own}.evil.example` }, 403],
  ] as const) {
    const answer = await change(headers)
    assert.equal(answer.status, status, JSON.stringify(headers))
    if (status === 403) assert.equal(answer.body.error.code, 'insufficient_permissions')
  }
  assert.equal(
    (await login({ email, password }, { 'sec-fetch-site': 'cross-site' })).status,
    403,
    'no other site can sign a user in',
  )
  const form = await service.send('PUT', '/api/v1/auth/user', {
    cookie,
    headers: { 'content-type': 'text/plain' },
    body: '{"name":"x"}',
  })
  assert.equal(form.status, 400)
})

test('a password change ends all other sessions and grants, and the old password', async () => {
  const { user_id: id } = await driver.user('carol@example.com', password)
  const web = await driver.client('web')
  const carol = { email: 'carol@example.com', password }
  const { access_token, refresh_token } = await driver.tokens(web, {}, carol)
  const first = `cadre_session=${cookieOf(await login(carol)).value}`
  const second = `cadre_session=${cookieOf(await login(carol)).value}`
  const change = (body: object) => service.send('PUT', '/api/v1/auth/password', { cookie: first, body })

  const wrong = await change({ current_password: 'not the password', new_password: 'eight white storks' })
  assert.equal(wrong.status, 400)
  assert.deepEqual(
    [wrong.body.error.details[0].field, wrong.body.error.details[0].code],
    ['current_password', 'invalid_choice'],
  )
  assert.ok(!JSON.stringify(wrong.body).includes('not the password'))
  for (const [new_password, code] of [
    ['short', 'too_short'],
    ['x9 '.repeat(43), 'too_long'],
    ['carol@example.com', 'invalid_choice'],
    ['password1234', 'invalid_choice'],
  ] as const) {
    const refused = await change({ current_password: password, new_password })
    assert.deepEqual(
      [refused.status, refused.body.error.details[0].field, refused.body.error.details[0].code],
      [400, 'new_password', code],
    )
  }
  assert.equal((await get(second)).status, 200)

  const changed = await change({ current_password: password, new_password: 'eight white storks' })
  assert.equal(changed.status, 200)
  assert.equal(changed.body.revoked_count, 3, 'the browser of the authorization, the second sign-in, the grant')
  assert.equal((await get(first)).status, 200)
  assert.equal((await get(second)).status, 401)
  assert.equal(await driver.statusOf(access_token), 401)
  assert.equal((await driver.refresh(web, refresh_token)).body.error, 'invalid_grant')
  assert.equal((await login(carol)).status, 401)
  assert.equal((await login({ ...carol, password: 'eight white storks' })).status, 200)
  const entries = await service.sql`select 1 from audit where action = 'user.password_changed' and actor = ${id}`
  assert.equal(entries.length, 1)
})

test('a person at a signed-in browser cannot guess the password without end', async () => {
  const cookie = await signedIn()
  const guess = (i: number) =>
    service.send('PUT', '/api/v1/auth/password', {
      cookie,
      body: { current_password: `guess number ${i}`, new_password: 'eight white storks' },
    })
  for (let i = 0; i < 5; i++) assert.equal((await guess(i)).status, 400)
  assert.equal((await guess(5)).status, 429)
})

test('a hash of another cost is renewed at the next sign-in', async () => {
  const { createPasswords } = await import('../../../platform/crypto/passwords.ts')
  const cheap = await createPasswords({ memory_kib: 8, passes: 1, concurrency: 1 }).hash(password)
  await service.sql`update app_user set password_hash = ${cheap} where id = ${user_id}`
  assert.equal((await login()).status, 200)
  const [row] = await service.sql<{ password_hash: string }>`select password_hash from app_user where id = ${user_id}`
  assert.match(row?.password_hash ?? '', /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  assert.equal((await login()).status, 200)
})

test('an account is created with a new organization, where sign-up is open', async () => {
  const account = { email: 'new@example.com', password: 'nine black swans', name: 'New Person' }
  const answer = await service.send('POST', '/api/v1/auth/signup', { key: null, body: account })
  assert.equal(answer.status, 201)
  const cookie = `cadre_session=${cookieOf(answer).value}`
  const { body: user } = await get(cookie, '/api/v1/auth/user')
  assert.equal(user.name, 'New Person')
  assert.deepEqual(
    user.organizations.map(({ name, role }: { name: string; role: string }) => [name, role]),
    [["New Person's organization", 'owner']],
  )

  const taken = await service.send('POST', '/api/v1/auth/signup', {
    key: null,
    body: { ...account, email: 'NEW@example.com' },
  })
  assert.equal(taken.status, 409)
  assert.equal(taken.body.error.details.conflicting_field, 'email')
  for (const [changes, field] of [
    [{ email: 'no address' }, 'email'],
    [{ password: 'short' }, 'password'],
    [{ name: '' }, 'name'],
  ] as const) {
    const { status, body } = await service.send('POST', '/api/v1/auth/signup', {
      key: null,
      body: { ...account, email: 'x@example.com', ...changes },
    })
    assert.equal(status, 400)
    assert.equal(body.error.details[0].field, field)
    assert.ok(!JSON.stringify(body).includes(account.password))
  }
})

test('of concurrent sign-ups with one address exactly one creates an account', async () => {
  const account = { email: 'race@example.com', password: 'nine black swans', name: 'Racer' }
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => service.send('POST', '/api/v1/auth/signup', { key: null, body: account })),
  )
  assert.equal(answers.filter(({ status }) => status === 201).length, 1)
  assert.equal(answers.filter(({ status }) => status === 409).length, 5)
})

test('by default an account needs an invitation', async () => {
  const closed = await shareTestService()
  try {
    const { status, body } = await closed.send('POST', '/api/v1/auth/signup', {
      key: null,
      body: { email: 'x@example.com', password: 'nine black swans', name: 'X' },
    })
    assert.equal(status, 403)
    assert.equal(body.error.code, 'insufficient_permissions')
    assert.equal((await closed.send('GET', '/signup', { key: null })).status, 404)
  } finally {
    await closed.stop()
  }
})
