import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Reply, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { OAuthDriver, type TestClient } from '../../../test/oauth.ts'

const path = '/api/v1/auth/oauth-clients'
const body = { name: 'Dashboard', redirect_uris: ['https://dashboard.example/cb'], scopes: ['read'] }

let service: TestService
let driver: OAuthDriver

before(async () => {
  service = await shareTestService()
  driver = new OAuthDriver(service)
})
after(() => service.stop())

const create = (changes: object = {}): Promise<Reply> => service.send('POST', path, { body: { ...body, ...changes } })

test('a confidential app gets its secret once, and can be used with it', async () => {
  const { status, body: created } = await create()
  assert.equal(status, 201)
  assert.match(created.client_secret, /^[A-Za-z0-9_-]{43}$/)
  assert.match(created.client_id, /^client_/)
  const { client_secret, ...shown } = created
  assert.deepEqual((await service.send('GET', `${path}/${created.client_id}`)).body, shown)
  assert.deepEqual((await service.send('GET', path)).body.oauth_clients[0], shown)
  assert.ok(!JSON.stringify((await service.send('GET', path)).body).includes(client_secret))
  const client: TestClient = {
    client_id: created.client_id,
    client_secret,
    redirect_uri: 'https://dashboard.example/cb',
  }
  const { access_token } = await driver.tokens(client, { scope: 'read' })
  assert.equal(await driver.statusOf(access_token), 200)
})

test('a public app has no secret and must use PKCE', async () => {
  const { body: created } = await create({ confidential: false, native: true, redirect_uris: ['http://127.0.0.1/cb'] })
  assert.equal(created.client_secret, undefined)
  assert.equal(created.confidential, false)
  const client = { client_id: created.client_id, client_secret: '', redirect_uri: 'http://127.0.0.1:4711/cb' }
  const refused = await driver.ask(client, { scope: 'read' })
  assert.match(refused.headers.get('location') ?? '', /PKCE/)
  const rotated = await service.send('PUT', `${path}/${created.client_id}`, { body: { rotate_secret: true } })
  assert.equal(rotated.status, 400)
})

test('redirect URIs: https, or http on loopback; no fragment, wildcard, user info, or other trick', async () => {
  const refused = [
    'http://dashboard.example/cb',
    'https://dashboard.example/cb#f',
    'https://dashboard.example/cb#',
    'https://*.example/cb',
    'https://user@dashboard.example/cb',
    'https://user:pass@dashboard.example/cb',
    'javascript:alert(1)',
    'data:text/html,x',
    'myapp://cb',
    '/cb',
    '//dashboard.example/cb',
    'https://',
    'https:dashboard.example',
    ' https://dashboard.example/cb',
    'https://dashboard.example/cb\n',
    'https://dashboard.example\\cb',
    'https://dаshboard.example/cb',
    'http://127.0.0.1.evil.example/cb',
    'http://localhost.evil.example/cb',
    'HTTPS://dashboard.example/cb',
    'ftp://dashboard.example/',
    'https://dashboard.example/"><script>',
  ]
  for (const uri of refused) {
    const { status, body: answer } = await create({ redirect_uris: ['https://fine.example/', uri] })
    assert.equal(status, 400, uri)
    assert.equal(answer.error.details[0].field, 'redirect_uris[1]', uri)
  }
  for (const uri of [
    'https://dashboard.example',
    'https://dashboard.example:8443/a/b?c=d',
    'http://127.0.0.1/cb',
    'http://localhost:3000/cb',
    'http://[::1]/cb',
  ]) {
    assert.equal((await create({ redirect_uris: [uri] })).status, 201, uri)
  }
  assert.equal((await create({ redirect_uris: [] })).status, 400)
  assert.equal(
    (await create({ redirect_uris: Array.from({ length: 11 }, (_, i) => `https://a${i}.example/`) })).status,
    400,
  )
  assert.equal((await create({ native: true, redirect_uris: ['https://localhost/cb'] })).status, 400)
})

test('every app that can be registered can be used', async () => {
  for (const changes of [
    { redirect_uris: ['https://dashboard.example:8443/a/b?c=d'] },
    { native: true, redirect_uris: ['http://[::1]/cb'] },
    { native: true, redirect_uris: ['https://claimed.example/cb'] },
    { name: 'Ünïcode "quoted" <b>', scopes: ['admin', 'tasks:write', 'api_keys:read'] },
  ]) {
    const { body: created } = await create(changes)
    const client: TestClient = {
      client_id: created.client_id,
      client_secret: created.client_secret,
      redirect_uri: created.redirect_uris[0],
    }
    const { access_token } = await driver.tokens(client, { scope: created.scopes[0] })
    assert.equal(await driver.statusOf(access_token), 200, JSON.stringify(changes))
  }
})

test('an update changes what is given; a new secret replaces the old one at once', async () => {
  const { body: created } = await create()
  const client: TestClient = {
    client_id: created.client_id,
    client_secret: created.client_secret,
    redirect_uri: created.redirect_uris[0],
  }
  const { refresh_token } = await driver.tokens(client, { scope: 'read' })
  const { body: updated } = await service.send('PUT', `${path}/${created.client_id}`, {
    body: { name: 'Renamed', rotate_secret: true },
  })
  assert.equal(updated.name, 'Renamed')
  assert.deepEqual(updated.redirect_uris, created.redirect_uris)
  assert.notEqual(updated.client_secret, created.client_secret)
  assert.ok(updated.updated_at > created.created_at)
  assert.equal((await driver.refresh(client, refresh_token)).status, 401)
  assert.equal((await driver.refresh({ ...client, client_secret: updated.client_secret }, refresh_token)).status, 200)
})

test('deleting an app ends everything that users gave it', async () => {
  const { body: created } = await create()
  const client: TestClient = {
    client_id: created.client_id,
    client_secret: created.client_secret,
    redirect_uri: created.redirect_uris[0],
  }
  const { access_token, refresh_token } = await driver.tokens(client, { scope: 'read' })
  const deleted = await service.send('DELETE', `${path}/${created.client_id}`)
  assert.deepEqual(deleted.body, { message: 'OAuth client deleted', client_id: created.client_id })
  assert.equal(await driver.statusOf(access_token), 401)
  assert.equal((await driver.refresh(client, refresh_token)).body.error, 'invalid_client')
  assert.equal((await service.send('DELETE', `${path}/${created.client_id}`)).status, 404)
})

test('only administrators of its organization see an app', async () => {
  const { body: created } = await create()
  const { user_id, org_id } = await driver.user('stranger@example.com', 'seven grey herons')
  const { insertApiKey, newApiKey } = await import('../api-keys/api-keys.queries.ts')
  const keyOf = async (owner: { user_id: string; org_id: string }, scopes: string[]) => {
    const key = newApiKey()
    await insertApiKey(service.sql, owner, key, { name: 'k', description: '', scopes, expires_at: null })
    return key
  }
  const stranger = await keyOf({ user_id, org_id }, ['admin'])
  for (const method of ['GET', 'PUT', 'DELETE']) {
    const { status, body: answer } = await service.send(method, `${path}/${created.client_id}`, {
      key: stranger,
      ...(method === 'PUT' ? { body: { name: 'x' } } : {}),
    })
    assert.equal(status, 404, method)
    assert.equal(answer.error.code, 'resource_not_found')
  }
  assert.deepEqual((await service.send('GET', path, { key: stranger })).body.oauth_clients, [])
  await service.sql`insert into member (org_id, user_id, role) values (${service.owner.org_id}, ${user_id}, 'member')`
  const member = await keyOf({ user_id, org_id: service.owner.org_id }, ['admin'])
  assert.equal((await service.send('GET', path, { key: member })).status, 403)
  const narrow = await keyOf({ user_id: service.owner.user_id, org_id: service.owner.org_id }, ['read', 'write'])
  assert.equal((await service.send('GET', path, { key: narrow })).body.error.code, 'insufficient_scope')
  for (const id of ['nope', 'x%00y', '%2e%2e', 'ä'])
    assert.equal((await service.send('GET', `${path}/${id}`)).status, 404, id)
})

test('every change of an app is audited', async () => {
  const { body: created } = await create()
  await service.send('PUT', `${path}/${created.client_id}`, { body: { name: 'Renamed' } })
  await service.send('DELETE', `${path}/${created.client_id}`)
  const entries = await service.sql<{
    action: string
    actor: string
  }>`select action, actor from audit where target = ${created.client_id} order by id`
  assert.deepEqual(
    entries.map(({ action }) => action),
    ['oauth_client.created', 'oauth_client.updated', 'oauth_client.deleted'],
  )
  assert.ok(entries.every(({ actor }) => actor === service.owner.user_id))
})

test('a scope that is taken from an app no longer counts on the tokens that it has', async () => {
  const driver = new OAuthDriver(service)
  const client = await driver.client('narrowed', { scopes: ['read', 'write'] })
  await driver.user('narrow@example.com', 'seven grey herons')
  const { access_token } = await driver.tokens(
    client,
    { scope: 'read write' },
    { email: 'narrow@example.com', password: 'seven grey herons' },
  )
  const scopesNow = async () =>
    (await service.send('GET', '/api/v1/auth/permissions', { token: access_token })).body.scopes
  assert.deepEqual(await scopesNow(), ['read', 'write'])
  const { status } = await service.send('PUT', `${path}/${client.client_id}`, { body: { scopes: ['read'] } })
  assert.equal(status, 200)
  assert.deepEqual(await scopesNow(), ['read'])
})
