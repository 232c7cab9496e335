import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeTestDatabase, startTestService } from '../test/harness.ts'
import { OAuthDriver } from '../test/oauth.ts'
import { readConfig } from './config/config.ts'
import { createFirstOwner } from './first-start.ts'
import { openDatabase } from './platform/postgres/database.ts'

async function onEmptyDatabase(work: (sql: ReturnType<typeof openDatabase>['sql']) => Promise<void>): Promise<void> {
  const { connection, drop } = await makeTestDatabase()
  const database = openDatabase({ connection })
  try {
    await work(database.sql)
  } finally {
    await database.close()
    await drop()
  }
}

test('the first start makes an owner, an organization, a key and a client with the configured values', async () => {
  const service = await startTestService({
    CADRE_ADMIN_API_KEY: `cadre_${'a'.repeat(32)}`,
    CADRE_OAUTH_CLIENT_ID: 'my-app',
    CADRE_OAUTH_CLIENT_SECRET: 'a secret of my own'.replaceAll(' ', '-'),
  })
  try {
    const { owner } = service
    assert.deepEqual(owner.generated, [])
    assert.equal(owner.api_key, `cadre_${'a'.repeat(32)}`)
    const { body: permissions } = await service.send('GET', '/api/v1/auth/permissions')
    assert.deepEqual(permissions.scopes, ['admin'])
    assert.equal(permissions.permissions.organizations.write, true)
    const { body: user } = await service.send('GET', '/api/v1/auth/user')
    assert.equal(user.organizations.length, 1)
    assert.equal(user.organizations[0].role, 'owner')
    const login = await service.send('POST', '/api/v1/auth/login', {
      key: null,
      body: { email: owner.email, password: owner.password },
    })
    assert.equal(login.status, 200)
    const driver = new OAuthDriver(service)
    const client = {
      client_id: 'my-app',
      client_secret: 'a-secret-of-my-own',
      redirect_uri: 'https://client.example/cb',
    }
    const { access_token } = await driver.tokens(client, { scope: 'admin' })
    assert.equal(await driver.statusOf(access_token), 200)
    const { body: log } = await service.send('GET', '/api/v1/auth/audit?end_time=9999-12-31')
    const made = log.entries.filter(({ detail }: any) => detail.reason === 'first_start')
    assert.deepEqual(
      made.map(({ action, actor }: any) => [action, actor]),
      ['oauth_client.created', 'api_key.created', 'organization.created', 'user.created'].map((action) => [
        action,
        null,
      ]),
    )
  } finally {
    await service.stop()
  }
})

test('credentials that are not configured are generated, and work', async () => {
  await onEmptyDatabase(async (sql) => {
    const owner = await createFirstOwner({ sql, config: readConfig({}) })
    assert.ok(owner)
    assert.deepEqual(owner.generated.toSorted(), [
      'api_key',
      'email',
      'oauth_client_id',
      'oauth_client_secret',
      'oauth_redirect_uri',
      'password',
    ])
    assert.match(owner.api_key, /^cadre_[0-9a-f]{32}$/)
    assert.match(owner.password, /^[0-9a-z]{5}(-[0-9a-z]{5}){3}$/)
    assert.match(owner.oauth_client_secret, /^[\w-]{43}$/)
    const [client] = await sql<{
      native: boolean
      redirect_uris: string[]
    }>`select native, redirect_uris from oauth_client`
    assert.equal(client?.native, true, 'it may use any port of the loopback address')
    assert.ok(client.redirect_uris.includes(owner.oauth_redirect_uri))
  })
})

test('a later start changes nothing', async () => {
  await onEmptyDatabase(async (sql) => {
    const config = readConfig({})
    assert.ok(await createFirstOwner({ sql, config }))
    assert.equal(
      await createFirstOwner({ sql, config: readConfig({ CADRE_ADMIN_EMAIL: 'other@example.com' }) }),
      undefined,
    )
    const [counts] = await sql<{ users: number; keys: number }>`
      select (select count(*) from app_user) as users, (select count(*) from api_key) as keys`
    assert.deepEqual(counts, { users: 1, keys: 1 })
  })
})

test('of processes that start at the same time exactly one makes the owner', async () => {
  await onEmptyDatabase(async (sql) => {
    const config = readConfig({})
    const owners = await Promise.all(Array.from({ length: 4 }, () => createFirstOwner({ sql, config })))
    assert.equal(owners.filter(Boolean).length, 1)
    const [users] = await sql<{ count: number }>`select count(*) as count from app_user`
    assert.equal(users?.count, 1)
  })
})
