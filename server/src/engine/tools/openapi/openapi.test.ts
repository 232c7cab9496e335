import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { pino } from 'pino'
import { Problem } from '#contract/core/problems.ts'
import type { ToolDefinition } from '#contract/tools/tools.ts'
import { startLocalServer } from '../../../../test/fakes/local-server.ts'
import { makeEgress } from '../../../platform/egress/safe-fetch.ts'
import { checkArguments } from '../arguments.ts'
import { openapiTools, pinOpenapi } from './openapi.ts'
import { fillPlaceholders } from '../placeholders.ts'
import { type Tool, type ToolCallContext, ToolError } from '../tool.ts'
import type { PinnedTool, ToolRow } from '../tool-rows.ts'

const log = pino({ level: 'silent' })
const open = makeEgress({ allow: ['loopback'] })
const credentials = new Map([['TOKEN', { value: 's3cret', allowed_hosts: null }]])
const fill = (template: string, target: string, encode?: (value: string) => string): string =>
  fillPlaceholders(template, { credentials, environment: {} }, target, encode)
const signal = new AbortController().signal

const pin = (definition: ToolDefinition<'openapi'>, more: { safety?: ToolRow['safety']; egress?: typeof open } = {}) =>
  pinOpenapi(
    definition,
    { name: 'api', safety: more.safety ?? null },
    { egress: more.egress ?? open, log, fill, signal },
  )

const refusedAt = (field: string, expected: RegExp) => (error: unknown) => {
  assert.ok(error instanceof Problem && error.kind === 'validation_error', String(error))
  const [issue] = error.details as { field: string; message: string }[]
  assert.equal(issue?.field, field)
  assert.match(issue.message, expected)
  return true
}

function context(more: Partial<ToolCallContext> = {}): ToolCallContext {
  const ids = { task_id: 'task_1', agent_id: 'agent_1', project_id: 1, step_id: 'step_1' }
  const party = { org_id: 'org_1', project_id: 1 }
  return { ...ids, party, idempotency_key: 'task_1:3', traceparent: undefined, signal, ...more }
}

/** Operations as tools that are called as a task calls them, and what came of it. */
async function opened(
  t: TestContext,
  paths: object,
  definition: Partial<ToolDefinition<'openapi'>> = {},
  components: object = {},
) {
  const received: { line: string; headers: Record<string, unknown>; body: string }[] = []
  const server = await startLocalServer(t, async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    received.push({ line: `${request.method} ${request.url}`, headers: request.headers, body })
    if (request.url?.startsWith('/v1/missing')) response.writeHead(404)
    response.end('{"done":true}')
  })
  const document = { openapi: '3.1.0', servers: [{ url: `${server.url}/v1/` }], paths, components }
  const whole = { document, ...definition }
  const pinned = await pin(whole)
  const row = { name: 'api', definition: whole, pinned } as unknown as ToolRow
  // Nothing of an opening beside these is used.
  const { tools } = openapiTools(row, { egress: open, fill, log, sql: undefined as never })
  const tool = (name: string): Tool => tools.find((tool) => tool.name === `api/${name}`) ?? assert.fail(name)
  const call = async (name: string, args: Record<string, unknown>) => {
    assert.equal(checkArguments(tool(name), args), undefined)
    return tool(name).call(args, context())
  }
  return { tool, tools, pinned, call, received, server }
}

const param = (name: string, where: string, more: object = {}) => ({
  name,
  in: where,
  schema: { type: 'string' },
  ...more,
})

describe('the operations of an OpenAPI document', () => {
  it('the operations of an OpenAPI document are tools with their descriptions and the safety of their methods', async (t) => {
    const { tools } = await opened(t, {
      '/pets': {
        get: { operationId: 'listPets', summary: 'All pets.', description: 'A page of them.' },
        post: { operationId: 'pets.create' },
      },
      '/pets/{id}': { parameters: [param('id', 'path')], get: {}, head: { operationId: 'hasPet' }, delete: {} },
    })
    assert.deepEqual(
      tools.map(({ name, description, safety }) => [name, description, safety]),
      [
        ['api/listPets', 'All pets.\n\nA page of them.', 'safe'],
        ['api/pets_create', 'POST /pets', 'unsafe'],
        ['api/get_pets_id', 'GET /pets/{id}', 'safe'],
        ['api/hasPet', 'HEAD /pets/{id}', 'safe'],
        ['api/delete_pets_id', 'DELETE /pets/{id}', 'unsafe'],
      ],
    )
  })

  it('an operation sends each argument to its place, and the headers of the tool take precedence', async (t) => {
    const { call, tool, received } = await opened(
      t,
      {
        '/pets/{id}/{kinds}': {
          parameters: [param('id', 'path'), param('trace', 'header')],
          put: {
            operationId: 'put',
            parameters: [
              param('kinds', 'path', { schema: { type: 'array', items: { type: 'string' } } }),
              param('id', 'query', { required: true }),
              param('tag', 'query', { schema: { type: 'array', items: { type: 'string' } } }),
              param('joined', 'query', { explode: false, schema: { type: 'array' } }),
              param('pipes', 'query', { style: 'pipeDelimited', explode: false, schema: { type: 'array' } }),
              param('filter', 'query', { style: 'deepObject', schema: { type: 'object' } }),
              param('where', 'query', {
                schema: undefined,
                content: { 'application/json': { schema: { type: 'object' } } },
              }),
              param('X-Api-Key', 'header'),
              param('Authorization', 'header'),
              param('session', 'cookie'),
            ],
            requestBody: { required: true, content: { 'application/json': { schema: { type: 'object' } } } },
          },
        },
      },
      { headers: { 'X-API-Key': '${credentials.TOKEN}' } },
    )
    assert.deepEqual(Object.keys(tool('put').parameters.properties as object), [
      'id',
      'kinds',
      'id_query',
      'tag',
      'joined',
      'pipes',
      'filter',
      'where',
      'trace',
      'body',
    ])
    assert.deepEqual(tool('put').parameters.required, ['id', 'kinds', 'id_query', 'body'])
    const args = {
      id: 'a/b ?',
      kinds: ['cat', 'dog'],
      id_query: '${credentials.TOKEN}&x=1',
      tag: ['x', 'y'],
      joined: ['1', '2'],
      pipes: ['1', '2'],
      filter: { a: 1, b: 'two' },
      where: { c: [3] },
      trace: 'on',
      body: { name: 'Tom' },
    }
    assert.deepEqual((await call('put', args)).content, '{"done":true}')
    const [{ line, headers, body }] = received as [(typeof received)[0]]
    const url = new URL(line.slice(4), 'http://x')
    assert.equal(url.pathname, '/v1/pets/a%2Fb%20%3F/cat%2Cdog')
    assert.deepEqual(
      [...url.searchParams],
      [
        ['id', '${credentials.TOKEN}&x=1'],
        ['tag', 'x'],
        ['tag', 'y'],
        ['joined', '1,2'],
        ['pipes', '1|2'],
        ['filter[a]', '1'],
        ['filter[b]', 'two'],
        ['where', '{"c":[3]}'],
      ],
    )
    assert.equal(body, '{"name":"Tom"}')
    const { 'x-api-key': key, trace, 'content-type': type, 'idempotency-key': idempotency } = headers
    assert.deepEqual([key, trace, type, idempotency], ['s3cret', 'on', 'application/json', 'task_1:3'])
  })

  it('an argument cannot change the path of an operation', async (t) => {
    const { tool, received } = await opened(t, {
      '/pets/{id}': { parameters: [param('id', 'path')], get: { operationId: 'get' } },
    })
    for (const id of ['..', '.', '', '%2e%2e']) {
      await tool('get')
        .call({ id }, context())
        .catch((error: unknown) => assert.ok(error instanceof ToolError))
    }
    assert.ok(
      received.every(({ line }) => line === 'GET /v1/pets/%252e%252e'),
      JSON.stringify(received),
    )
  })

  it('a call of an operation fails with the error status of the server', async (t) => {
    const { call } = await opened(t, { '/missing': { get: { operationId: 'get' } } })
    const { error, content } = await call('get', {})
    assert.deepEqual(
      { error, content },
      { error: { code: 'http_404', message: 'The server answered HTTP 404.' }, content: 'HTTP 404: {"done":true}' },
    )
  })

  it('the operations of an OpenAPI document have self-contained schemas in JSON Schema', async (t) => {
    const body = { $ref: '#/components/requestBodies/Pet' }
    const { tool } = await opened(
      t,
      { '/pets': { post: { operationId: 'create', requestBody: body } } },
      {},
      {
        requestBodies: {
          Pet: {
            required: true,
            content: { 'application/merge-patch+json': { schema: { $ref: '#/components/schemas/P%65t' } } },
          },
        },
        schemas: {
          Pet: {
            type: 'object',
            required: ['id', 'name'],
            discriminator: { propertyName: 'kind' },
            properties: {
              id: { type: 'string', readOnly: true },
              name: { $ref: '#/components/schemas/a~1b', description: 'What it is called.' },
              age: { type: 'integer', nullable: true, minimum: 0, exclusiveMinimum: true, example: 3 },
              kind: { type: 'string', enum: ['cat'], nullable: true },
              example: { type: 'string' },
            },
          },
          'a/b': { type: 'string', description: 'A name.', 'x-internal': true },
        },
      },
    )
    assert.deepEqual((tool('create').parameters.properties as { body: unknown }).body, {
      type: 'object',
      required: ['name'],
      properties: {
        name: { type: 'string', description: 'What it is called.' },
        age: { type: ['integer', 'null'], exclusiveMinimum: 0 },
        kind: { type: ['string', 'null'], enum: ['cat', null] },
        example: { type: 'string' },
      },
    })
    assert.equal(checkArguments(tool('create'), { body: { name: 'Tom', age: null } }), undefined)
    assert.match(checkArguments(tool('create'), { body: { age: 0, name: 'Tom' } }) ?? '', /age/)
    assert.match(checkArguments(tool('create'), {}) ?? '', /body/)
  })

  it("the safety of operations is the project's declaration", async () => {
    const document = { openapi: '3.0.3', servers: [{ url: 'https://api.test' }], paths: { '/': { get: {}, post: {} } } }
    assert.deepEqual(
      (await pin({ document }, { safety: 'keyed' })).map(({ safety }) => safety),
      ['keyed', 'keyed'],
    )
  })
})

describe('an OpenAPI document', () => {
  const document = (more: object): Record<string, unknown> => ({
    openapi: '3.0.3',
    servers: [{ url: 'https://api.test' }],
    paths: { '/a': { get: { operationId: 'a' } } },
    ...more,
  })
  const urlsOf = (tools: PinnedTool[]) => tools.map(({ facts }) => facts?.url)

  it('an OpenAPI document is read once from its URL, the base of its servers', async (t) => {
    const server = await startLocalServer(
      t,
      (_request, response) => void response.end(JSON.stringify(document({ servers: [{ url: '../v2/' }] }))),
    )
    const tools = await pin({ url: `${server.url}/docs/openapi.json` })
    assert.deepEqual(urlsOf(tools), [`${server.url}/v2/a`])
    assert.equal(server.connections(), 1)
  })

  it('the server of an OpenAPI document may have variables, and base_url overrides it', async () => {
    const servers = [
      { url: 'https://{region}.api.test/{base}', variables: { region: { default: 'eu' }, base: { default: 'v3' } } },
    ]
    assert.deepEqual(urlsOf(await pin({ document: document({ servers }) })), ['https://eu.api.test/v3/a'])
    assert.deepEqual(urlsOf(await pin({ document: document({ servers }), base_url: 'https://own.test/x/' })), [
      'https://own.test/x/a',
    ])
    await assert.rejects(
      pin({ document: document({ servers: [{ url: '/v1' }] }) }),
      refusedAt('openapi.document', /set base_url/),
    )
  })

  it('an OpenAPI document with a private or invalid server is rejected without a connection', async (t) => {
    const canary = await startLocalServer(t)
    const egress = makeEgress({})
    for (const url of [
      canary.url,
      'http://169.254.169.254/latest',
      'http://localhost:8080',
      'http://[::ffff:127.0.0.1]',
    ])
      await assert.rejects(
        pin({ document: document({ servers: [{ url }] }) }, { egress }),
        refusedAt('openapi.document', /not a public address/),
        url,
      )
    await assert.rejects(
      pin({ document: document({}), base_url: canary.url }, { egress }),
      refusedAt('openapi.base_url', /public/),
    )
    await assert.rejects(pin({ url: canary.url }, { egress }), refusedAt('openapi.url', /public/))
    for (const url of ['file:///etc/passwd', 'https://user:x@api.test', 'ftp://api.test', 'https://{host}'])
      await assert.rejects(
        pin({ document: document({ servers: [{ url }] }) }, { egress }),
        refusedAt('openapi.document', /./),
        url,
      )
    assert.equal(canary.connections(), 0)
  })

  it('an OpenAPI document with operations at several servers is rejected', async () => {
    const paths = {
      '/a': { get: { operationId: 'a' } },
      '/b': { get: { operationId: 'b', servers: [{ url: 'https://files.test' }] } },
    }
    await assert.rejects(pin({ document: document({ paths }) }), refusedAt('openapi.document', /more than one server/))
    assert.deepEqual(urlsOf(await pin({ document: document({ paths }), operations: ['b'] })), ['https://files.test/b'])
  })

  it('references outside of an OpenAPI document are not fetched, and operations that need them cannot be used', async (t) => {
    const canary = await startLocalServer(t)
    const remote = { $ref: `${canary.url}/parameters.json#/id` }
    const paths = {
      '/a': { get: { operationId: 'a', parameters: [remote] } },
      '/b': { post: { operationId: 'b', requestBody: { content: { 'application/json': { schema: remote } } } } },
    }
    await assert.rejects(
      pin({ document: document({ paths }), operations: ['a'] }),
      refusedAt('openapi.operations[0]', /not described/),
    )
    const [b] = await pin({ document: document({ paths }) })
    assert.deepEqual(b?.parameters.properties, { body: {} })
    assert.equal(canary.connections(), 0)
  })

  it('a recursive reference in an OpenAPI document allows any value', async () => {
    const schemas = {
      Node: { type: 'object', properties: { left: { $ref: '#/components/schemas/Node' }, value: { type: 'string' } } },
      Loop: { $ref: '#/components/schemas/Loop' },
      A: { allOf: [{ $ref: '#/components/schemas/B' }] },
      B: { anyOf: [{ $ref: '#/components/schemas/A' }, { $ref: '#' }, { $ref: '#/components' }] },
    }
    const at = (name: string) => ({
      post: {
        operationId: name,
        requestBody: { content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } } },
      },
    })
    const paths = {
      ...Object.fromEntries(Object.keys(schemas).map((name) => [`/${name}`, at(name)])),
      '/self': { $ref: '#/paths/~1self' },
      '/param': { get: { operationId: 'param', parameters: [{ $ref: '#/paths/~1param/get/parameters/0' }] } },
    }
    const tools = await pin({ document: document({ paths, components: { schemas } }) })
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['Node', 'Loop', 'A', 'B'],
    )
    assert.deepEqual((tools[0]!.parameters.properties as { body: unknown }).body, {
      type: 'object',
      properties: { left: {}, value: { type: 'string' } },
    })
  })

  it('the schemas of an OpenAPI document are bounded in size and nesting', async () => {
    const bomb = Object.fromEntries(
      Array.from({ length: 18 }, (_, i) => {
        const next = { $ref: `#/components/schemas/S${i + 1}` }
        return [`S${i}`, { type: 'object', properties: { a: next, b: next, c: next } }]
      }),
    )
    const body = (schema: object) => ({
      post: { operationId: 'x', requestBody: { content: { 'application/json': { schema } } } },
    })
    const started = performance.now()
    await assert.rejects(
      pin({
        document: document({
          paths: { '/x': body({ $ref: '#/components/schemas/S0' }) },
          components: { schemas: bomb },
        }),
      }),
      refusedAt('openapi.document', /more than 5000 parts/),
    )
    let deep: object = {}
    for (let i = 0; i < 5000; i++) deep = { type: 'object', properties: { a: deep } }
    const [cut] = await pin({ document: document({ paths: { '/x': body(deep) } }) })
    assert.equal(checkArguments(cut ?? assert.fail(), { body: { a: { a: 'anything' } } })?.includes('object'), true)
    assert.ok(JSON.stringify(cut?.parameters).length < 1000)
    assert.ok(performance.now() - started < 2000)
  })

  it('a document of 10,000 operations needs the names of some', async () => {
    const paths = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, i) => [`/p${i}`, { get: { operationId: `op${i}` } }]),
    )
    await assert.rejects(
      pin({ document: document({ paths }) }),
      refusedAt('openapi.operations', /10000 operations: name the ones to use, at most 128/),
    )
    assert.deepEqual(
      (await pin({ document: document({ paths }), operations: ['op9999', 'op3'] })).map(({ name }) => name),
      ['op9999', 'op3'],
    )
    await assert.rejects(
      pin({ document: document({ paths }), operations: ['op1', 'nope'] }),
      refusedAt('openapi.operations[1]', /no such operation/),
    )
  })

  it('a document that is not OpenAPI is rejected', async (t) => {
    await assert.rejects(
      pin({ document: { swagger: '2.0', paths: {} } }),
      refusedAt('openapi.document', /3\.0 or 3\.1/),
    )
    await assert.rejects(pin({ document: document({ paths: {} }) }), refusedAt('openapi.document', /no operation/))
    await assert.rejects(pin({}), refusedAt('openapi.document', /Set document or url/))
    const answers = ['openapi: 3.0.0', '[]', 'x'.repeat(6_000_000)]
    const server = await startLocalServer(t, (_request, response) => void response.end(answers.shift()))
    await assert.rejects(pin({ url: server.url }), refusedAt('openapi.url', /must be JSON/))
    await assert.rejects(pin({ url: server.url }), refusedAt('openapi.url', /JSON object/))
    await assert.rejects(pin({ url: server.url }), refusedAt('openapi.url', /longer than/))
  })

  it('unusable operations are left out, and are an error if they were named', async () => {
    const form = { required: true, content: { 'multipart/form-data': { schema: { type: 'object' } } } }
    const paths = {
      '/ok': { get: { operationId: 'ok', parameters: [{ ...param('__proto__', 'query') }] } },
      '/form': { post: { operationId: 'form', requestBody: form } },
      '/cookie': { get: { operationId: 'cookie', parameters: [param('sid', 'cookie', { required: true })] } },
      '/label/{id}': { get: { operationId: 'label', parameters: [param('id', 'path', { style: 'label' })] } },
      '/lost/{id}': { get: { operationId: 'lost' } },
    }
    const tools = await pin({ document: document({ paths }) })
    assert.deepEqual(
      tools.map(({ name, parameters }) => [name, parameters.properties]),
      [['ok', { proto: { type: 'string' } }]],
    )
    for (const [id, expected] of [
      ['form', /not JSON/],
      ['cookie', /cookie sid/],
      ['label', /style label/],
      ['lost', /not described/],
    ] as const)
      await assert.rejects(
        pin({ document: document({ paths }), operations: [id] }),
        refusedAt('openapi.operations[0]', expected),
      )
  })
})
