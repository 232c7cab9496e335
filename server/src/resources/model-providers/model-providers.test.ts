import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson } from '../../../test/actors.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'

const secret = 'sk-canary-of-a-provider'

describe('model providers', () => {
  let service: TestService
  const requests: IncomingMessage[] = []
  const servers = {
    good: createServer((request, response) => {
      requests.push(request)
      response.end(JSON.stringify({ object: 'list', data: [{ id: 'small' }, { id: 'org/large' }, { no: 1 }] }))
    }),
    strict: createServer((_, response) => void response.writeHead(401).end('{}')),
    broken: createServer((_, response) => void response.writeHead(503).end()),
    plain: createServer((_, response) => void response.writeHead(404).end('nothing')),
    cut: createServer((request) => request.socket.destroy()),
  }
  const base = (name: keyof typeof servers): string =>
    `http://127.0.0.1:${(servers[name].address() as AddressInfo).port}/v1`

  before(async () => {
    for (const server of Object.values(servers)) await once(server.listen(0, '127.0.0.1'), 'listening')
    const absent = createServer().listen(0, '127.0.0.1')
    await once(absent, 'listening')
    const { port } = absent.address() as AddressInfo
    absent.close()
    await once(absent, 'close')
    service = await startTestService({
      CADRE_DEFAULT_MODEL: 'builtin/echo',
      OPENAI_BASE_URL: base('good'),
      OPENAI_API_KEY: secret,
      ANTHROPIC_BASE_URL: base('good'),
      ANTHROPIC_API_KEY: secret,
      CADRE_PROVIDER_STRICT_BASE_URL: base('strict'),
      CADRE_PROVIDER_BROKEN_BASE_URL: base('broken'),
      CADRE_PROVIDER_PLAIN_BASE_URL: base('plain'),
      CADRE_PROVIDER_CUT_BASE_URL: base('cut'),
      CADRE_PROVIDER_OLLAMA_BASE_URL: `http://127.0.0.1:${port}/v1`,
    })
  })
  after(async () => {
    await service.stop()
    for (const server of Object.values(servers)) server.close()
  })

  it('model providers are listed with their state and models, without keys and addresses', async () => {
    const person = await makePerson(service)
    const { key } = await makeKey(service, person, ['admin'])
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => service.send('GET', '/api/v1/model-providers', { key })),
    )
    const [{ status, body }] = answers as [(typeof answers)[number]]
    assert.equal(status, 200)
    const received = Object.fromEntries(
      body.model_providers.map(({ name, ...provider }: { name: string }) => [name, provider]),
    )
    const { checked_at, ...openai } = received.openai
    assert.ok(Date.parse(checked_at) > 0)
    assert.deepEqual(openai, {
      kind: 'openai_compatible',
      is_default: true,
      has_key: true,
      status: 'reachable',
      error: null,
      models: ['openai/org/large', 'openai/small'],
      own: null,
      agents: [],
      agents_total: 0,
      last_failure: null,
    })
    assert.deepEqual(received.anthropic.models, ['anthropic/org/large', 'anthropic/small'])
    assert.deepEqual(received.builtin.models, ['builtin/echo', 'builtin/script'])
    assert.deepEqual(
      ['strict', 'broken', 'plain', 'cut', 'ollama'].map((name) => received[name].status),
      ['refused', 'unreachable', 'reachable', 'unreachable', 'unreachable'],
    )
    assert.equal(body.default_model, 'builtin/echo')
    const text = JSON.stringify(body)
    assert.ok(!text.includes(secret) && !text.includes('127.0.0.1'), text)
    // Five asked at once; each provider was asked once, by its own form of the key.
    assert.deepEqual(
      requests
        .map(({ headers }) => headers.authorization ?? headers['x-api-key'])
        .map(String)
        .toSorted(),
      [`Bearer ${secret}`, secret],
    )
  })

  it('model providers list the agents of the organization that use them, and the newest task that failed at one', async () => {
    const person = await makePerson(service)
    const { key } = await makeKey(service, person, ['admin'])
    const post = async (path: string, body: object) => (await service.send('POST', path, { key, body })).body
    const { id } = await post('/api/v1/projects', { name: 'users' })
    const agents = `/api/v1/projects/proj_${id}/agents`
    const config = { model: 'strict/large', max_retries: 0 }
    const agent = await post(agents, { name: 'refused', config })
    await post(agents, { name: 'plain', config: { model: 'unnamed' } })
    await post(agents, { name: 'default' })
    const task = await post(`${agents}/${agent.id}/tasks?wait=20`, { input: 'x' })
    assert.equal(task.status, 'failed', JSON.stringify(task))
    const { body } = await service.send('GET', '/api/v1/model-providers', { key })
    const received = Object.fromEntries(
      body.model_providers.map((provider: { name: string }) => [provider.name, provider]),
    )
    const names = (of: { agents: { name: string }[] }) => of.agents.map(({ name }) => name)
    assert.deepEqual(
      ['strict', 'openai', 'builtin'].map((name) => [names(received[name]), received[name].agents_total]),
      [
        [['refused'], 1],
        [['plain'], 1],
        [['default'], 1],
      ],
    )
    const { at, code, message, ...which } = received.strict.last_failure
    assert.deepEqual(which, { project_id: `proj_${id}`, task_id: task.id })
    assert.ok(Date.parse(at) > 0 && code !== '' && message !== '')
    assert.equal(received.openai.last_failure, null)
    // Another organization knows nothing of it.
    const stranger = await makeKey(service, await makePerson(service), ['admin'])
    const { body: theirs } = await service.send('GET', '/api/v1/model-providers', { key: stranger.key })
    for (const { agents_total, last_failure } of theirs.model_providers)
      assert.deepEqual([agents_total, last_failure], [0, null])
  })
})
