import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { startTestService, type Reply, type SendOptions, type TestService } from '../../../test/harness.ts'
import { OAuthDriver } from '../../../test/oauth.ts'

let test: TestService
before(async () => void (test = await startTestService({ CADRE_SIGNUP: 'open' })))
after(() => test.stop())

/** Every secret that the run below gives, or is given, by what it is. */
const secrets = new Map<string, string>()
function secret(what: string, value: string): string {
  assert.ok(value.length >= 12, `${what} is long enough to be searched for`)
  secrets.set(what, value)
  return value
}

async function ask(method: string, path: string, options: SendOptions = {}): Promise<any> {
  const reply = await test.send(method, path, options)
  assert.ok(reply.status < 300, `${method} ${path} ${reply.status} ${JSON.stringify(reply.body)}`)
  return reply.body
}

function cookieOf({ headers }: Reply, what: string): string {
  const cookie = headers.get('set-cookie')!.split(';', 1)[0]!
  secret(what, cookie.split('=')[1]!.split('.')[0]!)
  return cookie
}

/** People with passwords, sessions, keys and an invitation. */
async function accessRun(): Promise<void> {
  const email = 'canary@example.com'
  const password = secret('password', 'twelve-marbled-newts')
  const signup = await test.send('POST', '/api/v1/auth/signup', {
    key: null,
    body: { email, password, name: 'Visible' },
  })
  const cookie = cookieOf(signup, 'session cookie of an account that was made')
  const typed = secret('wrong password', 'thirteen-marbled-newts')
  for (const address of [email, test.owner.email])
    await test.send('POST', '/api/v1/auth/login', { key: null, body: { email: address, password: typed } })
  const login = await test.send('POST', '/api/v1/auth/login', { key: null, body: { email, password } })
  cookieOf(login, 'session cookie of a sign-in')
  const new_password = secret('new password', 'fourteen-marbled-newts')
  await ask('PUT', '/api/v1/auth/password', { cookie, body: { current_password: password, new_password } })
  await test.send('PUT', '/api/v1/auth/password', { cookie, body: { current_password: typed, new_password } })

  secret('API key of the owner', test.owner.api_key)
  const made = await ask('POST', '/api/v1/auth/api-keys', { body: { name: 'Visible', scopes: ['admin'] } })
  secret('API key', made.key)
  // A secret pasted into a wrong field.
  await ask('PUT', `/api/v1/auth/api-keys/${made.id}`, { body: { description: `it is ${made.key}` } })
  const rotated = await ask('POST', `/api/v1/auth/api-keys/${made.id}/rotate`, { body: {} })
  secret('rotated API key', rotated.key)
  await ask('DELETE', `/api/v1/auth/api-keys/${made.id}`)

  const { url } = await ask('POST', '/api/v1/auth/invitations', { body: { role: 'member' } })
  const token = secret('token of an invitation', new URL(url).pathname.split('/').at(-1)!)
  await ask('POST', '/api/v1/auth/invitations/accept', { cookie, body: { token } })
}

/** An agent with environment variables, a tool with a header, a credential, a webhook. */
async function workRun(): Promise<void> {
  const { id: project } = await ask('POST', '/api/v1/projects', { body: { name: 'visible' } })
  const agents = `/api/v1/projects/${project}/agents`
  const variables = { VISIBLE_NAME: secret('environment variable', 'postgres://u:velvet-otter@db/x') }
  const { id } = await ask('POST', agents, { body: { name: 'Visible', config: { environment_variables: variables } } })
  const changed = { VISIBLE_NAME: secret('changed environment variable', 'postgres://u:velvet-heron@db/x') }
  await ask('PUT', `${agents}/${id}`, { body: { config: { environment_variables: changed } } })
  await ask('POST', `${agents}/${id}/rollback`, { body: { version: 0 } })
  await ask('PUT', `${agents}/${id}`, { body: { config: { environment_variables: null } } })
  await ask('POST', '/api/v1/agents', { body: { project_id: project, name: 'Visible' } })

  const headers = { 'X-Visible': secret('header of a tool', 'opaque-velvet-lynx') }
  const http = { method: 'GET', url: 'https://api.example.com/', headers }
  const tools = `/api/v1/projects/${project}/tools`
  const tool = await ask('POST', tools, { body: { name: 'visible', description: 'Visible.', kind: 'http', http } })
  const another = { 'X-Visible': secret('changed header of a tool', 'opaque-velvet-stoat') }
  await ask('PUT', `${tools}/${tool.id}`, { body: { http: { ...http, headers: another } } })
  await ask('DELETE', `${tools}/${tool.id}`)

  const credentials = `/api/v1/projects/${project}/credentials`
  const value = secret('value of a credential', 'opaque-velvet-marten')
  const credential = await ask('POST', credentials, { body: { name: 'visible', value, allowed_hosts: ['api.test'] } })
  const next = secret('changed value of a credential', 'opaque-velvet-badger')
  await ask('PUT', `${credentials}/${credential.id}`, { body: { value: next } })
  await ask('DELETE', `${credentials}/${credential.id}`)

  const url = 'https://hooks.example.com/visible'
  const first = secret('secret of a webhook', 'opaque-velvet-ferret')
  const hook = await ask('POST', '/api/v1/webhooks', { body: { url, events: ['agent.failed'], secret: first } })
  const webhook = `/api/v1/webhooks/${hook.id}`
  await ask('PUT', webhook, { body: { secret: secret('changed secret of a webhook', 'opaque-velvet-weasel') } })
  const { secret: made } = await ask('POST', `${webhook}/rotate-secret`, { body: {} })
  secret('rotated secret of a webhook', made)
  await ask('DELETE', webhook)
  await ask('DELETE', `${agents}/${id}`)
}

/** An app with its secret, and the tokens that it is given. */
async function appRun(): Promise<void> {
  const redirect_uri = 'https://visible.example/cb'
  const body = { name: 'Visible', redirect_uris: [redirect_uri], scopes: ['read'] }
  const clients = '/api/v1/auth/oauth-clients'
  const { client_id, client_secret } = await ask('POST', clients, { body })
  secret('secret of an app', client_secret)
  const { client_secret: rotated } = await ask('PUT', `${clients}/${client_id}`, { body: { rotate_secret: true } })
  secret('rotated secret of an app', rotated)
  secret('password of the owner', test.owner.password)
  const driver = new OAuthDriver(test)
  const client = { client_id, client_secret: rotated, redirect_uri }
  const tokens = await driver.tokens(client, { scope: 'read' })
  secret('access token', tokens.access_token)
  secret('refresh token', tokens.refresh_token)
  await driver.refresh(client, tokens.refresh_token)
  await driver.refresh(client, tokens.refresh_token)
  await ask('DELETE', `${clients}/${client_id}`)
}

it('no secret that is sent or returned is in the audit log, nor in what is read or exported of it', async () => {
  await accessRun()
  await workRun()
  await appRun()
  assert.ok(secrets.size >= 22, `${secrets.size} secrets`)

  const rows = await test.sql<{ text: string }>`select a::text as text from audit a`
  const kept = rows.map(({ text }) => text).join('\n')
  const { body: list } = await test.send('GET', '/api/v1/auth/audit?limit=1000')
  const { body: lines } = await test.send('GET', '/api/v1/auth/audit/export')
  const texts = { kept, listed: JSON.stringify(list), exported: lines as string }

  // What the secrets stood beside is there, so they would be found.
  for (const [where, text] of Object.entries(texts)) {
    for (const beside of ['VISIBLE_NAME', 'X-Visible', '[redacted]', 'user.sign_in_failed', 'oauth_grant.revoked'])
      assert.ok(text.includes(beside), `${where}: ${beside}`)
    for (const action of ['api_key.rotated', 'credential.updated', 'webhook.secret_rotated', 'invitation.accepted'])
      assert.ok(text.includes(action), `${where}: ${action}`)
    for (const [what, value] of secrets) {
      const forms = [value, Buffer.from(value).toString('base64'), encodeURIComponent(value), value.slice(0, 20)]
      for (const form of forms) assert.ok(!text.includes(form), `${where}: ${what}`)
    }
  }
})
