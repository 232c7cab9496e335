import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson } from '../../../test/actors.ts'
import { startFakeModelServer, type FakeModelServer } from '../../../test/fake-models/fake-model-server.ts'
import { eventually, makeTestDatabase, sender, startOn, type Send } from '../../../test/harness.ts'
import type { Service } from '../../service.ts'

const settings = { CADRE_DEFAULT_MODEL: 'builtin/echo', CADRE_EGRESS_ALLOW: 'loopback' }

/** An organization with a project, and an agent of a model in it. */
interface Organization {
  send: Send
  /** The same, in the other process. */
  elsewhere: Send
  project: string
  project_id: string
  agent: string
}

describe('model providers of an organization', () => {
  let database: Awaited<ReturnType<typeof makeTestDatabase>>
  let services: Service[]
  let models: FakeModelServer
  let ofService: FakeModelServer

  before(async () => {
    models = await startFakeModelServer()
    ofService = await startFakeModelServer()
    database = await makeTestDatabase()
    const one = await startOn(database.connection, { ...settings, CADRE_PROVIDER_SHARED_BASE_URL: ofService.base_url })
    const two = await startOn(database.connection, { ...settings, CADRE_PROVIDER_SHARED_BASE_URL: ofService.base_url })
    services = [one, two]
  })
  after(async () => {
    for (const service of services) await service.stop()
    await database.drop()
    await models.close()
    await ofService.close()
  })

  async function makeOrganization(model = 'acme/large'): Promise<Organization> {
    const [one, two] = services as [Service, Service]
    const test = { sql: one.context.sql }
    const { key } = await makeKey(test, await makePerson(test), ['admin'])
    const [send, elsewhere] = [sender(one.url, key), sender(two.url, key)]
    const { body: project } = await send('POST', '/api/v1/projects', { body: { name: 'providers' } })
    const path = `/api/v1/projects/proj_${project.id}`
    const agent = await makeAgent(send, path, model)
    return { send, elsewhere, project: path, project_id: `proj_${project.id}`, agent }
  }

  async function makeAgent(send: Send, project: string, model: string): Promise<string> {
    const body = { name: model.replace('/', '-'), config: { model, retry: { max_attempts: 1 } } }
    const { body: agent } = await send('POST', `${project}/agents`, { body })
    await eventually(async () => (await send('GET', `${project}/agents/${agent.id}`)).body.status === 'running')
    return agent.id
  }

  async function add(send: Send, body: object): Promise<any> {
    const reply = await send('POST', '/api/v1/model-providers', { body })
    assert.equal(reply.status, 201, JSON.stringify(reply.body))
    return reply.body
  }

  const run = async (send: Send, { project, agent }: Pick<Organization, 'project' | 'agent'>): Promise<any> =>
    (await send('POST', `${project}/agents/${agent}/tasks?wait=30`, { body: { input: 'Hi' } })).body

  /** Keys that the provider got since so many requests. */
  const keysSince = (count: number): unknown[] =>
    models.requests.slice(count).map(({ headers }) => headers.authorization)

  it('each organization uses its own key with a provider of the same name', async () => {
    const [a, b] = [await makeOrganization(), await makeOrganization()]
    const before = models.requests.length
    const provider = await add(a.send, {
      name: 'acme',
      base_url: models.base_url,
      api_key: 'sk-canary-of-organization-a',
    })
    await add(b.send, { name: 'acme', base_url: models.base_url, api_key: 'sk-canary-of-organization-b' })
    for (const { send, ...of } of [a, b, a]) {
      const task = await run(send, of)
      assert.equal(task.status, 'completed', JSON.stringify(task))
    }
    const [key_a, key_b] = ['Bearer sk-canary-of-organization-a', 'Bearer sk-canary-of-organization-b']
    assert.deepEqual(keysSince(before), [key_a, key_b, key_a])
    const { created_at, updated_at, created_by, id, ...view } = provider
    assert.match(id, /^mprov_/)
    assert.ok(created_at === updated_at && created_by)
    assert.deepEqual(view, {
      name: 'acme',
      kind: 'openai_compatible',
      protocol: 'chat',
      base_url: models.base_url,
      has_key: true,
      key_preview: '…on-a',
      projects: null,
      prices: {},
    })
  })

  it('a replaced key is used by the next call without a restart, also in another process', async () => {
    const { send, elsewhere, ...of } = await makeOrganization()
    const { id } = await add(send, { name: 'acme', base_url: models.base_url, api_key: 'sk-first-of-two-keys' })
    const before = models.requests.length
    for (const one of [send, elsewhere]) assert.equal((await run(one, of)).status, 'completed')
    const changed = await send('PUT', `/api/v1/model-providers/${id}`, { body: { api_key: 'sk-second-of-two-keys' } })
    assert.equal(changed.status, 200, JSON.stringify(changed.body))
    for (const one of [elsewhere, send]) assert.equal((await run(one, of)).status, 'completed')
    const [first, second] = ['Bearer sk-first-of-two-keys', 'Bearer sk-second-of-two-keys']
    assert.deepEqual(keysSince(before), [first, first, second, second])
  })

  it('a task that runs while the key is replaced makes its next call with the new one', async () => {
    const { send, elsewhere, project } = await makeOrganization()
    const { id } = await add(send, { name: 'acme', base_url: models.base_url, api_key: 'sk-before-the-tool-call' })
    const { body: agent } = await send('POST', `${project}/agents`, {
      body: { name: 'caller', config: { model: 'acme/large', tools: ['current_time'] } },
    })
    await eventually(async () => (await send('GET', `${project}/agents/${agent.id}`)).body.status === 'running')
    const before = models.requests.length
    const gate = Promise.withResolvers<void>()
    models.next({
      do: 'hold',
      pieces: 0,
      until: gate.promise,
      tool_calls: [{ name: 'current_time', arguments: {} }],
    })
    const asked = models.waitForRequests(before + 1)
    const running = run(send, { project, agent: agent.id })
    await asked
    await elsewhere('PUT', `/api/v1/model-providers/${id}`, { body: { api_key: 'sk-after-the-tool-call' } })
    gate.resolve()
    const task = await running
    assert.equal(task.status, 'completed', JSON.stringify(task))
    assert.deepEqual(keysSince(before), ['Bearer sk-before-the-tool-call', 'Bearer sk-after-the-tool-call'])
  })

  it('a provider is used in the projects that it is enabled for, and in no other', async () => {
    const { send, project_id, ...of } = await makeOrganization()
    const { body: second } = await send('POST', '/api/v1/projects', { body: { name: 'other' } })
    const other = `/api/v1/projects/proj_${second.id}`
    const { id } = await add(send, { name: 'acme', base_url: models.base_url, api_key: 'sk-x', projects: [project_id] })
    const outside = { project: other, agent: await makeAgent(send, other, 'acme/large') }
    assert.equal((await run(send, of)).status, 'completed')
    const refused = await run(send, outside)
    assert.deepEqual([refused.status, refused.error.code], ['failed', 'provider_not_configured'])
    assert.match(
      refused.error.message,
      /"acme" .* is not configured for this project.* Configured: builtin, ollama, shared\./,
    )
    await send('PUT', `/api/v1/model-providers/${id}`, { body: { projects: null } })
    assert.equal((await run(send, outside)).status, 'completed')
    await send('PUT', `/api/v1/model-providers/${id}`, { body: { projects: [] } })
    assert.equal((await run(send, of)).error?.code, 'provider_not_configured')
  })

  it("a provider of an organization replaces the service's provider of the same name until it is deleted", async () => {
    const { send, ...of } = await makeOrganization('shared/large')
    const theirs = await makeOrganization('shared/large')
    const [own, shared] = [models.requests.length, ofService.requests.length]
    assert.equal((await run(send, of)).status, 'completed')
    const { id } = await add(send, { name: 'shared', base_url: models.base_url, api_key: 'sk-x' })
    assert.equal((await run(send, of)).status, 'completed')
    assert.equal((await run(theirs.send, theirs)).status, 'completed')
    assert.deepEqual([models.requests.length - own, ofService.requests.length - shared], [1, 2])
    assert.equal((await send('DELETE', `/api/v1/model-providers/${id}`)).status, 200)
    assert.equal((await run(send, of)).status, 'completed')
    assert.deepEqual([models.requests.length - own, ofService.requests.length - shared], [1, 3])
  })

  it('tasks of a deleted provider fail with provider_not_configured and the configured providers', async () => {
    const { send, elsewhere, ...of } = await makeOrganization()
    const { id } = await add(send, { name: 'acme', base_url: models.base_url, api_key: 'sk-x' })
    assert.equal((await run(elsewhere, of)).status, 'completed')
    await send('DELETE', `/api/v1/model-providers/${id}`)
    const task = await run(elsewhere, of)
    assert.deepEqual([task.status, task.error.code], ['failed', 'provider_not_configured'])
    assert.match(task.error.message, /Configured: builtin, ollama, shared\.$/)
  })

  it('a provider that tells one organization to wait is still called for the others', async () => {
    const [a, b] = [await makeOrganization(), await makeOrganization()]
    for (const { send } of [a, b]) await add(send, { name: 'acme', base_url: models.base_url, api_key: 'sk-x' })
    models.next({ do: 'status', status: 429, headers: { 'retry-after': '60' } })
    const { body: waiting } = await a.send('POST', `${a.project}/agents/${a.agent}/tasks`, { body: { input: 'Hi' } })
    await eventually(async () => {
      const { body } = await a.send('GET', `${a.project}/tasks/${waiting.id}`)
      return body.status === 'failed' || body.wait?.reason === 'provider'
    })
    assert.equal((await run(b.send, b)).status, 'completed')
  })

  it("reasoning written by a provider of the service is not sent to the organization's provider of the same name", async () => {
    const { send, ...of } = await makeOrganization('shared/large')
    const { body: thread } = await send('POST', `${of.project}/threads`, { body: { agent_id: of.agent } })
    const ask = async () =>
      (
        await send('POST', `${of.project}/agents/${of.agent}/tasks?wait=30`, {
          body: { input: 'Hi', thread_id: thread.id },
        })
      ).body
    ofService.always({ do: 'answer', reasoning: [{ text: 'a thought of the service' }], text: 'Hello.' })
    for (let i = 0; i < 2; i++) assert.equal((await ask()).status, 'completed')
    const thoughts = ({ body }: { body: object }): boolean => JSON.stringify(body).includes('a thought of the service')
    assert.ok(thoughts(ofService.requests.at(-1)!), 'it goes back to the one that wrote it')
    await add(send, { name: 'shared', base_url: models.base_url, api_key: 'sk-x' })
    assert.equal((await ask()).status, 'completed')
    assert.ok(!thoughts(models.requests.at(-1)!))
    assert.ok(JSON.stringify(models.requests.at(-1)!.body).includes('Hello.'))
  })

  it('the gateway of remote workers calls models with the key of the organization', async () => {
    const { send, project } = await makeOrganization()
    await add(send, { name: 'acme', base_url: models.base_url, api_key: 'sk-of-the-gateway' })
    const config = { model: 'acme/large', runtime: { kind: 'remote', queue: 'q' } }
    const { body: agent } = await send('POST', `${project}/agents`, { body: { name: 'remote', config } })
    await send('POST', `${project}/agents/${agent.id}/tasks`, { body: { input: 'Go.' } })
    const { body: claimed } = await send('POST', `${project}/work/claim`, { body: { queues: ['q'], wait: 20 } })
    const reply = await fetch(`${services[1]!.url}${project}/work/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${claimed.work.lease.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'acme/large', messages: [{ role: 'user', content: 'Hi' }] }),
    })
    assert.equal(reply.status, 200, await reply.text())
    assert.equal(models.requests.at(-1)!.headers.authorization, 'Bearer sk-of-the-gateway')
  })

  it('a provider of an organization is listed with its agents beside those of the service, for members without its key', async () => {
    const { send, ...of } = await makeOrganization()
    const provider = await add(send, { name: 'acme', base_url: models.base_url, api_key: 'sk-canary-that-is-listed' })
    const { status, body } = await send('GET', '/api/v1/model-providers')
    assert.equal(status, 200)
    const listed = body.model_providers.find(({ own }: { own: unknown }) => own !== null)
    assert.deepEqual(listed.own, provider)
    assert.deepEqual([listed.name, listed.agents_total, listed.agents[0].id], ['acme', 1, of.agent])
    assert.ok(body.model_providers.some(({ name, own }: any) => name === 'shared' && own === null))
    const { body: one } = await send('GET', `/api/v1/model-providers/${provider.id}`)
    assert.deepEqual(one, provider)
    assert.ok(!JSON.stringify([body, one]).includes('sk-canary'))
    assert.equal((await run(send, of)).usage.cost_usd, null)
  })

  it('prices set by an organization apply from its next call on, in every process, and make budgets in dollars work', async () => {
    const { send, elsewhere, project, agent } = await makeOrganization()
    const { id } = await add(send, {
      name: 'acme',
      base_url: models.base_url,
      prices: { large: { input: 2, output: 5 } },
    })
    const inDollars = async (from: Send): Promise<any> =>
      (
        await from('POST', `${project}/agents/${agent}/tasks?wait=30`, {
          body: { input: 'Hi', budget: { max_cost_usd: 1 } },
        })
      ).body
    const costOf = ({ usage }: any, { input, output }: { input: number; output: number }): number =>
      (usage.input_tokens * input + usage.output_tokens * output) / 1e6
    const task = await inDollars(send)
    assert.equal(task.status, 'completed', JSON.stringify(task))
    assert.ok(task.usage.input_tokens > 0 && task.usage.output_tokens > 0)
    assert.equal(task.usage.cost_usd, costOf(task, { input: 2, output: 5 }))
    await elsewhere('PUT', `/api/v1/model-providers/${id}`, { body: { prices: { large: { input: 40, output: 1 } } } })
    for (const from of [send, elsewhere]) {
      const later = await inDollars(from)
      assert.equal(later.usage.cost_usd, costOf(later, { input: 40, output: 1 }))
    }
    const cleared = await send('PUT', `/api/v1/model-providers/${id}`, { body: { prices: null } })
    assert.deepEqual(cleared.body.prices, {})
    const unpriced = await inDollars(elsewhere)
    assert.deepEqual([unpriced.status, unpriced.error?.code], ['failed', 'price_unknown'])
    assert.match(unpriced.error.message, /"prices" of your organization's model provider/)
  })

  it('a test of a provider reports whether it responds, whether its key is valid and whether a model responds', async () => {
    const { send } = await makeOrganization()
    const { id } = await add(send, { name: 'acme', base_url: models.base_url, api_key: 'sk-that-is-refused' })
    const test = async (body?: object) => (await send('POST', `/api/v1/model-providers/${id}/test`, { body })).body
    const listed = await test()
    assert.deepEqual([listed.ok, listed.status, listed.error], [true, 'reachable', null])
    const answered = await test({ model: 'large' })
    assert.deepEqual([answered.ok, answered.status, answered.error], [true, 'reachable', null])
    models.next({ do: 'status', status: 401, message: 'Incorrect API key provided: sk-that-is-refused' })
    const refused = await test({ model: 'large' })
    assert.deepEqual([refused.ok, refused.status], [false, 'refused'])
    assert.ok(refused.error !== null && !refused.error.includes('sk-that-is-refused'), refused.error)
    await services[0]!.context.sql`update model_provider set base_url = 'http://10.255.255.1/v1' where id = ${id}`
    for (const body of [undefined, { model: 'large' }]) {
      const forbidden = await test(body)
      assert.match(forbidden.error, /not a public address/)
    }
  })
})
