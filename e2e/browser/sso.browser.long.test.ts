import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Page } from 'playwright-core'
import { localUrl, startTestService, type TestService } from '../../server/test/harness.ts'
import { IdentityProvider, ssoEnvironment } from '../../server/test/fakes/identity-provider.ts'
import { OAuthDriver } from '../../server/test/oauth.ts'
import { faultsOf, inBrowser, openPage, useBrowser } from './chromium.ts'

let used: Awaited<ReturnType<typeof useBrowser>>
let service: TestService
let provider: IdentityProvider

before(async () => {
  if (inBrowser.skip !== false) return
  // Another site than the service's: cookies are sent along as between two hosts of the world.
  provider = await IdentityProvider.start({ host: 'localhost' })
  service = await startTestService({
    CADRE_SIGNUP: 'open',
    ...ssoEnvironment({ example: { provider, more: { LABEL: 'Example ID' } } }),
  })
  used = await useBrowser()
})
after(async () => {
  used?.release()
  await service?.stop()
  await provider?.stop()
})

test('a user signs in for an app with an identity provider, without JavaScript', inBrowser, async () => {
  const driver = new OAuthDriver(service)
  const client = await driver.client('notes', { redirect_uri: 'https://notes.example/cb' })
  const page = await openPage(used.browser, { width: 390, colorScheme: 'light' })
  await page.goto(driver.authorizeUrl(client))
  await page.getByRole('link', { name: 'Continue with Example ID' }).click()
  await page.getByText('The notes app').first().waitFor()
  assert.equal(new URL(page.url()).origin, new URL(localUrl(service)).origin)
  assert.ok(provider.requests.includes('POST /token'))
  await page.getByText('ada@example.com').first().waitFor()
  await page.context().close()
})

test('a provider is connected after the password, disconnected, and connected again', inBrowser, async () => {
  const password = 'seven grey herons'
  const driver = new OAuthDriver(service)
  const { user_id } = await driver.user('grace@example.com', password)
  await service.sql`update app_user set email_verified = true where id = ${user_id}`
  provider.person = { sub: 'grace', email: 'grace@example.com', email_verified: true, name: 'Grace' }
  const page = await openPage(used.browser, { width: 1440, colorScheme: 'dark' })
  const url = (path: string) => new URL(path, localUrl(service)).href
  await page.goto(url('/login?return_to=/account/sign-in'))
  await page.getByRole('link', { name: 'Continue with Example ID' }).click()
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Connect and sign in' }).click()
  await page.getByRole('heading', { name: 'How you sign in' }).waitFor()
  await page.getByRole('button', { name: 'Disconnect Example ID' }).click()
  await page.getByRole('button', { name: 'Connect Example ID' }).click()
  await page.getByRole('button', { name: 'Disconnect Example ID' }).waitFor()
  await page.context().close()
})

test(
  'the pages of a sign-in with an identity provider fit a telephone and a desk, light and dark, and have no fault that axe can see',
  inBrowser,
  async () => {
    const { user_id } = await new OAuthDriver(service).user('axe@example.com', 'seven grey herons')
    await service.sql`update app_user set email_verified = true where id = ${user_id}`
    for (const width of [390, 1440]) {
      for (const colorScheme of ['light', 'dark'] as const) {
        const page = await openPage(used.browser, { width, colorScheme }, true)
        const look = async (shown: Page, what: string): Promise<void> =>
          assert.deepEqual(await faultsOf(shown), [], `${what} at ${width}, ${colorScheme}`)
        await page.goto(new URL('/login', localUrl(service)).href)
        await look(page, 'sign-in')
        provider.faults = { declines: true }
        await page.getByRole('link', { name: 'Continue with Example ID' }).click()
        await page.getByRole('heading', { name: 'You are not signed in' }).waitFor()
        await look(page, 'refusal')
        provider.faults = {}
        provider.person = { sub: 'axe', email: 'axe@example.com', email_verified: true }
        await page.getByRole('link', { name: 'Go to sign-in' }).click()
        await page.getByRole('link', { name: 'Continue with Example ID' }).click()
        await page.getByRole('heading', { name: 'Connect Example ID' }).waitFor()
        await look(page, 'confirmation')
        await page.context().close()

        // Another user, unknown to the provider in this browser.
        const other = await openPage(used.browser, { width, colorScheme }, true)
        const name = `${width}-${colorScheme}`
        provider.person = { sub: name, email: `${name}@example.com`, email_verified: true }
        await other.goto(new URL('/api/v1/auth/sso/example?return_to=/account/sign-in', localUrl(service)).href)
        await other.getByRole('heading', { name: 'How you sign in' }).waitFor()
        await look(other, 'account')
        await other.context().close()
      }
    }
  },
)
