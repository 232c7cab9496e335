import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { after, before, it } from 'node:test'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import type { Task } from '@a2a-js/sdk'
import { a2aClient, a2aMessage, a2aRequest } from '../../../test/fakes/a2a-client.ts'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'
import { createAgent, createProject } from '../../../test/fixtures.ts'

let service: TestService
let project: string
let base: string
let url: string
const received: { path: string; headers: IncomingHttpHeaders; body: string }[] = []
const receiver = createServer((request, response) => {
  let body = ''
  request.setEncoding('utf8')
  request.on('data', (piece: string) => (body += piece))
  request.on('end', () => {
    received.push({ path: request.url!, headers: request.headers, body })
    response.end()
  })
})
const script = (...steps: unknown[]): string => JSON.stringify(steps)

before(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
  service = await startTestService({ CADRE_DOORS: 'a2a' })
  project = (await createProject(service.send, 'push')).path
  const config = { model: 'builtin/script', tools: ['request_input'], doors: { a2a: { published: true } } }
  const body = await createAgent(service.send, project, { name: 'script', config })
  base = `${service.url}/a2a/agents/${body.id}`
})
after(async () => {
  receiver.close()
  await service.stop()
})

const clientOf = () => a2aClient(`${base}/.well-known/agent-card.json`, service.owner.api_key)
const statesAt = (path: string): string[] =>
  received.flatMap((one) => {
    const { statusUpdate } = JSON.parse(one.body)
    return one.path === path && statusUpdate ? [statusUpdate.status.state as string] : []
  })

it('a task sends its states and its artifact, authenticated and signed, to the URL in its message', async () => {
  const client = await clientOf()
  const authentication = { scheme: 'Bearer', credentials: 'theirs' }
  const config = {
    tenant: '',
    taskId: '',
    id: 'mine',
    url: `${url}/first`,
    token: 'a secret of the client',
    authentication,
  }
  const steps = script(
    { tool_calls: [{ name: 'request_input', arguments: { question: 'Where?' } }] },
    { text: 'There.' },
  )
  const asked = (await client.sendMessage(
    a2aRequest(a2aMessage(steps), { taskPushNotificationConfig: config }),
  )) as Task
  await eventually(async () => statesAt('/first').includes('TASK_STATE_INPUT_REQUIRED'))
  await client.sendMessage(a2aRequest(a2aMessage('Here', { taskId: asked.id })))
  await eventually(async () => statesAt('/first').includes('TASK_STATE_COMPLETED'))
  await eventually(async () => received.some(({ body }) => 'artifactUpdate' in JSON.parse(body)))
  for (const { headers, body } of received) {
    assert.equal(headers['x-a2a-notification-token'], 'a secret of the client')
    assert.equal(headers.authorization, 'Bearer theirs')
    new Webhook(Buffer.from('a secret of the client').toString('base64')).verify(
      body,
      headers as Record<string, string>,
    )
  }
  const artifacts = received.flatMap(({ body }) => JSON.parse(body).artifactUpdate ?? [])
  assert.deepEqual(
    artifacts.map(({ artifact, contextId }) => [artifact.parts, contextId]),
    [[[{ text: 'There.' }], asked.contextId]],
  )
  // It does not appear among the organization's webhooks, and its secrets cannot be read.
  assert.equal((await service.send('GET', '/api/v1/webhooks')).body.pagination.total, 0)
  const attempts = await service.sql`select request_headers::text as headers from delivery_attempt`
  assert.ok(!/theirs|a secret of the client/.test(JSON.stringify(attempts)))
})

it('push configurations of a task are created, read, replaced and deleted, and limited to ten', async () => {
  const client = await clientOf()
  const steps = script(
    { tool_calls: [{ name: 'request_input', arguments: { question: 'Where?' } }] },
    { text: 'There.' },
  )
  const { id: taskId } = (await client.sendMessage(a2aRequest(a2aMessage(steps)))) as Task
  const make = (id: string, to = `${url}/more`) =>
    client.createTaskPushNotificationConfig({
      tenant: '',
      taskId,
      id,
      url: to,
      token: 'secret',
      authentication: undefined,
    })
  for (let i = 0; i < 10; i++) await make(`c${i}`)
  await assert.rejects(make('c10'), /at most 10/)
  await assert.rejects(make('bad', 'http://169.254.169.254/'), /INVALID|not allowed|address/i)
  const made = await make('c3', `${url}/other`)
  assert.deepEqual([made.id, made.url, made.token], ['c3', `${url}/other`, ''])
  const read = await client.getTaskPushNotificationConfig({ tenant: '', taskId, id: 'c3' })
  assert.deepEqual([read.url, read.token], [`${url}/other`, ''])
  const list = { tenant: '', taskId, pageSize: 0, pageToken: '' }
  assert.equal((await client.listTaskPushNotificationConfig(list)).configs.length, 10)
  await client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id: 'c3' })
  assert.equal((await client.listTaskPushNotificationConfig(list)).configs.length, 9)
  await assert.rejects(client.getTaskPushNotificationConfig({ tenant: '', taskId, id: 'c3' }), { name: /TaskNotFound/ })
  const key = (
    await service.send('POST', '/api/v1/auth/api-keys', { body: { name: 'reader', scopes: ['agents:read'] } })
  ).body.key
  const headers = { 'a2a-version': '1.0', authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const path = `${base}/tasks/${taskId}/pushNotificationConfigs`
  assert.equal((await fetch(path, { method: 'POST', headers, body: JSON.stringify({ url }) })).status, 403)
  assert.equal((await fetch(path, { headers })).status, 200)
  const bad = JSON.stringify({ url, token: 'a\r\nx-evil: 1' })
  const owner = { ...headers, authorization: `Bearer ${service.owner.api_key}` }
  assert.equal((await fetch(path, { method: 'POST', headers: owner, body: bad })).status, 400)
  await fetch(`${path}/c4`, { method: 'DELETE', headers: owner }).then(({ status }) => assert.equal(status, 204))
})
