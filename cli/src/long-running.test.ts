import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { Browser } from '../../server/test/browser.ts'
import { eventually, startTestService, type TestService } from '../../server/test/harness.ts'
import { OAuthDriver } from '../../server/test/oauth.ts'
import { runCommand, startCommand, type RunningCommand } from '../../e2e/process.ts'

let service: TestService
let home: string
let env: Record<string, string>
let project: string
before(async () => {
  service = await startTestService({ CADRE_PUBLIC_URL: '', CADRE_EGRESS_ALLOW: 'loopback' })
  home = await mkdtemp(join(tmpdir(), 'cadre-cli-'))
  const made = await service.send('POST', '/api/v1/projects', { body: { name: 'long' } })
  project = String(made.body.id)
  env = { HOME: home, XDG_CONFIG_HOME: home, CADRE_BASE_URL: service.url, CADRE_PROJECT: project }
})
after(async () => {
  await service.stop()
  await rm(home, { recursive: true })
})

/** A command of the owner's, and what it has said so far. */
function start(words: string[], own: Record<string, string> = { CADRE_API_KEY: service.owner.api_key }) {
  const command = startCommand({ ...env, ...own }, words)
  const said = { out: '', err: '' }
  command.process.stdout!.on('data', (text: string) => (said.out += text))
  command.process.stderr!.on('data', (text: string) => (said.err += text))
  return { ...command, said }
}

/** Ends a command that runs until it is told to stop. */
async function interrupt(command: RunningCommand): Promise<void> {
  command.process.kill('SIGINT')
  await command.ended
}

test('what happens in a project is shown as it happens, an event on its line', async () => {
  const command = start(['projects', 'watch', '--json'])
  const types = () =>
    command.said.out
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line).type as string)
  await eventually(async () => types()[0] === 'project.snapshot')
  const path = `/api/v1/projects/${project}/agents`
  const { body: agent } = await service.send('POST', path, {
    body: { name: 'echo', config: { model: 'builtin/echo' } },
  })
  await service.send('POST', `${path}/${agent.id}/tasks`, { body: { input: 'Hello' } })
  await eventually(async () => types().includes('agent.status') && types().includes('task.completed'))
  await interrupt(command)
})

test('an export is written as the service gives it', async () => {
  const { body } = await service.send('GET', '/api/v1/auth/audit/export')
  const { code, stdout } = await start(['audit', 'export']).ended
  assert.equal(code, 0)
  assert.ok(stdout.startsWith(body))
  for (const line of stdout.trim().split('\n')) assert.ok(JSON.parse(line).id)
})

test('events are passed on to a program as they were signed, and its answers to the service', async (t) => {
  const taken: { headers: IncomingHttpHeaders; body: string }[] = []
  const receiver = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      taken.push({ headers: request.headers, body })
      response.writeHead(taken.length === 1 ? 503 : 204).end()
    })
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  t.after(() => receiver.close())
  const target = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hooks`
  const command = start(['webhooks', 'listen', '--forward-to', target, '--events', 'project.created', '--json'])
  const secret = await eventually(async () => /whsec_\S+/.exec(command.said.err)?.[0])
  await service.send('POST', '/api/v1/projects', { body: { name: 'told-of' } })
  const lines = () => command.said.out.split('\n').slice(0, -1)
  await eventually(async () => lines().length > 0)
  const first = JSON.parse(lines()[0]!)
  assert.deepEqual([first.event, first.status], ['project.created', 503])
  const { headers, body } = taken[0]!
  new Webhook(secret).verify(body, headers as Record<string, string>)

  const { body: list } = await service.send('GET', '/api/v1/webhooks')
  const [webhook] = list.webhooks
  const delivery = await eventually(async () => {
    const { body } = await service.send('GET', `/api/v1/webhooks/${webhook.id}/deliveries`)
    return body.deliveries.find(({ last_response_status }: any) => last_response_status === 503)
  })
  assert.equal(delivery.status, 'pending', 'it is tried again, as in production')
  const forged = await fetch(webhook.url, { method: 'POST', body, headers: { 'webhook-id': 'evt_1' } })
  assert.equal(forged.status, 404)
  await interrupt(command)
  assert.equal((await service.send('GET', `/api/v1/webhooks/${webhook.id}`)).status, 404, 'it is gone with the command')
})

test('commands that begin at once refresh a login once, and all go on with it', async () => {
  const driver = new OAuthDriver(service)
  await driver.client('cli', { redirect_uri: 'http://127.0.0.1/callback', native: true, isPublic: true })
  await driver.user('bob@example.com', 'seven grey herons')
  const command = start(['login', '--device', '--client-id', 'cli'], {})
  const code = await eventually(async () => /[B-Z]{4}-[B-Z]{4}/.exec(command.said.err)?.[0])
  const browser = new Browser(service.url)
  const login = await browser.follow(await browser.get(`/device?user_code=${code}`))
  const page = await browser.follow(
    await browser.submit(login, '/login', { email: 'bob@example.com', password: 'seven grey herons' }),
  )
  await browser.submit(page, '/device', { decision: 'allow' })
  assert.equal((await command.ended).code, 0, command.said.err)

  const file = join(home, 'cadre/credentials.json')
  const kept = JSON.parse(await readFile(file, 'utf8'))
  const { refresh_token } = kept.default
  await writeFile(file, JSON.stringify({ default: { ...kept.default, expires_at: Date.now() } }))
  const all = await Promise.all([1, 2, 3, 4].map(() => runCommand(env, ['whoami'])))
  assert.deepEqual(
    all.map(({ code, stderr }) => [code, stderr]),
    all.map(() => [0, '']),
  )
  assert.notEqual(JSON.parse(await readFile(file, 'utf8')).default.refresh_token, refresh_token)
  assert.equal((await runCommand(env, ['whoami'])).code, 0)
})

test('a word that is nearly one of the commands is told which one was meant', async () => {
  for (const [word, meant] of [
    ['agent', 'agents'],
    ['taks', 'tasks'],
    ['serv', 'serve'],
  ] as const) {
    const { code, stderr } = await runCommand(env, [word])
    assert.deepEqual([code, stderr.includes(`Did you mean "cadre ${meant}"?`)], [2, true], stderr)
  }
})
