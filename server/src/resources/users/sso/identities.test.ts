import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { Browser, parseCookie, type BrowserPage } from '../../../../test/browser.ts'
import { eventually, startTestService, type Reply, type TestService } from '../../../../test/harness.ts'
import { IdentityProvider, signInWith, ssoEnvironment } from '../../../../test/fakes/identity-provider.ts'
import { OAuthDriver } from '../../../../test/oauth.ts'
import { deleteIdentity } from './identities.queries.ts'

const password = 'seven grey herons'

let service: TestService
let okta: IdentityProvider
let google: IdentityProvider

before(async () => {
  okta = await IdentityProvider.start()
  google = await IdentityProvider.start()
  const env = ssoEnvironment({ okta: { provider: okta }, google: { provider: google } })
  service = await startTestService({ CADRE_SIGNUP: 'open', ...env })
})
after(async () => {
  await service.stop()
  await okta.stop()
  await google.stop()
})
let people = 0
let email = ''
beforeEach(async () => {
  await service.sql`delete from login_attempt`
  email = `person-${++people}@example.com`
  okta.person = { sub: `okta-${people}`, email, email_verified: true, name: 'Ada' }
  google.person = { sub: `google-${people}`, email, email_verified: true, name: 'Ada' }
})

/** A user with a password, signed in. */
async function signedIn(address = email): Promise<{ browser: Browser; user_id: string }> {
  const { user_id } = await new OAuthDriver(service).user(address, password)
  const browser = new Browser(service.url)
  await browser.submit(await browser.get('/login'), '/login', { email: address, password })
  return { browser, user_id }
}
const api = (browser: Browser, method: string, path: string, body?: object): Promise<Reply> =>
  service.send(method, `/api/v1/auth/${path}`, {
    cookie: browser.cookieHeader('/'),
    ...(body === undefined ? {} : { body }),
  })
const identitiesOf = async (user_id: string) =>
  (
    await service.sql<{ subject: string }>`select subject from identity where user_id = ${user_id} order by created_at`
  ).map(({ subject }) => subject)
const makeOld = (browser: Browser) =>
  api(browser, 'GET', 'session').then(
    ({ body }) => service.sql`update session set created_at = now() - interval '16 minutes' where id = ${body.id}`,
  )
const userOf = async (browser: Browser): Promise<string> => (await api(browser, 'GET', 'user')).body.id
const actionsOf = async (user_id: string): Promise<string[]> => {
  const rows = await service.sql<{ action: string }>`
    select action from audit where actor = ${user_id} and action like 'identity.%' order by id`
  return rows.map(({ action }) => action)
}

/** Asks to link by the API, and goes where the answer says. */
async function link(
  browser: Browser,
  provider: IdentityProvider,
  name: string,
  body: object = {},
): Promise<BrowserPage> {
  const { status, headers, body: answer } = await api(browser, 'POST', `sso/${name}/link`, body)
  assert.equal(status, 200, JSON.stringify(answer))
  browser.cookies.push(...headers.getSetCookie().map(parseCookie))
  return browser.get((await provider.approve(answer.authorization_url)).href)
}

describe('a signed-in user who links an external identity', () => {
  it('a signed-in user who links an external identity can sign in with it from then on', async () => {
    const { browser, user_id } = await signedIn()
    const answer = await link(browser, okta, 'okta', { return_to: '/settings' })
    assert.deepEqual([answer.status, answer.headers.get('location')], [303, '/settings'])
    assert.equal(await userOf(browser), user_id, 'the session goes on')
    assert.deepEqual((await api(browser, 'GET', 'identities')).body.has_password, true)
    const again = await signInWith(service, 'okta', okta)
    assert.equal(await userOf(again.browser), user_id)
    assert.deepEqual(await actionsOf(user_id), ['identity.linked'])
  })

  it('an identity can be linked whatever its address, and linking it again changes nothing', async () => {
    const { browser, user_id } = await signedIn()
    okta.person = { ...okta.person, email: 'elsewhere@example.net', email_verified: false }
    assert.equal((await link(browser, okta, 'okta')).status, 303)
    assert.equal((await link(browser, okta, 'okta')).status, 303)
    assert.deepEqual(await identitiesOf(user_id), [okta.person.sub])
    assert.deepEqual(await actionsOf(user_id), ['identity.linked'])
    assert.equal((await api(browser, 'GET', 'user')).body.email_verified, false)
  })

  it('linking an identity verifies the address of the account if the provider has verified the same address', async () => {
    const { browser } = await signedIn()
    await link(browser, okta, 'okta')
    assert.equal((await api(browser, 'GET', 'user')).body.email_verified, true)
  })

  it('linking an external identity requires the password or a recent sign-in', async () => {
    const { browser, user_id } = await signedIn()
    await makeOld(browser)
    const refused = await api(browser, 'POST', 'sso/okta/link')
    assert.deepEqual([refused.status, refused.body.error.code], [403, 'insufficient_permissions'])
    assert.match(refused.body.error.message, /^Give your password, or sign in again/)
    const wrong = await api(browser, 'POST', 'sso/okta/link', { current_password: 'not the password' })
    assert.deepEqual([wrong.status, wrong.body.error.details[0].field], [400, 'current_password'])
    const [entry] = await service.sql<{ detail: object }>`
      select detail from audit where target = ${user_id} and action = 'user.sign_in_failed'`
    assert.deepEqual(entry?.detail, { method: 'password', during: 'identity_link' })
    assert.equal((await link(browser, okta, 'okta', { current_password: password })).status, 303)
  })

  it('wrong passwords at linking an identity are limited as at signing in', async () => {
    const { browser } = await signedIn()
    for (let i = 0; i < 5; i++)
      assert.equal((await api(browser, 'POST', 'sso/okta/link', { current_password: `wrong ${i}` })).status, 400)
    assert.equal((await api(browser, 'POST', 'sso/okta/link', { current_password: password })).status, 429)
  })

  it('an identity that is linked with another user cannot be linked', async () => {
    const first = await signInWith(service, 'okta', okta)
    const { browser, user_id } = await signedIn(`other-${email}`)
    const answer = await link(browser, okta, 'okta')
    assert.equal(answer.status, 409)
    assert.match(answer.html, /This account at Okta is connected with another account here\./)
    assert.deepEqual(await identitiesOf(user_id), [])
    assert.deepEqual(await identitiesOf(await userOf(first.browser)), [okta.person.sub])
  })

  it('an identity cannot be linked for another session, nor after the session has ended', async () => {
    const { browser, user_id } = await signedIn()
    const { body, headers } = await api(browser, 'POST', 'sso/okta/link')
    const [attempt = ''] = headers.getSetCookie().map((text) => text.split(';')[0])
    const callback = await okta.approve(body.authorization_url)
    const stranger = await signedIn(`stranger-${email}`)
    const path = callback.pathname + callback.search
    const asStranger = await service.send('GET', path, { cookie: `${attempt}; ${stranger.browser.cookieHeader('/')}` })
    assert.equal(asStranger.status, 403)
    assert.deepEqual([await identitiesOf(user_id), await identitiesOf(stranger.user_id)], [[], []])

    const again = await api(browser, 'POST', 'sso/okta/link')
    const late = await okta.approve(again.body.authorization_url)
    const [kept = ''] = again.headers.getSetCookie().map((text) => text.split(';')[0])
    const cookie = `${kept}; ${browser.cookieHeader('/')}`
    await api(browser, 'POST', 'logout')
    assert.equal((await service.send('GET', late.pathname + late.search, { cookie })).status, 403)
    assert.deepEqual(await identitiesOf(user_id), [])
  })

  it('an identity cannot be linked from another site', async () => {
    const { browser } = await signedIn()
    const headers = { 'sec-fetch-site': 'cross-site' }
    const options = { cookie: browser.cookieHeader('/'), headers }
    assert.equal((await service.send('POST', '/api/v1/auth/sso/okta/link', options)).status, 403)
  })

  it('a user can link up to twenty identities', async () => {
    const { browser, user_id } = await signedIn()
    await service.sql`
      insert into identity (id, issuer, subject, user_id)
      select 'ident_' || n, 'https://id.example.com', ${user_id} || n, ${user_id} from generate_series(1, 20) n`
    const answer = await link(browser, okta, 'okta')
    assert.equal(answer.status, 409)
    assert.equal((await identitiesOf(user_id)).length, 20)
  })
})

describe('an identity is unlinked', () => {
  it('an unlinked identity no longer signs anyone in', async () => {
    const { browser, user_id } = await signedIn()
    await link(browser, okta, 'okta')
    const { body } = await api(browser, 'GET', 'identities')
    const [identity] = body.identities
    const deleted = await api(browser, 'DELETE', `identities/${identity.id}`)
    assert.deepEqual([deleted.status, deleted.body], [200, { message: 'Identity unlinked', identity_id: identity.id }])
    assert.equal((await api(browser, 'DELETE', `identities/${identity.id}`)).status, 404)
    assert.deepEqual(await identitiesOf(user_id), [])
    assert.deepEqual(await actionsOf(user_id), ['identity.linked', 'identity.unlinked'])
    const again = await signInWith(service, 'okta', okta)
    assert.match(again.answer.html, /Enter its password once/)
    assert.equal(again.browser.cookie('cadre_session'), undefined)
  })

  it('the last way to sign in cannot be unlinked', async () => {
    const { browser } = await signInWith(service, 'okta', okta)
    const user_id = await userOf(browser)
    const [first] = (await api(browser, 'GET', 'identities')).body.identities
    const refused = await api(browser, 'DELETE', `identities/${first.id}`)
    assert.deepEqual(
      [refused.status, refused.body.error.code, refused.body.error.details.reason],
      [409, 'resource_conflict', 'last_way_to_sign_in'],
    )
    // One of a provider that is not there any more is no way to sign in.
    await service.sql`
      insert into identity (id, issuer, subject, user_id) values (${`ident_${user_id}`}, 'https://gone.example', 'x', ${user_id})`
    assert.equal((await api(browser, 'DELETE', `identities/${first.id}`)).status, 409)
    await link(browser, google, 'google')
    assert.equal((await api(browser, 'DELETE', `identities/${first.id}`)).status, 200)
  })

  it('of the last two identities unlinked concurrently one stays', async () => {
    const { browser } = await signInWith(service, 'okta', okta)
    const user_id = await userOf(browser)
    await link(browser, google, 'google')
    const [one, two] = (await api(browser, 'GET', 'identities')).body.identities
    let second: Promise<Reply> | undefined
    await service.sql.begin(async (tx) => {
      assert.ok(await deleteIdentity(tx, user_id, one.id, [okta.issuer, google.issuer]))
      second = api(browser, 'DELETE', `identities/${two.id}`)
      // It waits for us, or has not looked at what we do.
      const isWaiting = eventually(async () => {
        const waiting = await service.sql`
          select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
        return waiting.length > 0
      })
      await Promise.race([second, isWaiting])
    })
    assert.equal((await second)?.status, 409)
    assert.deepEqual(await identitiesOf(user_id), [google.person.sub])
  })

  it('an identity of another user cannot be unlinked', async () => {
    const { browser } = await signInWith(service, 'okta', okta)
    const [identity] = (await api(browser, 'GET', 'identities')).body.identities
    const stranger = await signedIn(`stranger-${email}`)
    assert.equal((await api(stranger.browser, 'DELETE', `identities/${identity.id}`)).status, 404)
    assert.equal((await api(browser, 'GET', 'identities')).body.identities.length, 1)
  })
})

describe('an account with the same address, which both sides know as verified', () => {
  /** A user with a verified address and a password. */
  async function verified(): Promise<string> {
    const { user_id } = await new OAuthDriver(service).user(email, password)
    await service.sql`update app_user set email_verified = true where id = ${user_id}`
    return user_id
  }

  it('an account with the same verified address is linked only after its password', async () => {
    const user_id = await verified()
    const { browser, answer } = await signInWith(service, 'okta', okta, { query: { return_to: '/projects' } })
    assert.equal(answer.status, 200)
    assert.match(answer.html, new RegExp(`account with the e-mail address <strong>${email}`))
    assert.equal(browser.cookie('cadre_session'), undefined)
    assert.deepEqual(await identitiesOf(user_id), [])

    const wrong = await browser.submit(answer, '/sso/confirm', { password: 'not the password' })
    assert.equal(wrong.status, 401)
    assert.match(wrong.html, /role="alert">The password is wrong\./)
    assert.deepEqual(await identitiesOf(user_id), [])
    const right = await browser.submit(wrong, '/sso/confirm', { password })
    assert.deepEqual([right.status, right.headers.get('location')], [303, '/projects'])
    assert.equal(await userOf(browser), user_id)
    assert.deepEqual(await identitiesOf(user_id), [okta.person.sub])
    assert.equal(await userOf((await signInWith(service, 'okta', okta)).browser), user_id)
  })

  it('wrong passwords for an account with the same verified address are limited as at signing in', async () => {
    await verified()
    const { browser, answer } = await signInWith(service, 'okta', okta)
    for (let i = 0; i < 5; i++)
      assert.equal((await browser.submit(answer, '/sso/confirm', { password: `wrong ${i}` })).status, 401)
    const full = await browser.submit(answer, '/sso/confirm', { password })
    assert.equal(full.status, 429)
    assert.match(full.html, /Try again in 15 minutes\./)
    const { body } = await service.send('POST', '/api/v1/auth/login', { key: null, body: { email, password } })
    assert.equal(body.error.code, 'rate_limit_exceeded')
  })

  it('an account with the same verified address is not linked from another browser, provider or site', async () => {
    const user_id = await verified()
    const { browser, answer } = await signInWith(service, 'okta', okta)
    const [, proof = ''] = /name="proof" value="([^"]+)"/.exec(answer.html) ?? []
    const fields = { proof, provider: 'okta', return_to: '/', password }
    const other = new Browser(service.url)
    await other.get('/login')
    for (const [who, changes, headers, status] of [
      [other, {}, {}, 400],
      [new Browser(service.url), {}, {}, 400],
      [browser, { provider: 'google' }, {}, 400],
      [browser, { provider: 'nobody' }, {}, 404],
      [browser, { proof: '' }, {}, 400],
      [browser, { proof: `${proof}AAAA` }, {}, 400],
      [browser, {}, { 'sec-fetch-site': 'cross-site' }, 403],
    ] as const) {
      const refused = await who.post('/sso/confirm', { ...fields, ...changes }, headers)
      assert.equal(refused.status, status, JSON.stringify(changes))
      assert.equal(who.cookie('cadre_session'), undefined)
    }
    assert.deepEqual(await identitiesOf(user_id), [])
  })

  it('an account with the same verified address is not linked if it has changed meanwhile', async () => {
    const user_id = await verified()
    const { browser, answer } = await signInWith(service, 'okta', okta)
    await service.sql`update app_user set email_verified = false where id = ${user_id}`
    assert.equal((await browser.submit(answer, '/sso/confirm', { password })).status, 400)
    await service.sql`update app_user set email_verified = true, disabled_at = now() where id = ${user_id}`
    assert.equal((await browser.submit(answer, '/sso/confirm', { password })).status, 401)
    assert.deepEqual(await identitiesOf(user_id), [])
  })

  it('the password of an account with the same address is not requested if the provider has not verified it or there is none', async () => {
    const user_id = await verified()
    okta.person = { ...okta.person, email_verified: false }
    assert.equal((await signInWith(service, 'okta', okta)).answer.status, 409)
    await service.sql`update app_user set password_hash = null where id = ${user_id}`
    okta.person = { ...okta.person, email_verified: true }
    assert.equal((await signInWith(service, 'okta', okta)).answer.status, 409)
  })
})

describe('the page of the ways to sign in', () => {
  it('the page of the ways to sign in needs a session', async () => {
    const page = await new Browser(service.url).get('/account/sign-in')
    assert.deepEqual([page.status, page.headers.get('location')], [303, '/login?return_to=%2Faccount%2Fsign-in'])
    const { browser } = await signedIn()
    assert.match((await browser.get('/login')).html, /href="\/account\/sign-in">How you sign in/)
  })

  it('the page of the ways to sign in connects and disconnects without a script', async () => {
    const { browser, user_id } = await signedIn()
    const page = await browser.get('/account/sign-in')
    assert.match(page.html, /Connect Okta/)
    assert.ok(!page.html.includes('type="password"'), 'the sign-in is recent')
    const onward = await browser.submit(page, '/account/sign-in/connect', { provider: 'okta' })
    const [, to = ''] = /http-equiv="refresh" content="0;url=([^"]+)"/.exec(onward.html) ?? []
    const back = await browser.get((await okta.approve(to.replaceAll('&amp;', '&'))).href)
    assert.equal(back.headers.get('location'), '/account/sign-in')
    assert.deepEqual(await identitiesOf(user_id), [okta.person.sub])

    const connected = await browser.get('/account/sign-in')
    assert.ok(!connected.html.includes('Connect Okta'))
    assert.match(connected.html, new RegExp(`Okta</span>\\s*<span class="mail">${email}`))
    const deleted = await browser.submit(connected, '/account/sign-in/disconnect', {})
    assert.equal(deleted.headers.get('location'), '/account/sign-in')
    assert.deepEqual(await identitiesOf(user_id), [])
    assert.deepEqual(await actionsOf(user_id), ['identity.linked', 'identity.unlinked'])
  })

  it('the page of the ways to sign in requires the password if the sign-in is not recent, or a new sign-in without one', async () => {
    const { browser } = await signedIn()
    await makeOld(browser)
    const page = await browser.get('/account/sign-in')
    const none = await browser.submit(page, '/account/sign-in/connect', { provider: 'okta' })
    assert.deepEqual([none.status, /role="alert">Give your password/.test(none.html)], [403, true])
    const wrong = await browser.submit(page, '/account/sign-in/connect', { provider: 'okta', password: 'wrong' })
    assert.deepEqual([wrong.status, /role="alert">The password is wrong\./.test(wrong.html)], [400, true])
    const right = await browser.submit(page, '/account/sign-in/connect', { provider: 'okta', password })
    assert.match(right.html, /Continuing to Okta/)

    google.person = { ...google.person, email: `no-password-${email}` }
    const without = (await signInWith(service, 'google', google)).browser
    await makeOld(without)
    const asked = await without.get('/account/sign-in')
    assert.match(asked.html, /href="\/login\?return_to=%2Faccount%2Fsign-in&amp;again=1">sign in again/)
    assert.ok(!asked.html.includes('action="/account/sign-in/disconnect"'), 'the last way stays')
  })

  it('the page of the ways to sign in refuses forms of another session or site', async () => {
    const { browser, user_id } = await signedIn()
    await link(browser, okta, 'okta')
    const page = await browser.get('/account/sign-in')
    const [, identity_id = ''] = /name="identity_id" value="([^"]+)"/.exec(page.html) ?? []
    const [, token = ''] = /name="token" value="([^"]+)"/.exec(page.html) ?? []
    const disconnect = (fields: Record<string, string>, headers = {}) =>
      browser.post('/account/sign-in/disconnect', fields, headers)
    assert.equal((await disconnect({ identity_id, token: 'nope' })).status, 403)
    assert.equal((await disconnect({ identity_id })).status, 403)
    assert.equal((await disconnect({ identity_id, token }, { 'sec-fetch-site': 'cross-site' })).status, 403)
    assert.equal((await disconnect({ identity_id: 'ident_nope', token })).status, 404)
    assert.deepEqual(await identitiesOf(user_id), [okta.person.sub])
  })
})
