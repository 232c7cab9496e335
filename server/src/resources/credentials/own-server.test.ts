import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { ownerOf } from '../../../test/actors.ts'
import { comeBack, makeTokenWorld, type TokenWorld } from '../../../test/fakes/token-world.ts'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'
import { OAuthDriver, type TestClient } from '../../../test/oauth.ts'
import { createProject } from '../../../test/fixtures.ts'

/** Two services: tools of one are called at the other, with tokens of its authorization server. */
let issuer: TestService
let test: TestService
let world: TokenWorld
let driver: OAuthDriver
let client: TestClient
before(async () => {
  issuer = await startTestService()
  test = await startTestService({ CADRE_EGRESS_ALLOW: 'loopback' })
  world = await makeTokenWorld(test)
  driver = new OAuthDriver(issuer)
  const redirect_uri = `${test.url}/api/v1/credentials/callback`
  client = await driver.client('caller', { redirect_uri, scopes: ['agents:read', 'tasks:write'] })
})
after(async () => {
  await test.stop()
  await issuer.stop()
})

/** Connects a credential as a person does who signs in at the issuing service and consents. */
async function connect(body: object): Promise<{ id: string; name: string }> {
  const { client_id, client_secret } = client
  const made = await world.call('POST', '/credentials', {
    type: 'oauth2',
    client_id,
    client_secret,
    allowed_hosts: ['127.0.0.1'],
    ...body,
  })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  const started = await world.call('POST', `/credentials/${made.body.id}/authorize`)
  assert.equal(started.status, 200, JSON.stringify(started.body))
  const { left, pages } = await driver.authorize(started.body.url)
  assert.deepEqual(pages, ['login', 'consent'])
  const page = await comeBack(test, left, ownerOf(test))
  assert.equal(page.status, 200, page.body)
  return made.body
}

async function agentWith(tool: string, args: object): Promise<string> {
  const call = { tool_calls: [{ name: tool, arguments: args }] }
  const { body } = await world.call('POST', '/agents', {
    name: `agent for ${tool.replace('/', ' ')}`,
    config: {
      model: 'builtin/script',
      tools: [tool],
      system_prompt: JSON.stringify([call, { text: '{{tool_result}}' }]),
    },
  })
  await eventually(async () => (await world.call('GET', `/agents/${body.id}`)).body.status === 'running')
  return body.id
}

const renewed = (id: string) => test.sql`update credential_oauth set renew_at = now() where credential_id = ${id}`

it('a tool calls the API of another service with tokens of its authorization server', async () => {
  const { id, name } = await connect({
    name: 'OTHER',
    grant: 'authorization_code',
    issuer: issuer.url,
    scopes: ['agents:read'],
  })
  const tool = await world.call('POST', '/tools', {
    name: 'permissions',
    description: 'What the token allows.',
    kind: 'http',
    http: {
      method: 'GET',
      url: `${issuer.url}/api/v1/auth/permissions`,
      headers: { authorization: `Bearer \${credentials.${name}}` },
    },
  })
  assert.equal(tool.status, 201)
  const agent = await agentWith('permissions', {})
  assert.deepEqual(JSON.parse((await world.give(agent)).output.content).scopes, ['agents:read'])
  await renewed(id)
  assert.deepEqual(JSON.parse((await world.give(agent)).output.content).scopes, ['agents:read'])
  const [row] = await test.sql<{ generation: number; rotates: boolean }>`
    select generation, rotates from credential_oauth where credential_id = ${id}`
  assert.deepEqual(row, { generation: 2, rotates: true })
})

it('an agent of another service is a tool by MCP, with a token for that server alone', async () => {
  const project = await createProject(issuer.send, 'served')
  const agents = `${project.path}/agents`
  const config = { model: 'builtin/echo', doors: { mcp: { published: true } } }
  const { body: served } = await issuer.send('POST', agents, { body: { name: 'helper', config } })
  await eventually(async () => (await issuer.send('GET', `${agents}/${served.id}`)).body.status === 'running')
  const mcp_url = `${issuer.url}/mcp/agents/${served.id}`
  const { id, name } = await connect({ name: 'SERVED', mcp_url, scopes: ['agents:read', 'tasks:write'] })
  const { body: connected } = await world.call('GET', `/credentials/${id}`)
  assert.deepEqual([connected.status, connected.issuer], ['connected', issuer.url])
  const tool = await world.call('POST', '/tools', {
    name: 'other',
    description: 'Another service.',
    kind: 'mcp',
    safety: 'keyed',
    mcp: { url: mcp_url, headers: { authorization: `Bearer \${credentials.${name}}` } },
  })
  assert.equal(tool.status, 201, JSON.stringify(tool.body))
  const found = tool.body.tools.find(({ name: own }: any) => own.includes('helper'))
  const agent = await agentWith(found.name, { input: 'Hello' })
  await renewed(id)
  const task = await world.give(agent)
  assert.match(task.output.content, /Hello/)
})
