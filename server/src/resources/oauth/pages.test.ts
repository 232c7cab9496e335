import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Browser, type BrowserPage } from '../../../test/browser.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { OAuthDriver, type TestClient } from '../../../test/oauth.ts'

let service: TestService
let driver: OAuthDriver
let web: TestClient

before(async () => {
  service = await startTestService({ CADRE_PUBLIC_URL: '' })
  driver = new OAuthDriver(service)
  web = await driver.client('web')
  await driver.user('bob@example.com', 'seven grey herons')
})
after(() => service.stop())

/** A browser on the page where it is asked to let `client` in. */
async function asked(
  client: TestClient = web,
  changes: Record<string, string> = {},
): Promise<{ browser: Browser; page: BrowserPage; path: string }> {
  const browser = new Browser(service.url)
  const login = await browser.follow(await browser.get(driver.authorizeUrl(client, { prompt: 'consent', ...changes })))
  const page = await browser.follow(
    await browser.submit(login, '/login', { email: 'bob@example.com', password: 'seven grey herons' }),
  )
  return { browser, page, path: new URL(page.url).pathname }
}

/** What the page tells in its list of facts. */
const factsOf = ({ html }: BrowserPage): Record<string, string> =>
  Object.fromEntries([...html.matchAll(/<dt>([^<]*)<\/dt><dd>([^<]*)<\/dd>/g)].map(([, name, value]) => [name, value]))

const grants = async () => (await service.sql`select 1 from oauth_grant`).length

test('every page forbids scripts, frames, referrers, sniffing and caching', async () => {
  const { browser, page } = await asked()
  const pages = [
    page,
    await browser.get('/login'),
    await new Browser(service.url).get('/login'),
    await browser.get(driver.authorizeUrl(web, { client_id: 'nobody' })),
  ]
  for (const { url, headers, html } of pages) {
    const policy = headers.get('content-security-policy') ?? ''
    for (const part of ["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"])
      assert.ok(policy.includes(part), url)
    assert.ok(!policy.includes('unsafe'), url)
    assert.equal(headers.get('x-frame-options'), 'DENY')
    assert.equal(headers.get('referrer-policy'), 'no-referrer')
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.match(headers.get('cache-control') ?? '', /no-store/)
    assert.ok(!/<script|\son\w+=|style="/.test(html), url)
  }
})

test('the page says which app asks, for what, as whom and where the answer goes', async () => {
  const client = await driver.client('dashboard', { scopes: ['read', 'admin'] })
  const { page } = await asked(client, { scope: 'read admin' })
  for (const text of [
    'The dashboard app',
    'dashboard.example',
    'bob@example.com',
    'See projects, agents and organizations',
    'Do everything that you may do',
  ]) {
    assert.ok(page.html.includes(text), text)
  }
  assert.equal(factsOf(page)['Access to'], `${service.url}/api/v1`)
  const narrow = await asked(client, { scope: 'read', resource: `${service.url}/mcp` })
  assert.equal(factsOf(narrow.page)['Access to'], `${service.url}/mcp`)
  assert.ok(!page.html.includes('your own machine'))
  const native = await driver.client('native', { redirect_uri: 'http://127.0.0.1/cb', native: true })
  const machine = (await asked(native)).page
  assert.ok(machine.html.includes('your own machine'))
  assert.match(factsOf(machine)['Publisher host'] ?? '', /^none/)
})

test('an app of another organization is unverified, and its registered hosts are shown', async () => {
  const client = await driver.client('tracker')
  const uris = ['tracker', 'a', 'b', 'c', 'd'].map((host) => `https://${host}.example/cb`)
  await service.sql`update oauth_client set redirect_uris = ${[...uris, 'http://127.0.0.1/cb']} where client_id = 'tracker'`
  const strange = (await asked(client)).page
  assert.match(strange.html, /This app is unverified\..*My organization, an organization that you do not belong to/)
  assert.equal(factsOf(strange)['Publisher'], 'My organization (unverified)')
  assert.equal(factsOf(strange)['Publisher host'], 'tracker.example, a.example, b.example and 2 more')
  assert.equal(factsOf(strange)['Sends you to'], 'tracker.example')

  const own = new Browser(service.url)
  const login = await own.follow(await own.get(driver.authorizeUrl(client)))
  const { email, password } = service.owner
  const page = await own.follow(await own.submit(login, '/login', { email, password }))
  assert.equal(factsOf(page)['Publisher'], 'My organization (your organization)')
  assert.ok(!page.html.includes('unverified'))
})

test('what an app is called cannot change the page', async () => {
  const hostile = await driver.client('hostile')
  const name = `<script>alert(1)</script>"'><img src=x onerror=y>`
  await service.sql`update oauth_client set name = ${name} where client_id = 'hostile'`
  const { page } = await asked(hostile)
  assert.ok(!page.html.includes('<script') && !page.html.includes('<img'))
  assert.ok(page.html.includes('&lt;script&gt;'))
})

test('a decision without the token of its page, session and authorization is rejected', async () => {
  const before = await grants()
  const one = await asked()
  const two = await asked()
  const tokenOf = ({ html }: BrowserPage) =>
    /action="\/oauth2\/interaction[^>]*>\s*<input type="hidden" name="token" value="([^"]+)"/.exec(html)?.[1] ?? ''
  const org_id = /name="org_id" value="([^"]+)"/.exec(one.page.html)?.[1] ?? ''
  assert.ok(tokenOf(one.page) && org_id)
  for (const token of ['', 'nope', tokenOf(two.page), tokenOf(one.page).slice(1)]) {
    const refused = await one.browser.post(one.path, { token, org_id, decision: 'allow' })
    assert.equal(refused.status, 403, token)
    assert.equal(refused.headers.get('location'), null)
  }
  assert.equal((await one.browser.post(one.path, { org_id, decision: 'allow' })).status, 403)
  assert.equal(await grants(), before)
  assert.ok((await one.browser.follow(await one.browser.submit(one.page, one.path, { decision: 'allow' }))).left)
})

test('a decision that another site sends is refused', async () => {
  const { browser, page, path } = await asked()
  const token =
    /action="\/oauth2\/interaction[^>]*>\s*<input type="hidden" name="token" value="([^"]+)"/.exec(page.html)?.[1] ?? ''
  for (const site of ['cross-site', 'same-site']) {
    assert.equal(
      (
        await browser.post(
          path,
          { token, decision: 'allow' },
          { 'sec-fetch-site': site, origin: 'https://evil.example' },
        )
      ).status,
      403,
      site,
    )
  }
})

test('another browser cannot finish an authorization, even with the session of its user', async () => {
  const { browser, page, path } = await asked()
  const thief = new Browser(service.url)
  thief.cookies = browser.cookies.filter(({ name }) => name === 'cadre_session')
  assert.equal((await thief.get(path)).status, 400)
  assert.equal((await thief.submit(page, path, { decision: 'allow' })).status, 400)
  assert.equal((await thief.get(path.replace('interaction', 'authorize'))).status, 400)
})

test('an authorization belongs to its path: the cookie of one does not open another', async () => {
  const one = await asked()
  const two = await asked()
  const cookie = one.browser.cookies
    .filter(({ name }) => name.startsWith('cadre_oauth_interaction'))
    .map(({ name, value }) => `${name}=${value}`)
    .join('; ')
  const response = await fetch(`${service.url}${two.path}`, { redirect: 'manual', headers: { cookie } })
  assert.equal(response.status, 400)
})

test('a user of several organizations says in which the app may work', async () => {
  const { user_id, org_id } = await driver.user('carol@example.com', 'seven grey herons')
  await service.sql`insert into member (org_id, user_id, role) values (${service.owner.org_id}, ${user_id}, 'viewer')`
  const browser = new Browser(service.url)
  const login = await browser.follow(await browser.get(driver.authorizeUrl(web)))
  const page = await browser.follow(
    await browser.submit(login, '/login', { email: 'carol@example.com', password: 'seven grey herons' }),
  )
  assert.match(page.html, /<select id="org_id"/)
  const { left } = await browser.follow(await browser.submit(page, /interaction/, { decision: 'allow', org_id }))
  const { body } = await driver.exchange(web, left?.searchParams.get('code') ?? '')
  const [grant] = await service.sql<{ org_id: string }>`select org_id from oauth_grant where user_id = ${user_id}`
  assert.equal(grant?.org_id, org_id)
  const { body: permissions } = await service.send('GET', '/api/v1/auth/permissions', { token: body.access_token })
  assert.equal(permissions.permissions.projects.write, true, 'the owner of her own organization')

  const strange = await browser.follow(await browser.get(driver.authorizeUrl(web, { prompt: 'consent' })))
  const refused = await browser.submit(strange, /interaction/, {
    decision: 'allow',
    org_id: (await driver.user('dave@example.com', 'seven grey herons')).org_id,
  })
  assert.equal(refused.status, 403)
})

test('switching accounts signs out and comes back to the same authorization', async () => {
  const { browser, page, path } = await asked()
  const login = await browser.follow(await browser.submit(page, '/logout', {}))
  assert.match(login.url, /\/login\?/)
  assert.equal(browser.cookie('cadre_session'), undefined)
  const back = await browser.follow(
    await browser.submit(login, '/login', { email: service.owner.email, password: service.owner.password }),
  )
  assert.equal(new URL(back.url).pathname, path)
  assert.ok(back.html.includes(service.owner.email))
})

test('the decision is answered by a redirect to the app, which the policy of the page names', async () => {
  for (const decision of ['allow', 'deny']) {
    const { browser, page, path } = await asked()
    const { origin } = new URL(web.redirect_uri)
    assert.match(page.headers.get('content-security-policy') ?? '', new RegExp(`form-action 'self' ${origin};`))
    const decided = await browser.submit(page, path, { decision })
    assert.equal(decided.status, 303)
    const location = new URL(decided.headers.get('location') ?? '')
    assert.equal(`${location.origin}${location.pathname}`, web.redirect_uri)
    assert.equal(location.searchParams.has(decision === 'allow' ? 'code' : 'error'), true)
    assert.equal(location.searchParams.has('state'), true)
  }
})

test('a session that ends before the decision takes the decision with it', async () => {
  const { browser, page, path } = await asked()
  await service.sql`delete from session`
  assert.equal((await browser.submit(page, path, { decision: 'allow' })).status, 403)
})
