import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { OAuthDriver } from '../../../test/oauth.ts'
import { makePerson, makeSession } from '../../../test/actors.ts'
import { insertApiKey, newApiKey } from '../api-keys/api-keys.queries.ts'

let service: TestService
let driver: OAuthDriver

before(async () => {
  service = await shareTestService()
  driver = new OAuthDriver(service)
})
after(() => service.stop())

test('a user is shown with all their organizations, and by nothing else than spec 2.5', async () => {
  const { status, body } = await service.send('GET', '/api/v1/auth/user')
  assert.equal(status, 200)
  assert.deepEqual(Object.keys(body).sort(), [
    'avatar_url',
    'created_at',
    'email_verified',
    'id',
    'name',
    'organizations',
    'plan',
    'updated_at',
  ])
  assert.equal(body.id, service.owner.user_id)
  assert.equal(body.plan, 'free')
  assert.deepEqual(Object.keys(body.organizations[0]).sort(), ['id', 'joined_at', 'name', 'role'])
})

test('an update changes the name, the picture or both, and nothing else', async () => {
  const put = (body: unknown) => service.send('PUT', '/api/v1/auth/user', { body })
  const { body: before } = await service.send('GET', '/api/v1/auth/user')
  const { status, body: named } = await put({
    name: 'Ada Lovelace',
    email_verified: true,
    plan: 'enterprise',
    id: 'user_x',
  })
  assert.equal(status, 200, JSON.stringify(named))
  const { organizations: _, ...expected } = { ...before, name: 'Ada Lovelace', updated_at: named.updated_at }
  assert.deepEqual(named, expected)
  assert.ok(named.updated_at > before.updated_at)
  const { body: pictured } = await put({ avatar_url: 'https://example.com/ada.png' })
  assert.equal(pictured.name, 'Ada Lovelace')
  assert.equal(pictured.avatar_url, 'https://example.com/ada.png')
  assert.equal((await put({ avatar_url: 'HTTPS://example.com/a' })).body.avatar_url, 'HTTPS://example.com/a')
  for (const avatar_url of [null, '']) {
    await put({ avatar_url: 'https://example.com/ada.png' })
    assert.equal((await put({ avatar_url })).body.avatar_url, '')
  }
  assert.equal((await put({ name: 'Zoë'.normalize('NFD') })).body.name, 'Zoë'.normalize('NFC'))
})

test('an update without anything to change, or with what is not valid, is a validation error', async () => {
  for (const [body, field, code] of [
    [{}, 'body', 'required'],
    [{ plan: 'team' }, 'body', 'required'],
    [{ name: '' }, 'name', 'required'],
    [{ name: '  ' }, 'name', 'invalid_format'],
    [{ name: 'x'.repeat(101) }, 'name', 'too_long'],
    [{ name: 5 }, 'name', 'invalid_format'],
    [{ avatar_url: 'javascript:alert(1)' }, 'avatar_url', 'invalid_format'],
    [{ avatar_url: 'https://[' }, 'avatar_url', 'invalid_format'],
    [{ avatar_url: `https://example.com/${'x'.repeat(2048)}` }, 'avatar_url', 'too_long'],
  ] as const) {
    const { status, body: answer } = await service.send('PUT', '/api/v1/auth/user', { body })
    assert.equal(status, 400, JSON.stringify(body))
    assert.equal(answer.error.code, 'validation_error')
    assert.deepEqual([answer.error.details[0].field, answer.error.details[0].code], [field, code])
  }
})

test('a credential without any write scope changes no user', async () => {
  const key = newApiKey()
  const owner = { user_id: service.owner.user_id, org_id: service.owner.org_id }
  await insertApiKey(service.sql, owner, key, { name: 'reader', description: '', scopes: ['read'], expires_at: null })
  const { status, body } = await service.send('PUT', '/api/v1/auth/user', { key, body: { name: 'x' } })
  assert.equal(status, 403)
  assert.equal(body.error.code, 'insufficient_scope')
  assert.deepEqual(body.error.required_scopes, ['write'])
  assert.equal((await service.send('GET', '/api/v1/auth/user', { key })).status, 200)
})

test('the preferences of a user are the same in every browser, and others keep their own', async () => {
  const path = '/api/v1/auth/preferences'
  const person = await makePerson(service, 'viewer', service.owner.org_id)
  const [desk, telephone] = [await makeSession(service, person), await makeSession(service, person)]
  const defaults = {
    theme: 'system',
    time_zone: 'local',
    date_form: 'day',
    language: 'en',
    trace_url: '',
    task_views: [],
  }
  assert.deepEqual((await service.send('GET', path, desk)).body, defaults)

  const trace_url = 'https://traces.example.com/{trace_id}'
  const { status, body } = await service.send('PUT', path, { ...desk, body: { theme: 'dark', trace_url } })
  assert.equal(status, 200, JSON.stringify(body))
  await service.send('PUT', path, { ...desk, body: { time_zone: 'Asia/Tokyo' } })
  const task_views = [{ project_id: '1', name: 'Slow ones', query: 'status=failed&since=24h' }]
  await service.send('PUT', path, { ...desk, body: { task_views } })
  const chosen = { ...defaults, theme: 'dark', time_zone: 'Asia/Tokyo', trace_url, task_views }
  assert.deepEqual((await service.send('GET', path, telephone)).body, chosen)
  const other = await makeSession(service, await makePerson(service, 'viewer', service.owner.org_id))
  assert.deepEqual((await service.send('GET', path, other)).body, defaults)

  for (const wrong of [
    { theme: 'pink' },
    { task_views: [{ project_id: '1', name: '', query: '' }] },
    { trace_url: 'https://traces.example.com' },
    { language: 'tlh' },
    { time_zone: 'Mars/Olympus' },
    { time_zone: '+02:00' },
  ])
    assert.equal((await service.send('PUT', path, { ...desk, body: wrong })).status, 400, JSON.stringify(wrong))
  assert.deepEqual((await service.send('PUT', path, { ...desk, body: {} })).body, chosen)
})

test('permissions are what scopes and role allow together', async () => {
  const web = await driver.client('web')
  const { access_token } = await driver.tokens(web, { scope: 'read write' })
  const { body } = await service.send('GET', '/api/v1/auth/permissions', { token: access_token })
  assert.deepEqual(body, {
    scopes: ['read', 'write'],
    permissions: {
      projects: { read: true, write: true, delete: true },
      agents: { read: true, write: true, delete: true },
      organizations: { read: true, write: false },
      api_keys: { read: false, write: false },
    },
  })
  await service.sql`update member set role = 'viewer' where user_id = ${service.owner.user_id}`
  const { body: viewer } = await service.send('GET', '/api/v1/auth/permissions', { token: access_token })
  await service.sql`update member set role = 'owner' where user_id = ${service.owner.user_id}`
  assert.deepEqual(viewer.scopes, ['read', 'write'], 'as written on the credential')
  assert.deepEqual(viewer.permissions.projects, { read: true, write: false, delete: false })
})
