import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as oauth from 'oauth4webapi'
import { Browser, type BrowserPage } from '../../../test/browser.ts'
import { sender, startAnother, startTestService, type TestService } from '../../../test/harness.ts'
import { OAuthDriver } from '../../../test/oauth.ts'

let service: TestService
let driver: OAuthDriver
let server: oauth.AuthorizationServer
const client: oauth.Client = { client_id: 'terminal' }
const insecure = { [oauth.allowInsecureRequests]: true } as const

before(async () => {
  service = await startTestService({ CADRE_PUBLIC_URL: '' })
  driver = new OAuthDriver(service)
  await driver.client('terminal', { redirect_uri: 'http://127.0.0.1/cb', native: true, isPublic: true })
  await driver.client('web', { isPublic: true })
  await driver.user('bob@example.com', 'seven grey herons')
  const issuer = new URL(service.url)
  server = await oauth.processDiscoveryResponse(
    issuer,
    await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure }),
  )
})
after(() => service.stop())

/** A device that has begun, as a client library sees it. */
async function begin(
  scope = 'read write',
  more: Record<string, string> = {},
): Promise<oauth.DeviceAuthorizationResponse> {
  const asked = await oauth.deviceAuthorizationRequest(server, client, oauth.None(), { scope, ...more }, insecure)
  return oauth.processDeviceAuthorizationResponse(server, client, asked)
}

/** The response to a polling device: tokens, or the code of the error. */
async function poll({ device_code }: { device_code: string }): Promise<oauth.TokenEndpointResponse | string> {
  const asked = await oauth.deviceCodeGrantRequest(server, client, oauth.None(), device_code, insecure)
  try {
    return await oauth.processDeviceCodeResponse(server, client, asked)
  } catch (error) {
    if (error instanceof oauth.ResponseBodyError) return error.error
    throw error
  }
}

/** Bob's browser at an address of the device's, signed in on the way. */
async function open(url: string): Promise<{ browser: Browser; page: BrowserPage }> {
  const browser = new Browser(service.url)
  const login = await browser.follow(await browser.get(url))
  const page = await browser.follow(
    await browser.submit(login, '/login', { email: 'bob@example.com', password: 'seven grey herons' }),
  )
  return { browser, page }
}

async function allow(device: oauth.DeviceAuthorizationResponse): Promise<BrowserPage> {
  const { browser, page } = await open(device.verification_uri_complete!)
  return browser.submit(page, '/device', { decision: 'allow' })
}

test('a device gets access by a code typed in any case, and works until its grant is ended', async () => {
  const device = await begin()
  assert.match(device.user_code, /^[B-Z]{4}-[B-Z]{4}$/)
  assert.equal(device.verification_uri, `${service.url}/device`)
  assert.equal(await poll(device), 'authorization_pending')

  const { browser, page } = await open(device.verification_uri)
  const typed = device.user_code.toLowerCase().replace('-', ' ')
  const consent = await browser.get(`/device?${new URLSearchParams({ user_code: typed })}`)
  assert.match(page.html, /Enter the code/)
  for (const text of ['The terminal app', device.user_code, '127.0.0.1', 'bob@example.com'])
    assert.ok(consent.html.includes(text), text)
  assert.equal(await poll(device), 'authorization_pending', 'looking is not allowing')
  const done = await browser.submit(consent, '/device', { decision: 'allow' })
  assert.match(done.html, /Device connected/)

  const tokens = await poll(device)
  assert.ok(typeof tokens === 'object')
  assert.equal(tokens.scope, 'read write')
  const send = sender(service.url, '')
  assert.equal((await send('GET', '/api/v1/projects', { key: null, token: tokens.access_token })).status, 200)
  const refreshed = await driver.refresh(
    { client_id: 'terminal', client_secret: '', redirect_uri: '' },
    tokens.refresh_token!,
  )
  assert.equal(refreshed.status, 200)
  // Presenting the code again ends everything, because it may have been stolen.
  assert.equal(await poll(device), 'invalid_grant')
  const after = await send('GET', '/api/v1/projects', { key: null, token: refreshed.body.access_token })
  assert.equal(after.status, 401)
})

test('a device whose consent is denied gets that error once', async () => {
  const device = await begin()
  const { browser, page } = await open(device.verification_uri_complete!)
  assert.match((await browser.submit(page, '/device', { decision: 'deny' })).html, /not connected/)
  assert.equal(await poll(device), 'access_denied')
  assert.equal((await browser.get(device.verification_uri_complete!)).status, 400)
})

test('a code is valid for one decision', async () => {
  const device = await begin()
  const [one, two] = await Promise.all([
    open(device.verification_uri_complete!),
    open(device.verification_uri_complete!),
  ])
  const before = (await service.sql`select 1 from oauth_grant`).length
  const pages = await Promise.all(
    [one, two].map(({ browser, page }) => browser.submit(page, '/device', { decision: 'allow' })),
  )
  assert.deepEqual(
    pages.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 400],
  )
  assert.equal((await service.sql`select 1 from oauth_grant`).length, before + 1)
})

test('of devices that ask at once with one code only one gets tokens that last', async () => {
  const device = await begin()
  await allow(device)
  const answers = await Promise.all(Array.from({ length: 6 }, () => poll(device)))
  assert.equal(answers.filter((answer) => typeof answer === 'object').length, 1)
})

test('an expired or unknown code gives an error page', async () => {
  const device = await begin()
  const { browser } = await open('/device')
  await service.sql`update oauth_artifact set expires_at = now() - interval '1 second' where kind = 'DeviceCode'`
  const late = await browser.get(device.verification_uri_complete!)
  assert.equal(late.status, 400)
  assert.match(late.html, /No device is waiting with this code/)
  assert.equal(await poll(device), 'expired_token')
  assert.equal((await browser.get('/device?user_code=BBBB-BBBB')).status, 400)
})

test('another site can neither decide nor have its code decided about', async () => {
  const device = await begin()
  const { browser, page } = await open(device.verification_uri_complete!)
  const other = await begin()
  const forged = await browser.submit(page, '/device', { decision: 'allow', user_code: other.user_code })
  assert.equal(forged.status, 403)
  assert.equal(await poll(other), 'authorization_pending')
})

test('only native apps, known scopes and their own apps are served', async () => {
  const ask = async (client_id: string, scope: string) => {
    const answer = await fetch(`${service.url}/oauth2/device`, {
      method: 'POST',
      body: new URLSearchParams({ client_id, scope }),
    })
    return ((await answer.json()) as { error: string }).error
  }
  assert.equal(await ask('web', 'read'), 'invalid_request')
  assert.equal(await ask('nobody', 'read'), 'invalid_client')
  assert.equal(await ask('terminal', 'everything'), 'invalid_scope')
  assert.equal(await ask('terminal', 'admin'), 'invalid_scope')
})

test('looks at codes are counted for the address, so that they cannot be guessed', async () => {
  const limited = await startAnother(service, { CADRE_PUBLIC_URL: '', CADRE_RATE_LIMITS_SCALE: '0.1' })
  const answers = []
  for (let look = 0; look < 3; look++) answers.push(await fetch(`${limited.url}/device?user_code=BBBB-BBBB`))
  assert.equal(answers.at(-1)!.status, 429)
  await limited.stop()
})

test('a device that asks for a resource gets a token that is good there alone', async () => {
  const device = await begin('read write', { resource: `${service.url}/mcp` })
  await allow(device)
  const tokens = await poll(device)
  assert.ok(typeof tokens === 'object', JSON.stringify(tokens))
  assert.equal(tokens.scope, 'read write')
  const send = sender(service.url, '')
  const token = tokens.access_token
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
  const headers = { accept: 'application/json, text/event-stream' }
  assert.equal((await send('POST', '/mcp', { key: null, token, body, headers })).status, 200)
  for (const path of ['/api/v1/projects', '/v1/models'])
    assert.equal((await send('GET', path, { key: null, token })).status, 401, path)
  const other = await oauth.deviceAuthorizationRequest(
    ...([
      server,
      client,
      oauth.None(),
      { scope: 'read', resource: 'https://other.example.com/mcp' },
      insecure,
    ] as const),
  )
  assert.deepEqual([other.status, ((await other.json()) as { error: string }).error], [400, 'invalid_target'])
})
