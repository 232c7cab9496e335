import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { OAuthDriver } from '../../../test/oauth.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let service: TestService
let driver: OAuthDriver
const verifier = 'v'.repeat(43)
const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
const pkce = { code_challenge: Buffer.from(digest).toString('base64url'), code_challenge_method: 'S256' }

before(async () => {
  service = await startTestService({ CADRE_OAUTH_REGISTRATION: 'on' })
  driver = new OAuthDriver(service)
})
after(() => service.stop())

const register = (body: object) =>
  service.send('POST', '/oauth2/register', {
    key: null,
    body,
  })

describe('apps that register themselves', () => {
  it('an app that registers itself gets tokens for /mcp with PKCE, on any loopback port', async () => {
    const metadata = (await service.send('GET', '/.well-known/oauth-authorization-server', { key: null })).body
    assert.equal(metadata.registration_endpoint, `${service.url}/oauth2/register`)
    const asked = { client_name: 'Bridge', redirect_uris: ['http://localhost:3334/oauth/callback'] }
    const { status, body: app } = await register({ ...asked, token_endpoint_auth_method: 'client_secret_post' })
    assert.deepEqual([status, app.client_name, app.token_endpoint_auth_method], [201, 'Bridge', 'none'])
    assert.deepEqual([app.redirect_uris, 'client_secret' in app], [asked.redirect_uris, false])
    const redirect_uri = 'http://localhost:9999/oauth/callback'
    const client = { client_id: app.client_id, client_secret: '', redirect_uri }
    const resource = `${service.url}/mcp`
    const code = await driver.code(client, { scope: undefined, resource, ...pkce })
    const tokens = await driver.exchange(client, code, { code_verifier: verifier })
    assert.equal(tokens.status, 200, JSON.stringify(tokens.body))
    const list = await service.send('POST', '/mcp', {
      token: tokens.body.access_token,
      body: { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} },
      headers: { accept: 'application/json, text/event-stream' },
    })
    assert.equal(list.status, 200)
  })

  it('an app that registers itself is refused redirects to other hosts without https, and full access', async () => {
    for (const redirect_uris of [undefined, [], ['http://app.example/cb'], ['app://callback']]) {
      const { status, body } = await register({ client_name: 'Bad', redirect_uris })
      assert.deepEqual([status, body.error], [400, 'invalid_redirect_uri'])
    }
    const wrong = await register({ client_name: 5, redirect_uris: ['https://app.example/cb'] })
    assert.deepEqual([wrong.status, wrong.body.error], [400, 'invalid_client_metadata'])
    const { body } = await register({ redirect_uris: ['https://app.example/cb'], scope: 'admin agents:read' })
    assert.equal(body.scope, 'agents:read')
  })

  it('an app cannot register itself unless the operator allows it', async () => {
    const usual = await shareTestService()
    const metadata = await usual.send('GET', '/.well-known/oauth-authorization-server', { key: null })
    assert.equal('registration_endpoint' in metadata.body, false)
    const body = { redirect_uris: ['https://app.example/cb'] }
    assert.equal((await usual.send('POST', '/oauth2/register', { key: null, body })).status, 404)
    await usual.stop()
  })
})
