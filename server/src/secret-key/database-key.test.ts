import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeSecrets, WrongSecretKeyAtStart } from '../platform/crypto/secrets.ts'
import { eventually, makeTestDatabase, sender, startOn, type Send } from '../../test/harness.ts'
import type { Service } from '../service.ts'
import { createProject } from '../../test/fixtures.ts'

const first_key = 'a secret key for tests, 32 characters'
const CADRE_SECRET_KEY = 'another secret key, of 32 characters or more'

describe('a service with another secret key than its database', () => {
  let database: Awaited<ReturnType<typeof makeTestDatabase>>
  let service: Service
  let send: Send
  let project: string
  let secret_agent: string
  let tool_agent: string
  let plain_agent: string
  let credential: string
  let model_agent: string
  let provider: string

  const make = async (body: object): Promise<string> => {
    const { body: agent } = await send('POST', `${project}/agents`, { body })
    await eventually(async () => (await send('GET', `${project}/agents/${agent.id}`)).body.status === 'running')
    return agent.id
  }
  const run = async (agent_id: string) => {
    const { body: task } = await send('POST', `${project}/agents/${agent_id}/tasks`, { body: { input: 'hi' } })
    return (await send('GET', `${project}/tasks/${task.id}?wait=20`)).body
  }
  const use = (started: Service): void => {
    service = started
    send = sender(started.url, api_key)
  }
  let api_key: string

  before(async () => {
    database = await makeTestDatabase()
    const started = await startOn(database.connection)
    api_key = started.first_owner!.api_key
    use(started)
    project = (await createProject(send, 'keys')).path
    credential = (
      await send('POST', `${project}/credentials`, {
        body: { name: 'KEY', value: 'canary', allowed_hosts: ['api.example.com'] },
      })
    ).body.id
    await send('POST', `${project}/tools`, {
      body: {
        name: 'weather',
        description: 'The weather.',
        kind: 'http',
        http: { method: 'GET', url: 'https://api.example.com/', headers: { a: '${credentials.KEY}' } },
      },
    })
    secret_agent = await make({ name: 'secret', config: { environment_variables: { A: '1' } } })
    tool_agent = await make({ name: 'tool', config: { tools: ['weather'] } })
    plain_agent = await make({ name: 'plain' })
    provider = (
      await send('POST', '/api/v1/model-providers', {
        body: { name: 'acme', base_url: 'https://models.example.com/v1', api_key: 'sk-canary' },
      })
    ).body.id
    model_agent = await make({ name: 'model', config: { model: 'acme/large' } })
    for (const agent of [secret_agent, tool_agent]) assert.equal((await run(agent)).status, 'completed')
    await service.stop()
  })
  after(async () => {
    await service.stop()
    await database.drop()
  })

  it('a service with another secret key than its database does not start, and its error names the key and the remedy', async () => {
    await assert.rejects(startOn(database.connection, { CADRE_SECRET_KEY }), (error) => {
      assert.ok(error instanceof WrongSecretKeyAtStart)
      for (const key of [first_key, CADRE_SECRET_KEY])
        assert.ok(error.message.includes(makeSecrets(key).key_id), error.message)
      assert.match(error.message, /CADRE_SECRET_KEY_LOST=acknowledged/)
      return true
    })
    // Nothing has changed: a service with the right key still starts.
    use(await startOn(database.connection))
    assert.equal((await send('GET', `${project}/credentials/${credential}`)).body.status, undefined)
    await service.stop()
  })

  it('after the loss of the key is acknowledged a service starts with another one, and stored secrets are marked as unreadable', async () => {
    use(await startOn(database.connection, { CADRE_SECRET_KEY, CADRE_SECRET_KEY_LOST: 'acknowledged' }))
    const { body } = await send('GET', `${project}/credentials/${credential}`)
    assert.deepEqual([body.status, body.error.code], ['unreadable', 'secret_unreadable'])
    const { body: list } = await send('GET', `${project}/credentials`)
    assert.equal(list.credentials[0].status, 'unreadable')
    const { body: providers } = await send('GET', '/api/v1/model-providers')
    const own = providers.model_providers.find(({ name }: { name: string }) => name === 'acme')
    assert.deepEqual([own.status, own.has_key], ['unreadable', true])
    const { body: tested } = await send('POST', `/api/v1/model-providers/${provider}/test`)
    assert.deepEqual([tested.ok, tested.status], [false, 'unreadable'])
  })

  it('a call of a model provider whose key is unreadable fails until the key is set again', async () => {
    const task = await run(model_agent)
    assert.deepEqual([task.status, task.error.code, task.error.retryable], ['failed', 'secret_unreadable', false])
    assert.match(task.error.message, /key of the model provider acme/)
    await send('PUT', `/api/v1/model-providers/${provider}`, { body: { api_key: 'sk-new-canary' } })
    const [stored] = await service.context.sql<{ api_key: Buffer }>`
      select api_key from model_provider where id = ${provider}`
    const ours = makeSecrets(CADRE_SECRET_KEY)
    assert.equal(ours.decrypt('model-provider', stored!.api_key, provider), 'sk-new-canary')
  })

  it('tasks with unreadable secrets fail, and all others run', async () => {
    for (const [agent, what] of [
      [secret_agent, 'environment variables of the agent'],
      [tool_agent, 'credential KEY'],
    ] as const) {
      const task = await run(agent)
      assert.deepEqual([task.status, task.error.code, task.error.retryable], ['failed', 'secret_unreadable', false])
      assert.ok(task.error.message.includes(what), task.error.message)
      assert.equal(task.usage.steps, 0)
    }
    assert.equal((await run(plain_agent)).status, 'completed')
  })

  it('tasks run again once their secrets are set again', async () => {
    const set = await send('PUT', `${project}/credentials/${credential}`, { body: { value: 'new canary' } })
    assert.deepEqual([set.status, set.body.status], [200, undefined])
    assert.equal((await run(tool_agent)).status, 'completed')
    await send('PUT', `${project}/agents/${secret_agent}`, { body: { config: { environment_variables: { A: '2' } } } })
    await eventually(async () => (await run(secret_agent)).status === 'completed')
  })

  it('after an acknowledged loss the database has the new key, and a service with it starts as usual', async () => {
    await service.stop()
    await assert.rejects(startOn(database.connection), WrongSecretKeyAtStart)
    use(await startOn(database.connection, { CADRE_SECRET_KEY }))
    assert.equal((await run(plain_agent)).status, 'completed')
  })
})
