import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { runCommand, startCommand } from '../../e2e/process.ts'
import { Browser } from '../../server/test/browser.ts'
import { eventually, startTestService, type TestService } from '../../server/test/harness.ts'
import { sizeOf } from '../../server/test/long-run.ts'
import { OAuthDriver } from '../../server/test/oauth.ts'

let service: TestService
let home: string
let env: Record<string, string>
before(async () => {
  service = await startTestService({ CADRE_PUBLIC_URL: '' })
  home = await mkdtemp(join(tmpdir(), 'cadre-login-'))
  env = { HOME: home, XDG_CONFIG_HOME: home, CADRE_BASE_URL: service.url }
  const driver = new OAuthDriver(service)
  await driver.client('terminal', { redirect_uri: 'http://127.0.0.1/cb', native: true, isPublic: true })
})
after(async () => {
  await service.stop()
  await rm(home, { recursive: true })
})

/** Starts a login with a device code, and decides in a browser. */
async function loginByDevice(decision: 'allow' | 'deny') {
  const running = startCommand(env, ['login', '--device', '--client-id', 'terminal'])
  let said = ''
  running.process.stderr!.on('data', (text: string) => (said += text))
  const url = await eventually(async () => /http\S+user_code=\S+/.exec(said)?.[0])
  const browser = new Browser(service.url)
  const login = await browser.follow(await browser.get(url))
  const { email, password } = service.owner
  const page = await browser.follow(await browser.submit(login, '/login', { email, password }))
  await browser.submit(page, '/device', { decision })
  return running.ended
}

test(
  'a user logs in with a device code, and concurrent commands with an expired token use one refresh token',
  { timeout: 240_000 },
  async () => {
    const { code, stderr } = await loginByDevice('allow')
    assert.equal(code, 0, stderr)
    assert.match(stderr, /type [B-Z]{4}-[B-Z]{4}/)

    const path = join(home, 'cadre/credentials.json')
    for (let round = 0; round < sizeOf({ short: 1, long: 2 }); round++) {
      const kept = JSON.parse(await readFile(path, 'utf8'))
      await writeFile(path, JSON.stringify({ default: { ...kept.default, expires_at: Date.now() } }))
      const answers = await Promise.all(Array.from({ length: 4 }, () => runCommand(env, ['whoami'])))
      for (const answer of answers) assert.equal(answer.code, 0, answer.stderr)
      const next = JSON.parse(await readFile(path, 'utf8'))
      assert.notEqual(next.default.refresh_token, kept.default.refresh_token)
    }

    // An invalid refresh token means that the login has ended.
    const kept = JSON.parse(await readFile(path, 'utf8'))
    await writeFile(path, JSON.stringify({ default: { ...kept.default, refresh_token: 'used', expires_at: 0 } }))
    const ended = await runCommand(env, ['whoami'])
    assert.equal(ended.code, 4)
    assert.match(ended.stderr, /has ended[^]*next: cadre login/)
  },
)

test('a login that is denied in the browser exits with 1', { timeout: 120_000 }, async () => {
  const { code, stderr } = await loginByDevice('deny')
  assert.deepEqual([code, /was refused/.test(stderr)], [1, true], stderr)
})
