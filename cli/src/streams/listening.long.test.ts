import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { eventually, startTestService, type TestService } from '../../../server/test/harness.ts'
import { runCommand, startCommand, type RunningCommand } from '../../../e2e/process.ts'

let service: TestService
let home: string
let env: Record<string, string>
let project: string
before(async () => {
  service = await startTestService({ CADRE_EGRESS_ALLOW: 'loopback' })
  home = await mkdtemp(join(tmpdir(), 'cadre-cli-'))
  const made = await service.send('POST', '/api/v1/projects', { body: { name: 'long' } })
  project = String(made.body.id)
  env = { HOME: home, XDG_CONFIG_HOME: home, CADRE_BASE_URL: service.url, CADRE_PROJECT: project }
})
after(async () => {
  await service.stop()
  await rm(home, { recursive: true })
})

/** A command of the owner, and its output so far. */
function start(args: string[], own: Record<string, string> = { CADRE_API_KEY: service.owner.api_key }) {
  const command = startCommand({ ...env, ...own }, args)
  const said = { out: '', err: '' }
  command.process.stdout!.on('data', (text: string) => (said.out += text))
  command.process.stderr!.on('data', (text: string) => (said.err += text))
  return { ...command, said }
}

/** Ends a command that runs until it is stopped. */
async function interrupt(command: RunningCommand): Promise<void> {
  command.process.kill('SIGINT')
  assert.equal((await command.ended).code, 130)
}

test('signed events are forwarded unchanged to a program, and its responses to the service', async (t) => {
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
  const key = { CADRE_API_KEY: service.owner.api_key }
  const sample = await start(['webhooks', 'trigger', 'agent.failed', '--jq', '.webhook_id'], key).ended
  assert.equal(sample.code, 0)
  await eventually(async () => lines().some((line) => JSON.parse(line).event === 'agent.failed'))
  const delivery = await eventually(async () => {
    const { body } = await service.send('GET', `/api/v1/webhooks/${webhook.id}/deliveries`)
    return body.deliveries.find(({ last_response_status }: any) => last_response_status === 503)
  })
  assert.equal(delivery.status, 'pending', 'it is tried again, as in production')
  const forged = await fetch(webhook.url, { method: 'POST', body, headers: { 'webhook-id': 'evt_1' } })
  assert.equal(forged.status, 404)
  await interrupt(command)
  const alone = start(['webhooks', 'trigger', 'agent.failed'])
  assert.equal((await alone.ended).code, 1)
  assert.match(alone.said.err, /No `cadre webhooks listen` runs[^]*next: cadre webhooks listen/)
  assert.equal((await service.send('GET', `/api/v1/webhooks/${webhook.id}`)).status, 404, 'it is gone with the command')
})

test('the next command deletes the webhook of a killed command, and keeps that of a running one', async (t) => {
  const args = ['webhooks', 'listen', '--forward-to', 'http://127.0.0.1:9/hooks', '--events', 'project.deleted']
  const listens = async (command: ReturnType<typeof start>) =>
    eventually(async () => /(\w+) forwards/.exec(command.said.err)?.[1])
  const statusOf = async (id: string) => (await service.send('GET', `/api/v1/webhooks/${id}`)).status
  const [killed, running] = [start(args), start(args)]
  t.after(() => [killed, running].forEach((command) => command.process.kill('SIGKILL')))
  const [left, kept] = [await listens(killed), await listens(running)]
  killed.process.kill('SIGKILL')
  await killed.ended
  assert.equal(await statusOf(left), 200, 'no process could remove it')
  const next = start(args)
  t.after(() => next.process.kill('SIGKILL'))
  const own = await listens(next)
  assert.match(next.said.err, new RegExp(`Deleted the webhook ${left}`))
  assert.deepEqual([await statusOf(left), await statusOf(kept)], [404, 200])
  running.process.kill('SIGTERM')
  next.process.kill('SIGHUP')
  assert.deepEqual([(await running.ended).code, (await next.ended).code], [130, 130])
  assert.deepEqual([await statusOf(kept), await statusOf(own)], [404, 404])
  assert.deepEqual(await readdir(join(home, 'cadre', 'listening')), [])
})

test('a misspelled command gets a suggestion', async () => {
  for (const [word, meant] of [
    ['agent', 'agents'],
    ['taks', 'tasks'],
    ['serv', 'serve'],
  ] as const) {
    const { code, stderr } = await runCommand(env, [word])
    assert.deepEqual([code, stderr.includes(`Did you mean ${meant}?`)], [2, true], stderr)
  }
})
