import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { eventually, makeTestDatabase, sender } from '../../server/test/harness.ts'
import { databaseEnvironment, startCommand, startProcess, temporaryFolder } from '../process.ts'

const api_key = 'cadre_00112233445566778899aabbccddeeff'

test('`cadre webhooks listen` goes on when the service is killed and comes back, and misses no event', async (t) => {
  const ends: (() => Promise<unknown>)[] = []
  t.after(async () => {
    for (const end of ends.toReversed()) await end()
  })
  const database = await makeTestDatabase()
  ends.push(() => database.drop())
  const folder = await temporaryFolder()
  ends.push(() => folder.remove())
  const env = {
    ...databaseEnvironment(database.connection),
    CADRE_ADMIN_API_KEY: api_key,
    CADRE_EGRESS_ALLOW: 'loopback',
  }
  const killed = await startProcess(env)
  ends.push(() => killed.end('SIGKILL'))
  const send = sender(killed.url, api_key)
  const hooks: string[] = []
  const receiver = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      hooks.push(JSON.parse(body).data.project.name)
      response.writeHead(204).end()
    })
  }).listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  ends.push(async () => receiver.close())

  const listening = startCommand(
    { HOME: folder.path, XDG_CONFIG_HOME: folder.path, CADRE_BASE_URL: killed.url, CADRE_API_KEY: api_key },
    [
      ...['webhooks', 'listen', '--events', 'project.created'],
      ...['--forward-to', `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`],
    ],
  )
  ends.push(async () => listening.process.kill('SIGKILL'))
  let said = ''
  listening.process.stderr!.on('data', (text: string) => (said += text))
  await eventually(async () => /forwards project\.created to/.test(said))

  assert.equal((await send('POST', '/api/v1/projects', { body: { name: 'before' } })).status, 201)
  // Whether it was delivered by now is left to chance: the commit is what counts.
  await killed.end('SIGKILL')
  const service = await startProcess({ ...env, PORT: new URL(killed.url).port })
  ends.push(() => service.end())
  assert.equal((await send('POST', '/api/v1/projects', { body: { name: 'after' } })).status, 201)
  await eventually(async () => hooks.includes('before') && hooks.includes('after'))

  listening.process.kill('SIGINT')
  assert.equal((await listening.ended).code, 130)
  assert.deepEqual((await send('GET', '/api/v1/webhooks')).body.webhooks, [], 'its webhook is gone with it')
})
