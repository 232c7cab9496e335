import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { OAuthDriver, type TestClient } from '../../../test/oauth.ts'

let service: TestService
let oauth: OAuthDriver
let client: TestClient
before(async () => {
  service = await shareTestService()
  oauth = new OAuthDriver(service)
  client = await oauth.client('host', { scopes: ['agents:read', 'tasks:write'] })
})
after(() => service.stop())

const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }
const askMcp = (token: string, path = '/mcp') =>
  service.send('POST', path, { token, body: list, headers: { accept: 'application/json, text/event-stream' } })
const scope = 'agents:read tasks:write'

describe('tokens for /mcp', () => {
  it('tokens for /mcp, and their refreshed tokens, are valid only there', async () => {
    const resource = `${service.url}/mcp`
    const tokens = await oauth.tokens(client, { scope, resource })
    for (const token of [tokens.access_token, (await oauth.refresh(client, tokens.refresh_token)).body.access_token]) {
      assert.equal((await askMcp(token)).status, 200)
      assert.equal((await service.send('GET', '/v1/models', { token })).status, 401)
      assert.equal(await oauth.statusOf(token), 401)
    }
  })

  it('/mcp refuses tokens for the API and for one agent', async () => {
    const { access_token } = await oauth.tokens(client, { scope })
    const refused = await askMcp(access_token)
    assert.equal(refused.status, 401)
    assert.match(refused.headers.get('www-authenticate')!, /error="invalid_token".*resource_metadata=/)
    assert.equal(await oauth.statusOf(access_token), 200)
    const resource = `${service.url}/mcp/agents/agent_01jcm3x5v8f9a2b4c6d8e0g2h4`
    const narrow = await oauth.tokens(client, { scope, resource })
    assert.equal((await askMcp(narrow.access_token)).status, 401)
    // The token is valid at the URL of its agent, which does not exist.
    assert.equal((await askMcp(narrow.access_token, new URL(resource).pathname)).status, 404)
  })

  it('tokens for /mcp have the default scopes if a client requests none, and are refused for foreign resources', async () => {
    const resource = `${service.url}/mcp`
    const tokens = await oauth.tokens(client, { scope: undefined, resource })
    assert.equal(tokens.scope, scope)
    const other = await oauth.ask(client, { scope, resource: 'https://other.example.com/mcp' })
    assert.equal(new URL(other.headers.get('location')!).searchParams.get('error'), 'invalid_target')
  })

  it('an authorization for two resources is refused, because its user would decide about one', async () => {
    const url = oauth.authorizeUrl(client, { scope, resource: `${service.url}/mcp` })
    const two = await fetch(`${url}&${new URLSearchParams({ resource: service.url })}`, { redirect: 'manual' })
    assert.equal(new URL(two.headers.get('location')!).searchParams.get('error'), 'invalid_target')
  })
})
