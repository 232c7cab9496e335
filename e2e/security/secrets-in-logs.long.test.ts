import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Browser } from '../../server/test/browser.ts'
import { type FakeModelServer, startFakeModelServer } from '../../server/test/fake-models/fake-model-server.ts'
import {
  eventually,
  makeTestDatabase,
  type Reply,
  sender,
  type Send,
  type TestService,
} from '../../server/test/harness.ts'
import {
  client as ssoClient,
  IdentityProvider,
  signInWith,
  ssoEnvironment,
} from '../../server/test/fakes/identity-provider.ts'
import { OAuthDriver, type TestClient } from '../../server/test/oauth.ts'
import { type OtlpReceiver, startOtlpReceiver } from '../../server/test/fakes/otlp-receiver.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../server/test/fakes/webhook-receiver.ts'
import { type Database, openDatabase, sqlState } from '../../server/src/platform/postgres/database.ts'
import { databaseEnvironment, type RunningService, startProcess } from '../process.ts'
import { createProject } from '../../server/test/fixtures.ts'

/**
 * A service at the most verbose log level gets every kind of secret, in the right and in wrong places, also while its
 * tables are missing. Then none of them is in its log, metrics or traces (decision D105).
 */
const secrets = new Map<string, string>()
function secret(name: string, value: string): string {
  assert.ok(value.length >= 8, name)
  secrets.set(name, value)
  return value
}
const hex = (letter: string) => `${letter}0123456789abcdef0123456789abcde`

const set = {
  CADRE_SECRET_KEY: secret('secret key', 'canary-secret-key-of-more-than-32-characters'),
  CADRE_ADMIN_EMAIL: 'owner@example.com',
  CADRE_ADMIN_PASSWORD: secret('admin password', 'canary-admin-password'),
  CADRE_ADMIN_API_KEY: secret('admin API key', `cadre_${hex('a')}`),
  CADRE_OAUTH_CLIENT_ID: 'first-app',
  CADRE_OAUTH_CLIENT_SECRET: secret('OAuth client secret', 'canary-oauth-client-secret'),
  CADRE_OAUTH_REDIRECT_URI: 'https://client.example/cb',
  OPENAI_API_KEY: secret('OpenAI key', 'canary-openai-key'),
  ANTHROPIC_API_KEY: secret('Anthropic key', 'canary-anthropic-key'),
  OTEL_EXPORTER_OTLP_HEADERS: `x-canary=${secret('OTLP header', 'canary-otlp-header')}`,
}
const app: TestClient = {
  client_id: set.CADRE_OAUTH_CLIENT_ID,
  client_secret: set.CADRE_OAUTH_CLIENT_SECRET,
  redirect_uri: set.CADRE_OAUTH_REDIRECT_URI,
}

let database: Awaited<ReturnType<typeof makeTestDatabase>>
let own: Database
let provider: IdentityProvider
let models: FakeModelServer
let traces: OtlpReceiver
let hooks: WebhookReceiver
let service: RunningService
let send: Send
let driver: OAuthDriver
let tables: string[]

before(async () => {
  database = await makeTestDatabase()
  own = openDatabase({ connection: database.connection })
  ;[provider, models, traces, hooks] = await Promise.all([
    IdentityProvider.start(),
    startFakeModelServer(),
    startOtlpReceiver(),
    startWebhookReceiver(),
  ])
  secret('secret of the identity provider', ssoClient.secret)
  const url = new URL(databaseEnvironment(database.connection)['DATABASE_URL']!)
  url.password = secret('database password', 'canary-database-password')
  service = await startProcess({
    ...set,
    ...(ssoEnvironment({ okta: { provider } }) as Record<string, string>),
    DATABASE_URL: url.href,
    OPENAI_BASE_URL: models.base_url,
    OTEL_EXPORTER_OTLP_ENDPOINT: traces.endpoint,
    CADRE_EGRESS_ALLOW: 'loopback',
    CADRE_SIGNUP: 'open',
    CADRE_LOG_LEVEL: 'trace',
    CADRE_METRICS_PORT: '0',
    CADRE_RATE_LIMITS_SCALE: '1000',
  })
  send = sender(service.url, set.CADRE_ADMIN_API_KEY)
  const owner = { email: set.CADRE_ADMIN_EMAIL, password: set.CADRE_ADMIN_PASSWORD }
  driver = new OAuthDriver({ url: service.url, sql: own.sql, send, owner } as unknown as TestService)
  const rows = await own.sql<{ name: string }>`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`
  tables = rows.map(({ name }) => name)
})
after(async () => {
  await service.end()
  await own.close()
  await Promise.all([provider.stop(), models.close(), traces.stop(), hooks.close()])
  await database.drop()
})

/** Does something while all tables but some are missing: whatever it is, it fails on our side. */
async function withoutTables(work: () => Promise<unknown>, keep: readonly string[] = []): Promise<void> {
  const deleted = tables.filter((name) => !keep.includes(name))
  const rename = (from: string, to: string): Promise<true> => {
    const script = deleted.map((name) => `alter table "${from}${name}" rename to "${to}${name}"`).join(';')
    // All of them or none: the service, which uses them meanwhile, may be in the way.
    const isInTheWay = (error: unknown): boolean => ['40P01', '55P03'].includes(sqlState(error) ?? '')
    return eventually(() =>
      own.sql.script(script).then(
        () => true as const,
        (error: unknown) => {
          if (!isInTheWay(error)) throw error
          return false as const
        },
      ),
    )
  }
  await rename('', 'gone_')
  try {
    await work()
  } finally {
    await rename('gone_', '')
  }
}

/** Fails a request on our side, which is logged with its cause. */
const broken = async (request: () => Promise<{ status: number }>, keep?: readonly string[]): Promise<void> =>
  withoutTables(async () => assert.ok((await request()).status >= 500), keep)

describe('a service that logs all it can', () => {
  it('a service that logs all it can is given passwords', async () => {
    const login = (body: unknown): Promise<Reply> => send('POST', '/api/v1/auth/login', { key: null, body })
    const email = set.CADRE_ADMIN_EMAIL
    const wrong = secret('wrong password', 'canary-wrong-password')
    assert.equal((await login({ email, password: wrong })).status, 401)
    await login(`{"email": "${email}", "password": "${secret('password in broken JSON', 'canary-broken-json')}`)
    await login({ email, password: { [secret('member of a password', 'canary-member')]: 1 } })
    await login({ email: secret('password as an address', 'canary-in-the-wrong-field'), password: 'x' })
    await broken(() => login({ email, password: secret('password at a fault', 'canary-password-at-a-fault') }))
    const { status, headers } = await login({ email, password: set.CADRE_ADMIN_PASSWORD })
    assert.equal(status, 200)
    const [cookie = ''] = headers.getSetCookie()
    const value = cookie.slice(cookie.indexOf('=') + 1, cookie.indexOf(';'))
    secret('cookie', value)
    secret('cookie, decoded', decodeURIComponent(value).split('.')[0]!)
    const of = { cookie: `cadre_session=${value}` }
    assert.equal((await send('GET', '/api/v1/auth/user', of)).status, 200)
    await broken(() => send('GET', '/api/v1/auth/user', of))
    const change = { current_password: wrong, new_password: secret('new password', 'canary-new-password') }
    await send('PUT', '/api/v1/auth/password', { ...of, body: change })
    const account = {
      email: 'ada@example.com',
      name: 'Ada',
      password: secret('password of a sign-up', 'canary-sign-up'),
    }
    await broken(() => send('POST', '/api/v1/auth/signup', { key: null, body: account }))
    assert.equal((await send('POST', '/api/v1/auth/signup', { key: null, body: account })).status, 201)
  })

  it('a service that logs all it can is given keys and tokens, known and unknown, also where they do not belong', async () => {
    const unknown = secret('unknown API key', `cadre_${hex('b')}`)
    const { body: made } = await send('POST', '/api/v1/auth/api-keys', { body: { name: 'second', scopes: ['read'] } })
    secret('made API key', made.key)
    await send('GET', '/api/v1/projects', { key: unknown })
    await send('GET', '/api/v1/projects', { token: secret('unknown token', 'canary-unknown-token-0123456789') })
    await send('GET', '/api/v1/projects', {
      key: null,
      headers: { authorization: `Basic ${secret('basic', 'Y2FuYXJ5OmNhbmFyeQ==')}` },
    })
    await broken(() => send('GET', '/api/v1/projects', { key: made.key }))
    await broken(() => send('POST', '/api/v1/projects', { key: made.key, body: { name: 'fault' } }))
    await send('GET', `/api/v1/projects?api_key=${secret('key in a query', 'canary-in-a-query')}`)
    await send('GET', `/nowhere/${unknown}?token=${secret('query of an unknown path', 'canary-in-an-unknown-query')}`)
    await send('GET', `/%zz?token=${secret('query of a path that cannot be read', 'canary-in-a-broken-path')}`)
    await fetch(service.url, { headers: { 'x-request-id': unknown } })
  })

  it('a service that logs all it can lets apps in', async () => {
    const { code, left } = await driver
      .authorize(driver.authorizeUrl(app, { state: secret('state', 'canary-state-0123456789') }))
      .then(({ left }) => ({ left, code: secret('authorization code', left.searchParams.get('code')!) }))
    assert.ok(left)
    const wrong = { ...app, client_secret: secret('wrong client secret', 'canary-wrong-client-secret') }
    assert.equal((await driver.exchange(wrong, code)).status, 401)
    await withoutTables(async () => assert.ok((await driver.exchange(app, code)).status >= 500))
    await withoutTables(async () => {
      const page = await fetch(
        driver.authorizeUrl(app, { state: secret('state at a fault', 'canary-state-at-a-fault') }),
      )
      assert.ok(page.status >= 500)
    })
    const { status, body } = await driver.exchange(app, code)
    assert.equal(status, 200, JSON.stringify(body))
    secret('access token', body.access_token)
    secret('refresh token', body.refresh_token)
    assert.equal(await driver.statusOf(body.access_token), 200)
    await broken(() => driver.refresh(app, body.refresh_token))
    const again = await driver.refresh(app, body.refresh_token)
    secret('second access token', again.body.access_token)
    secret('second refresh token', again.body.refresh_token)
    await broken(() => driver.revoke(app, again.body.refresh_token))
    await driver.refresh(app, body.refresh_token)
    await driver.revoke(app, again.body.access_token)
    const code_verifier = secret('code verifier', 'canary-verifier-0123456789-0123456789-0123456789')
    await driver.exchange(app, code, { code_verifier, junk: secret('junk', 'canary-junk-in-a-token-request') })
  })

  it('a service that logs all it can lets people in by an identity provider', async () => {
    const codes = (callback: URL): void => {
      secret(`code ${secrets.size}`, callback.searchParams.get('code')!)
      secret(`state ${secrets.size}`, callback.searchParams.get('state')!)
    }
    provider.person = { sub: 'grace-1', email: 'grace@example.com', email_verified: true, name: 'Grace' }
    const { answer } = await signInWith(service, 'okta', provider, { change: codes })
    assert.equal(answer.status, 303)
    provider.faults = {
      id_token: (token) => ({ ...token, claims: { ...token.claims, nonce: 'canary-nonce-of-others' } }),
    }
    await signInWith(service, 'okta', provider, { change: codes })
    secret('nonce', 'canary-nonce-of-others')
    const said = secret('what a provider says', 'canary-said-by-a-provider')
    for (const status of [400, 500]) {
      provider.faults = {
        answers: {
          '/token': (_request, response) =>
            void response
              .writeHead(status, { 'content-type': 'application/json' })
              .end(JSON.stringify({ error: 'invalid_grant', access_token: said, id_token: said })),
        },
      }
      await signInWith(service, 'okta', provider, { change: codes })
    }
    provider.faults = {}
    const browser = new Browser(service.url)
    const foreign = secret('foreign code', 'canary-foreign-code')
    await browser.get(`/api/v1/auth/sso/okta/callback?code=${foreign}&state=${foreign}`)
    const started = await browser.get('/api/v1/auth/sso/okta')
    const callback = await provider.approve(started.headers.get('location')!)
    codes(callback)
    await withoutTables(async () => assert.ok((await browser.get(callback.href)).status >= 500))
  })

  it('a service that logs all it can invites people', async () => {
    const cookie = await signedIn()
    const { status, body } = await send('POST', '/api/v1/auth/invitations', { cookie, body: { role: 'member' } })
    assert.equal(status, 201, JSON.stringify(body))
    const token = secret('invitation', new URL(body.url).pathname.split('/').at(-1)!)
    const browser = new Browser(service.url)
    assert.equal((await browser.get(`/invite/${token}`)).status, 200)
    await broken(() => browser.get(`/invite/${token}`))
    await browser.get(`/invite/${token}/nowhere`)
    await browser.request(`/invite/${token}`, { method: 'PUT' })
    await browser.post(`/invite/${token}/account`, { password: secret('typed password', 'canary-typed-password') })
    await broken(() => send('POST', '/api/v1/auth/invitations/accept', { cookie, body: { token } }))
    await browser.get(`/invite/${secret('wrong invitation', 'canary-wrong-invitation-0123456789-0123456789')}/x`)
  })

  it('a service that logs all it can works for agents with secrets', async () => {
    const made = await createProject(send, 'canaries')
    const project = `/api/v1/projects/proj_${made.id}`
    const value = secret('credential', 'canary-credential-of-a-project')
    await send('POST', `${project}/credentials`, { body: { name: 'KEY', value, allowed_hosts: ['127.0.0.1'] } })
    const fault = secret('credential at a fault', 'canary-credential-at-a-fault')
    await broken(() =>
      send('POST', `${project}/credentials`, { body: { name: 'OTHER', value: fault, allowed_hosts: ['127.0.0.1'] } }),
    )
    const tool = {
      name: 'weather',
      kind: 'http',
      description: 'Weather',
      parameters: { type: 'object', properties: {} },
      http: {
        method: 'GET',
        url: `${hooks.url('/tool')}?key=\${credentials.KEY}`,
        headers: { 'x-key': '${credentials.KEY}' },
      },
    }
    const registered = await send('POST', `${project}/tools`, { body: tool })
    assert.equal(registered.status, 201, JSON.stringify(registered.body))
    const server = {
      name: 'mcp',
      kind: 'mcp',
      description: 'MCP',
      mcp: { url: hooks.url('/mcp'), headers: { authorization: 'Bearer ${credentials.KEY}' } },
    }
    await send('POST', `${project}/tools`, { body: server })
    hooks.answer('/tool', { status: 500, body: `no: ${value}` }, 'reset')
    const agents = `${project}/agents`
    const environment_variables = { TOKEN: secret('environment variable', 'canary-environment-variable') }
    const run = async (model: string, input: unknown): Promise<string> => {
      const config = { model, tools: ['weather', 'run_javascript'], environment_variables, max_retries: 0 }
      const { body: agent } = await send('POST', agents, {
        body: { name: `agent-${secrets.size}-${model.length}`, config },
      })
      const text = typeof input === 'string' ? input : JSON.stringify(input)
      const { body } = await send('POST', `${agents}/${agent.id}/tasks?wait=20`, { body: { input: text } })
      return body.status
    }
    const script = [
      { tool_calls: [{ name: 'weather', arguments: {} }] },
      { tool_calls: [{ name: 'weather', arguments: {} }] },
      { tool_calls: [{ name: 'run_javascript', arguments: { code: 'throw new Error(env.TOKEN)' } }] },
      { text: '{{tool_result}}' },
    ]
    assert.equal(await run('builtin/script', script), 'completed')
    models.always({ do: 'status', status: 401, message: `Incorrect API key provided: ${set.OPENAI_API_KEY}` })
    assert.equal(await run('openai/gpt-5-mini', secret('what a user says', 'canary-said-by-a-user')), 'failed')
    await broken(() => send('POST', agents, { body: { name: 'fault', config: { environment_variables } } }))
    const api_key = secret('key of a model provider', 'canary-key-of-a-model-provider')
    const own = { name: 'acme', base_url: models.base_url, api_key }
    const { body: added } = await send('POST', '/api/v1/model-providers', { body: own })
    models.always({ do: 'status', status: 400, message: `Incorrect API key provided: ${api_key}` })
    assert.equal(await run('acme/large', 'Hello'), 'failed')
    await send('POST', `/api/v1/model-providers/${added.id}/test`, { body: { model: 'large' } })
    const next = secret('next key of a model provider', 'canary-next-key-of-a-model-provider')
    await broken(() => send('PUT', `/api/v1/model-providers/${added.id}`, { body: { api_key: next } }))
    await send('PUT', `/api/v1/model-providers/${added.id}`, { body: { api_key: next } })
    assert.equal(await run('acme/larger', 'Hello'), 'failed')
  })

  it('a service that logs all it can tells webhooks', async () => {
    const receiver = hooks.url(`/hook/${secret('address of a webhook', 'canary-in-the-address-of-a-webhook')}`)
    const body = { url: receiver, events: ['task.*'], secret: secret('webhook secret', 'canary-webhook-secret') }
    await broken(() => send('POST', '/api/v1/webhooks', { body }))
    assert.equal((await send('POST', '/api/v1/webhooks', { body })).status, 201)
    const signed = secret(
      'webhook secret of the standard',
      `whsec_${Buffer.from('canary-of-a-standard-webhook').toString('base64')}`,
    )
    const other = { ...body, url: hooks.url('/other'), secret: signed }
    const { body: hook } = await send('POST', '/api/v1/webhooks', { body: other })
    hooks.answer('/other', 'reset')
    await send('POST', `/api/v1/webhooks/${hook.id}/test`)
    await hooks.received('/other', 1)
    await send('POST', `/api/v1/webhooks/${hook.id}/rotate-secret`, {
      body: { secret: secret('next webhook secret', 'canary-next-webhook-secret') },
    })
  })

  it('a service that logs all it can has written none of it into its log, its metrics or its traces', async () => {
    const metrics = /Metrics +(\S+)/.exec(service.output())?.[1]
    assert.ok(metrics)
    const page = await (await fetch(metrics)).text()
    await eventually(async () => traces.spans.length > 0, 20_000)
    await service.end()
    const output = service.output()
    assert.ok(output.split('\n').filter((line) => line.includes('"msg":"request failed"')).length >= 10)
    assert.ok(secrets.size > 40)
    const where = { log: output, metrics: page, traces: traces.texts.join('\n') }
    const found = Object.entries(where).flatMap(([place, text]) =>
      [...secrets].flatMap(([name, value]) => (text.includes(value) ? [`${name} in the ${place}`] : [])),
    )
    assert.deepEqual(found, [])
    for (const { groups } of output.matchAll(/canary(?<rest>.{0,40})/g)) assert.fail(`canary${groups?.['rest']}`)
  })

  async function signedIn(): Promise<string> {
    const body = { email: set.CADRE_ADMIN_EMAIL, password: set.CADRE_ADMIN_PASSWORD }
    const { headers } = await send('POST', '/api/v1/auth/login', { key: null, body })
    const [cookie = ''] = headers.getSetCookie()
    return cookie.split(';')[0]!
  }
})
