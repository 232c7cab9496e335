import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SsoConfig } from '../../../config/config-sso.ts'
import type { EgressStream, EgressStreamRequest } from '../../../platform/egress/egress-stream.ts'
import { makeSsoClient } from './sso-client.ts'
import { SsoFailure } from './sso-failure.ts'

const tenant = 'https://login.microsoftonline.com/11111111-2222-3333-4444-555555555555/v2.0'
const provider: SsoConfig = {
  name: 'entra',
  label: 'Entra',
  issuer: tenant,
  client_id: 'cadre',
  client_secret: 'a-secret',
  scopes: 'openid email profile',
  allowed_domains: [],
  groups_claim: 'groups',
  group_roles: new Map(),
}

/** A way out behind which a provider of the world answers with this metadata; it tells what was asked for. */
function worldWith(metadata: object) {
  const asked: string[] = []
  return {
    asked,
    async open(url: string | URL, _request: EgressStreamRequest): Promise<EgressStream> {
      asked.push(String(url))
      const { body } = new Response(JSON.stringify(metadata))
      return {
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: body!,
        url: String(url),
        use: () => ({ bytes_in: 0, bytes_out: 0 }),
      }
    },
  }
}

const endpoints = (issuer: string) => ({
  issuer,
  authorization_endpoint: 'https://login.microsoftonline.com/authorize',
  token_endpoint: 'https://login.microsoftonline.com/token',
  jwks_uri: 'https://login.microsoftonline.com/keys',
})

test('each tenant of a multi-tenant provider is an issuer', async () => {
  const world = worldWith(endpoints(tenant))
  const { url } = await makeSsoClient(world).begin(provider, 'https://cadre.example/callback')
  assert.match(url, /^https:\/\/login\.microsoftonline\.com\/authorize\?/)
  assert.deepEqual(world.asked, [`${tenant}/.well-known/openid-configuration`])
})

test('a provider that names another issuer than the operator configured is rejected, also for multi-tenant providers', async () => {
  for (const [issuer, named] of [
    ['https://login.microsoftonline.com/common/v2.0', 'https://login.microsoftonline.com/{tenantid}/v2.0'],
    ['https://login.microsoftonline.com/organizations/v2.0', 'https://login.microsoftonline.com/{tenantid}/v2.0'],
    [tenant, 'https://login.microsoftonline.com/99999999-2222-3333-4444-555555555555/v2.0'],
    ['https://example.b2clogin.com/tenant/v2.0', 'https://example.b2clogin.com/another/v2.0'],
    ['https://id.example.com/a', 'https://id.example.com/a/'],
    ['https://id.example.com', 'https://id.example.com.evil.example'],
  ] as const) {
    const started = makeSsoClient(worldWith(endpoints(named))).begin(
      { ...provider, issuer },
      'https://cadre.example/cb',
    )
    await assert.rejects(started, (error) => error instanceof SsoFailure && error.reason === 'unusable', issuer)
  }
})

test('the slash of an issuer without a path may be missing', async () => {
  const issuer = 'https://example.eu.auth0.com'
  const { url } = await makeSsoClient(worldWith(endpoints(`${issuer}/`))).begin(
    { ...provider, issuer },
    'https://x.example/cb',
  )
  assert.ok(url)
})

test('an https provider cannot lead to plain http', async () => {
  for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri']) {
    const world = worldWith({ ...endpoints(tenant), [name]: 'http://login.microsoftonline.com/plain' })
    const started = makeSsoClient(world).begin(provider, 'https://cadre.example/cb')
    await assert.rejects(started, new RegExp(`no usable ${name}`))
  }
})
