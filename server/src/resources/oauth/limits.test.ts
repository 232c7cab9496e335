import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'
import { OAuthDriver } from '../../../test/oauth.ts'

let service: TestService
let driver: OAuthDriver

before(async () => {
  service = await startTestService({ CADRE_RATE_LIMITS_SCALE: '1' })
  driver = new OAuthDriver(service)
})
after(() => service.stop())

/** Windows are aligned to minutes: a fresh one keeps a test from running over its end. */
async function emptyWindows(): Promise<void> {
  await eventually(async () => (await service.sql`select 1 where extract(second from now()) < 55`).length > 0)
  await service.sql`delete from rate_window`
}

test('authorizations: 20 a minute from an address, then 429 in the form of OAuth', async () => {
  const web = await driver.client('web')
  await emptyWindows()
  const answers = await Promise.all(Array.from({ length: 25 }, () => driver.ask(web)))
  assert.equal(answers.filter(({ status }) => status === 303).length, 20)
  const refused = answers.find(({ status }) => status === 429)
  const body = (await refused?.json()) as { error: string; retry_after: number }
  assert.equal(body.error, 'rate_limit_exceeded')
  assert.ok(body.retry_after >= 1 && body.retry_after <= 60)
  assert.equal(refused?.headers.get('retry-after'), String(body.retry_after))
  assert.equal(refused?.headers.get('location'), null)
})

test('tokens and revocations: 30 a minute for an app at an address, in separate buckets', async () => {
  const one = await driver.client('one')
  const two = await driver.client('two')
  await emptyWindows()
  const statuses = async (path: string, client_id: string, count: number) =>
    (
      await Promise.all(
        Array.from({ length: count }, () =>
          driver.post(path, { client_id, client_secret: 'x', token: 'x', grant_type: 'refresh_token' }),
        ),
      )
    ).map(({ status }) => status)
  const token = await statuses('/oauth2/token', one.client_id, 33)
  assert.equal(token.filter((status) => status === 401).length, 30)
  assert.equal(token.filter((status) => status === 429).length, 3)
  assert.deepEqual(await statuses('/oauth2/token', two.client_id, 1), [401])
  assert.deepEqual(await statuses('/oauth2/revoke', one.client_id, 1), [401])
  const basic = { authorization: `Basic ${Buffer.from('one:x').toString('base64')}` }
  assert.equal(
    (await driver.post('/oauth2/token', { grant_type: 'refresh_token' }, basic)).status,
    429,
    'the same app by Basic',
  )
  const { status, body, headers } = await driver.post('/oauth2/token', { client_id: 'one', client_secret: 'x' })
  assert.equal(status, 429)
  assert.equal(body.error, 'rate_limit_exceeded')
  assert.equal(headers.get('cache-control'), 'no-store')
})

test('making up names of apps does not evade the limit', async () => {
  await emptyWindows()
  const answers = await Promise.all(
    Array.from({ length: 35 }, (_, i) =>
      driver.post('/oauth2/token', { client_id: `made-up-${i}`, client_secret: 'x', grant_type: 'refresh_token' }),
    ),
  )
  assert.equal(answers.filter(({ status }) => status === 429).length, 5)
  const windows = await service.sql`select 1 from rate_window where bucket = 'oauth.token'`
  assert.equal(windows.length, 1)
})
