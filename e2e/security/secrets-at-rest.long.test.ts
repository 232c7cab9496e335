import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { eventNames, taskSubscriptions } from '#contract/events/events.ts'
import { type Database, openDatabase } from '../../server/src/platform/postgres/database.ts'
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
import { OAuthDriver } from '../../server/test/oauth.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../server/test/fakes/webhook-receiver.ts'
import { Canaries } from './canaries.ts'
import { databaseEnvironment, runCommand, type RunningService, startProcess, temporaryFolder } from '../process.ts'

/**
 * A service at the most verbose log level gets every kind of secret, while a webhook gets every event, and a backup is
 * made. Then none of the secrets is readable anywhere, in any encoding: not in events, logs, metrics, responses or
 * exports, nor in a row of a table or a file of the backup, except hashed or encrypted.
 */
const canaries = new Canaries()
const plant = (name: string, secret: string): string => canaries.plant(name, secret)
const hex = (letter: string) => `${letter}123456789abcdef0123456789abcdef`
const standard = (text: string) => `whsec_${Buffer.from(text).toString('base64')}`

const set = {
  CADRE_SECRET_KEY: plant('secret key', 'canary-secret-key-of-more-than-32-characters'),
  CADRE_ADMIN_EMAIL: 'owner@example.com',
  CADRE_ADMIN_PASSWORD: plant('admin password', 'canary-admin-password'),
  CADRE_ADMIN_API_KEY: plant('admin API key', `cadre_${hex('a')}`),
  CADRE_OAUTH_CLIENT_ID: 'first-app',
  CADRE_OAUTH_CLIENT_SECRET: plant('OAuth client secret', 'canary-oauth-client-secret'),
  CADRE_OAUTH_REDIRECT_URI: 'https://client.example/cb',
  OPENAI_API_KEY: plant('OpenAI key', 'sk-canary-openai-key-0123456789'),
  ANTHROPIC_API_KEY: plant('Anthropic key', 'sk-ant-canary-anthropic-key'),
  CADRE_PROVIDER_LOCAL_API_KEY: plant('provider key', 'canary-provider-key'),
}
const app = {
  client_id: set.CADRE_OAUTH_CLIENT_ID,
  client_secret: set.CADRE_OAUTH_CLIENT_SECRET,
  redirect_uri: set.CADRE_OAUTH_REDIRECT_URI,
}

let database: Awaited<ReturnType<typeof makeTestDatabase>>
let folder: Awaited<ReturnType<typeof temporaryFolder>>
let own: Database
let provider: IdentityProvider
let models: FakeModelServer
let receiver: WebhookReceiver
let env: Record<string, string>
let service: RunningService
let send: Send
/** Every response about the tasks of models that reason. */
let reasoned = ''

before(async () => {
  database = await makeTestDatabase()
  folder = await temporaryFolder()
  own = openDatabase({ connection: database.connection })
  ;[provider, models, receiver] = await Promise.all([
    IdentityProvider.start(),
    startFakeModelServer(),
    startWebhookReceiver(),
  ])
  plant('secret of the identity provider', ssoClient.secret)
  const url = new URL(databaseEnvironment(database.connection)['DATABASE_URL']!)
  url.password = plant('database password', 'canary-database-password')
  env = {
    ...set,
    ...(ssoEnvironment({ okta: { provider } }) as Record<string, string>),
    DATABASE_URL: url.href,
    OPENAI_BASE_URL: models.base_url,
    OPENAI_PROTOCOL: 'responses',
    ANTHROPIC_BASE_URL: models.base_url,
    CADRE_PROVIDER_LOCAL_BASE_URL: models.base_url,
    CADRE_EGRESS_ALLOW: 'loopback',
    CADRE_SIGNUP: 'open',
    CADRE_LOG_LEVEL: 'trace',
    CADRE_METRICS_PORT: '0',
    CADRE_RATE_LIMITS: 'off',
  }
  service = await startProcess(env)
  send = sender(service.url, set.CADRE_ADMIN_API_KEY)
})
after(async () => {
  await service.end()
  await own.close()
  await Promise.all([provider.stop(), models.close(), receiver.close(), folder.remove()])
  await database.drop()
})

/** Sends a request that must succeed. */
async function done(...request: Parameters<Send>): Promise<any> {
  const { status, body } = await send(...request)
  assert.ok(status < 300, `${request[1]}: ${status} ${JSON.stringify(body)}`)
  return body
}
const login = (password: string): Promise<Reply> =>
  send('POST', '/api/v1/auth/login', { key: null, body: { email: set.CADRE_ADMIN_EMAIL, password } })
/** The value of a cookie, with its signature; the part before that is as good as a key. */
function plantCookie(name: string, { headers }: Reply): string {
  const [cookie] = headers.getSetCookie()[0]!.split(';')
  const value = cookie!.slice(cookie!.indexOf('=') + 1)
  plant(`${name}, cookie`, value)
  plant(name, decodeURIComponent(value).split('.')[0]!)
  return cookie!
}

describe('secrets of every kind', () => {
  it('secrets of every kind are known to webhooks', async () => {
    const events = [...eventNames, ...taskSubscriptions.filter((name) => name.endsWith('.*'))]
    const body = { url: receiver.url('/told'), events, secret: plant('webhook secret', 'canary-webhook-secret') }
    const { id } = await done('POST', '/api/v1/webhooks', { body, headers: { 'idempotency-key': 'register' } })
    const next = plant('next webhook secret', standard('canary-of-a-standard-webhook'))
    await done('PUT', `/api/v1/webhooks/${id}`, { body: { secret: next } })
    const headers = { 'idempotency-key': 'rotate' }
    const { secret } = await done('POST', `/api/v1/webhooks/${id}/rotate-secret`, { headers })
    plant('secret that the service made', secret)
    await done('POST', `/api/v1/webhooks/${id}/test`)
    const refused = await send('POST', '/api/v1/webhooks', {
      body: { ...body, events: ['nothing'], secret: plant('refused webhook secret', 'canary-refused-webhook-secret') },
    })
    assert.equal(refused.status, 400)
    // The response of a receiver is stored and shown to managers of the webhook, without what may be a credential.
    const cookie = plant('cookie of a receiver', 'canary-cookie-of-a-receiver')
    receiver.answer('/told', { status: 200, headers: { 'set-cookie': `session=${cookie}`, 'x-api-key': cookie } })
  })

  it('secrets of every kind sign people in', async () => {
    assert.equal((await login(plant('wrong password', 'canary-wrong-password'))).status, 401)
    const signedIn = await login(set.CADRE_ADMIN_PASSWORD)
    const cookie = plantCookie('session', signedIn)
    const account = { email: 'ada@example.com', name: 'Ada', password: plant('password', 'canary-of-a-sign-up') }
    const signedUp = await send('POST', '/api/v1/auth/signup', { key: null, body: account })
    assert.equal(signedUp.status, 201)
    const ada = plantCookie('session of a sign-up', signedUp)
    const body = { current_password: account.password, new_password: plant('new password', 'canary-of-a-change') }
    await done('PUT', '/api/v1/auth/password', { cookie: ada, body })

    const { url } = await done('POST', '/api/v1/auth/invitations', { cookie, body: { role: 'member' } })
    const token = plant('invitation', new URL(url).pathname.split('/').at(-1)!)
    await done('POST', '/api/v1/auth/invitations/accept', { cookie: ada, body: { token } })
    const open = await done('POST', '/api/v1/auth/invitations', { cookie, body: { role: 'viewer' } })
    plant('open invitation', new URL(open.url).pathname.split('/').at(-1)!)

    provider.person = { sub: 'grace-1', email: 'grace@example.com', email_verified: true, name: 'Grace' }
    const { answer } = await signInWith(service, 'okta', provider, {
      change(callback) {
        plant('code of the identity provider', callback.searchParams.get('code')!)
        plant('state of a sign-in', callback.searchParams.get('state')!)
      },
    })
    assert.equal(answer.status, 303)
  })

  it('secrets of every kind are keys and tokens', async () => {
    const made = await done('POST', '/api/v1/auth/api-keys', { body: { name: 'second', scopes: ['read', 'write'] } })
    const key = plant('API key', made.key)
    const rotated = await done('POST', `/api/v1/auth/api-keys/${made.id}/rotate`)
    plant('rotated key', rotated.key)
    for (const one of [key, rotated.key])
      assert.equal((await send('GET', '/api/v1/projects', { key: one })).status, 200)
    const owner = { email: set.CADRE_ADMIN_EMAIL, password: set.CADRE_ADMIN_PASSWORD }
    const driver = new OAuthDriver({ url: service.url, sql: own.sql, send, owner } as unknown as TestService)
    const state = plant('state of an app', 'canary-state-of-an-app-0123456789')
    const { left } = await driver.authorize(driver.authorizeUrl(app, { state }))
    const code = plant('authorization code', left.searchParams.get('code')!)
    const { body: tokens } = await driver.exchange(app, code)
    assert.equal(await driver.statusOf(plant('access token', tokens.access_token)), 200)
    const { body: again } = await driver.refresh(app, plant('refresh token', tokens.refresh_token))
    plant('second access token', again.access_token)
    plant('second refresh token', again.refresh_token)
    // Used twice: an event says so.
    assert.equal((await driver.refresh(app, tokens.refresh_token)).status, 400)
  })

  it('secrets of every kind are what agents work with', async () => {
    const { id } = await done('POST', '/api/v1/projects', { body: { name: 'canaries' } })
    const project = `/api/v1/projects/proj_${id}`
    const value = plant('credential of a project', 'canary-credential-of-a-project')
    await done('POST', `${project}/credentials`, { body: { name: 'KEY', value, allowed_hosts: ['127.0.0.1'] } })
    const api_key = plant('key of a model provider', 'canary-key-of-a-model-provider')
    const own = await done('POST', '/api/v1/model-providers', {
      body: { name: 'acme', base_url: models.base_url, api_key },
      headers: { 'idempotency-key': 'provider' },
    })
    await done('POST', `/api/v1/model-providers/${own.id}/test`, { body: { model: 'large' } })
    const next = plant('next key of a model provider', 'canary-next-key-of-a-model-provider')
    await done('PUT', `/api/v1/model-providers/${own.id}`, { body: { api_key: next } })
    await done('GET', '/api/v1/model-providers')
    const tool = {
      name: 'weather',
      kind: 'http',
      description: 'Weather',
      parameters: { type: 'object', properties: {} },
      http: {
        method: 'GET',
        url: `${receiver.url('/tool')}?key=\${credentials.KEY}`,
        headers: { authorization: 'Bearer ${credentials.KEY}' },
      },
    }
    await done('POST', `${project}/tools`, { body: tool })
    const issued = {
      access_token: plant('access token of a credential', 'canary-access-token-of-a-credential'),
      refresh_token: plant('refresh token of a credential', 'canary-refresh-token-of-a-credential'),
      token_type: 'Bearer',
      expires_in: 600,
    }
    const headers = { 'content-type': 'application/json' }
    receiver.answer('/issued', { status: 200, headers, body: JSON.stringify(issued) })
    const client = {
      name: 'ISSUED',
      type: 'oauth2',
      grant: 'client_credentials',
      token_endpoint: receiver.url('/issued'),
      client_id: 'cadre',
      allowed_hosts: ['127.0.0.1'],
      client_secret: plant('client secret of a credential', 'canary-client-secret-of-a-credential'),
    }
    assert.equal((await done('POST', `${project}/credentials`, { body: client })).status, 'connected')
    const said = [value, Buffer.from(value).toString('base64'), encodeURIComponent(value)].join(' ')
    receiver.answer('/tool', { status: 200, body: `you said ${said}` }, { status: 500, body: `no: ${said}` }, 'reset')

    const run = async (name: string, config: object, input: unknown): Promise<any> => {
      const environment_variables = { TOKEN: plant(`environment of ${name}`, `canary-environment-of-${name}`) }
      const body = {
        name,
        config: { tools: ['weather', 'run_javascript'], max_retries: 0, environment_variables, ...config },
      }
      const agent = await done('POST', `${project}/agents`, { body })
      const task = { input: typeof input === 'string' ? input : JSON.stringify(input) }
      const ended = await done('POST', `${project}/agents/${agent.id}/tasks?wait=20`, { body: task })
      const next = { TOKEN: plant(`next environment of ${name}`, `canary-next-environment-of-${name}`) }
      await done('PUT', `${project}/agents/${agent.id}`, { body: { config: { environment_variables: next } } })
      return ended
    }
    const call = (name: string, args: object = {}) => ({ tool_calls: [{ name, arguments: args }] })
    const code = ['env.TOKEN', 'console.log(env.TOKEN); 1', 'throw new Error(env.TOKEN)']
    const plan = [
      ...[1, 2, 3].map(() => call('weather')),
      ...code.map((text) => call('run_javascript', { code: text })),
      { text: '{{tool_result}}' },
    ]
    assert.equal((await run('scripted', { model: 'builtin/script' }, plan)).status, 'completed')
    // They were used where they belong, or their absence elsewhere would mean nothing.
    const used = receiver
      .requests('/tool?key=canary-credential-of-a-project')
      .map(({ headers }) => headers.authorization)
    assert.deepEqual(used, Array(3).fill(`Bearer ${value}`))
    const tool_calls = [{ name: 'run_javascript', arguments: { code: '1 + 1' } }]
    for (const [model, reasoning] of [
      ['openai/gpt-5.6-sol', { encrypted: plant('encrypted reasoning', 'canary-encrypted-reasoning') }],
      ['anthropic/claude-opus-4-8', { signature: plant('signature of thinking', 'canary-signature-of-thinking') }],
      ['anthropic/claude-opus-4-8', { redacted: [plant('redacted thinking', 'canary-redacted-thinking')] }],
    ] as const) {
      models.next(
        { do: 'answer', reasoning: [{ text: 'Hm.', ...reasoning }] as never, tool_calls },
        { do: 'answer', text: 'Two.' },
      )
      const task = await run(`thinker ${Object.keys(reasoning)[0]}`, { model, effort: 'low' }, 'What is 1 + 1?')
      assert.deepEqual([task.status, task.error], ['completed', null])
      assert.ok(JSON.stringify(models.requests.at(-1)!.body).includes('canary'), 'it went back to its provider')
      for (const part of ['', '/steps?limit=100', '/events?limit=100'])
        reasoned += JSON.stringify(await done('GET', `${project}/tasks/${task.id}${part}`))
      reasoned += JSON.stringify(await done('GET', `${project}/agents/${task.agent_id}/logs?limit=100`))
    }
    for (const [model, key] of [
      ['openai/gpt-5-mini', set.OPENAI_API_KEY],
      ['local/some', set.CADRE_PROVIDER_LOCAL_API_KEY],
    ] as const) {
      models.next({ do: 'status', status: 401, message: `Incorrect API key provided: ${key}` })
      assert.equal((await run(model.split('/')[0]!, { model }, 'Hello')).status, 'failed')
      assert.equal(models.requests.at(-1)!.headers.authorization, `Bearer ${key}`)
    }
  })
})

describe('then none of them', () => {
  it('no secret is in requests, logs, metrics, responses or exports', async () => {
    await eventually(async () => {
      const [open] = await own.sql`
        select 1 where exists (select from event where matched_at is null) or exists (select from delivery where status = 'pending')`
      return !open
    }, 30_000)
    const delivered = receiver.requests('/told')
    const names = new Set(delivered.map(({ body }) => JSON.parse(body).event))
    for (const name of [
      'project.created',
      'agent.launched',
      'agent.completed',
      'agent.failed',
      'error.occurred',
      'task.created',
    ])
      assert.ok(names.has(name), name)
    const metrics = /Metrics +(\S+)/.exec(service.output())![1]!
    const { webhooks } = await done('GET', '/api/v1/webhooks')
    const deliveries = await listDeliveries(webhooks[0].id)
    assert.equal(deliveries.length, delivered.length)
    assert.equal(JSON.stringify(deliveries).includes('[redacted]'), true)
    const places: Record<string, string> = {
      'what a webhook got': delivered.map(({ headers, body }) => `${JSON.stringify(headers)}\n${body}`).join('\n'),
      'the list of webhooks': JSON.stringify(webhooks),
      'the deliveries': JSON.stringify(deliveries),
      'the audit log': JSON.stringify(await done('GET', '/api/v1/auth/audit?limit=1000')),
      'the export of the audit log': await done('GET', '/api/v1/auth/audit/export'),
      'responses about tasks that reason': reasoned,
      'the metrics': await (await fetch(metrics)).text(),
      'the description of the API': JSON.stringify(await done('GET', '/api/v1/docs')),
      'the log': service.output(),
    }
    isSearched(places, ['what a webhook got', 'the deliveries', 'the audit log', 'the export of the audit log'])
    assert.deepEqual(canaries.found(places), [])
  })

  it('no secret is in a row of any table', async () => {
    const tables = await own.sql<{ schema: string; name: string }>`
      select nspname as schema, relname as name from pg_class c join pg_namespace n on n.oid = relnamespace
      where relkind in ('r', 'p') and not relispartition and nspname !~ '^pg_|^information_schema$' order by 1, 2`
    let rows = 0
    const places: Record<string, string> = {}
    for (const { schema, name } of tables) {
      // Bytes are written in hexadecimal.
      const found = await own.sql.query(`select t::text as row from "${schema}"."${name}" t`)
      rows += found.rows.length
      places[`the table ${schema}.${name}`] = found.rows.map(({ row }) => row).join('\n')
    }
    assert.ok(tables.length > 30 && rows > 200, `${rows} rows of ${tables.length} tables`)
    isSearched(places, ['the table public.project', 'the table public.audit', 'the table public.event'])
    assert.match(places['the table public.webhook']!, /\\x[0-9a-f]{60,}/)
    assert.deepEqual(canaries.found(places), [])
  })

  it('no secret is in a backup', async () => {
    const file = join(folder.path, 'backup.tar.gz')
    const { code, stdout, stderr } = await runCommand(env, ['backup', '--output', file])
    assert.equal(code, 0, stderr)
    const places = {
      'the backup': gunzipSync(await readFile(file)).toString('latin1'),
      'what it says': stdout + stderr,
    }
    isSearched(places, ['the backup'])
    assert.deepEqual(canaries.found(places), [])
  })

  it('every secret was searched for', () => {
    assert.ok(canaries.size >= 43, String(canaries.size))
  })
})

/** Something that is known to be in these places is found there. */
function isSearched(places: Record<string, string>, inThese: readonly string[]): void {
  const control = new Canaries()
  control.plant('the name of the project', 'canaries')
  const found = control.found(places).join('\n')
  for (const place of inThese) assert.ok(found.includes(`the name of the project in ${place}:`), place)
}

async function listDeliveries(webhook_id: string): Promise<unknown[]> {
  const path = `/api/v1/webhooks/${webhook_id}/deliveries`
  const found: any[] = []
  for (
    let page = await done('GET', `${path}?limit=100`);
    ;
    page = await done('GET', `${path}?limit=100&page=${page.pagination.page + 1}`)
  ) {
    found.push(...page.deliveries)
    if (page.deliveries.length < 100) break
  }
  return Promise.all(found.map(({ id }) => done('GET', `${path}/${id}`)))
}
