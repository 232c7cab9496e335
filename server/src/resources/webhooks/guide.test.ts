import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, it } from 'node:test'
import { pathToFileURL } from 'node:url'
import { Webhook } from 'standardwebhooks'
import { bounds } from '#contract/core/limits.ts'
import { secretOverlap_hours } from '#contract/resources/webhooks.ts'
import { eventually, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

const repository = new URL('../../../../', import.meta.url)
const guide = readFileSync(new URL('docs/guides/webhooks.md', repository), 'utf8')
const examples = [...guide.matchAll(/```sh\n(.*?)```/gs)].map(([, text = '']) => text)
const programs = new Map(
  [...guide.matchAll(/```js\n\/\/ (\S+)\n(.*?)```/gs)].map(([, name = '', text = '']) => [name, text]),
)

let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'cadre-guide-'))
  // As `npm init -y` writes it.
  await writeFile(join(folder, 'package.json'), '{"type": "commonjs"}')
  await symlink(new URL('node_modules', repository), join(folder, 'node_modules'))
  for (const [name, text] of programs) await writeFile(join(folder, name), text)
})
after(() => rm(folder, { recursive: true }))

it('the guide of the webhooks does what it says', async (t) => {
  const test = await shareTestService()
  t.after(() => test.stop())
  const port = await freePort()
  const shell = startShell(t, { CADRE: `${test.url}/api/v1`, KEY: test.owner.api_key })
  const say = (text: string) => shell.say(text.replaceAll(':9000', `:${port}`))
  const rest = [...examples]
  const next = () => say(rest.shift() ?? assert.fail('the guide has fewer examples'))

  await next()
  const secret = (await say('echo "$SECRET"')).trim()
  const lines = startReceiver(t, { SECRET: secret, PORT: String(port) })
  await eventually(() => answers(port))
  await next()
  const webhook = (await say('echo "$WEBHOOK"')).trim()
  assert.match(webhook, /^wh_/)

  await next()
  await eventually(async () => lines().length === 2)
  const told = new Set(lines().map((line) => line.split(' ', 1)[0]))
  assert.deepEqual(told, new Set(['webhook.test', 'project.created']))

  assert.equal(JSON.parse(await next()).is_test, true)
  await eventually(async () => lines().some((line) => line.startsWith('agent.failed ')))
  await eventually(async () => JSON.parse(await say(rest[0]!)).pagination.total === 3)
  const { deliveries } = JSON.parse(await next())
  assert.deepEqual([...new Set(deliveries.map(({ status }: any) => status))], ['delivered'])

  const delivery = JSON.parse(await next())
  assert.deepEqual(Object.keys(JSON.parse(delivery.payload)), ['event', 'timestamp', 'data'])
  assert.equal(delivery.attempts[0].response.status, 204)

  assert.equal(JSON.parse(await next()).is_redelivery, true)
  await eventually(() => isDelivered(test, webhook, delivery.id, 2))
  assert.equal(lines().length, 3, 'the receiver knows it by its identifier')
  assert.equal(JSON.parse(await next()).recovered, 0)

  const rotated = JSON.parse(await next())
  assert.equal(new Webhook(rotated.secret).sign('a', new Date(), '').startsWith('v1,'), true)
  await test.send('POST', `/api/v1/webhooks/${webhook}/test`)
  await eventually(async () => lines().length === 4)

  assert.equal(JSON.parse(await next()).disabled_reason, 'requested')
  assert.deepEqual(rest, [])
})

it('the manual verification in the guide of the webhooks agrees with the library', async () => {
  const { isGenuine } = await import(pathToFileURL(join(folder, 'verify.mjs')).href)
  const body = '{"event":"agent.failed","data":{"text":"ä😀"}}'
  const now = new Date()
  const seconds = String(Math.floor(now.getTime() / 1000))
  const secrets = [
    'whsec_c2VjcmV0LW9mLXRoZS13ZWJob29rLXJlY2VpdmVy',
    'any text, ä',
    'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw3Vyo2yZ0Tmg=',
  ]
  for (const secret of secrets) {
    const library = secret.startsWith('whsec_')
      ? new Webhook(secret)
      : new Webhook(Buffer.from(secret), { format: 'raw' })
    const signature = library.sign('evt_1', now, body)
    const headers = { 'webhook-id': 'evt_1', 'webhook-timestamp': seconds, 'webhook-signature': signature }
    assert.equal(isGenuine(secret, headers, body), true)
    assert.equal(isGenuine(secret, { ...headers, 'webhook-signature': `v1,AAAA ${signature}` }, body), true)
    const old = new Date(now.getTime() - 301_000)
    const late = {
      'webhook-timestamp': String(Math.floor(old.getTime() / 1000)),
      'webhook-signature': library.sign('evt_1', old, body),
    }
    for (const [changed, text] of [
      [{}, `${body} `],
      [{ 'webhook-id': 'evt_2' }, body],
      [{ 'webhook-timestamp': String(Number(seconds) + 1) }, body],
      [{ 'webhook-timestamp': undefined }, body],
      [{ 'webhook-signature': undefined }, body],
      [{ 'webhook-signature': '' }, body],
      [{ 'webhook-signature': 'v1,' }, body],
      [late, body],
    ] as const)
      assert.equal(isGenuine(secret, { ...headers, ...changed }, text), false, JSON.stringify(changed))
    assert.equal(isGenuine('whsec_b3RoZXI=', headers, body), false)
  }
})

it('the guide of the webhooks states the actual limits', () => {
  const number = new Intl.NumberFormat('en')
  for (const told of [
    `may have ${number.format(bounds.webhooks_per_organization)}`,
    `${bounds.webhook_events} at most`,
    `at most ${bounds.recover_days} days ago`,
    `recovers ${number.format(bounds.recovered_deliveries)}`,
    `For ${secretOverlap_hours} hours both sign`,
  ])
    assert.ok(guide.replaceAll('\n', ' ').replaceAll('  ', ' ').includes(told), told)
})

interface Ends {
  after(end: () => void): void
}

/** A shell that remembers its variables from one example to the next. */
function startShell(t: Ends, env: Record<string, string>): { say(text: string): Promise<string> } {
  const shell = spawn('sh', [], { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'inherit'] })
  t.after(() => void shell.kill())
  let said = ''
  let heard = (): void => {}
  let hasEnded = false
  shell.once('close', () => {
    hasEnded = true
    heard()
  })
  shell.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString()
    heard()
  })
  return {
    async say(text) {
      said = ''
      shell.stdin.write(`${text}\necho; echo said-it\n`)
      while (!said.endsWith('\nsaid-it\n')) {
        assert.ok(!hasEnded, `the shell ended after ${text}`)
        await new Promise<void>((resolve) => (heard = resolve))
      }
      return said.slice(0, -'\nsaid-it\n'.length)
    },
  }
}

/** The receiver of the guide; gives the lines that it has printed. */
function startReceiver(t: Ends, env: Record<string, string>): () => string[] {
  const receiver: ChildProcess = spawn(process.execPath, [join(folder, 'receiver.mjs')], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => void receiver.kill())
  let printed = ''
  receiver.stdout!.on('data', (chunk: Buffer) => (printed += chunk.toString()))
  return () => printed.split('\n').filter((line) => line !== '')
}

/** Whether the receiver is there: what is not signed it refuses. */
async function answers(port: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' }).catch(() => undefined)
  return response?.status === 400
}

async function isDelivered(test: TestService, webhook: string, id: string, attempts: number): Promise<boolean> {
  const { body } = await test.send('GET', `/api/v1/webhooks/${webhook}/deliveries/${id}`)
  return body.status === 'delivered' && body.attempts.length === attempts
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((listening) => server.once('listening', listening))
  const { port } = server.address() as AddressInfo
  await new Promise((closed) => server.close(closed))
  return port
}
