import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { makeKey, makePerson, makeSession, type Person } from '../../../test/actors.ts'
import { Browser, type BrowserPage } from '../../../test/browser.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { OAuthDriver } from '../../../test/oauth.ts'

const email = 'ada@example.com'
const password = 'seven grey herons'

let test: TestService
let owner: Person
before(async () => {
  test = await shareTestService()
  owner = await makePerson(test)
  await test.sql`update app_user set name = 'Grace <Hopper>' where id = ${owner.user_id}`
  await test.sql`update organization set name = 'Engines & <Sons>' where id = ${owner.org_id}`
  await new OAuthDriver(test).user(email, password)
})
after(() => test.stop())
beforeEach(() => test.sql`delete from rate_window`)

/** A new link into the owner's organization: its path, and its identifier. */
async function invite(body: object = {}): Promise<{ path: string; id: string; token: string }> {
  const { key } = await makeKey(test, owner, ['admin'])
  const reply = await test.send('POST', '/api/v1/auth/invitations', { key, body: { role: 'member', ...body } })
  assert.equal(reply.status, 201, JSON.stringify(reply.body))
  const { pathname } = new URL(reply.body.url)
  return { path: pathname, id: reply.body.id, token: pathname.split('/').at(-1)! }
}

/** A browser with a signed-in user. */
async function signedIn(person: Person): Promise<Browser> {
  const browser = new Browser(test.url)
  const { cookie } = await makeSession(test, person)
  const [name = '', value = ''] = cookie.split('=')
  browser.cookies.push({ name, value, path: '/', expired: false, text: cookie })
  return browser
}

const mainOf = ({ html }: BrowserPage): string => html.slice(html.indexOf('<main>'))
const roleOf = async ({ user_id }: Pick<Person, 'user_id'>): Promise<string | undefined> => {
  const [row] = await test.sql<{ role: string }>`
    select role from member where org_id = ${owner.org_id} and user_id = ${user_id}`
  return row?.role
}

describe("an invitation's page", () => {
  it("an invitation's page shows the organization, the role, what it allows and who invites, escaped", async () => {
    const { path } = await invite({ role: 'viewer' })
    const page = await new Browser(test.url).get(path)
    assert.equal(page.status, 200)
    assert.match(page.html, /<h1>Join Engines &amp; &lt;Sons&gt;<\/h1>/)
    assert.match(page.html, /<strong>Grace &lt;Hopper&gt;<\/strong> invites you\./)
    assert.match(page.html, /<dd>viewer<\/dd>/)
    assert.match(page.html, /View projects, agents and members/)
    assert.match(page.html, /\d{4}-\d\d-\d\d \d\d:\d\d UTC/)
  })

  it("an invitation's page does not leak its address: no referrer, no cache, no scripts, no frames", async () => {
    const { path } = await invite()
    for (const at of [path, `/invite/${'x'.repeat(43)}`]) {
      const { headers } = await new Browser(test.url).get(at)
      assert.equal(headers.get('referrer-policy'), 'no-referrer')
      assert.equal(headers.get('cache-control'), 'no-store')
      assert.equal(headers.get('x-frame-options'), 'DENY')
      assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'.*frame-ancestors 'none'/)
    }
  })

  it("an invitation's page is the same 404 for a used, expired, revoked or unknown link", async () => {
    const [used, expired, revoked] = [await invite(), await invite(), await invite()]
    await test.sql`update invitation set accepted_at = now(), accepted_by = ${owner.user_id} where id = ${used.id}`
    await test.sql`update invitation set expires_at = now() where id = ${expired.id}`
    await test.sql`update invitation set revoked_at = now() where id = ${revoked.id}`
    const browsers = [new Browser(test.url), await signedIn(await makePerson(test))]
    const pages: string[] = []
    for (const browser of browsers) {
      for (const path of [
        used.path,
        expired.path,
        revoked.path,
        `/invite/${'x'.repeat(43)}`,
        '/invite/%00',
        '/invite/x',
      ]) {
        const page = await browser.get(path)
        assert.equal(page.status, 404, path)
        pages.push(mainOf(page))
      }
    }
    assert.equal(new Set(pages).size, 1)
    assert.match(pages[0]!, /This invitation does not work/)
  })

  it("an invitation's page has the rate limit of signing in for each IP address", async () => {
    const limited = await startTestService({ CADRE_RATE_LIMITS_SCALE: '0.05' })
    try {
      const browser = new Browser(limited.url)
      const statuses: number[] = []
      for (let i = 0; i < 8; i++) statuses.push((await browser.get(`/invite/${'x'.repeat(43)}`)).status)
      assert.equal(statuses[0], 404)
      assert.ok(statuses.includes(429), statuses.join())
    } finally {
      await limited.stop()
    }
  })
})

describe('a signed-in user', () => {
  it('a signed-in user joins with one button, and sees a welcome then and on every reload', async () => {
    const { path, id } = await invite({ role: 'admin' })
    const person = await makePerson(test)
    const browser = await signedIn(person)
    const page = await browser.get(path)
    assert.match(page.html, new RegExp(`${person.user_id}@example\\.com`))
    const answer = await browser.submit(page, path, {})
    assert.deepEqual([answer.status, answer.headers.get('location')], [303, path])
    for (let i = 0; i < 2; i++) {
      const welcome = await browser.get(path)
      assert.equal(welcome.status, 200)
      assert.match(welcome.html, /Welcome to Engines/)
      assert.match(welcome.html, /as <strong>admin<\/strong>/)
    }
    assert.equal(await roleOf(person), 'admin')
    assert.equal((await (await signedIn(owner)).get(path)).status, 404, 'other users see nothing')
    const [entry] = await test.sql<{ actor: string; credential_kind: string; org_id: string }>`
      select actor, credential_kind, org_id from audit where action = 'invitation.accepted' and target = ${id}`
    assert.deepEqual(entry, { actor: person.user_id, credential_kind: 'session', org_id: owner.org_id })
  })

  it('a signed-in user who is already a member sees that, and neither page nor form changes the role', async () => {
    const { path } = await invite({ role: 'owner' })
    const viewer = await makePerson(test, 'viewer', owner.org_id)
    const browser = await signedIn(viewer)
    const page = await browser.get(path)
    assert.match(page.html, /You are already a member/)
    assert.ok(!page.html.includes('<form'))
    const person = await makePerson(test)
    const joining = await signedIn(person)
    const offered = await joining.get(path)
    await test.sql`insert into member (org_id, user_id, role) values (${owner.org_id}, ${person.user_id}, 'viewer')`
    const answer = await joining.submit(offered, path, {})
    assert.equal(answer.status, 409)
    assert.match(answer.html, /You are already a member/)
    assert.deepEqual([await roleOf(viewer), await roleOf(person)], ['viewer', 'viewer'])
    assert.equal((await new Browser(test.url).get(path)).status, 200, 'the link still works')
  })

  it('a signed-in user with another address than the invited one cannot join, and sees how to switch', async () => {
    const { path } = await invite({ email: 'grace@example.com' })
    const person = await makePerson(test)
    const browser = await signedIn(person)
    const page = await browser.get(path)
    assert.match(page.html, /This invitation is for <strong>grace@example\.com<\/strong>/)
    assert.throws(() => browser.submit(page, path, {}), /no form goes to/)
    const out = await browser.submit(page, '/logout', {})
    assert.equal(out.headers.get('location'), `/login?${new URLSearchParams({ return_to: path })}`)
    assert.equal(browser.cookie('cadre_session'), undefined)
    assert.equal(await roleOf(person), undefined)
  })

  it('a signed-in user can join only by the form of the own session for this link', async () => {
    const [one, other] = [await invite(), await invite()]
    const person = await makePerson(test)
    const browser = await signedIn(person)
    const tokenIn = ({ html }: BrowserPage): string =>
      [...html.matchAll(/name="token" value="([^"]+)"/g)].map(([, token = '']) => token).at(-1)!
    const token = tokenIn(await browser.get(one.path))
    const strangers = tokenIn(await (await signedIn(await makePerson(test))).get(one.path))
    const ofOther = tokenIn(await browser.get(other.path))
    const tries: [Record<string, string>, Record<string, string>][] = [
      [{}, {}],
      [{ token: strangers }, {}],
      [{ token: ofOther }, {}],
      [{ token: `${token}x` }, {}],
      [{ token }, { 'sec-fetch-site': 'cross-site' }],
      [{ token }, { 'sec-fetch-site': 'same-site' }],
    ]
    for (const [fields, headers] of tries) {
      assert.equal((await browser.post(one.path, fields, headers)).status, 403)
      assert.equal(await roleOf(person), undefined)
    }
    assert.equal((await browser.post(one.path, { token }, { 'sec-fetch-site': 'same-origin' })).status, 303)
    assert.equal(await roleOf(person), 'member')
  })
})

describe('a visitor without a session', () => {
  it('a visitor without a session signs in, comes back, and joins', async () => {
    const { path } = await invite()
    const browser = new Browser(test.url)
    const page = await browser.get(path)
    const [, href = ''] = /<a class="button wide" href="(\/login\?[^"]+)">I have an account/.exec(page.html) ?? []
    const login = await browser.get(href.replaceAll('&amp;', '&'))
    assert.match(login.html, /to continue to <strong>Engines &amp; &lt;Sons&gt;<\/strong>/)
    const back = await browser.follow(await browser.submit(login, '/login', { email, password }))
    assert.equal(new URL(back.url).pathname, path)
    const welcome = await browser.follow(await browser.submit(back, path, {}))
    assert.match(welcome.html, /Welcome to Engines/)
  })

  it('a visitor without a session creates an account and joins in one step, also while sign-up is by invitation only', async () => {
    const { path } = await invite({ role: 'viewer' })
    const browser = new Browser(test.url)
    assert.equal((await browser.get('/signup')).status, 404, 'there is no other way')
    const page = await browser.get(path)
    const faulty = await browser.submit(page, `${path}/account`, {
      name: 'Bo',
      email: 'not an address',
      password: 'short',
    })
    assert.equal(faulty.status, 400)
    assert.match(faulty.html, /id="email-fault">E-mail address must be a valid e-mail address/)
    assert.match(faulty.html, /value="Bo"/)
    const weak = await browser.submit(faulty, `${path}/account`, {
      name: 'Bo',
      email: 'bo@example.com',
      password: 'password1234',
    })
    assert.match(weak.html, /id="password-fault">Password is one of the most common passwords\./)
    const taken = await browser.submit(weak, `${path}/account`, { name: 'Bo', email, password: 'nine black swans' })
    assert.equal(taken.status, 409)
    assert.match(taken.html, /An account with this e-mail address already exists\./)
    const made = await browser.submit(taken, `${path}/account`, {
      name: 'Bo',
      email: 'bo@example.com',
      password: 'nine black swans',
    })
    assert.equal(made.status, 303)
    const welcome = await browser.follow(made)
    assert.match(welcome.html, /Welcome to Engines/)
    const cookie = browser.cookieHeader('/')
    const { body: user } = await test.send('GET', '/api/v1/auth/user', { cookie })
    assert.deepEqual(
      user.organizations.map(({ id, role }: { id: string; role: string }) => [id, role]),
      [[owner.org_id, 'viewer']],
    )
  })

  it('a visitor without a session cannot change the address that the invitation names', async () => {
    const { path } = await invite({ email: 'only.this@example.com' })
    const browser = new Browser(test.url)
    const page = await browser.get(path)
    assert.match(page.html, /<input id="email"[^>]*value="only\.this@example\.com"[^>]*readonly/)
    const form = { name: 'Eve', password: 'nine black swans' }
    const answer = await browser.submit(page, `${path}/account`, { ...form, email: 'eve@example.com' })
    assert.equal(answer.status, 400)
    assert.match(answer.html, /E-mail address must be the address that was invited/)
    assert.deepEqual(await test.sql`select 1 from app_user where email = 'eve@example.com'`, [])
    const made = await browser.submit(answer, `${path}/account`, { ...form, email: 'only.this@example.com' })
    assert.equal(made.status, 303)
  })

  it('a visitor without a session cannot create an account with a form of another browser or link', async () => {
    const [one, other] = [await invite(), await invite()]
    const browser = new Browser(test.url)
    const tokenIn = ({ html }: BrowserPage): string => /name="token" value="([^"]+)"/.exec(html)?.[1] ?? ''
    const ofOther = tokenIn(await browser.get(other.path))
    const attackers = tokenIn(await new Browser(test.url).get(one.path))
    const form = { name: 'Eve', email: 'eve.forged@example.com', password: 'nine black swans' }
    for (const token of [ofOther, attackers, '', 'x'])
      assert.equal((await browser.post(`${one.path}/account`, { ...form, token })).status, 403)
    assert.deepEqual(await test.sql`select 1 from app_user where email = 'eve.forged@example.com'`, [])
  })
})

it('a browser that uses another name of this machine is redirected to the name that cookies are for', async () => {
  const { path } = await invite()
  const here = new URL(path, test.url)
  const elsewhere = new URL(here)
  elsewhere.hostname = here.hostname === 'localhost' ? '127.0.0.1' : 'localhost'
  const response = await fetch(elsewhere, { redirect: 'manual' })
  assert.deepEqual([response.status, response.headers.get('location')], [303, here.href])
})
