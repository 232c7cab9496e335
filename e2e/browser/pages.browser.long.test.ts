import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import * as oauth from 'oauth4webapi'
import { localUrl, startTestService, type TestService } from '../../server/test/harness.ts'
import { OAuthDriver, type TestClient } from '../../server/test/oauth.ts'
import { faultsOf, inBrowser, openPage, useBrowser } from './chromium.ts'

const password = 'seven grey herons'

const secretOf = ({ client_id, client_secret }: TestClient) => ({ client_id, client_secret })

let service: TestService
let used: Awaited<ReturnType<typeof useBrowser>>
let app: Server
let driver: OAuthDriver
let client: TestClient

before(async () => {
  if (inBrowser.skip) return
  service = await startTestService({ CADRE_PUBLIC_URL: '' })
  app = createServer((_request, response) => response.end('<title>The app</title>')).listen(0, '127.0.0.1')
  await new Promise((resolve) => app.once('listening', resolve))
  driver = new OAuthDriver(service)
  await driver.user('ada@example.com', password)
  const redirect_uri = `http://127.0.0.1:${(app.address() as AddressInfo).port}/cb`
  client = await driver.client('notes', { redirect_uri, scopes: ['read', 'agents:write'], native: true })
  used = await useBrowser()
})

after(async () => {
  used?.release()
  app?.close()
  await service?.stop()
})

test('a user signs in and allows an app, without JavaScript, and the app gets a token', inBrowser, async () => {
  const page = await openPage(used.browser, { width: 390, colorScheme: 'light' })
  const verifier = oauth.generateRandomCodeVerifier()
  const authorize = new URL('/oauth2/authorize', localUrl(service))
  authorize.search = new URLSearchParams({
    client_id: client.client_id,
    redirect_uri: client.redirect_uri,
    response_type: 'code',
    scope: 'read agents:write',
    state: 'the-state',
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  }).toString()
  await page.goto(authorize.href)

  await page.getByLabel('E-mail address').fill('ada@example.com')
  await page.getByLabel('Password').fill('not the password')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').waitFor()
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()

  await page.getByText('The notes app').first().waitFor()
  await page.getByRole('button', { name: /allow/i }).click()
  await page.waitForURL((url) => url.href.startsWith(client.redirect_uri))
  assert.equal(await page.title(), 'The app')

  const answer = new URL(page.url())
  assert.equal(answer.searchParams.get('state'), 'the-state')
  const response = await fetch(new URL('/oauth2/token', localUrl(service)), {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: client.client_id,
      client_secret: client.client_secret,
      code: answer.searchParams.get('code') ?? '',
      redirect_uri: client.redirect_uri,
      code_verifier: verifier,
    }),
  })
  const { access_token } = (await response.json()) as { access_token: string }
  const hello = await service.send('GET', '/api/v1/hello', { token: access_token })
  assert.equal(hello.status, 200)
})

test('sign-in and consent fit telephone and desk, light and dark, without a fault for axe', inBrowser, async () => {
  const { body } = await driver.post('/oauth2/device', { ...secretOf(client), scope: 'read agents:write' })
  const consent = driver.authorizeUrl(client, { scope: 'read agents:write', prompt: 'consent' })
  for (const width of [390, 1440]) {
    for (const colorScheme of ['light', 'dark'] as const) {
      const page = await openPage(used.browser, { width, colorScheme }, true)
      for (const path of ['/login', '/oauth2/authorize?client_id=unknown']) {
        await page.goto(new URL(path, localUrl(service)).href)
        assert.deepEqual(await faultsOf(page), [], `${path} at ${width}, ${colorScheme}`)
      }
      await page.goto(new URL('/login', localUrl(service)).href)
      await page.getByLabel('E-mail address').fill('ada@example.com')
      await page.getByLabel('Password').fill(password)
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.waitForURL((url) => url.pathname !== '/login')
      for (const address of [consent, body.verification_uri_complete]) {
        await page.goto(address)
        await page.getByText('This app is unverified.').waitFor()
        assert.deepEqual(await faultsOf(page), [], `${page.url()} at ${width}, ${colorScheme}`)
      }
      await page.context().close()
    }
  }
})

test('the reference at /docs lists the operations and sends no request to another host', inBrowser, async () => {
  const page = await openPage(used.browser, { width: 1440, colorScheme: 'light' }, true)
  const hosts = new Set<string>()
  page.on('request', (request) => hosts.add(new URL(request.url()).host))
  await page.goto(new URL('/docs', localUrl(service)).href)
  await page.getByText('Create a project').first().waitFor({ state: 'attached', timeout: 20_000 })
  assert.deepEqual([...hosts], [new URL(localUrl(service)).host])
})
