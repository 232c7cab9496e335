import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser } from '../../../test/browser.ts'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'
import { OAuthDriver, type TestClient, type TokenReply } from '../../../test/oauth.ts'
import { sizeOf } from '../../../test/long-run.ts'
import { loadSigningKey } from './provider/signing-key.ts'

let service: TestService
let driver: OAuthDriver
let web: TestClient
let browser: Browser

before(async () => {
  service = await startTestService()
  driver = new OAuthDriver(service)
  web = await driver.client('web')
  browser = (await driver.authorize(driver.authorizeUrl(web))).browser
})
after(() => service.stop())

const tokens = () => driver.tokens(web, {}, { browser })
const isAnswered = ({ status, body }: TokenReply): boolean => status === 200 || body.error === 'invalid_grant'

test('of twelve simultaneous exchanges of one code at most one succeeds, and then it is revoked', async () => {
  for (let round = 0; round < sizeOf({ short: 1, long: 4 }); round++) {
    const code = await driver.code(web, {}, { browser })
    const answers = await Promise.all(Array.from({ length: 12 }, () => driver.exchange(web, code)))
    const won = answers.filter(({ status }) => status === 200)
    assert.ok(won.length <= 1)
    assert.ok(answers.every(isAnswered), JSON.stringify(answers.find((answer) => !isAnswered(answer))?.body))
    for (const { body } of won) assert.equal(await driver.statusOf(body.access_token), 401)
  }
})

test('of twelve simultaneous refreshes exactly one succeeds, and the others end the grant', async () => {
  for (let round = 0; round < sizeOf({ short: 1, long: 4 }); round++) {
    const { refresh_token } = await tokens()
    const answers = await Promise.all(Array.from({ length: 12 }, () => driver.refresh(web, refresh_token)))
    const won = answers.filter(({ status }) => status === 200)
    assert.equal(won.length, 1)
    assert.ok(answers.every(isAnswered))
    assert.equal(await driver.statusOf(won[0]?.body.access_token), 401)
  }
})

test('reuse that meets a refresh in flight leaves no survivor and no deadlock', async () => {
  for (let round = 0; round < sizeOf({ short: 2, long: 10 }); round++) {
    const old = (await tokens()).refresh_token
    const current = (await driver.refresh(web, old)).body.refresh_token
    const [refreshed, ...reused] = await Promise.all([
      driver.refresh(web, current),
      driver.refresh(web, old),
      driver.refresh(web, old),
    ])
    assert.ok([refreshed, ...reused].every(isAnswered))
    if (refreshed.status !== 200) continue
    assert.equal(await driver.statusOf(refreshed.body.access_token), 401)
    assert.equal((await driver.refresh(web, refreshed.body.refresh_token)).status, 400)
  }
})

test('revoking an access token while its grant is refreshed leaves nothing alive', async () => {
  for (let round = 0; round < sizeOf({ short: 2, long: 10 }); round++) {
    const { access_token, refresh_token } = await tokens()
    const [refreshed, revoked] = await Promise.all([
      driver.refresh(web, refresh_token),
      driver.revoke(web, access_token),
    ])
    assert.equal(revoked.status, 200)
    assert.ok(isAnswered(refreshed))
    assert.equal(await driver.statusOf(access_token), 401)
    if (refreshed.status !== 200) continue
    assert.equal(await driver.statusOf(refreshed.body.access_token), 401)
    assert.equal((await driver.refresh(web, refreshed.body.refresh_token)).body.error, 'invalid_grant')
  }
})

test('ending the session of a grant while it is refreshed leaves nothing alive', async () => {
  for (let round = 0; round < sizeOf({ short: 2, long: 10 }); round++) {
    const { access_token, refresh_token } = await tokens()
    const { body: session } = await service.send('GET', '/api/v1/auth/session', { token: access_token })
    const cookie = browser.cookieHeader('/')
    const [refreshed, ended] = await Promise.all([
      driver.refresh(web, refresh_token),
      service.send('DELETE', `/api/v1/auth/sessions/${session.id}`, { cookie }),
    ])
    assert.equal(ended.status, 200)
    assert.ok(isAnswered(refreshed), JSON.stringify(refreshed.body))
    assert.equal(await driver.statusOf(access_token), 401)
    if (refreshed.status === 200) assert.equal(await driver.statusOf(refreshed.body.access_token), 401)
    browser = (await driver.authorize(driver.authorizeUrl(web), { browser })).browser
  }
})

test('an app that is deleted during consent is gone: a page says so', async () => {
  const leaving = await driver.client('leaving')
  const asked = await browser.follow(await browser.get(driver.authorizeUrl(leaving)))
  let submitted!: ReturnType<Browser['submit']>
  await service.sql.begin(async (tx) => {
    await tx`delete from oauth_client where client_id = ${leaving.client_id}`
    submitted = browser.submit(asked, /interaction/, { decision: 'allow' })
    await eventually(async () => {
      const waiting = await service.sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%insert into oauth_grant%'`
      return waiting.length > 0
    })
  })
  const { status, html } = await submitted
  assert.equal(status, 400)
  assert.match(html, /Go back to the app and start again/)
})

test('all processes have one signing key, also when they make it at once', async () => {
  await service.sql`delete from service_secret`
  const { secrets } = service.service.context
  const keys = await Promise.all(Array.from({ length: 8 }, () => loadSigningKey(service.sql, secrets)))
  assert.equal(new Set(keys.map(({ d }) => d)).size, 1)
  assert.equal(keys[0]?.crv, 'P-256')
})

test('within the grace time a spent refresh token still works; after it, it ends the grant', async () => {
  const lenient = await startTestService({ CADRE_OAUTH_REFRESH_GRACE_SECONDS: '60' })
  try {
    const elsewhere = new OAuthDriver(lenient)
    const app = await elsewhere.client('web')
    const { refresh_token } = await elsewhere.tokens(app)
    const answers = await Promise.all(Array.from({ length: 4 }, () => elsewhere.refresh(app, refresh_token)))
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200, 200],
    )
    await lenient.sql`update oauth_artifact set consumed_at = consumed_at - interval '61 seconds' where consumed_at is not null`
    assert.equal((await elsewhere.refresh(app, refresh_token)).body.error, 'invalid_grant')
    for (const { body } of answers) assert.equal(await elsewhere.statusOf(body.access_token), 401)
  } finally {
    await lenient.stop()
  }
})
