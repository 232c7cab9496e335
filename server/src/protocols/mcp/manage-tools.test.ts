import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { makePerson, makeKey, ownerOf } from '../../../test/actors.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'
import type { Scope } from '#contract/core/scopes.ts'
import { createProject } from '../../../test/fixtures.ts'

let service: TestService
let project: string
before(async () => {
  service = await startTestService({ CADRE_MCP_MANAGE: '1' })
  project = (await createProject(service.send, 'managed')).path
})
after(() => service.stop())

async function connect(t: { after(run: () => Promise<void>): void }, key: string, path = '/mcp'): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' })
  const headers = { authorization: `Bearer ${key}` }
  const transport = new StreamableHTTPClientTransport(new URL(path, service.url), { requestInit: { headers } })
  await client.connect(transport)
  t.after(() => client.close())
  return client
}
const call = async (client: Client, name: string, args: object): Promise<any> =>
  client.callTool({ name, arguments: args as Record<string, unknown> })
const names = async (client: Client): Promise<string[]> => (await client.listTools()).tools.map(({ name }) => name)
const managing = ['get_usage', 'search_logs', 'create_agent', 'update_agent', 'change_agent_state']

describe('tools that manage agents', () => {
  it('management tools create, change, stop and start an agent like the API, with audit log entries', async (t) => {
    const client = await connect(t, service.owner.api_key)
    assert.ok((await names(client)).length <= 15)
    const made = await call(client, 'create_agent', {
      ...{ project: 'Managed', name: 'helper', description: 'Helps.' },
      config: { model: 'builtin/echo', doors: { mcp: { published: true } } },
    })
    const { agent } = made.structuredContent
    assert.equal(made.isError, undefined, JSON.stringify(made))
    const updated = await call(client, 'update_agent', { agent: 'managed/helper', description: 'Helps more.' })
    assert.deepEqual(
      [updated.structuredContent.agent.id, updated.structuredContent.agent.description],
      [agent.id, 'Helps more.'],
    )
    const stopped = await call(client, 'change_agent_state', { agent: 'helper', action: 'stop' })
    assert.equal(stopped.isError, undefined, JSON.stringify(stopped))
    assert.equal((await service.send('GET', `${project}/agents/${agent.id}`)).body.status, 'stopped')
    const again = await call(client, 'change_agent_state', { agent: 'helper', action: 'pause' })
    assert.equal(again.isError, true)
    await call(client, 'change_agent_state', { agent: 'helper', action: 'start' })
    const { body: audit } = await service.send('GET', '/api/v1/auth/audit?limit=50')
    const actions = (audit.entries ?? audit.audit_log ?? audit.events).map(({ action }: any) => action)
    for (const action of ['agent.created', 'agent.updated', 'agent.stopped', 'agent.started'])
      assert.ok(actions.includes(action), `${action} of ${actions}`)
    const asked = await call(client, 'ask_helper', { input: 'Hello' })
    assert.equal(asked.structuredContent.content, 'Hello')
    const usage = await call(client, 'get_usage', { project: 'managed', group_by: 'agent' })
    assert.equal(usage.structuredContent.usage.usage.length, 1)
    const logs = await call(client, 'search_logs', { agent: 'helper', search: 'completed' })
    assert.equal(logs.structuredContent.logs.length, 1)
    const all = await call(client, 'search_logs', { project: 'managed', limit: 2 })
    assert.equal(all.structuredContent.logs.length, 2)
  })

  it('management tools refuse what the API refuses, with the same code', async (t) => {
    const client = await connect(t, service.owner.api_key)
    const cases: [string, object, RegExp][] = [
      ['create_agent', { project: 'nothing', name: 'x' }, /(agent|resource)_not_found/],
      ['create_agent', { project: 'managed', name: 'x', config: { model: 7 } }, /validation_error/],
      ['update_agent', { agent: 'nothing', name: 'x' }, /(agent|resource)_not_found/],
      ['get_usage', { project: 'managed', group_by: 'moon' }, /validation_error|invalid_query/],
    ]
    for (const [name, args, said] of cases) {
      const refused = await call(client, name, args)
      assert.equal(refused.isError, true, name)
      assert.match(refused.content[0].text, said)
    }
  })

  it('management tools are not listed without the scope, in another organization, or at the URL of an agent', async (t) => {
    const reader = await makeKey(service, ownerOf(service), ['agents:read', 'tasks:write'] satisfies Scope[])
    const client = await connect(t, reader.key)
    assert.deepEqual(
      (await names(client)).filter((name) => managing.includes(name)),
      [],
    )
    await assert.rejects(call(client, 'create_agent', { project: 'managed', name: 'x' }))
    const stranger = await makeKey(service, await makePerson(service), ['agents:write', 'agents:read', 'tasks:write'])
    const other = await connect(t, stranger.key)
    for (const [name, args] of [
      ['update_agent', { agent: 'managed/helper', name: 'mine' }],
      ['search_logs', { project: 'managed' }],
      ['get_usage', { project: project.split('/').at(-1) }],
    ] as const)
      assert.match((await call(other, name, args)).content[0].text, /(agent|resource)_not_found/, name)
    const { body } = await service.send('GET', `${project}/agents`)
    const one = await connect(t, service.owner.api_key, `/mcp/agents/${body.agents[0].id}`)
    assert.deepEqual(
      (await names(one)).filter((name) => managing.includes(name)),
      [],
    )
  })
})
