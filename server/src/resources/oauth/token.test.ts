import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import type { Browser } from '../../../test/browser.ts'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'
import { OAuthDriver, type TestClient } from '../../../test/oauth.ts'

const insecure = { [oauth.allowInsecureRequests]: true }

let service: TestService
let driver: OAuthDriver
let web: TestClient
let other: TestClient
/** A browser that goes through authorizations of `web` without being asked. */
let browser: Browser

before(async () => {
  // One test waits until the database has not answered in time.
  service = await startTestService({}, { timeoutMultiplier: 1 })
  driver = new OAuthDriver(service)
  web = await driver.client('web')
  other = await driver.client('other')
  browser = (await driver.authorize(driver.authorizeUrl(web, { scope: 'read write agents:read' }))).browser
})
after(() => service.stop())

const code = (changes: Record<string, string | undefined> = {}) => driver.code(web, changes, { browser })
const tokens = (changes: Record<string, string | undefined> = {}) => driver.tokens(web, changes, { browser })

test('oauth4webapi: code with PKCE, refresh, use, revoke', async () => {
  const issuer = new URL(service.url)
  const server = await oauth.processDiscoveryResponse(
    issuer,
    await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure }),
  )
  const client: oauth.Client = { client_id: web.client_id }
  const authentication = oauth.ClientSecretPost(web.client_secret)
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  const challenge = { code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' }
  const { left } = await driver.authorize(driver.authorizeUrl(web, { state, ...challenge }), { browser })

  const parameters = oauth.validateAuthResponse(server, client, left, state)
  const request = oauth.authorizationCodeGrantRequest(
    server,
    client,
    authentication,
    parameters,
    web.redirect_uri,
    verifier,
    insecure,
  )
  const first = await oauth.processAuthorizationCodeResponse(server, client, await request)
  assert.equal(first.token_type, 'bearer')
  assert.equal(first.expires_in, 3600)
  assert.equal(first.scope, 'read write')
  assert.equal(await driver.statusOf(first.access_token), 200)

  const refresh = () =>
    oauth.refreshTokenGrantRequest(server, client, authentication, first.refresh_token ?? '', insecure)
  const second = await oauth.processRefreshTokenResponse(server, client, await refresh())
  assert.notEqual(second.refresh_token, first.refresh_token)
  assert.equal(await driver.statusOf(second.access_token), 200)

  const revoked = await oauth.revocationRequest(server, client, authentication, second.refresh_token ?? '', insecure)
  assert.deepEqual(await revoked.clone().json(), { message: 'Token revoked successfully' })
  await oauth.processRevocationResponse(revoked)
  assert.equal(await driver.statusOf(second.access_token), 401)
  const dead = oauth.refreshTokenGrantRequest(server, client, authentication, second.refresh_token ?? '', insecure)
  await assert.rejects(async () => oauth.processRefreshTokenResponse(server, client, await dead), {
    error: 'invalid_grant',
  })
})

test('openid-client: confidential by HTTP Basic, and a public app on a loopback port', async () => {
  const execute = [openid.allowInsecureRequests]
  const confidential = await openid.discovery(
    new URL(service.url),
    web.client_id,
    web.client_secret,
    openid.ClientSecretBasic(web.client_secret),
    { algorithm: 'oauth2', execute },
  )
  const go = async (config: openid.Configuration, redirect_uri: string) => {
    const pkceCodeVerifier = openid.randomPKCECodeVerifier()
    const expectedState = openid.randomState()
    const code_challenge = await openid.calculatePKCECodeChallenge(pkceCodeVerifier)
    const url = openid.buildAuthorizationUrl(config, {
      redirect_uri,
      scope: 'read',
      state: expectedState,
      code_challenge,
      code_challenge_method: 'S256',
    })
    const { left } = await driver.authorize(url.href, { browser })
    return openid.authorizationCodeGrant(config, left, { pkceCodeVerifier, expectedState })
  }
  const first = await go(confidential, web.redirect_uri)
  const second = await openid.refreshTokenGrant(confidential, first.refresh_token ?? '')
  await openid.tokenRevocation(confidential, second.access_token)
  assert.equal(await driver.statusOf(second.access_token), 401)

  await driver.client('cli', { redirect_uri: 'http://127.0.0.1/cb', native: true, isPublic: true })
  const native = await openid.discovery(new URL(service.url), 'cli', undefined, openid.None(), {
    algorithm: 'oauth2',
    execute,
  })
  const third = await go(native, 'http://127.0.0.1:49152/cb')
  assert.equal(await driver.statusOf(third.access_token), 200)
  assert.ok((await openid.refreshTokenGrant(native, third.refresh_token ?? '')).refresh_token)
})

test('the token response has exactly the specified members, and is not cached', async () => {
  const { status, headers, body } = await driver.exchange(web, await code())
  assert.equal(status, 200)
  assert.deepEqual(Object.keys(body).sort(), ['access_token', 'expires_in', 'refresh_token', 'scope', 'token_type'])
  assert.equal(body.token_type, 'Bearer')
  assert.match(headers.get('cache-control') ?? '', /no-store/)
  assert.match(headers.get('x-request-id') ?? '', /^req_/)
  assert.match(headers.get('x-response-time') ?? '', /^\d+ms$/)
  assert.equal(headers.get('access-control-allow-origin'), null)
  assert.equal(headers.get('set-cookie'), null)
})

test('a code that is used twice revokes what it gave, and says so', async () => {
  const used = await code()
  const { body: given } = await driver.exchange(web, used)
  const again = await driver.exchange(web, used)
  assert.equal(again.status, 400)
  assert.equal(again.body.error, 'invalid_grant')
  assert.equal(await driver.statusOf(given.access_token), 401)
  assert.equal((await driver.refresh(web, given.refresh_token)).body.error, 'invalid_grant')
  const [entry] = await service.sql<{
    detail: { reason: string }
  }>`select detail from audit where action = 'oauth_grant.revoked' order by id desc limit 1`
  assert.equal(entry?.detail.reason, 'code_replayed')
})

test('a code is of use only to its own app, with its own redirect URI, in its own minute', async () => {
  const fresh = await code()
  assert.equal((await driver.exchange(other, fresh, { redirect_uri: web.redirect_uri })).body.error, 'invalid_grant')
  assert.equal(
    (await driver.exchange(web, fresh, { redirect_uri: 'https://web.example/other' })).body.error,
    'invalid_grant',
  )
  assert.equal((await driver.exchange(web, fresh)).status, 200, 'a failed attempt of a stranger does not burn the code')
  assert.equal((await driver.exchange(web, 'nonsense')).body.error, 'invalid_grant')
  const late = await code()
  await service.sql`update oauth_artifact set expires_at = now() where kind = 'AuthorizationCode'`
  assert.equal((await driver.exchange(web, late)).body.error, 'invalid_grant')
})

test('PKCE cannot be downgraded: the verifier left out, another one, or one without a challenge', async () => {
  const code_verifier = 'v'.repeat(50)
  const challenge = {
    code_challenge: createHash('sha256').update(code_verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }
  const challenged = await code(challenge)
  assert.equal((await driver.exchange(web, challenged)).body.error, 'invalid_grant')
  assert.equal((await driver.exchange(web, challenged, { code_verifier: 'w'.repeat(50) })).body.error, 'invalid_grant')
  assert.equal((await driver.exchange(web, challenged, { code_verifier })).status, 200)
  assert.equal((await driver.exchange(web, await code(), { code_verifier })).body.error, 'invalid_grant')
})

test('apps authenticate in the form or by Basic, never both; faults are in the form of RFC 6749', async () => {
  const token = (body: Record<string, string>, headers: Record<string, string> = {}) =>
    driver.post('/oauth2/token', body, headers)
  const attempt = { grant_type: 'refresh_token', refresh_token: 'x' }
  const basic = (secret: string) => ({ authorization: `Basic ${Buffer.from(`web:${secret}`).toString('base64')}` })

  const wrong = await token({ ...attempt, client_id: 'web', client_secret: 'wrong' })
  assert.equal(wrong.status, 401)
  assert.equal(wrong.body.error, 'invalid_client')
  for (const client_id of ['nobody', 'nobody\u0000', 'x'.repeat(5000)]) {
    assert.equal(
      (await token({ ...attempt, client_id, client_secret: 'x' })).body.error,
      'invalid_client',
      client_id.slice(0, 10),
    )
  }
  assert.equal(
    (await token({ ...attempt, client_id: 'web' })).body.error,
    'invalid_client',
    'a confidential app without its secret',
  )
  const wrongBasic = await token(attempt, basic('wrong'))
  assert.equal(wrongBasic.status, 401)
  assert.match(wrongBasic.headers.get('www-authenticate') ?? '', /^Basic/)
  assert.equal((await token(attempt, basic(web.client_secret))).body.error, 'invalid_grant', 'authenticated')
  assert.equal(
    (await token({ ...attempt, client_id: 'web', client_secret: web.client_secret }, basic(web.client_secret))).body
      .error,
    'invalid_request',
  )

  const own = { client_id: 'web', client_secret: web.client_secret }
  assert.equal((await token(own)).body.error, 'invalid_request')
  assert.equal(
    (await token({ ...own, grant_type: 'password', username: 'a', password: 'b' })).body.error,
    'unsupported_grant_type',
  )
  assert.equal((await token({ ...own, grant_type: 'client_credentials' })).body.error, 'unsupported_grant_type')
  assert.equal((await token({ ...own, grant_type: 'authorization_code' })).body.error, 'invalid_request')
})

test('bodies that are no form, too large or ambiguous are invalid_request', async () => {
  const raw = async (body: string, type: string) => {
    const response = await fetch(`${service.url}/oauth2/token`, {
      method: 'POST',
      headers: { 'content-type': type },
      body,
    })
    return { status: response.status, body: (await response.json()) as { error: string } }
  }
  const own = new URLSearchParams({
    grant_type: 'refresh_token',
    client_id: 'web',
    client_secret: web.client_secret,
    refresh_token: 'x',
  }).toString()
  const form = 'application/x-www-form-urlencoded'
  for (const [name, answer] of [
    ['json', await raw(JSON.stringify(Object.fromEntries(new URLSearchParams(own))), 'application/json')],
    ['repeated', await raw(`${own}&grant_type=password`, form)],
    ['repeated client', await raw(`${own}&client_id=other`, form)],
    ['too large', await raw(`${own}&x=${'x'.repeat(60_000)}`, form)],
  ] as const) {
    assert.equal(answer.status, 400, name)
    assert.equal(answer.body.error, 'invalid_request', name)
  }
  const other_method = await fetch(`${service.url}/oauth2/token`)
  assert.equal(other_method.status, 405)
  assert.equal(other_method.headers.get('allow'), 'POST')
  assert.equal(((await other_method.json()) as { error: string }).error, 'invalid_request')
})

test('a refresh replaces the refresh token; scope may narrow for one access token, never widen', async () => {
  const first = await tokens()
  const narrowed = await driver.refresh(web, first.refresh_token, { scope: 'read' })
  assert.equal(narrowed.body.scope, 'read')
  const { body: permissions } = await service.send('GET', '/api/v1/auth/permissions', {
    token: narrowed.body.access_token,
  })
  assert.deepEqual(permissions.scopes, ['read'])
  assert.equal(
    (await driver.refresh(web, narrowed.body.refresh_token, { scope: 'read write agents:read' })).body.error,
    'invalid_scope',
  )
  const next = await driver.refresh(web, narrowed.body.refresh_token)
  assert.equal(next.status, 200, 'a refusal does not spend the token')
  assert.equal(next.body.scope, 'read write', 'the refresh token keeps its scope (RFC 6749 §6)')
  assert.equal((await driver.refresh(other, next.body.refresh_token)).body.error, 'invalid_grant')
  assert.equal(await driver.statusOf(next.body.access_token), 200, 'a stranger who presents the token ends nothing')
})

test('a refresh token that is used twice ends the grant, is audited and becomes an event of high severity', async () => {
  const first = await tokens()
  const { body: second } = await driver.refresh(web, first.refresh_token)
  const reuse = await driver.refresh(web, first.refresh_token)
  assert.equal(reuse.status, 400)
  assert.equal(reuse.body.error, 'invalid_grant')
  assert.equal(await driver.statusOf(first.access_token), 401)
  assert.equal(await driver.statusOf(second.access_token), 401)
  assert.equal((await driver.refresh(web, second.refresh_token)).body.error, 'invalid_grant')

  const request_id = reuse.headers.get('x-request-id')
  const [entry] = await service.sql<{ actor: string; org_id: string; detail: { reason: string } }>`
    select actor, org_id, detail from audit where action = 'oauth_grant.revoked' and request_id = ${request_id}`
  assert.equal(entry?.detail.reason, 'refresh_token_reused')
  assert.equal(entry?.actor, 'web')
  const [event] = await service.sql<{ data: any }>`
    select data from event where type = 'error.occurred' and org_id = ${entry?.org_id} and data->>'request_id' = ${request_id}`
  assert.equal(event?.data.error.severity, 'high')
  assert.equal(event?.data.error.code, 'refresh_token_reused')
  assert.equal(event?.data.user_id, service.owner.user_id)
})

test('tokens live as long as their grant, whatever becomes of the browser', async () => {
  const { refresh_token } = await tokens()
  await service.sql`delete from session`
  await service.sql`delete from oauth_artifact where kind not in ('AccessToken', 'RefreshToken')`
  assert.equal((await driver.refresh(web, refresh_token)).status, 200)
  browser = (await driver.authorize(driver.authorizeUrl(web, { scope: 'read write agents:read' }))).browser
})

test('a refresh token lives 30 days from its last use, and never longer than the year of its grant', async () => {
  const { refresh_token } = await tokens()
  await service.sql`update oauth_grant set created_at = now() - interval '364 days'`
  const { body, status } = await driver.refresh(web, refresh_token)
  assert.equal(status, 200)
  const hash = createHash('sha256').update(body.refresh_token).digest()
  const [row] = await service.sql<{ hours: number; session_hours: number }>`
    select extract(epoch from t.expires_at - now())::float8 / 3600 as hours, extract(epoch from g.expires_at - now())::float8 / 3600 as session_hours
    from oauth_artifact t join oauth_grant g on g.id = t.grant_id where t.id = ${hash}`
  assert.ok(row && row.hours > 23.9 && row.hours <= 24.1, String(row?.hours))
  assert.ok(row.session_hours > 23.9 && row.session_hours <= 24.1, String(row.session_hours))
  await service.sql`update oauth_grant set created_at = now() - interval '366 days'`
  assert.equal((await driver.refresh(web, body.refresh_token)).body.error, 'invalid_grant')
})

test('revoking: either token ends the grant, a stranger ends nothing, an unknown token is answered alike', async () => {
  const given = await tokens()
  assert.equal((await driver.revoke(web, 'never-issued')).status, 200)
  assert.equal((await driver.revoke(other, given.access_token)).status, 200)
  assert.equal(await driver.statusOf(given.access_token), 200)
  assert.equal(
    (await driver.post('/oauth2/revoke', { client_id: 'web', client_secret: web.client_secret })).body.error,
    'invalid_request',
  )
  assert.equal((await driver.revoke({ ...web, client_secret: 'wrong' }, given.access_token)).status, 401)
  const revoked = await driver.revoke(web, given.access_token, { token_type_hint: 'refresh_token' })
  assert.deepEqual(revoked.body, { message: 'Token revoked successfully' })
  assert.equal(await driver.statusOf(given.access_token), 401)
  assert.equal((await driver.refresh(web, given.refresh_token)).body.error, 'invalid_grant')
  assert.equal((await driver.revoke(web, given.refresh_token)).status, 200, 'twice is once')
})

test('a user who was disabled or has left the organization gets no more tokens', async () => {
  const { user_id } = await driver.user('leaver@example.com', 'seven grey herons')
  const person = { email: 'leaver@example.com', password: 'seven grey herons' }
  const first = await driver.tokens(web, {}, person)
  await service.sql`update app_user set disabled_at = now() where id = ${user_id}`
  assert.equal((await driver.refresh(web, first.refresh_token)).body.error, 'invalid_grant')
  assert.equal(await driver.statusOf(first.access_token), 401)
  await service.sql`update app_user set disabled_at = null where id = ${user_id}`
  const { body } = await driver.refresh(web, first.refresh_token)
  await service.sql`delete from member where user_id = ${user_id}`
  assert.equal((await driver.refresh(web, body.refresh_token)).body.error, 'invalid_grant')
})

test('nothing usable is stored: no code, token, cookie or secret is found in the database', async () => {
  const used = await code()
  const { body } = await driver.exchange(web, used)
  const tables = [
    'oauth_artifact',
    'oauth_grant',
    'oauth_client',
    'session',
    'service_secret',
    'audit',
    'login_attempt',
    'app_user',
  ]
  let dump = ''
  for (const table of tables) {
    const [row] = await service.sql
      .query(`select string_agg(t::text, ' ') as text from ${table} t`)
      .then(({ rows }) => rows)
    dump += row?.text ?? ''
  }
  const cookie = (browser.cookie('cadre_session') ?? '').split('.')[0] ?? ''
  for (const secret of [
    used,
    body.access_token,
    body.refresh_token,
    web.client_secret,
    service.owner.password,
    cookie,
  ]) {
    assert.ok(secret.length > 10 && !dump.includes(secret))
  }
  assert.ok(!dump.includes('"d":'), 'the signing key is encrypted')
})

test('a crash between spending and issuing undoes the spending', async () => {
  const { refresh_token } = await tokens()
  await service.sql.script(`
    create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
    create trigger refuse before insert on oauth_artifact for each row when (new.kind = 'AccessToken') execute function refuse()`)
  const broken = await driver.refresh(web, refresh_token)
  await service.sql.script('drop trigger refuse on oauth_artifact; drop function refuse()')
  assert.equal(broken.status, 500)
  assert.deepEqual(Object.keys(broken.body).sort(), ['error', 'error_description'])
  assert.equal(broken.body.error, 'server_error')
  const request_id = broken.headers.get('x-request-id')
  const event = await eventually(async () => {
    const [row] = await service.sql<{ org_id: string; data: any }>`
      select org_id, data from event where type = 'error.occurred' and data->>'request_id' = ${request_id}`
    return row
  })
  const { code, severity, affected_resources } = event.data.error
  assert.deepEqual(
    [event.org_id, event.data.user_id, code, severity, affected_resources[1]],
    [service.owner.org_id, service.owner.user_id, 'internal_error', 'critical', 'web'],
  )
  assert.equal((await driver.refresh(web, refresh_token)).status, 200)
})

test('a failure after tokens were created rolls everything back', async () => {
  const { refresh_token } = await tokens()
  await service.sql.script(`
    create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
    create trigger refuse before update on oauth_grant for each row execute function refuse()`)
  const broken = await driver.refresh(web, refresh_token)
  await service.sql.script('drop trigger refuse on oauth_grant; drop function refuse()')
  assert.equal(broken.status, 500)
  assert.equal(broken.body.error, 'server_error')
  assert.equal((await driver.refresh(web, refresh_token)).status, 200)
})

test('a database that does not answer in time is temporarily_unavailable, and spends nothing', async () => {
  const { refresh_token } = await tokens()
  const [lock, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = service.sql.begin(async (tx) => {
    await tx`select 1 from oauth_grant for update`
    held.resolve()
    await lock.promise
  })
  await held.promise
  const late = await driver.refresh(web, refresh_token)
  lock.resolve()
  await holding
  assert.equal(late.status, 503)
  assert.equal(late.body.error, 'temporarily_unavailable')
  assert.equal(late.headers.get('retry-after'), '1')
  assert.equal((await driver.refresh(web, refresh_token)).status, 200)
})

test('pages of listed origins may read the answers and their headers, others may not', async () => {
  const open = await startTestService({ CADRE_CORS_ORIGINS: 'https://spa.example' })
  try {
    const elsewhere = new OAuthDriver(open)
    const { client_id, client_secret } = await elsewhere.client('spa')
    const allowed = async (path: string, origin: string) => {
      const form = { grant_type: 'refresh_token', refresh_token: 'x', token: 'x', client_id, client_secret }
      const { headers } = await elsewhere.post(path, form, { origin })
      return ['access-control-allow-origin', 'access-control-expose-headers'].map((name) => headers.get(name))
    }
    // The rest of the service says which headers; here it is the same ones.
    const { headers } = await open.send('GET', '/api/v1/hello', { headers: { origin: 'https://spa.example' } })
    const exposed = headers.get('access-control-expose-headers')
    assert.match(exposed ?? '', /\bX-Request-ID\b.*\bRetry-After\b/)
    for (const path of ['/oauth2/token', '/oauth2/revoke']) {
      assert.deepEqual(await allowed(path, 'https://spa.example'), ['https://spa.example', exposed])
      assert.deepEqual(await allowed(path, 'https://evil.example'), [null, null])
    }
  } finally {
    await open.stop()
  }
})

test('expired rows are swept after a day, in batches, and nothing else is', async () => {
  const { sweepOAuth } = await import('./oauth.queries.ts')
  const { access_token, refresh_token } = await tokens()
  await service.sql`
    insert into oauth_artifact (kind, id, payload, expires_at)
    select 'AccessToken', decode(md5(n::text), 'hex'), '{}', now() - interval '25 hours' from generate_series(1, 1500) n`
  while ((await sweepOAuth(service.sql)) >= 1000) continue
  const [left] = await service.sql<{
    expired: number
  }>`select count(*) as expired from oauth_artifact where expires_at < now() - interval '1 day'`
  assert.equal(left?.expired, 0)
  assert.equal(await driver.statusOf(access_token), 200)
  await service.sql`update oauth_artifact set expires_at = now() - interval '1 hour' where kind = 'AccessToken'`
  await sweepOAuth(service.sql)
  const late = await service.send('GET', '/api/v1/auth/permissions', { token: access_token })
  assert.equal(late.body.error.code, 'expired_token', 'known for a day')
  assert.equal((await driver.refresh(web, refresh_token)).status, 200)
})
