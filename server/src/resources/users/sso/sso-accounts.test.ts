import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { makePerson, ownerOf } from '../../../../test/actors.ts'
import { Browser } from '../../../../test/browser.ts'
import { startTestService, type TestService } from '../../../../test/harness.ts'
import {
  IdentityProvider,
  signInWith,
  ssoEnvironment,
  type SsoJourney,
} from '../../../../test/fakes/identity-provider.ts'
import { OAuthDriver } from '../../../../test/oauth.ts'

const password = 'seven grey herons'

let provider: IdentityProvider
/** Accounts by invitation, by open sign-up, and for users whom the company's provider knows. */
let closed: TestService
let open: TestService
let company: TestService

before(async () => {
  provider = await IdentityProvider.start()
  closed = await startTestService(ssoEnvironment({ okta: { provider } }))
  open = await startTestService({ CADRE_SIGNUP: 'open', ...ssoEnvironment({ okta: { provider } }) })
  const more = { LABEL: 'Company ID', JOIN_AS: 'viewer', ALLOWED_DOMAINS: 'example.com,example.org' }
  company = await startTestService(ssoEnvironment({ okta: { provider, more } }))
})
after(async () => {
  for (const service of [closed, open, company]) await service.stop()
  await provider.stop()
})
let people = 0
let email = ''
beforeEach(() => {
  const name = `person-${++people}`
  email = `${name}@example.com`
  provider.person = { sub: name, email, email_verified: true, name: 'Grace Hopper' }
})

const signIn = (service: TestService, journey?: SsoJourney) => signInWith(service, 'okta', provider, journey)
const get = async (service: TestService, browser: Browser, path = '/api/v1/auth/user') => {
  const { status, body } = await service.send('GET', path, { cookie: browser.cookieHeader('/') })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
const findUser = async (service: TestService) => {
  const [user] = await service.sql<{ id: string; email_verified: boolean; name: string }>`
    select id, name, email_verified, password_hash from app_user where email = ${provider.person.email ?? ''}`
  return user
}
const actionsOf = async (service: TestService, user_id: string) => {
  const rows = await service.sql<{ action: string; detail: object }>`
    select action, detail from audit where actor = ${user_id} or target = ${user_id} order by id`
  return rows.map(({ action }) => action)
}

describe('where accounts are made by invitation', () => {
  it('an external identity alone creates no account', async () => {
    const { browser, answer } = await signIn(closed)
    assert.equal(answer.status, 403)
    assert.match(answer.html, /Accounts are by invitation only\./)
    assert.match(answer.html, /href="\/api\/v1\/auth\/sso\/okta\?return_to=%2F&amp;prompt=select_account"/)
    assert.equal(browser.cookie('cadre_session'), undefined)
    assert.equal(await findUser(closed), undefined)
    const [entry] = await closed.sql<{ detail: object }>`select detail from audit order by id desc limit 1`
    assert.deepEqual(entry?.detail, { method: 'sso', provider: 'okta', reason: 'accounts_by_invitation' })
  })

  it('an invitation with an external identity creates an account, and is used up', async () => {
    const { body } = await closed.send('POST', '/api/v1/auth/invitations', { body: { role: 'admin' } })
    const { pathname } = new URL(body.url)
    const page = await new Browser(closed.url).get(pathname)
    const [, button = ''] = /href="([^"]+)">Continue with Okta</.exec(page.html) ?? []
    const query = Object.fromEntries(new URL(button.replaceAll('&amp;', '&'), closed.url).searchParams)
    assert.deepEqual(query, { return_to: pathname, invitation: pathname.split('/').at(-1) })
    const { browser, answer } = await signIn(closed, { query })
    assert.deepEqual([answer.status, answer.headers.get('location')], [303, pathname])
    const { organizations } = await get(closed, browser)
    assert.deepEqual(
      organizations.map(({ id, role }: Record<string, string>) => [id, role]),
      [[closed.owner.org_id, 'admin']],
    )
    assert.match((await browser.get(pathname)).html, /Welcome to/)

    provider.person = { ...provider.person, sub: 'late', email: 'late@example.com' }
    const late = await signIn(closed, { query })
    assert.equal(late.answer.status, 404)
    assert.equal(await findUser(closed), undefined, 'not even an account without an organization')
  })

  it('an invitation for another address creates no account', async () => {
    const { body } = await closed.send('POST', '/api/v1/auth/invitations', {
      body: { role: 'member', email: 'other@example.com' },
    })
    const query = { invitation: body.url.split('/').at(-1) }
    assert.equal((await signIn(closed, { query })).answer.status, 403)
    assert.equal(await findUser(closed), undefined)
    const made_up = await signIn(closed, { query: { invitation: 'made-up' } })
    assert.equal(made_up.answer.status, 404)
  })

  it('an address that is taken is revealed only to its owner', async () => {
    await new OAuthDriver(closed).user(email, password)
    const owner = await signIn(closed)
    assert.equal(owner.answer.status, 409)
    assert.match(owner.answer.html, /An account with the e-mail address/)
    provider.person = { ...provider.person, email_verified: false }
    const taken = await signIn(closed)
    provider.person = { ...provider.person, email: 'free@example.com' }
    const free = await signIn(closed)
    const withoutId = (html: string): string => html.replace(/req_\w+/, '')
    assert.deepEqual([taken.answer.status, free.answer.status], [403, 403])
    assert.equal(withoutId(taken.answer.html), withoutId(free.answer.html))

    const { body } = await closed.send('POST', '/api/v1/auth/invitations', {
      body: { role: 'member', email: 'other@example.com' },
    })
    for (const invitation of ['made-up', body.url.split('/').at(-1)]) {
      const [one, other] = [email, 'free@example.com'].map((email) => ({ ...provider.person, email }))
      provider.person = one!
      const taken = (await signIn(closed, { query: { invitation } })).answer
      provider.person = other!
      const free = (await signIn(closed, { query: { invitation } })).answer
      assert.ok(taken.status === 404 || taken.status === 403, String(taken.status))
      assert.deepEqual([taken.status, withoutId(taken.html)], [free.status, withoutId(free.html)])
    }
  })
})

describe('where sign-up is open', () => {
  it('an account is created from the data of the provider, with a new organization', async () => {
    const { browser } = await signIn(open)
    const { name, email_verified, organizations, id } = await get(open, browser)
    assert.deepEqual([name, email_verified], ['Grace Hopper', true])
    assert.deepEqual(
      organizations.map(({ name, role }: Record<string, string>) => [name, role]),
      [["Grace Hopper's organization", 'owner']],
    )
    assert.deepEqual(await actionsOf(open, id), ['user.created', 'identity.linked', 'user.signed_in'])
    const entries = await open.sql<{ action: string; after: object; detail: object; org_id: string | null }>`
      select action, after, detail from audit where actor = ${id} and action <> 'user.created' order by id`
    const { sub } = provider.person
    assert.deepEqual(entries, [
      {
        action: 'identity.linked',
        after: { provider: 'okta', issuer: provider.issuer, subject: sub, email },
        detail: {},
      },
      { action: 'user.signed_in', after: null, detail: { method: 'sso', provider: 'okta' } },
    ])
  })

  it('an address that the provider has not verified is not verified here', async () => {
    for (const email_verified of [false, undefined, 'yes' as never, 1 as never]) {
      provider.person = {
        sub: `unsure-${++people}`,
        email: `unsure-${people}@example.com`,
        name: 'Unsure',
        ...(email_verified === undefined ? {} : { email_verified }),
      }
      await signIn(open)
      assert.equal((await findUser(open))?.email_verified, false, String(email_verified))
    }
    provider.person = { sub: 'as-text', email: 'as-text@example.com', email_verified: 'true' as never }
    await signIn(open)
    assert.deepEqual([(await findUser(open))?.email_verified, (await findUser(open))?.name], [true, 'as-text'])
  })

  it('no account is created without an address or with an invalid one', async () => {
    for (const wrong of [undefined, '', 'nobody', 'a b@example.com', `${'x'.repeat(250)}@example.com`, 42 as never]) {
      provider.person = {
        sub: `no-mail-${++people}`,
        ...(wrong === undefined ? {} : { email: wrong }),
        email_verified: true,
      }
      const { answer } = await signIn(open)
      assert.equal(answer.status, 403, String(wrong))
      assert.match(answer.html, /Okta did not share your e-mail address/)
    }
  })

  it('of two concurrent first sign-ins one creates the account and the other finds it', async () => {
    const browsers = [new Browser(open.url), new Browser(open.url), new Browser(open.url)]
    const callbacks = await Promise.all(
      browsers.map(async (browser) => {
        const { headers } = await browser.get('/api/v1/auth/sso/okta')
        return provider.approve(headers.get('location') ?? '')
      }),
    )
    const answers = await Promise.all(browsers.map((browser, i) => browser.get(callbacks[i]!.href)))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [303, 303, 303],
    )
    const ids = await Promise.all(browsers.map(async (browser) => (await get(open, browser)).id))
    assert.equal(new Set(ids).size, 1)
  })

  it('the address of another account signs no one in, whichever side verified it', async () => {
    const { user_id } = await new OAuthDriver(open).user(email, password)
    for (const email_verified of [true, false]) {
      provider.person = { ...provider.person, email: email.toUpperCase(), email_verified }
      const { browser, answer } = await signIn(open)
      assert.equal(answer.status, 409)
      assert.match(answer.html, /href="\/login\?return_to=%2Faccount%2Fsign-in"/)
      assert.equal(browser.cookie('cadre_session'), undefined)
    }
    assert.deepEqual(await open.sql`select 1 from identity where user_id = ${user_id}`, [])
    const { callback } = await prepare()
    const { status, body } = await open.send('GET', callback.path, { cookie: callback.cookie })
    assert.deepEqual([status, body.error.code, body.error.details.reason], [409, 'resource_conflict', 'email_taken'])
  })

  /** About to come back, as a program. */
  async function prepare() {
    const browser = new Browser(open.url)
    const { headers } = await browser.get('/api/v1/auth/sso/okta')
    const url = await provider.approve(headers.get('location') ?? '')
    return { callback: { path: url.pathname + url.search, cookie: browser.cookieHeader('/') } }
  }
})

describe("a company's own provider", () => {
  it("a company's own provider makes every user it knows a member of the first organization", async () => {
    await makePerson(company)
    const { browser } = await signIn(company)
    const { id, organizations } = await get(company, browser)
    assert.deepEqual(
      organizations.map(({ id, role }: Record<string, string>) => [id, role]),
      [[company.owner.org_id, 'viewer']],
    )
    assert.deepEqual(await actionsOf(company, id), [
      'member.added',
      'user.created',
      'identity.linked',
      'user.signed_in',
    ])
  })

  it("a company's own provider does not bring back a removed member", async () => {
    const { browser } = await signIn(company)
    const { id } = await get(company, browser)
    assert.equal((await company.send('DELETE', `/api/v1/auth/members/${id}`)).status, 200)
    const again = await signIn(company)
    assert.equal(again.answer.status, 303)
    assert.deepEqual((await get(company, again.browser)).organizations, [])
  })

  it("a company's own provider signs in people of its domains only, known or not, and only with a verified address", async () => {
    const { browser } = await signIn(company)
    const { id } = await get(company, browser)
    for (const change of [
      { email: 'person@example.net' },
      { email: 'person@sub.example.com' },
      { email: 'person@example.com.evil.example' },
      { email: 'example.com@evil.example' },
      { email_verified: false },
    ]) {
      const known = provider.person
      for (const sub of [known.sub, `stranger-${++people}`]) {
        provider.person = { ...known, ...change, sub }
        const { answer } = await signIn(company)
        assert.equal(answer.status, 403, JSON.stringify(change))
        assert.match(
          answer.html,
          /Only people with a verified e-mail address at example\.com or example\.org may sign in with Company ID\./,
        )
      }
      provider.person = known
    }
    const [last] = await company.sql<{ target: string; detail: object }>`
      select target, detail from audit where target = ${id} and action = 'user.sign_in_failed' order by id desc limit 1`
    assert.deepEqual(last?.detail, { method: 'sso', provider: 'okta', reason: 'domain_not_allowed' })
    provider.person = { ...provider.person, email: 'Person@Example.ORG' }
    assert.equal((await signIn(company)).answer.status, 303)
  })
})

describe('an account', () => {
  it('a disabled account cannot sign in', async () => {
    await signIn(open)
    await open.sql`update app_user set disabled_at = now() where email = ${email}`
    const { browser, answer } = await signIn(open)
    assert.equal(answer.status, 403)
    assert.match(answer.html, /This account is disabled/)
    assert.equal(browser.cookie('cadre_session'), undefined)
  })

  it('an account without a password cannot sign in with one, and can set one within 15 minutes after signing in', async () => {
    const { browser } = await signIn(open)
    const cookie = browser.cookieHeader('/')
    const login = (tried: string) =>
      open.send('POST', '/api/v1/auth/login', { key: null, body: { email, password: tried } })
    assert.equal((await login('')).status, 400)
    assert.equal((await login(password)).status, 401)
    const change = (body: object) => open.send('PUT', '/api/v1/auth/password', { cookie, body })

    await open.sql`update session set created_at = now() - interval '16 minutes'`
    const old = await change({ new_password: password })
    assert.deepEqual([old.status, old.body.error.code], [403, 'insufficient_permissions'])
    assert.match(old.body.error.message, /^Sign in again first/)
    await open.sql`update session set created_at = now() - interval '14 minutes'`
    assert.equal((await change({ new_password: 'short' })).status, 400)
    assert.equal((await change({ new_password: password })).status, 200)
    assert.equal((await login(password)).status, 200)
    // From now on the sign-in alone is not enough.
    const { status, body } = await change({ new_password: 'nine black swans' })
    assert.deepEqual(
      [status, body.error.details[0].field, body.error.details[0].code],
      [400, 'current_password', 'required'],
    )
  })

  it('the address of an account becomes verified when a provider has verified the same address', async () => {
    const { browser } = await signIn(open)
    const { id } = await get(open, browser)
    await open.sql`update app_user set email_verified = false where id = ${id}`
    provider.person = { ...provider.person, email: 'another@example.com' }
    await signIn(open)
    const isVerified = async () =>
      (await open.sql<{ email_verified: boolean }>`select email_verified from app_user where id = ${id}`)[0]
        ?.email_verified
    assert.equal(await isVerified(), false)
    provider.person = { ...provider.person, email: email.toUpperCase() }
    await signIn(open)
    assert.equal(await isVerified(), true)
    assert.ok((await actionsOf(open, id)).includes('user.updated'))
  })
})

describe('where groups of the provider give roles', () => {
  let grouped: TestService
  before(async () => {
    const more = { GROUP_ROLES: 'platform=admin, developers=member, staff=viewer' }
    grouped = await startTestService(ssoEnvironment({ okta: { provider, more } }))
  })
  after(() => grouped.stop())
  const roleOf = async (browser: Browser) => (await get(grouped, browser)).organizations.map(({ role }: any) => role)
  const withGroups = async (...groups: string[]): Promise<SsoJourneyResult> => {
    provider.person = { ...provider.person, groups }
    return signIn(grouped)
  }
  type SsoJourneyResult = Awaited<ReturnType<typeof signIn>>

  it('the highest role by groups applies at the first and every later sign-in', async () => {
    const first = await withGroups('staff', 'developers', 'unknown')
    assert.deepEqual(await roleOf(first.browser), ['member'])
    const { id } = await get(grouped, first.browser)
    assert.deepEqual(await roleOf((await withGroups('platform')).browser), ['admin'])
    assert.deepEqual(await roleOf((await withGroups('staff')).browser), ['viewer'])
    assert.deepEqual(await roleOf((await withGroups('unknown')).browser), ['viewer'])
    const actions = await actionsOf(grouped, id)
    assert.equal(actions.filter((action) => action === 'member.updated').length, 2)
  })

  it('the role by groups also applies at the sign-in that links an account by its password', async () => {
    const { user_id } = await new OAuthDriver(grouped).user(email, password)
    await grouped.sql`update app_user set email_verified = true where id = ${user_id}`
    await grouped.sql`delete from member where user_id = ${user_id}`
    const { org_id } = ownerOf(grouped)
    await grouped.sql`insert into member (org_id, user_id, role) values (${org_id}, ${user_id}, 'admin')`
    const { browser, answer } = await withGroups('staff')
    assert.equal((await browser.submit(answer, '/sso/confirm', { password })).status, 303)
    assert.deepEqual(await roleOf(browser), ['viewer'])
  })

  it('a provider without groups changes no role, and a new user in none of the groups does not join', async () => {
    const { browser } = await withGroups('developers')
    const known = provider.person
    delete provider.person.groups
    assert.deepEqual(await roleOf((await signIn(grouped)).browser), ['member'])
    assert.deepEqual(await roleOf(browser), ['member'])
    provider.person = { ...known, sub: `stranger-${++people}`, email: `stranger-${people}@example.com`, groups: ['x'] }
    const stranger = await signIn(grouped)
    assert.equal(stranger.answer.status, 403)
    assert.equal(await findUser(grouped), undefined)
  })

  it('owners keep their role, and a removed member does not come back', async () => {
    const { browser } = await withGroups('developers')
    const { id } = await get(grouped, browser)
    await grouped.sql`update member set role = 'owner' where user_id = ${id}`
    assert.deepEqual(await roleOf((await withGroups('staff')).browser), ['owner'])
    await grouped.sql`update member set role = 'member' where user_id = ${id}`
    assert.equal((await grouped.send('DELETE', `/api/v1/auth/members/${id}`)).status, 200)
    assert.deepEqual(await roleOf((await withGroups('platform')).browser), [])
  })
})
