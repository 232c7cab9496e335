import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { Browser, parseCookie } from '../../../../test/browser.ts'
import { localUrl, sender, startTestService, type TestService } from '../../../../test/harness.ts'
import { client, IdentityProvider, signInWith, ssoEnvironment } from '../../../../test/fakes/identity-provider.ts'
import { OAuthDriver } from '../../../../test/oauth.ts'

let service: TestService
let provider: IdentityProvider

before(async () => {
  provider = await IdentityProvider.start()
  service = await startTestService(ssoEnvironment({ okta: { provider, more: { JOIN_AS: 'member' } } }))
})
after(async () => {
  await service.stop()
  await provider.stop()
})
let people = 0
beforeEach(() => {
  provider.faults = {}
  const name = `person-${++people}`
  provider.person = { sub: `Sub-${people}`, email: `${name}@example.com`, email_verified: true, name }
})

const start = async (query: Record<string, string> = {}, browser = new Browser(service.url)) => {
  const page = await browser.get(`/api/v1/auth/sso/okta?${new URLSearchParams(query)}`)
  return { browser, page, to: new URL(page.headers.get('location') ?? 'about:blank') }
}
const userOf = async (browser: Browser): Promise<string> => {
  const { status, body } = await service.send('GET', '/api/v1/auth/user', { cookie: browser.cookieHeader('/') })
  assert.equal(status, 200, JSON.stringify(body))
  return body.id
}

test('a user who signed in once is known from then on, also under a new name', async () => {
  const first = await signInWith(service, 'okta', provider, { query: { return_to: '/projects?sort=name#top' } })
  assert.deepEqual([first.answer.status, first.answer.headers.get('location')], [303, '/projects?sort=name#top'])
  const user_id = await userOf(first.browser)
  provider.person = { ...provider.person, email: 'renamed@example.com', name: 'Renamed' }
  const again = await signInWith(service, 'okta', provider)
  assert.deepEqual([again.answer.status, again.answer.headers.get('location')], [303, '/'])
  assert.equal(await userOf(again.browser), user_id)
  const { body } = await service.send('GET', '/api/v1/auth/identities', { cookie: again.browser.cookieHeader('/') })
  assert.equal(body.identities[0].email, 'renamed@example.com')
})

test('a subject is compared as it is: another case is another person', async () => {
  const { browser } = await signInWith(service, 'okta', provider)
  provider.person = { ...provider.person, sub: provider.person.sub.toLowerCase(), email: 'other-case@example.com' }
  const other = await signInWith(service, 'okta', provider)
  assert.notEqual(await userOf(other.browser), await userOf(browser))
})

test('the provider is asked by the code flow with PKCE, a state and a nonce, all new every time', async () => {
  const [one, two] = [(await start()).to, (await start({ prompt: 'select_account' })).to]
  assert.equal(`${one.origin}${one.pathname}`, `${provider.issuer}/auth`)
  const { state, nonce, code_challenge, ...rest } = Object.fromEntries(one.searchParams)
  assert.deepEqual(rest, {
    client_id: client.id,
    response_type: 'code',
    redirect_uri: `${service.url}/api/v1/auth/sso/okta/callback`,
    scope: 'openid email profile',
    code_challenge_method: 'S256',
  })
  for (const [name, value = ''] of Object.entries({ state, nonce, code_challenge })) {
    assert.match(value, /^[\w-]{43}$/, name)
    assert.notEqual(two.searchParams.get(name), value, name)
  }
  assert.equal(two.searchParams.get('prompt'), 'select_account')
})

test('what belongs to an attempt is in a cookie that says nothing, for ten minutes and one return', async (t) => {
  const { page, browser, to } = await start({ return_to: '/projects' })
  const cookies = page.headers.getSetCookie().map(parseCookie)
  assert.deepEqual(
    cookies.map(({ name }) => name),
    ['cadre_sso_okta'],
  )
  assert.match(cookies[0]!.text, /; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/)
  const readable = Buffer.from(cookies[0]!.value, 'base64url').toString('latin1')
  for (const secret of [to.searchParams.get('state')!, to.searchParams.get('nonce')!, '/projects'])
    assert.ok(!readable.includes(secret))

  const callback = await provider.approve(to.href)
  const kept = [...browser.cookies]
  const answer = await browser.get(callback.href)
  assert.equal(answer.status, 303)
  assert.equal(browser.cookie('cadre_sso_okta'), undefined)
  assert.equal((await browser.get(callback.href)).status, 400, 'there is no second time')
  // A copied cookie holds a code that is spent.
  browser.cookies = kept
  assert.equal((await browser.get(callback.href)).status, 502)

  const late = await start()
  const tooLate = await provider.approve(late.to.href)
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 601_000 })
  assert.equal((await late.browser.get(tooLate.href)).status, 400)
})

test('the session is new, and that of the browser before ends', async () => {
  const { browser, answer } = await signInWith(service, 'okta', provider)
  const cookie = answer.headers.getSetCookie().find((text) => text.startsWith('cadre_session='))
  assert.match(cookie ?? '', /; Max-Age=2592000; Path=\/; HttpOnly; SameSite=Lax$/)
  const before = browser.cookieHeader('/')
  await signInWith(service, 'okta', provider, { browser })
  assert.notEqual(browser.cookieHeader('/'), before)
  assert.equal((await service.send('GET', '/api/v1/auth/session', { cookie: before })).status, 401)
  await userOf(browser)
})

test('under https cookies are Secure and no other host can plant one, and the way back is https', async (t) => {
  const https = await startTestService({
    CADRE_PUBLIC_URL: 'https://cadre.example',
    ...ssoEnvironment({ okta: { provider, more: { JOIN_AS: 'viewer' } } }),
  })
  t.after(() => https.stop())
  const send = sender(localUrl(https), https.owner.api_key)
  const started = await send('GET', '/api/v1/auth/sso/okta', { key: null })
  const [cookie = ''] = started.headers.getSetCookie()
  assert.match(cookie, /^__Host-cadre_sso_okta=[^;]+; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/)
  const callback = await provider.approve(started.headers.get('location') ?? '')
  assert.equal(`${callback.origin}${callback.pathname}`, 'https://cadre.example/api/v1/auth/sso/okta/callback')
  const back = await send('GET', callback.pathname + callback.search, { cookie: cookie.split(';')[0]! })
  assert.equal(back.status, 303)
  for (const text of back.headers.getSetCookie()) assert.match(text, /; Secure/)
})

test('a sign-in with a provider never ends at another site', async () => {
  for (const return_to of [
    'https://evil.example/',
    '//evil.example',
    '/\\evil.example',
    'javascript:alert(1)',
    '/"'.repeat(500),
  ]) {
    const { answer } = await signInWith(service, 'okta', provider, { query: { return_to } })
    assert.deepEqual([answer.status, answer.headers.get('location')], [303, '/'], return_to)
  }
  const { page } = await start({ return_to: `/${'x'.repeat(2000)}` })
  assert.equal(page.status, 400)
})

test('an authorization of an app goes on where it was, after signing in with a provider', async () => {
  const driver = new OAuthDriver(service)
  const app = await driver.client('notes')
  const browser = new Browser(service.url)
  const login = await browser.follow(await browser.get(driver.authorizeUrl(app)))
  assert.match(login.html, /to continue to <strong>The notes app<\/strong>/)
  const [, button = ''] = /<a class="button wide" href="([^"]+)">Continue with Okta<\/a>/.exec(login.html) ?? []
  const started = await browser.get(button.replaceAll('&amp;', '&'))
  const page = await browser.get((await provider.approve(started.headers.get('location') ?? '')).href)
  assert.equal(page.status, 200, 'a page in between, because what comes next may leave us')
  const consent = await browser.follow(page)
  assert.match(consent.html, /The notes app/)
  const { left } = await browser.follow(
    await browser.submit(consent, /^\/oauth2\/interaction\//, { decision: 'allow' }),
  )
  const { status, body } = await driver.exchange(app, left?.searchParams.get('code') ?? '')
  assert.equal(status, 200)
  const { body: user } = await service.send('GET', '/api/v1/auth/user', { token: body.access_token })
  assert.equal(user.name, provider.person.name)
})

test('an app that wants its user to sign in anew has the provider ask them too', async () => {
  const driver = new OAuthDriver(service)
  const app = await driver.client('bank')
  const { browser } = await signInWith(service, 'okta', provider)
  const login = await browser.follow(await browser.get(driver.authorizeUrl(app, { prompt: 'login' })))
  assert.match(login.html, /href="\/api\/v1\/auth\/sso\/okta\?return_to=[^"]+&amp;prompt=login"/)
  const wrong = await browser.submit(login, '/login', { email: 'unknown@example.com', password: 'wrong wrong wrong' })
  assert.match(wrong.html, /&amp;prompt=login"/)
})

test('the providers are listed, by name and with where to go', async () => {
  const { status, body } = await service.send('GET', '/api/v1/auth/sso', { key: null })
  assert.deepEqual(
    [status, body],
    [200, { providers: [{ name: 'okta', label: 'Okta', url: `${service.url}/api/v1/auth/sso/okta` }] }],
  )
  assert.match((await new Browser(service.url).get('/login')).html, /Continue with Okta/)
})

test('a provider that there is not is 404, for people as a page', async () => {
  for (const path of ['/api/v1/auth/sso/unknown', '/api/v1/auth/sso/unknown/callback', '/api/v1/auth/sso/OKTA']) {
    const { status, body } = await service.send('GET', path, { key: null })
    assert.deepEqual(
      [status, body.error.code, body.error.details.resource_type],
      [404, 'resource_not_found', 'sso_provider'],
    )
    const page = await new Browser(service.url).get(path)
    assert.equal(page.status, 404)
    assert.match(page.html, /There is no such identity provider\./)
  }
})

test('metadata is read once, keys every time: a provider that changes its keys is believed at once', async () => {
  await signInWith(service, 'okta', provider)
  const before = provider.requests.length
  await signInWith(service, 'okta', provider)
  provider.rotateKey()
  assert.equal((await signInWith(service, 'okta', provider)).answer.status, 303)
  const since = provider.requests.slice(before).filter((request) => !/auth|interaction/.test(request))
  assert.deepEqual(since, ['POST /token', 'GET /jwks', 'GET /me', 'POST /token', 'GET /jwks', 'GET /me'])
})

test('two who ask at once share one request for the metadata', async (t) => {
  const other = await startTestService(ssoEnvironment({ okta: { provider } }))
  t.after(() => other.stop())
  const before = provider.requests.length
  await Promise.all([1, 2, 3].map(() => new Browser(other.url).get('/api/v1/auth/sso/okta')))
  assert.deepEqual(provider.requests.slice(before), ['GET /.well-known/openid-configuration'])
})

test('a provider that tells everything in the ID token is asked for nothing more', async (t) => {
  const thick = await IdentityProvider.start({ thin: false })
  const other = await startTestService(
    ssoEnvironment({
      thick: { provider: thick, more: { JOIN_AS: 'viewer' } },
    }),
  )
  t.after(async () => {
    await other.stop()
    await thick.stop()
  })
  const { answer } = await signInWith(other, 'thick', thick)
  assert.equal(answer.status, 303)
  assert.ok(!thick.requests.includes('GET /me'))
  const [user] = await other.sql`select name, email, email_verified from app_user where email = 'ada@example.com'`
  assert.deepEqual(user, { name: 'Ada Lovelace', email: 'ada@example.com', email_verified: true })
})

test('the secret is sent as the metadata says, unless the operator says otherwise', async (t) => {
  const [usual, old, extended] = await Promise.all([1, 2, 3].map(() => IdentityProvider.start()))
  old!.faults = {
    metadata: (metadata) => ({ ...metadata, token_endpoint_auth_methods_supported: ['client_secret_post'] }),
  }
  const more = { CLIENT_AUTHENTICATION: 'post', CLIENT_ID: client.post_id }
  const providers = { usual: { provider: usual! }, old: { provider: old! }, told: { provider: extended!, more } }
  const other = await startTestService({ CADRE_SIGNUP: 'open', ...ssoEnvironment(providers) })
  t.after(async () => {
    await other.stop()
    await Promise.all([usual, old, extended].map((one) => one!.stop()))
  })
  for (const [name, { provider }] of Object.entries(providers)) {
    provider.person = { sub: name, email: `${name}@example.com`, email_verified: true }
    assert.equal((await signInWith(other, name, provider)).answer.status, 303)
  }
  assert.deepEqual(
    [usual, old, extended].map((one) => one!.authentications),
    [['basic'], ['post'], ['post']],
  )
})
