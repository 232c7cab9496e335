import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as oauth from 'oauth4webapi'
import { Browser } from '../../../test/browser.ts'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { OAuthDriver, type TestClient } from '../../../test/oauth.ts'

let service: TestService
let driver: OAuthDriver
let web: TestClient
let cli: TestClient
/** A browser in which the owner is signed in and has let `web` in. */
let known: Browser

before(async () => {
  service = await shareTestService()
  driver = new OAuthDriver(service)
  web = await driver.client('web')
  cli = await driver.client('cli', { redirect_uri: 'http://127.0.0.1/cb', native: true, isPublic: true })
  known = (await driver.authorize(driver.authorizeUrl(web, { scope: 'read write agents:read' }))).browser
})
after(() => service.stop())

test('the metadata of RFC 8414 is found, accepted by a client library and free of OpenID Connect', async () => {
  const issuer = new URL(service.url)
  const response = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', [oauth.allowInsecureRequests]: true })
  const metadata = await oauth.processDiscoveryResponse(issuer, response.clone())
  assert.equal(metadata.authorization_endpoint, `${service.url}/oauth2/authorize`)
  assert.equal(metadata.token_endpoint, `${service.url}/oauth2/token`)
  assert.equal(metadata.revocation_endpoint, `${service.url}/oauth2/revoke`)
  assert.deepEqual(metadata.code_challenge_methods_supported, ['S256'])
  assert.deepEqual(metadata.response_types_supported, ['code'])
  const text = await response.text()
  for (const foreign of ['openid', 'id_token', 'jwks', 'subject_types', 'claims'])
    assert.ok(!text.includes(foreign), foreign)
})

test('the protected resource names its authorization server (RFC 9728)', async () => {
  for (const path of ['', '/api/v1']) {
    const { status, body } = await service.send('GET', `/.well-known/oauth-protected-resource${path}`, { key: null })
    assert.equal(status, 200)
    assert.equal(body.resource, `${service.url}${path}`)
    assert.deepEqual(body.authorization_servers, [service.url])
  }
})

test('the protected resource of MCP names the scopes that its clients ask for, and not full access', async () => {
  const path = '/.well-known/oauth-protected-resource/mcp'
  const { body } = await service.send('GET', path, { key: null })
  assert.deepEqual(body.scopes_supported, ['agents:read', 'tasks:write'])
})

test('a request cannot choose the address by which the service is known', async () => {
  const headers = {
    host: 'evil.example',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'https',
    forwarded: 'host=evil.example',
  }
  const { body } = await service.send('GET', '/.well-known/oauth-authorization-server', { key: null, headers })
  assert.ok(!JSON.stringify(body).includes('evil.example'))
  const response = await fetch(driver.authorizeUrl(web), { redirect: 'manual', headers: { ...headers, host: 'x' } })
  assert.ok(!JSON.stringify([...response.headers]).includes('evil.example'))
})

test('a missing parameter or a scope that cannot be given goes back to the app as an error', async () => {
  const errorOf = async (client: TestClient, changes: Record<string, string | undefined>) => {
    const response = await driver.ask(client, changes)
    assert.equal(response.status, 303, JSON.stringify(changes))
    return new URL(response.headers.get('location') ?? '')
  }
  for (const missing of ['response_type', 'scope', 'state']) {
    const back = await errorOf(web, { [missing]: undefined })
    assert.equal(back.origin + back.pathname, web.redirect_uri)
    assert.equal(back.searchParams.get('error'), 'invalid_request', missing)
    assert.equal(back.searchParams.get('iss'), service.url)
    assert.equal(back.searchParams.get('state'), missing === 'state' ? null : 'st-1')
  }
  assert.equal((await errorOf(web, { scope: 'read nonsense' })).searchParams.get('error'), 'invalid_scope')
  assert.equal((await errorOf(web, { scope: 'openid' })).searchParams.get('error'), 'invalid_scope')
  assert.equal(
    (await errorOf(web, { scope: 'admin' })).searchParams.get('error'),
    'invalid_scope',
    'known, but not registered for this app',
  )
  assert.equal((await errorOf(web, { prompt: 'none' })).searchParams.get('error'), 'login_required')
})

test('a response type of the implicit grant is refused in the query of the redirect URI, as one of no grant is', async () => {
  const paged = await driver.client('paged', { redirect_uri: 'https://paged.example/cb?page=1' })
  for (const client of [web, paged])
    for (const response_type of ['token', 'id_token token', 'nonsense']) {
      const response = await driver.ask(client, { response_type })
      const back = new URL(response.headers.get('location') ?? '')
      const told = Object.fromEntries(back.searchParams)
      assert.deepEqual([response.status, back.hash], [303, ''], back.href)
      assert.ok(told.error_description)
      assert.deepEqual(told, {
        ...(client === paged ? { page: '1' } : {}),
        error: 'unsupported_response_type',
        error_description: told.error_description,
        state: 'st-1',
        iss: service.url,
      })
    }
})

test('PKCE: plain is refused, public apps must, a short challenge is refused', async () => {
  const errorOf = async (client: TestClient, changes: Record<string, string>) =>
    new URL((await driver.ask(client, changes)).headers.get('location') ?? '').searchParams
  const native = { ...cli, redirect_uri: 'http://127.0.0.1:5000/cb' }
  assert.equal(
    (await errorOf(web, { code_challenge: 'x'.repeat(43), code_challenge_method: 'plain' })).get('error'),
    'invalid_request',
  )
  assert.equal((await errorOf(web, { code_challenge: 'x'.repeat(43) })).get('error'), 'invalid_request')
  assert.equal(
    (await errorOf(web, { code_challenge: 'short', code_challenge_method: 'S256' })).get('error'),
    'invalid_request',
  )
  assert.match((await errorOf(native, {})).get('error_description') ?? '', /PKCE/)
})

test('an unknown app or redirect URI is a 400 and never a redirect', async () => {
  const refused = async (changes: Record<string, string | undefined>, error: string, client = web) => {
    const response = await driver.ask(client, changes)
    assert.equal(response.status, 400, JSON.stringify(changes))
    assert.equal(response.headers.get('location'), null)
    assert.equal(((await response.json()) as { error: string }).error, error, JSON.stringify(changes))
  }
  await refused({ client_id: undefined }, 'invalid_request')
  await refused({ client_id: 'nobody' }, 'invalid_client')
  await refused({ client_id: 'unknown\u0000' }, 'invalid_request')
  await refused({ redirect_uri: undefined }, 'invalid_request')
  const tricks = [
    'https://evil.example/cb',
    'https://web.example/cb/',
    'https://web.example/cb/more',
    'https://web.example/cb?x=1',
    'https://web.example/cb?',
    'https://web.example/cb#f',
    'https://web.example:8443/cb',
    'https://web.example:443/cb',
    'https://web.example/CB',
    'https://WEB.example/cb',
    'HTTPS://web.example/cb',
    'http://web.example/cb',
    'https://user@web.example/cb',
    'https://web.example@evil.example/cb',
    'https://web.example.evil.example/cb',
    'https://evil.example\\@web.example/cb',
    'https://web.example\\.evil.example/cb',
    'https://web.example/cb/../evil',
    'https://web.example/cb/%2e%2e/evil',
    'https://web.example/cb%00',
    'https://web.example/cb%0d%0aX: y',
    'https://wеb.example/cb',
    'https://xn--wb-7kc.example/cb',
    '//web.example/cb',
    '/cb',
    ' https://web.example/cb',
    'https://web.example/cb ',
    'javascript:alert(1)',
    'data:text/html,x',
  ]
  for (const redirect_uri of tricks) await refused({ redirect_uri }, 'invalid_redirect_uri')
  await refused({ redirect_uri: 'http://127.0.0.1:5000/cb/x' }, 'invalid_redirect_uri', cli)
  await refused({ redirect_uri: 'http://localhost:5000/cb' }, 'invalid_redirect_uri', cli)
  await refused({ redirect_uri: 'http://127.0.0.1.evil.example/cb' }, 'invalid_redirect_uri', cli)
})

test('a repeated parameter gives no code', async () => {
  for (const [name, value] of [
    ['redirect_uri', 'https://evil.example/cb'],
    ['client_id', 'cli'],
    ['state', 'two'],
    ['scope', 'read'],
  ] as const) {
    const page = await known.follow(
      await known.get(`${driver.authorizeUrl(web)}&${new URLSearchParams({ [name]: value })}`),
    )
    const onward = page.left?.href ?? ''
    assert.ok(!onward.includes('code=') && !onward.includes('evil'), `${name}: ${onward}`)
    if (name === 'redirect_uri' || name === 'client_id') assert.equal(page.status, 400, name)
  }
})

test('a person sees a page where a program sees JSON, and neither runs anything', async () => {
  const page = await new Browser(service.url).get(
    driver.authorizeUrl(web, { redirect_uri: 'https://evil.example/<script>' }),
  )
  assert.equal(page.status, 400)
  assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
  assert.match(page.headers.get('content-security-policy') ?? '', /default-src 'none'.*frame-ancestors 'none'/)
  assert.ok(!page.html.includes('<script'))
  assert.match(page.html, /Error <code>invalid_redirect_uri<\/code><br>Request <code>req_/)
  assert.match(page.html, /It got no access/)
})

test('parameters that OAuth does not know are ignored, a response mode too', async () => {
  const url = driver.authorizeUrl(web, {
    nonce: 'n',
    max_age: '0',
    request: 'x',
    request_uri: 'https://evil.example',
    response_mode: 'form_post',
    claims: '{',
  })
  const { left } = await driver.authorize(url, { browser: known })
  assert.equal(left.origin + left.pathname, web.redirect_uri)
  assert.ok(left.searchParams.get('code'))
})

test('signing in, deciding, coming back: 303 with code, state and iss', async () => {
  const browser = new Browser(service.url)
  const started = await browser.get(driver.authorizeUrl(web, { prompt: 'consent' }))
  assert.equal(started.status, 303)
  const { left, pages } = await driver.authorize(driver.authorizeUrl(web, { prompt: 'consent' }), { browser })
  assert.deepEqual(pages, ['login', 'consent'])
  assert.equal(left.origin + left.pathname, web.redirect_uri)
  assert.deepEqual([...left.searchParams.keys()].sort(), ['code', 'iss', 'state'])
  assert.equal(left.searchParams.get('state'), 'st-1')
  assert.equal(left.searchParams.get('iss'), service.url)
})

test('a denied consent redirects to the app with access_denied and is not remembered', async () => {
  const fresh = await driver.client('refused')
  for (let i = 0; i < 2; i++) {
    const { left, pages } = await driver.authorize(driver.authorizeUrl(fresh), { browser: known, decision: 'deny' })
    assert.deepEqual(pages, ['consent'])
    assert.equal(left.searchParams.get('error'), 'access_denied')
    assert.equal(left.searchParams.get('state'), 'st-1')
    assert.equal(left.searchParams.get('iss'), service.url)
  }
  const grants = await service.sql`select 1 from oauth_grant where client_id = 'refused'`
  assert.equal(grants.length, 0)
})

test('consent is remembered for confidential apps: asked again only for more, or when the app wants it', async () => {
  const asked = async (changes: Record<string, string>) =>
    (await driver.authorize(driver.authorizeUrl(again, changes), { browser: known })).pages
  const again = await driver.client('again')
  assert.deepEqual(await asked({ scope: 'read' }), ['consent'])
  assert.deepEqual(await asked({ scope: 'read' }), [])
  assert.deepEqual(await asked({ scope: 'read write' }), ['consent'])
  assert.deepEqual(await asked({ scope: 'write' }), [])
  assert.deepEqual(await asked({ scope: 'read', prompt: 'consent' }), ['consent'])
})

test('users of a public app are asked every time', async () => {
  const challenge = {
    code_challenge: 'A'.repeat(43),
    code_challenge_method: 'S256',
    redirect_uri: 'http://127.0.0.1:5000/cb',
  }
  for (let i = 0; i < 2; i++) {
    const { left, pages } = await driver.authorize(driver.authorizeUrl(cli, challenge), { browser: known })
    assert.deepEqual(pages, ['consent'])
    assert.equal(left.port, '5000', 'a native app may use any port of a loopback address')
  }
})

test('prompt=login asks for the password again, also with a session', async () => {
  const browser = new Browser(service.url)
  await driver.authorize(driver.authorizeUrl(web), { browser })
  const { pages } = await driver.authorize(driver.authorizeUrl(web, { prompt: 'login' }), { browser })
  assert.deepEqual(pages, ['login'])
  const { pages: later } = await driver.authorize(driver.authorizeUrl(web), { browser })
  assert.deepEqual(later, [])
})

test('several authorizations at once in one browser do not disturb each other, not even by different people', async () => {
  await driver.user('bob@example.com', 'seven grey herons')
  const browser = new Browser(service.url)
  const first = await browser.follow(await browser.get(driver.authorizeUrl(web, { state: 'one' })))
  const second = await browser.follow(await browser.get(driver.authorizeUrl(web, { state: 'two' })))
  const finish = async (page: typeof first, email: string, password: string) => {
    let at: typeof first = await browser.follow(await browser.submit(page, '/login', { email, password }))
    if (!at.left) at = await browser.follow(await browser.submit(at, /interaction/, { decision: 'allow' }))
    return at.left
  }
  const one = await finish(first, service.owner.email, service.owner.password)
  const two = await finish(second, 'bob@example.com', 'seven grey herons')
  assert.equal(one?.searchParams.get('state'), 'one')
  assert.equal(two?.searchParams.get('state'), 'two')
  const whose = async (code: string | null | undefined) => {
    const { body } = await driver.exchange(web, code ?? '')
    return (await service.send('GET', '/api/v1/auth/user', { token: body.access_token })).body.name
  }
  assert.equal(await whose(one?.searchParams.get('code')), 'Owner')
  assert.equal(await whose(two?.searchParams.get('code')), 'bob')
})

test('HEAD is answered like GET, without a body', async () => {
  for (const path of ['/.well-known/oauth-authorization-server', '/.well-known/oauth-protected-resource', '/login']) {
    const response = await fetch(`${service.url}${path}`, { method: 'HEAD' })
    assert.equal(response.status, 200, path)
    assert.equal(await response.text(), '')
  }
  const started = await fetch(driver.authorizeUrl(web), { method: 'HEAD', redirect: 'manual' })
  assert.equal(started.status, 303)
})

test('an internal error of an authorization is a page without internal details', async () => {
  await service.sql.script('alter table oauth_client rename to hidden')
  const page = await new Browser(service.url).get(driver.authorizeUrl(web))
  await service.sql.script('alter table hidden rename to oauth_client')
  assert.equal(page.status, 500)
  assert.match(page.html, /Something went wrong/)
  assert.ok(!page.html.includes('oauth_client'))
})

test('an authorization that has expired says so on a page', async () => {
  const browser = new Browser(service.url)
  const page = await browser.get(driver.authorizeUrl(web))
  await service.sql`update oauth_artifact set expires_at = now() - interval '1 second' where kind = 'Interaction'`
  const late = await browser.get(page.headers.get('location') ?? '')
  assert.equal(late.status, 400)
  assert.match(late.html, /expired/)
  assert.match(late.headers.get('content-security-policy') ?? '', /frame-ancestors 'none'/)
})
