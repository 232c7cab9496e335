import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { bounds } from '#contract/core/limits.ts'
import { builtinTools } from '#contract/tools/tools.ts'
import { startTestService, type Reply, type TestService } from '../../../test/harness.ts'

let test: TestService
let base: string
before(async () => {
  test = await startTestService({ CADRE_EGRESS_ALLOW: 'internal.example,10.1.0.0/16' })
  base = await makeProject('tools')
})
after(() => test.stop())

async function makeProject(name: string): Promise<string> {
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name } })
  return `/api/v1/projects/proj_${body.id}/tools`
}

const parameters = {
  type: 'object',
  properties: { city: { type: 'string' }, unit: { enum: ['C', 'F', null] } },
  required: ['city'],
}
const http = {
  method: 'GET',
  url: 'https://api.example.com/v1/{city}?key=${credentials.KEY}',
  headers: { 'X-Team': '${env.TEAM}' },
  timeout_seconds: 10,
}
const valid = { description: 'The weather in a city.', kind: 'http', parameters, http }
let count = 0
const create = (changes: Record<string, unknown> = {}, at = base) =>
  test.send('POST', at, { body: { name: `tool-${++count}`, ...valid, ...changes } })
const withHttp = (changes: Record<string, unknown>) => create({ http: { ...http, ...changes } })

/** Refused because of exactly this field. */
function refused({ status, body }: Reply, field: string, code?: string): void {
  assert.equal(status, 400, JSON.stringify(body))
  assert.equal(body.error.code, 'validation_error')
  const issues = body.error.details as { field: string; code: string }[]
  assert.deepEqual([...new Set(issues.map((issue) => issue.field))], [field], JSON.stringify(issues))
  if (code !== undefined) assert.equal(issues[0]!.code, code, JSON.stringify(issues))
}

describe('registering a tool', () => {
  it('registering a tool on loopback is refused with the name of the setting that allows it', async () => {
    for (const url of ['http://127.0.0.1:9000/', 'http://localhost:9000/']) {
      const { status, body } = await withHttp({ url })
      assert.equal(status, 400)
      assert.match(body.error.details[0].message, /CADRE_EGRESS_ALLOW/)
    }
  })

  it('registering a tool returns all of its members', async () => {
    const { status, body } = await create({ name: 'weather' })
    assert.equal(status, 201)
    assert.match(body.id, /^tool_[0-7][0-9a-hjkmnp-tv-z]{25}$/)
    const { id, project_id, created_at, created_by } = body
    assert.equal(base, `/api/v1/projects/${project_id}/tools`)
    assert.equal(created_by, test.owner.user_id)
    const facts = { id, project_id, safety: 'safe', status: 'active', drift: null }
    assert.deepEqual(body, { ...facts, name: 'weather', ...valid, created_by, created_at, updated_at: created_at })
    assert.deepEqual((await test.send('GET', `${base}/${id}`)).body, body)
  })

  it('registering a tool treats GET as safe and every other method as unsafe, unless declared', async () => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
      assert.equal((await withHttp({ method })).body.safety, method === 'GET' ? 'safe' : 'unsafe')
      for (const safety of ['safe', 'keyed', 'unsafe'])
        assert.equal((await create({ safety, http: { ...http, method } })).body.safety, safety)
    }
  })

  it('registering a tool without arguments needs no parameters', async () => {
    for (const given of [undefined, null]) {
      const { status, body } = await create({
        parameters: given,
        http: { method: 'GET', url: 'https://a.example.com/' },
      })
      assert.deepEqual([status, body.parameters, body.safety], [201, null, 'safe'])
    }
  })

  it('registering a tool keeps null in a schema, omits read-only members, and refuses unknown ones', async () => {
    const { status, body } = await create({ id: 'tool_x', status: 'drifted', created_by: 'me', http })
    assert.equal(status, 201)
    assert.deepEqual([body.parameters, body.http, body.status], [parameters, http, 'active'])
    assert.notEqual(body.id, 'tool_x')
    for (const unknown of [{ other: 2 }, { http: { ...http, unknown: 1 } }]) {
      const refused = await create(unknown)
      assert.deepEqual([refused.status, refused.body.error.details[0].code], [400, 'unknown_field'])
    }
  })

  it('the name of a tool is unique within its project', async () => {
    const { body: first } = await create({ name: 'once' })
    const { status, body } = await create({ name: 'once' })
    assert.deepEqual([status, body.error.code], [409, 'resource_conflict'])
    assert.deepEqual(body.error.details, {
      resource_type: 'tool',
      resource_id: first.id,
      conflicting_field: 'name',
      conflicting_value: 'once',
    })
    assert.equal((await create({ name: 'ONCE' })).status, 201)
    assert.equal((await create({ name: 'once' }, await makeProject('another'))).status, 201)
  })

  it('of many tools registered concurrently with one name exactly one gets it', async () => {
    const statuses = (await Promise.all(Array.from({ length: 8 }, () => create({ name: 'race' })))).map((r) => r.status)
    assert.deepEqual(
      statuses.toSorted((a, b) => a - b),
      [201, 409, 409, 409, 409, 409, 409, 409],
    )
  })

  it('a project has a limited number of tools', async () => {
    const at = await makeProject('full')
    const project_id = /proj_(\d+)/.exec(at)![1]
    await test.sql`
      insert into tool (id, project_id, name, description, kind, definition, created_by)
      select 'tool_' || n, ${project_id}, 'filler' || n, '', 'http', '{}', 'user_x' from generate_series(1, ${bounds.tools_per_project}::int) n`
    const { status, body } = await create({}, at)
    assert.deepEqual([status, body.error.code], [409, 'resource_conflict'])
    assert.match(body.error.message, /at most 500 tools/)
  })
})

describe('a tool is refused', () => {
  for (const name of builtinTools)
    it(`a tool is refused with the reserved name ${name}`, async () =>
      refused(await create({ name }), 'name', 'invalid_choice'))

  for (const [field, values] of Object.entries({
    name: [undefined, null, '', 5, {}, 'a b', 'a/b', '1a', '_a', 'ä', 'a\n', 'x'.repeat(65)],
    description: [undefined, null, '', 5, 'x'.repeat(2001)],
    kind: [undefined, null, '', 'HTTP', 'soap', 5],
    safety: ['', 'SAFE', 'idempotent', 5],
    parameters: [
      [],
      'x',
      5,
      {},
      { type: 'string' },
      { type: 'array', items: {} },
      { type: 'object', properties: { city: { type: 'strange' } } },
      { type: 'object', properties: { city: { $ref: 'https://example.com/schema' } } },
      { type: 'object', properties: { city: { pattern: '(' } } },
      { type: 'object', properties: { city: {} }, description: 'x'.repeat(bounds.tool_parameters_bytes) },
    ],
    http: [undefined, null, [], 'x'],
  }))
    for (const value of values)
      it(`a tool is refused for ${field} ${JSON.stringify(value)?.slice(0, 60)}`, async () => {
        const reply = await create({ [field]: value })
        assert.equal(reply.status, 400, JSON.stringify(reply.body))
        const fields = reply.body.error.details.map((issue: { field: string }) => issue.field)
        // Without its parameters the arguments of its URL are unknown as well.
        assert.ok(fields.includes(field), JSON.stringify(reply.body))
        assert.ok(
          fields.every((name: string) => name === field || name === 'http.url'),
          JSON.stringify(fields),
        )
      })

  for (const [field, values] of Object.entries({
    method: [undefined, null, '', 'get', 'TRACE', 'CONNECT', 'HEAD', 5],
    url: [
      undefined,
      null,
      '',
      5,
      'x',
      '/path',
      'ftp://example.com/',
      'file:///etc/passwd',
      'javascript:alert(1)',
      'https://',
      'https://user:pass@example.com/',
      'https://{city}/',
      'https://{city}.example.com/',
      'https://example.com:{city}/',
      'https://${credentials.HOST}/',
      'https://a.${env.ZONE}/',
      '${env.URL}',
      'https://example.com/{city}#a',
      'https://example.com/{nothing}',
      'https://example.com/{',
      'https://example.com/${secrets.KEY}',
      'https://example.com/${credentials.a b}',
      'https://example.com/../{city}',
      'http://localhost/',
      'http://127.0.0.1/',
      'http://2130706433/',
      'http://0x7f.1/',
      'http://[::1]/',
      'http://10.0.0.1/',
      'http://192.168.1.1/{city}',
      'http://169.254.169.254/latest/meta-data',
      'http://[::ffff:169.254.169.254]/',
      'https://example.com:22/',
      `https://example.com/${'x'.repeat(2048)}`,
    ],
    headers: [[], 'x', 5, Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`x-${i}`, 'v']))],
    timeout_seconds: [0, -1, 61, '10', {}],
  }))
    for (const value of values)
      it(`a tool is refused for http.${field} ${JSON.stringify(value)?.slice(0, 60)}`, async () =>
        refused(await withHttp({ [field]: value }), `http.${field}`))

  for (const [headers, field] of [
    [{ 'x-a': 5 }, 'http.headers.x-a'],
    [{ 'x-a': 'x'.repeat(4097) }, 'http.headers.x-a'],
    [{ 'x-a': 'a\r\nx-b: c' }, 'http.headers.x-a'],
    [{ 'x-a': '${other.KEY}' }, 'http.headers.x-a'],
    [{ Host: 'internal' }, 'http.headers.Host'],
    [{ 'Content-Length': '5' }, 'http.headers.Content-Length'],
    [{ 'a b': 'c' }, 'http.headers'],
    [{ '': 'c' }, 'http.headers'],
  ] as const)
    it(`a tool is refused for the header ${JSON.stringify(headers).slice(0, 40)}, without its value`, async () => {
      const reply = await withHttp({ headers })
      refused(reply, field)
      assert.equal('provided' in reply.body.error.details[0] && field !== 'http.headers', false)
    })

  it('a tool is refused with members of another kind', async () => {
    refused(await create({ mcp: { url: 'https://mcp.example.com/' } }), 'mcp')
    const mcp = { url: 'https://mcp.example.com/' }
    refused(await create({ kind: 'mcp', parameters: undefined, mcp }), 'http')
    refused(await create({ kind: 'mcp', http: undefined, mcp }), 'parameters')
  })

  it('a tool is refused if its server is not allowed, before any request is sent', async () => {
    const of = (kind: string, definition: unknown) =>
      create({ kind, http: undefined, parameters: undefined, [kind]: definition })
    for (const url of ['http://10.0.0.1/', 'http://169.254.169.254/', 'https://{city}/', 'https://${env.HOST}/', 'x']) {
      refused(await of('mcp', { url }), 'mcp.url')
      refused(await of('openapi', { url }), 'openapi.url')
    }
    refused(await of('openapi', {}), 'openapi')
    refused(await of('openapi', { url: 'https://a.example/', document: {} }), 'openapi')
    refused(await of('openapi', { document: {}, operations: [] }), 'openapi.operations')
    refused(await of('openapi', { document: {}, operations: [5] }), 'openapi.operations[0]')
    refused(await of('mcp', {}), 'mcp.url')
    refused(await of('mcp', undefined), 'mcp')
  })

  it('a tool is refused with all of its errors at once', async () => {
    const { body } = await create({ name: 'wait', kind: 'http', http: { method: 'GET', url: 'http://10.0.0.1/{x}' } })
    const fields = body.error.details.map((issue: { field: string }) => issue.field)
    assert.deepEqual(fields, ['name', 'http.url'])
  })
})

describe('the address of a tool', () => {
  it('the address of a tool may be one that the operator allows', async () => {
    for (const url of ['http://internal.example/{city}', 'http://10.1.2.3:8080/', 'https://api.example.com:8443/'])
      assert.equal((await withHttp({ url })).status, 201, url)
  })
})

describe('tools of a project', () => {
  it('tools of a project are listed newest first, without their definitions', async () => {
    const at = await makeProject('listed')
    const made: string[] = []
    for (const name of ['a', 'b', 'c']) made.unshift((await create({ name }, at)).body.id)
    const { body } = await test.send('GET', `${at}?limit=2`)
    assert.deepEqual(
      body.tools.map((tool: { id: string }) => tool.id),
      made.slice(0, 2),
    )
    assert.deepEqual(body.pagination, { total: 3, limit: 2, offset: 0, has_more: true })
    assert.deepEqual(Object.keys(body.tools[0]).sort(), [
      'created_at',
      'created_by',
      'description',
      'id',
      'kind',
      'name',
      'project_id',
      'safety',
      'status',
      'updated_at',
    ])
    assert.equal(body.tools[0].safety, 'safe')
    assert.equal((await test.send('GET', `${at}?kind=mcp`)).body.pagination.total, 0)
    for (const query of ['kind=x', 'limit=0', 'limit=101', 'offset=-1'])
      refused(await test.send('GET', `${at}?${query}`), query.split('=')[0]!)
  })

  it('a tool is 404 in another project, and is found only by its identifier', async () => {
    const { body } = await create()
    const other = await makeProject('other')
    for (const path of [`${other}/${body.id}`, `${base}/${body.name}`, `${base}/tool_1`, `${base}/${body.id}x`]) {
      const reply = await test.send('GET', path)
      assert.deepEqual([reply.status, reply.body.error.code], [404, 'resource_not_found'])
    }
  })
})

describe('updating a tool', () => {
  it('updating a tool replaces the given members and keeps the others', async () => {
    const { body: before } = await create()
    const put = (body: object) => test.send('PUT', `${base}/${before.id}`, { body })
    const { status, body } = await put({ description: 'Another.' })
    assert.equal(status, 200)
    const { updated_at } = body
    assert.ok(updated_at > before.updated_at)
    assert.deepEqual(body, { ...before, description: 'Another.', updated_at })
    const post = { method: 'POST', url: 'https://api.example.com/' }
    const changed = await put({ name: 'renamed', http: post, safety: 'keyed', kind: 'http' })
    assert.deepEqual([changed.body.name, changed.body.http, changed.body.safety], ['renamed', post, 'keyed'])
    assert.deepEqual(changed.body.parameters, parameters)
    assert.equal((await put({})).status, 200)
  })

  it('updating a tool derives its safety again unless declared', async () => {
    const { body } = await create()
    const reply = await test.send('PUT', `${base}/${body.id}`, { body: { http: { ...http, method: 'POST' } } })
    assert.equal(reply.body.safety, 'unsafe')
  })

  it('updating a tool refuses what a new tool is refused for, and another kind', async () => {
    const { body: tool } = await create()
    const put = (body: object) => test.send('PUT', `${base}/${tool.id}`, { body })
    refused(await put({ kind: 'mcp' }), 'kind')
    refused(await put({ name: 'http_request' }), 'name')
    refused(await put({ name: null }), 'name')
    refused(await put({ mcp: { url: 'https://a.example/' } }), 'mcp')
    refused(await put({ http: { ...http, url: 'http://10.0.0.1/' } }), 'http.url')
    refused(await put({ parameters: { type: 'object', properties: {} } }), 'http.url')
    assert.deepEqual((await test.send('GET', `${base}/${tool.id}`)).body, tool)
  })

  it('updating a tool to a taken name is refused', async () => {
    const [{ body: one }, { body: two }] = [await create(), await create()]
    const reply = await test.send('PUT', `${base}/${two.id}`, { body: { name: one.name } })
    assert.deepEqual([reply.status, reply.body.error.details.resource_id], [409, one.id])
    assert.equal((await test.send('PUT', `${base}/${two.id}`, { body: { name: two.name } })).status, 200)
  })

  it('two concurrent changes of a tool are never lost', async () => {
    const { body: tool } = await create()
    const changes = Array.from({ length: 6 }, (_, i) => (i % 2 ? { description: `d${i}` } : { safety: 'keyed' }))
    const replies = await Promise.all(changes.map((body) => test.send('PUT', `${base}/${tool.id}`, { body })))
    for (const { status, body } of replies)
      assert.ok(status === 200 || body.error.code === 'resource_conflict', JSON.stringify(body))
    const [row] = await test.sql<{ revision: number }>`select revision from tool where id = ${tool.id}`
    assert.equal(row!.revision, 1 + replies.filter(({ status }) => status === 200).length)
  })
})

it('a deleted tool is 404, and its name is free', async () => {
  const { body } = await create({ name: 'gone' })
  const reply = await test.send('DELETE', `${base}/${body.id}`)
  assert.deepEqual([reply.status, reply.body], [200, { message: 'Tool deleted', tool_id: body.id }])
  assert.equal((await test.send('GET', `${base}/${body.id}`)).status, 404)
  assert.equal((await test.send('DELETE', `${base}/${body.id}`)).status, 404)
  assert.equal((await create({ name: 'gone' })).status, 201)
})

it('a project is deleted with its tools', async () => {
  const at = await makeProject('doomed')
  const { body } = await create({}, at)
  assert.equal((await test.send('DELETE', at.replace('/tools', ''))).status, 200)
  assert.deepEqual(await test.sql`select 1 from tool where id = ${body.id}`, [])
})
