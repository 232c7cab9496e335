import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { startMcpServer } from '../../../test/fakes/mcp-server.ts'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { secretLabels } from '../../platform/crypto/secret-labels.ts'

let test: TestService
let project: string
let project_id: number
before(async () => {
  test = await startTestService({ CADRE_EGRESS_ALLOW: 'loopback' })
  project_id = (await test.send('POST', '/api/v1/projects', { body: { name: 'hosts' } })).body.id
  project = `/api/v1/projects/proj_${project_id}`
})
after(() => test.stop())

let count = 0
const secret = 'canary-of-a-credential'
const send = (method: string, path: string, body?: object) =>
  test.send(method, `${project}${path}`, body === undefined ? {} : { body })
async function credential(body: object = {}): Promise<{ id: string; name: string; allowed_hosts: string[] | null }> {
  const name = `KEY_${++count}`
  const reply = await send('POST', '/credentials', { name, value: secret, allowed_hosts: ['good.test'], ...body })
  assert.equal(reply.status, 201, JSON.stringify(reply.body))
  return reply.body
}
const tool = (kind: string, definition: object) =>
  send('POST', '/tools', { name: `tool-${++count}`, description: 'A tool.', kind, [kind]: definition })
const fieldOf = ({ status, body }: Awaited<ReturnType<typeof send>>) => [status, body.error?.details?.[0]?.field]

it('a new credential has at least one allowed host, and is returned with its hosts', async () => {
  for (const allowed_hosts of [[], 'a.test', ['*'], ['*.com'], ['https://a.test'], ['a.test/x'], ['']]) {
    const { status, body } = await send('POST', '/credentials', { name: 'NONE', value: secret, allowed_hosts })
    assert.deepEqual([status, body.error.code], [400, 'validation_error'], JSON.stringify(allowed_hosts))
    assert.match(body.error.details[0].field, /^allowed_hosts/)
  }
  const { allowed_hosts } = await credential({ allowed_hosts: ['API.Good.test', '*.good.test:8443', 'api.good.test'] })
  assert.deepEqual(allowed_hosts, ['api.good.test', '*.good.test:8443'])
  const mcp = await send('POST', '/credentials', { name: 'MCP', type: 'oauth2', mcp_url: 'https://mcp.good.test/mcp' })
  assert.deepEqual(mcp.body.allowed_hosts, ['mcp.good.test'])
})

it('a tool of any kind that would send a credential to another host is refused, and nothing is sent', async (t) => {
  const asked: string[] = []
  const evil = await startLocalServer(t, (request, response) => {
    asked.push(`${request.url} ${JSON.stringify(request.headers)}`)
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  const { name } = await credential()
  const headers = { authorization: `Bearer \${credentials.${name}}` }
  const document = {
    openapi: '3.1.0',
    info: { title: 'a', version: '1' },
    paths: { '/x': { get: { operationId: 'x', responses: {} } } },
  }
  const http = { method: 'GET', url: `${evil.url}/x` }
  assert.deepEqual(fieldOf(await tool('http', { ...http, headers })), [400, 'http.url'])
  const inUrl = { method: 'GET', url: `${evil.url}/\${credentials.${name}}` }
  assert.deepEqual(fieldOf(await tool('http', inUrl)), [400, 'http.url'])
  assert.deepEqual(fieldOf(await tool('mcp', { url: `${evil.url}/mcp`, headers })), [400, 'mcp.url'])
  const based = { document, base_url: evil.url, headers }
  assert.deepEqual(fieldOf(await tool('openapi', based)), [400, 'openapi.base_url'])
  const served = { document: { ...document, servers: [{ url: evil.url }] }, headers }
  assert.deepEqual(fieldOf(await tool('openapi', served)), [400, 'openapi.headers'])
  const fetched = { url: `${evil.url}/\${credentials.${name}}` }
  assert.deepEqual(fieldOf(await tool('openapi', fetched)), [400, 'openapi.url'])
  const innocent = await tool('http', { method: 'GET', url: 'https://good.test/', headers })
  assert.equal(innocent.status, 201, JSON.stringify(innocent.body))
  const changed = await send('PUT', `/tools/${innocent.body.id}`, { http: { ...http, headers } })
  assert.deepEqual(fieldOf(changed), [400, 'http.url'])
  const trial = await send('POST', '/tools/try', { kind: 'http', http: { ...http, headers } })
  assert.equal(trial.body.error?.code, 'credential_not_allowed', JSON.stringify(trial.body))
  assert.deepEqual(asked, [])
})

it('a credential without hosts is bound to the host of the first tool that uses it', async (t) => {
  const asked: string[] = []
  const answers = await startLocalServer(t, (request, response) => {
    asked.push(String(request.headers.authorization))
    response.end('an answer')
  })
  const { id, name, allowed_hosts } = await credential({ allowed_hosts: undefined })
  assert.deepEqual(allowed_hosts, [])
  const headers = { authorization: `Bearer \${credentials.${name}}` }
  const http = { method: 'GET', url: `${answers.url}/x`, headers }
  const trial = await send('POST', '/tools/try', { kind: 'http', http })
  assert.deepEqual([trial.body.response?.status, asked], [200, [`Bearer ${secret}`]], JSON.stringify(trial.body))
  assert.deepEqual((await send('GET', `/credentials/${id}`)).body.allowed_hosts, [])
  const made = await Promise.all([tool('http', http), tool('http', { ...http, url: 'https://evil.test/' })])
  assert.deepEqual(new Set(made.map(({ status }) => status)), new Set([201, 400]))
  const host = made[0].status === 201 ? new URL(answers.url).host : 'evil.test'
  assert.deepEqual((await send('GET', `/credentials/${id}`)).body.allowed_hosts, [host])
  const audit = await test.send('GET', `/api/v1/auth/audit?action=credential.updated`)
  assert.match(
    JSON.stringify(audit.body),
    new RegExp(`"${id}".*"allowed_hosts":\\["${host}"\\]|"allowed_hosts":\\["${host}"\\].*"${id}"`),
  )
})

it('a credential without hosts is sent to an MCP server for its list of tools, and bound to that host', async (t) => {
  const mcp = await startMcpServer(t)
  const { id, name } = await credential({ allowed_hosts: undefined })
  const made = await tool('mcp', {
    url: `${mcp.url}/mcp`,
    headers: { authorization: `Bearer \${credentials.${name}}` },
  })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  assert.deepEqual((await send('GET', `/credentials/${id}`)).body.allowed_hosts, [new URL(mcp.url).host])
})

it('a call checks hosts again: a credential whose hosts were reduced is not sent, and one without hosts is sent anywhere', async (t) => {
  const asked: (string | undefined)[] = []
  const server = await startLocalServer(t, (request, response) => {
    asked.push(request.headers.authorization)
    response.end('an answer')
  })
  const { id, name } = await credential({ allowed_hosts: ['127.0.0.1', 'good.test'] })
  const headers = { authorization: `Bearer \${credentials.${name}}` }
  const made = await tool('http', { method: 'GET', url: server.url, headers })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  const config = {
    model: 'builtin/script',
    tools: [made.body.name],
    system_prompt: JSON.stringify([
      { tool_calls: [{ name: made.body.name, arguments: {} }] },
      { text: '{{tool_result}}' },
    ]),
  }
  const { body: agent } = await send('POST', '/agents', { name: 'caller', config })
  const answer = async () =>
    (await send('POST', `/agents/${agent.id}/tasks?wait=30`, { input: 'go' })).body.output.content
  assert.match(await answer(), /an answer/)
  assert.equal((await send('PUT', `/credentials/${id}`, { allowed_hosts: ['good.test'] })).status, 200)
  assert.match(await answer(), new RegExp(`The credential ${name} must not be sent to 127.0.0.1:\\d+`))
  // As one that was kept before hosts were named.
  await test.sql`update credential set allowed_hosts = null where id = ${id}`
  assert.equal((await send('GET', `/credentials/${id}`)).body.allowed_hosts, null)
  assert.match(await answer(), /an answer/)
  assert.deepEqual(asked, [`Bearer ${secret}`, `Bearer ${secret}`])
})

it('adding an allowed host requires the secret again, and removing one does not', async () => {
  const { id } = await credential({ allowed_hosts: ['good.test', 'other.test'] })
  const put = (body: object) => send('PUT', `/credentials/${id}`, body)
  assert.deepEqual(fieldOf(await put({ allowed_hosts: ['good.test', 'evil.test'] })), [400, 'value'])
  assert.deepEqual(fieldOf(await put({ allowed_hosts: ['*.good.test'], name: 'OTHER' })), [400, 'value'])
  assert.deepEqual((await put({ allowed_hosts: ['good.test'] })).body.allowed_hosts, ['good.test'])
  assert.deepEqual(fieldOf(await put({ allowed_hosts: ['good.test', 'other.test'] })), [400, 'value'])
  assert.deepEqual((await put({ allowed_hosts: ['evil.test'], value: 'another' })).body.allowed_hosts, ['evil.test'])
  const client = { type: 'oauth2', grant: 'client_credentials', token_endpoint: 'http://127.0.0.1:9009/token' }
  const issued = await credential({ ...client, value: undefined, client_id: 'a', client_secret: 'b' })
  const other = await send('PUT', `/credentials/${issued.id}`, { allowed_hosts: ['evil.test'] })
  assert.deepEqual(fieldOf(other), [400, 'client_secret'])
})

it('tokens that a user authorized for some hosts become invalid if a host is added', async () => {
  const { id } = await credential({
    value: undefined,
    type: 'oauth2',
    grant: 'authorization_code',
    authorization_endpoint: 'http://127.0.0.1:9009/authorize',
    token_endpoint: 'http://127.0.0.1:9009/token',
    client_id: 'a',
  })
  const tokens = test.service.context.secrets.encrypt(secretLabels.tokens, '{"access_token":"x"}', id)
  const connected = () => test.sql`
    update credential_oauth set status = 'connected', tokens = ${tokens}, expires_at = now() + interval '1 hour' where credential_id = ${id}`
  await connected()
  const put = async (allowed_hosts: string[]) =>
    (await send('PUT', `/credentials/${id}`, { allowed_hosts })).body.status
  assert.equal(await put(['good.test']), 'connected')
  assert.equal(await put(['good.test', 'evil.test']), 'needs_authorization')
  const [row] = await test.sql`select tokens from credential_oauth where credential_id = ${id}`
  assert.equal(row!['tokens'], null)
})

it('an MCP server at a named host gets the credential', async (t) => {
  const mcp = await startMcpServer(t)
  const { name } = await credential({ allowed_hosts: [new URL(mcp.url).host] })
  const made = await tool('mcp', {
    url: `${mcp.url}/mcp`,
    headers: { authorization: `Bearer \${credentials.${name}}` },
  })
  assert.equal(made.status, 201, JSON.stringify(made.body))
})
