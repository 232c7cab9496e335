import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import { startMcpServer, text } from '../../../test/fakes/mcp-server.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'

describe('tools before agents call them', () => {
  let test: TestService
  let base: string
  before(async () => {
    test = await startTestService({ CADRE_EGRESS_ALLOW: 'loopback' })
    const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'trials' } })
    base = `/api/v1/projects/proj_${body.id}`
  })
  after(() => test.stop())
  const attempt = (body: object) => test.send('POST', `${base}/tools/try`, { body })
  const preview = (body: object) => test.send('POST', `${base}/tools/preview`, { body })

  it('a trial makes one real call and returns request and response without secrets', async (t) => {
    const seen: string[] = []
    const { url } = await startLocalServer(t, (request, response) => {
      seen.push(`${request.method} ${request.url} ${request.headers.authorization} ${request.headers['x-team']}`)
      response.writeHead(200, { 'content-type': 'application/json', 'set-cookie': 'sid=1' })
      response.end(JSON.stringify({ echo: request.headers.authorization }))
    })
    await test.send('POST', `${base}/credentials`, {
      body: {
        name: 'WEATHER_KEY',
        value: 'a-canary-secret',
        allowed_hosts: ['127.0.0.1', 'api.test', '*.example.com'],
      },
    })
    const { status, body } = await attempt({
      kind: 'http',
      parameters: { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer' } } },
      http: {
        method: 'GET',
        url: `${url}/v1/{city}`,
        headers: {
          Authorization: 'Bearer ${credentials.WEATHER_KEY}',
          'X-Team': '${env.TEAM}',
          'X-Api-Key': 'literal',
        },
      },
      arguments: { city: 'Köln', days: 3 },
      environment_variables: { TEAM: 'abc' },
    })
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual(seen, ['GET /v1/K%C3%B6ln?days=3 Bearer a-canary-secret abc'])
    assert.equal(body.request.url, `${url}/v1/K%C3%B6ln?days=3`)
    assert.deepEqual(body.request.headers, {
      Authorization: 'Bearer [redacted]',
      'X-Team': '[redacted]',
      'X-Api-Key': '[redacted]',
    })
    assert.deepEqual([body.request.method, body.request.body], ['GET', null])
    assert.deepEqual([body.response.status, body.response.headers['set-cookie']], [200, '[redacted]'])
    assert.equal(body.response.body, '{"echo":"Bearer [redacted]"}')
    assert.deepEqual([body.content, body.error], ['{"echo":"Bearer [redacted]"}', null])
    assert.ok(!JSON.stringify(body).includes('canary'))
    // It goes nowhere else, also by hand.
    const elsewhere = await attempt({
      kind: 'http',
      http: { method: 'GET', url: url.replace('127.0.0.1', 'localhost'), headers: { A: '${credentials.WEATHER_KEY}' } },
    })
    assert.deepEqual(
      [elsewhere.status, elsewhere.body.error?.code, elsewhere.body.request, seen.length],
      [200, 'credential_not_allowed', null, 1],
    )
    const [entry] = await test.sql<{ target: string; detail: object }>`
      select target, detail from audit where action = 'project.tool_tried'`
    assert.ok(entry && base.endsWith(entry.target))
    assert.ok(!JSON.stringify(entry).includes('canary'))
  })

  it('a failed trial call is a result, and invalid arguments send nothing', async (t) => {
    let calls = 0
    const { url } = await startLocalServer(t, (_request, response) => {
      calls += 1
      response.writeHead(503).end('busy')
    })
    const parameters = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
    const definition = { kind: 'http', parameters, http: { method: 'POST', url } }
    const failed = (await attempt({ ...definition, arguments: { n: 1 } })).body
    assert.deepEqual([failed.error.code, failed.response.status, failed.request.body], ['http_503', 503, '{"n":1}'])
    const unfit = (await attempt({ ...definition, arguments: { n: 'one' } })).body
    assert.deepEqual([unfit.error.code, unfit.request, unfit.response, calls], ['invalid_arguments', null, null, 1])
    const missing = (await attempt({ kind: 'http', http: { method: 'GET', url, headers: { A: '${env.NO}' } } })).body
    assert.deepEqual([missing.error.code, missing.request, calls], ['placeholder_unknown', null, 1])
    const forbidden = await attempt({ kind: 'http', http: { method: 'GET', url: 'http://10.0.0.1/' } })
    assert.deepEqual([forbidden.status, forbidden.body.error.details[0].field], [400, 'http.url'])
    const client = await attempt({ kind: 'client' })
    assert.deepEqual([client.status, client.body.error.details[0].field], [400, 'kind'])
  })

  it('an MCP server is previewed and one of its tools is tried without registration', async (t) => {
    const server = await startMcpServer(t, { answer: ({ arguments: args }) => text(`got ${JSON.stringify(args)}`) })
    const definition = { kind: 'mcp', mcp: { url: server.url } }
    const { body } = await preview(definition)
    assert.deepEqual(
      body.tools.map((tool: { name: string; problem: unknown }) => [tool.name, tool.problem]),
      [['echo', null]],
    )
    const tried = (await attempt({ ...definition, tool: 'echo', arguments: { q: 1 } })).body
    assert.deepEqual([tried.content, tried.error, tried.request], ['got {"q":1}', null, null])
    const unknown = await attempt({ ...definition, tool: 'nothing' })
    assert.deepEqual([unknown.status, unknown.body.error.details[0].field], [400, 'tool'])
    assert.equal((await test.send('GET', `${base}/tools`)).body.pagination.total, 0)
  })

  it('a preview of a document lists all operations, with the reason why one cannot be a tool', async () => {
    const paths = {
      '/pets': { get: { operationId: 'listPets', summary: 'List pets' } },
      '/pets/{id}': { get: { operationId: 'getPet' } },
    }
    const document = { openapi: '3.1.0', servers: [{ url: 'https://api.test' }], paths }
    const { status, body } = await preview({ kind: 'openapi', openapi: { document } })
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual(
      body.tools.map((tool: { operation: object; problem: unknown }) => [tool.operation, tool.problem]),
      [
        [{ id: 'listPets', method: 'GET', path: '/pets' }, null],
        [{ id: 'getPet', method: 'GET', path: '/pets/{id}' }, 'its path has a parameter that is not described'],
      ],
    )
    const wrong = await preview({ kind: 'openapi', openapi: { document: { swagger: '2.0' } } })
    assert.deepEqual([wrong.status, wrong.body.error.details[0].field], [400, 'openapi.document'])
    const http = await preview({ kind: 'http', http: { method: 'GET', url: 'https://api.test' } })
    assert.deepEqual([http.status, http.body.error.details[0].field], [400, 'kind'])
  })

  it('statistics of tools contain the agents with a tool, its calls and its failures', async (t) => {
    const { url } = await startLocalServer(t, (request, response) => {
      response.writeHead(request.url === '/bad' ? 500 : 200).end('x')
    })
    const http = { method: 'GET', url: `${url}/{way}` }
    const parameters = { type: 'object', properties: { way: { type: 'string' } }, required: ['way'] }
    const make = async (name: string) =>
      (await test.send('POST', `${base}/tools`, { body: { name, description: 'A.', kind: 'http', parameters, http } }))
        .body.id as string
    const [used, idle] = [await make('used'), await make('idle')]
    const script = [
      { tool_calls: [{ name: 'used', arguments: { way: 'good' } }] },
      { tool_calls: [{ name: 'used', arguments: { way: 'bad' } }] },
      { text: 'Done.' },
    ]
    const config = { model: 'builtin/script', system_prompt: JSON.stringify(script), tools: ['used'] }
    const { body: agent } = await test.send('POST', `${base}/agents`, { body: { name: 'user', config } })
    const task = await test.send('POST', `${base}/agents/${agent.id}/tasks?wait=20`, { body: { input: 'go' } })
    assert.equal(task.body.status, 'completed', JSON.stringify(task.body))
    const { body } = await test.send('GET', `${base}/tools/statistics?tool_ids=${used},${idle}`)
    const [idleNumbers, numbers] = body.statistics
    assert.deepEqual(idleNumbers, {
      tool_id: idle,
      agents: [],
      agents_total: 0,
      calls: 0,
      failures: 0,
      last_used_at: null,
      last_failure: null,
    })
    const { last_used_at, last_failure, ...rest } = numbers
    assert.deepEqual(rest, {
      tool_id: used,
      agents: [{ id: agent.id, name: 'user' }],
      agents_total: 1,
      calls: 2,
      failures: 1,
    })
    assert.ok(Date.now() - Date.parse(last_used_at) < 60_000)
    assert.deepEqual([last_failure.task_id, last_failure.message], [task.body.id, 'The server answered HTTP 500.'])
    // What was used before the counted hours is still known as the last use.
    await test.sql`update task_step set started_at = started_at - interval '3 days' where task_id = ${task.body.id}`
    const { body: later } = await test.send('GET', `${base}/tools/statistics?tool_ids=${used}`)
    const [old] = later.statistics
    assert.deepEqual([old.calls, old.failures, old.last_failure], [0, 0, null])
    assert.ok(Math.abs(Date.parse(old.last_used_at) - (Date.parse(last_used_at) - 3 * 86_400_000)) < 1000)
  })
})
