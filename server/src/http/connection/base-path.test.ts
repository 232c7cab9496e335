import assert from 'node:assert/strict'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { Browser, parseCookie } from '../../../test/browser.ts'
import { IdentityProvider, ssoEnvironment } from '../../../test/fakes/identity-provider.ts'
import { localUrl, sender, startTestService, type TestService } from '../../../test/harness.ts'
import { OAuthDriver, type TestClient } from '../../../test/oauth.ts'

const base = '/team/cadre'
let proxy: Server
let test: TestService
let outside: string
let app: TestClient
let provider: IdentityProvider

/** A proxy that serves the service below a path, and strips that path; everything else is 404. */
before(async () => {
  proxy = createServer((from, to) => {
    const path = from.url?.startsWith(`${base}/`) ? from.url.slice(base.length) : wellKnown(from.url)
    if (path === undefined) return to.writeHead(421).end()
    const onward = request(new URL(path, localUrl(test)), { method: from.method, headers: from.headers }, (answer) => {
      to.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(to)
    })
    onward.on('error', () => to.destroy())
    from.pipe(onward)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => proxy.once('listening', resolve))
  outside = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
  provider = await IdentityProvider.start()
  test = await startTestService({
    ...ssoEnvironment({ okta: { provider, more: { JOIN_AS: 'member' } } }),
    CADRE_PUBLIC_URL: `${outside}${base}`,
  })
  app = await new OAuthDriver(test).client('notes', { scopes: ['read'] })
})

after(async () => {
  await test.stop()
  await provider.stop()
  proxy.closeAllConnections()
  proxy.close()
})

/** Clients look for the metadata of an issuer with a path in front of that path (RFC 8414 §3.1, RFC 9728 §3.1). */
const wellKnown = (url: string | undefined): string | undefined =>
  url?.startsWith('/.well-known/oauth-') ? url : undefined

const at = (path: string): string => `${outside}${base}${path}`
const json = async (url: string, init?: RequestInit): Promise<any> => (await fetch(url, init)).json()

async function signedIn(): Promise<Browser> {
  const browser = new Browser(outside)
  const page = await browser.get(at('/login?return_to=%2Fprojects'))
  const { email, password } = test.owner
  const answer = await browser.submit(page, `${base}/login`, { email, password })
  assert.equal(answer.headers.get('location'), `${base}/projects`)
  return browser
}

describe('a base path in CADRE_PUBLIC_URL', () => {
  it('below a base path users sign in and out, with cookies of that path only', async () => {
    const browser = await signedIn()
    assert.deepEqual([...new Set(browser.cookies.map(({ path }) => path))], [base])
    const page = await browser.get(at('/login'))
    assert.match(page.html, new RegExp(test.owner.email))
    const left = await browser.submit(page, `${base}/logout`, {})
    assert.equal(left.headers.get('location'), `${base}/login`)
    const cleared = left.headers.getSetCookie().map(parseCookie)
    assert.ok(cleared.some(({ name, path, expired }) => name === 'cadre_session' && path === base && expired))
    assert.equal((await browser.get(at('/api/v1/auth/user'))).status, 401)
  })

  it('below a base path a user signs in with an identity provider, with a temporary cookie named after the path', async () => {
    const browser = new Browser(outside)
    const begin = () => browser.get(at('/api/v1/auth/sso/okta?return_to=%2Fprojects'))
    const started = await begin()
    const onward = new URL(started.headers.get('location') ?? '')
    assert.equal(onward.searchParams.get('redirect_uri'), at('/api/v1/auth/sso/okta/callback'))
    const [attempt, ...others] = started.headers.getSetCookie().map(parseCookie)
    assert.deepEqual([attempt?.path, others], ['/', []])
    assert.match(attempt?.name ?? '', /^cadre_sso_okta_[0-9a-f]{8}$/)

    const answer = await browser.get((await provider.approve(onward.href)).href)
    assert.deepEqual([answer.status, answer.headers.get('location')], [303, `${base}/projects`])
    assert.deepEqual(
      browser.cookies.map(({ name, path }) => [name, path]),
      [['cadre_session', base]],
    )
    assert.equal((await browser.get(at('/api/v1/auth/user'))).status, 200)

    provider.faults = { declines: true }
    const again = await begin()
    const refused = await browser.get((await provider.approve(again.headers.get('location') ?? '')).href)
    assert.equal(refused.status, 403)
    const links = [...refused.html.matchAll(/ (?:href|action)="(\/[^"]*)"/g)].map(([, address = '']) => address)
    assert.ok(links.length > 0 && links.every((address) => address.startsWith(`${base}/`)), links.join(' '))
  })

  it('below a base path an app gets a valid token by the endpoints of the metadata', async () => {
    const metadata = await json(at('/.well-known/oauth-authorization-server'))
    assert.equal(metadata.issuer, `${outside}${base}`)
    assert.equal(metadata.authorization_endpoint, at('/oauth2/authorize'))
    assert.deepEqual(await json(`${outside}/.well-known/oauth-authorization-server${base}`), metadata)
    const resource = await json(`${outside}/.well-known/oauth-protected-resource${base}/api/v1`)
    assert.deepEqual([resource.resource, resource.authorization_servers], [at('/api/v1'), [metadata.issuer]])

    const { client_id, client_secret, redirect_uri } = app
    const asked = { client_id, redirect_uri, response_type: 'code', scope: 'read', state: 'st-1' }
    const browser = new Browser(outside)
    let page = await browser.follow(
      await browser.get(`${metadata.authorization_endpoint}?${new URLSearchParams(asked)}`),
    )
    const { email, password } = test.owner
    page = await browser.follow(await browser.submit(page, `${base}/login`, { email, password }))
    const consent = new RegExp(`^${base}/oauth2/interaction/`)
    const { left } = await browser.follow(await browser.submit(page, consent, { decision: 'allow' }))
    const code = left?.searchParams.get('code') ?? ''
    const body = new URLSearchParams({ grant_type: 'authorization_code', client_id, client_secret, redirect_uri, code })
    const { access_token } = await json(metadata.token_endpoint, { method: 'POST', body })
    const hello = await fetch(at('/api/v1/hello'), { headers: { authorization: `Bearer ${access_token}` } })
    assert.equal(hello.status, 200)
  })

  it('below a base path a device is authorized at the URL that it shows', async () => {
    const terminal = { redirect_uri: 'http://127.0.0.1/cb', native: true, isPublic: true }
    await new OAuthDriver(test).client('terminal', terminal)
    const body = new URLSearchParams({ client_id: 'terminal', scope: 'read' })
    const device = await json(at('/oauth2/device'), { method: 'POST', body })
    assert.ok(device.verification_uri_complete.startsWith(at('/device?')), JSON.stringify(device))
    const browser = await signedIn()
    const page = await browser.get(device.verification_uri_complete)
    const done = await browser.submit(page, `${base}/device`, { decision: 'allow' })
    assert.equal(done.status, 200)
  })

  it('below a base path invitations, the reference and every link of a page have that path', async () => {
    const made = await sender(localUrl(test), test.owner.api_key)('POST', '/api/v1/auth/invitations', {
      body: { role: 'member' },
    })
    assert.equal(made.status, 201, JSON.stringify(made.body))
    assert.ok(made.body.url.startsWith(at('/invite/')), JSON.stringify(made.body))
    const browser = await signedIn()
    for (const path of ['/login', '/account/sign-in', '/device', made.body.url.slice(at('').length), '/docs']) {
      const { html, status } = await browser.get(at(path))
      assert.equal(status, 200, path)
      for (const [, address = ''] of html.matchAll(/ (?:href|action|src)="(\/[^"]*)"/g))
        assert.ok(address.startsWith(`${base}/`), `${path} leads to ${address}`)
    }
    assert.match(await (await fetch(at('/docs/start.js'))).text(), new RegExp(`url: '${base}/api/v1/docs'`))
    const map = await (await fetch(at('/llms.txt'))).text()
    for (const [, address = ''] of map.matchAll(/\]\(([^)]*)\)/g)) assert.ok(address.startsWith(at('/')), address)
    const root = await fetch(at('/'), { redirect: 'manual', headers: { accept: 'application/json' } })
    assert.equal(root.headers.get('location'), `${base}/docs`)
  })
})
