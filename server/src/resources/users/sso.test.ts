import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { Browser, parseCookie } from '../../../test/browser.ts'
import { localUrl, sender, startTestService, type TestService } from '../../../test/harness.ts'
import { client, IdentityProvider, signInWith, ssoEnvironment } from '../../../test/identity-provider.ts'
import { makePerson } from '../../../test/actors.ts'
import { OAuthDriver } from '../../../test/oauth.ts'

let service: TestService
let provider: IdentityProvider

before(async () => {
  provider = await IdentityProvider.start()
  service = await startTestService({ CADRE_SIGNUP: 'open', ...ssoEnvironment({ okta: { provider } }) })
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

const whoAmI = async (browser: Browser, on: TestService = service) => {
  const { status, body } = await on.send('GET', '/api/v1/auth/user', { cookie: browser.cookieHeader('/') })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
const identitiesOf = async (browser: Browser, on: TestService = service) =>
  (await on.send('GET', '/api/v1/auth/identities', { cookie: browser.cookieHeader('/') })).body

test('whoever signs in first gets an account, and is known from then on', async () => {
  const { browser, answer } = await signInWith(service, 'okta', provider, { query: { return_to: '/projects?x=1' } })
  assert.deepEqual([answer.status, answer.headers.get('location')], [303, '/projects?x=1'])
  const user = await whoAmI(browser)
  assert.deepEqual([user.name, user.email_verified, user.organizations.length], [provider.person.name, true, 1])
  const { identities, has_password } = await identitiesOf(browser)
  assert.equal(has_password, false)
  assert.deepEqual(
    identities.map(({ id, created_at, last_sign_in_at, ...rest }: Record<string, string>) => rest),
    [{ provider: 'okta', issuer: provider.issuer, subject: provider.person.sub, email: provider.person.email }],
  )

  const again = await signInWith(service, 'okta', provider)
  assert.deepEqual([again.answer.status, again.answer.headers.get('location')], [303, '/'])
  assert.equal((await whoAmI(again.browser)).id, user.id)
})
