import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import { after, before, describe, it } from 'node:test'
import { type TestService } from '../../test/harness.ts'
import { shareTestService } from '../../test/shared-service.ts'
import { rawSend } from '../../test/raw-http.ts'

/** A project, for requests with the error format of agents; that of projects is `control`. */
let test: TestService
let agents: string
before(async () => {
  test = await shareTestService()
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'bodies' } })
  agents = `/api/v1/projects/proj_${body.id}/agents`
})
after(() => test.stop())

let names = 0
const name = (): string => `body-${++names}`
const post = (
  path: string,
  body: string | Buffer | undefined,
  headers: Record<string, string | undefined> = { 'content-type': 'application/json' },
) => rawSend(test.url, { method: 'POST', path, body, headers: { 'x-api-key': test.owner.api_key, ...headers } })
const both: [string, () => string][] = [
  ['A', () => agents],
  ['B', () => '/api/v1/projects'],
]

/** Number of rows that a body could have created. */
async function things(): Promise<number> {
  const [row] = await test.sql<{
    count: number
  }>`select (select count(*) from agent) + (select count(*) from project) as count`
  return row!.count
}

/** The issue of an error that must have exactly one, in the format of agents. */
function fault(body: any): any {
  assert.equal(body.error.details.length, 1, JSON.stringify(body.error))
  return body.error.details[0]
}

describe('a content type (decision D8)', () => {
  const taken = [
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'APPLICATION/JSON',
    'Application/Json ; a=b',
    'application/json;',
    'application/json; charset=latin1',
    'application/json; profile="text/plain"',
    ' application/json ',
  ]
  const refused = [
    undefined,
    '',
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/octet-stream',
    'application/jsonx',
    'application/json-patch+json',
    'application/vnd.api+json',
    'application/ json',
    'application /json',
    'application',
    'application/json,text/plain',
    'application/json text/plain',
    'application/json\ta',
    'application/json a',
    'text/plain; application/json',
    'x application/json',
    '*/*',
    ';application/json',
    '"application/json"',
    'application/json\u00a0',
    `${'a'.repeat(5000)}/json`,
  ]
  for (const type of taken) {
    it(`the content type ${JSON.stringify(type)} is JSON`, async () => {
      for (const [, path] of both)
        assert.equal((await post(path(), JSON.stringify({ name: name() }), { 'content-type': type })).status, 201)
    })
  }

  for (const type of refused) {
    it(`the content type ${JSON.stringify(type)?.slice(0, 40) ?? '(absent)'} is refused, and nothing is created`, async () => {
      const before = await things()
      const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type }
      for (const [family, path] of both) {
        const { status, body } = await post(path(), JSON.stringify({ name: name() }), headers)
        assert.equal(status, 400)
        if (family === 'A') {
          assert.equal(body.error.code, 'validation_error')
          assert.equal(fault(body).field, 'Content-Type')
          assert.equal(fault(body).code, 'invalid_format')
        } else {
          assert.equal(body.error.code, 'INVALID_REQUEST')
          assert.equal(body.error.details.field, 'Content-Type')
        }
      }
      assert.equal(await things(), before)
    })
  }

  it('of several content types the first counts', async () => {
    const several = ['content-type', 'text/plain', 'content-type', 'application/json']
    const { status } = await rawSend(test.url, {
      method: 'POST',
      path: agents,
      body: '{"name":"x"}',
      headers: ['host', 'localhost', 'x-api-key', test.owner.api_key, 'content-length', '12', ...several] as never,
    })
    assert.equal(status, 400)
  })

  it('a body with a content encoding is refused', async () => {
    const body = gzipSync(JSON.stringify({ name: name() }))
    for (const encoding of ['gzip', 'deflate', 'br', 'identity']) {
      const answer = await post(agents, body, { 'content-type': 'application/json', 'content-encoding': encoding })
      assert.equal(answer.status, 400)
      assert.equal(fault(answer.body).field, 'Content-Encoding')
    }
  })
})

describe("a body's size (decision D9)", () => {
  const ofBytes = (bytes: number): string => {
    const start = `{"name":"${name()}"`
    return `${start}${' '.repeat(bytes - start.length - 1)}}`
  }

  it('a body of 1 MiB is accepted', async () => {
    for (const [, path] of both) assert.equal((await post(path(), ofBytes(1_048_576))).status, 201)
  })

  it('a body of one byte more than 1 MiB is refused, also in chunks, and nothing is created', async () => {
    const before = await things()
    for (const headers of [
      { 'content-type': 'application/json' },
      { 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
    ]) {
      const a = await rawSend(test.url, {
        method: 'POST',
        path: agents,
        body: ofBytes(1_048_577),
        headers: { 'x-api-key': test.owner.api_key, ...headers },
      })
      assert.equal(a.status, 400)
      assert.equal(a.body.error.code, 'validation_error')
      assert.deepEqual([fault(a.body).field, fault(a.body).code, fault(a.body).max], ['body', 'too_long', 1_048_576])
      const b = await post('/api/v1/projects', ofBytes(1_048_577), headers)
      assert.equal(b.status, 400)
      assert.equal(b.body.error.code, 'INVALID_REQUEST')
      assert.equal(b.body.error.details.field, 'body')
    }
    assert.equal(await things(), before)
  })

  it('the size of a body is checked before the credential, also where no body is expected (decisions D3, D10)', async () => {
    for (const path of [agents, `${agents}/agent_1/start`]) {
      assert.equal((await rawSend(test.url, { method: 'POST', path, body: ofBytes(1_048_577) })).status, 400)
    }
    assert.equal(
      (await rawSend(test.url, { method: 'DELETE', path: `${agents}/agent_1`, body: ofBytes(1_048_577) })).status,
      400,
    )
  })
})

describe('an absent body (decision D10)', () => {
  it('an absent body is treated as an empty one with any content type: its fields are reported as required', async () => {
    const { body: agent } = await post(agents, JSON.stringify({ name: name() }))
    for (const headers of [{}, { 'content-type': 'application/json' }, { 'content-type': 'text/plain' }]) {
      const a = await post(agents, undefined, headers)
      assert.equal(a.status, 400)
      assert.equal(a.body.error.code, 'validation_error')
      assert.deepEqual([fault(a.body).field, fault(a.body).code], ['name', 'required'])
      const b = await post('/api/v1/projects', undefined, headers)
      assert.deepEqual([b.status, b.body.error.code, b.body.error.details.field], [400, 'INVALID_REQUEST', 'name'])
      const options = {
        method: 'PUT',
        path: `${agents}/${agent.id}`,
        headers: { 'x-api-key': test.owner.api_key, ...headers },
      }
      const c = await rawSend(test.url, options)
      assert.deepEqual([c.status, fault(c.body).field, fault(c.body).code], [400, 'body', 'required'])
    }
  })

  it('actions and DELETE accept an absent body and any other', async () => {
    for (const [body, type] of [
      ['', 'application/json'],
      ['{', 'application/json'],
      ['x', 'text/plain'],
      ['[]', 'application/json'],
      ['{"status":"stopped"}', 'no type'],
    ] as const) {
      const { body: agent } = await post(agents, JSON.stringify({ name: name() }))
      const headers = { 'content-type': type }
      const started = await post(`${agents}/${agent.id}/start`, body, headers)
      assert.deepEqual([started.status, started.body.status], [200, 'running'])
      const options = {
        method: 'DELETE',
        path: `${agents}/${agent.id}`,
        body,
        headers: { 'x-api-key': test.owner.api_key, ...headers },
      }
      assert.equal((await rawSend(test.url, options)).status, 200)
    }
  })
})

describe('JSON (decision D11)', () => {
  const malformed = [
    '{',
    '}',
    '{"name"}',
    '{"name":}',
    "{'name':'x'}",
    '{name:"x"}',
    '{"name":"x",}',
    '{"name":"x"}{"name":"y"}',
    '{"name":"x"} x',
    '// x\n{}',
    '{"name":NaN}',
    '{"name":Infinity}',
    '{"name":-Infinity}',
    '{"name":undefined}',
    '{"name":01}',
    '{"name":+1}',
    '{"name":.5}',
    '{"name":1.}',
    '{"name":0x1}',
    '{"name":"\u0001"}',
    '{"name":"\\x41"}',
    '{"name":"\\u12"}',
    'nul',
    ' ',
    '\n',
    '\ufeff\ufeff{"name":"x"}',
    Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
    Buffer.from('{"name":"\xe9"}', 'latin1'),
    Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]),
    Buffer.from([0x7b, 0x22, 0xc0, 0xae, 0x22, 0x3a, 0x31, 0x7d]),
    Buffer.from('{"name":"x"}', 'utf16le'),
    Buffer.from([0x1f, 0x8b, 8, 0]),
  ]
  for (const body of malformed) {
    it(`${JSON.stringify(body.toString('latin1' as never)).slice(0, 60)} is refused as invalid JSON`, async () => {
      const a = await post(agents, body)
      assert.deepEqual([a.status, a.body.error.code], [400, 'invalid_json'])
      const b = await post('/api/v1/projects', body)
      assert.deepEqual([b.status, b.body.error.code], [400, 'INVALID_REQUEST'])
      assert.deepEqual(b.body.error.details, { field: 'body', issue: 'not valid JSON' })
    })
  }

  for (const body of ['null', '[]', '[{"name":"x"}]', '"x"', '1', 'true']) {
    it(`the body ${body} is refused because it is not an object`, async () => {
      const a = await post(agents, body)
      assert.deepEqual(
        [a.status, a.body.error.code, fault(a.body).field, fault(a.body).code],
        [400, 'validation_error', 'body', 'invalid_format'],
      )
      const b = await post('/api/v1/projects', body)
      assert.deepEqual(
        [b.status, b.body.error.code, b.body.error.details],
        [400, 'INVALID_REQUEST', { field: 'body', issue: 'must be an object' }],
      )
    })
  }

  it('JSON may begin with a byte-order mark and be surrounded by white space', async () => {
    assert.equal((await post(agents, `\ufeff{"name":"${name()}"}`)).status, 201)
    assert.equal((await post(agents, ` \r\n\t{ "name" : "${name()}" }\n `)).status, 201)
  })

  it('of a repeated key in JSON the last value counts', async () => {
    const last = name()
    assert.equal((await post(agents, `{"name":"first","name":"${last}"}`)).body.name, last)
  })

  it('a JSON number that overflows is out of range, wherever it is', async () => {
    for (const [body, field] of [
      ['{"name":"x","config":{"temperature":1e400}}', 'config.temperature'],
      ['{"name":"x","metadata":{"a":[-1e400]}}', 'metadata.a[0]'],
      ['{"name":"x","unknown":1e309}', 'unknown'],
      ['{"name":1e999}', 'name'],
    ] as const) {
      const answer = await post(agents, body)
      assert.deepEqual([answer.status, fault(answer.body).field, fault(answer.body).code], [400, field, 'out_of_range'])
    }
    assert.equal((await post('/api/v1/projects', '{"name":"over","x":1e400}')).body.error.code, 'INVALID_REQUEST')
    const { body } = await post(agents, `{"name":"${name()}","metadata":{"a":5.0,"b":1e-400,"c":9007199254740993}}`)
    assert.deepEqual([body.metadata.a, body.metadata.b, body.metadata.c], [5, 0, 9007199254740992])
  })
})

describe('the structure of a body (decisions D11, D15)', () => {
  const nested = (levels: number, open = '[', close = ']'): string => open.repeat(levels) + close.repeat(levels)

  it('a body may be nested 32 levels', async () => {
    // The body and `metadata` are two of the levels.
    assert.equal((await post(agents, `{"name":"${name()}","metadata":{"a":${nested(30)}}}`)).status, 201)
    const deep = '{"a":'.repeat(30) + '1' + '}'.repeat(30)
    const { status, body } = await post(agents, `{"name":"${name()}","metadata":{"a":${deep}}}`)
    assert.equal(status, 201)
    assert.deepEqual(body.metadata.a, JSON.parse(deep))
  })

  for (const [levels, text] of [
    [33, `{"name":"x","metadata":{"a":${nested(31)}}}`],
    ['100,000', `{"name":"x","metadata":{"a":${nested(100_000)}}}`],
    ['100,000 unknown', `{"name":"x","u":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`],
    ['500,000', nested(500_000)],
  ] as const) {
    it(`a body may not be nested ${levels} levels`, async () => {
      const a = await post(agents, text)
      assert.deepEqual(
        [a.status, a.body.error.code, fault(a.body).field, fault(a.body).code, fault(a.body).max],
        [400, 'validation_error', 'body', 'out_of_range', 32],
      )
      const b = await post('/api/v1/projects', text)
      assert.deepEqual([b.status, b.body.error.code, b.body.error.details.field], [400, 'INVALID_REQUEST', 'body'])
    })
  }

  for (const text of ['\\u0000', '\\ud800', '\\udc00', '\\udc00\\ud800', 'a\\ud83d']) {
    it(`text with ${text} is refused, as a value and as a key`, async () => {
      for (const [body, field] of [
        [`{"name":"${text}"}`, 'name'],
        [`{"name":"x","description":"a${text}b"}`, 'description'],
        [`{"name":"x","metadata":{"a":["${text}"]}}`, 'metadata.a[0]'],
        [`{"name":"x","metadata":{"a${text}":1}}`, 'metadata'],
        [`{"name":"x","unknown":"${text}"}`, 'unknown'],
        [`{"${text}":1}`, 'body'],
      ] as const) {
        const answer = await post(agents, body)
        assert.deepEqual(
          [answer.status, fault(answer.body).field, fault(answer.body).code],
          [400, field, 'invalid_format'],
        )
      }
      // Such text is also an invalid project name, which has a special code (spec 7.4).
      assert.equal((await post('/api/v1/projects', `{"name":"${text}"}`)).body.error.code, 'INVALID_PROJECT_NAME')
      assert.equal((await post('/api/v1/projects', `{"name":"x1","a":"${text}"}`)).body.error.code, 'INVALID_REQUEST')
    })
  }

  it('a body that sets a prototype is refused, and no prototype changes', async () => {
    for (const part of [
      '{"__proto__":{"x":1}}',
      '{"a":{"__proto__":{"x":1}}}',
      '{"constructor":{"prototype":{"x":1}}}',
      '[{"__proto__":null}]',
      '{"__proto__":1}',
    ]) {
      for (const member of ['config', 'metadata', 'unknown']) {
        const a = await post(agents, `{"name":"x","${member}":${part}}`)
        assert.deepEqual([a.status, a.body.error.code], [400, 'validation_error'], part)
      }
      assert.equal(
        (await post('/api/v1/projects', `{"name":"pollute","x":${part}}`)).body.error.code,
        'INVALID_REQUEST',
      )
    }
    assert.equal((await post(agents, '{"name":"x","__proto__":{"name":"y"}}')).status, 400)
    assert.equal((await post(agents, '{"__proto__":{"name":"only-inherited"}}')).status, 400)
    assert.equal(({} as Record<string, unknown>).x, undefined)
  })

  it('a body may have members with names that every object has', async () => {
    const metadata = { constructor: 'a', prototype: { x: 1 }, toString: [1], hasOwnProperty: 'b', valueOf: { y: 2 } }
    const { status, body } = await post(agents, JSON.stringify({ name: name(), metadata }))
    assert.equal(status, 201)
    for (const [key, value] of Object.entries(metadata)) assert.deepEqual(body.metadata[key], value)
  })
})

describe('an error with many issues', () => {
  it('an error lists at most a hundred issues, and is sent within the usual time', { timeout: 60_000 }, async () => {
    const wrong = (count: number) => JSON.stringify({ name: name(), config: { tools: Array(count).fill(0) } })
    const some = await post(agents, wrong(1000))
    assert.equal(some.status, 400)
    assert.equal(some.body.error.details.length, 100)
    const first = await post(agents, wrong(500_000))
    assert.equal(first.status, 400)
    assert.deepEqual(
      first.body.error.details.map(({ field, code }: any) => [field, code]),
      [['config', 'too_long']],
    )
  })
})

describe('members', () => {
  it('read-only members are ignored (decision D14)', async () => {
    const own = {
      id: 'agent_00000000000000000000000000',
      status: 'error',
      project_id: 'proj_999',
      created_at: '2000-01-01',
      updated_at: '2000-01-01',
      last_activity: '2000-01-01',
      stats: { total_tasks: 9 },
    }
    const { status, headers, body } = await post(agents, JSON.stringify({ name: name(), ...own }))
    assert.equal(status, 201)
    assert.equal(headers.etag, '"1"')
    assert.equal(body.status, 'creating')
    for (const [key, value] of Object.entries(own)) assert.notDeepEqual(body[key], value, key)
    const project = await post(
      '/api/v1/projects',
      JSON.stringify({ name: name(), id: 999_999, created_at: '2000-01-01' }),
    )
    assert.notEqual(project.body.id, 999_999)
    assert.notEqual(project.body.created_at, '2000-01-01T00:00:00.000Z')
  })

  it('unknown members are refused before any work (decision D14)', async () => {
    for (const member of ['created_by', 'revision', 'version', 'org_id', 'role', 'plan', 'scopes', 'settles_to']) {
      const { status, body } = await post(agents, JSON.stringify({ name: name(), [member]: 'x' }))
      assert.deepEqual([status, fault(body).field, fault(body).code], [400, member, 'unknown_field'])
    }
    const project = await post('/api/v1/projects', JSON.stringify({ name: name(), org_id: 'org_x' }))
    assert.deepEqual([project.status, project.body.error.code], [400, 'INVALID_REQUEST'])
    assert.deepEqual(project.body.error.details, { field: 'org_id', issue: 'unknown member `org_id`' })
  })

  it('members are not coerced to the type of the schema (decision D16)', async () => {
    for (const [body, field] of [
      [{ name: 5 }, 'name'],
      [{ name: true }, 'name'],
      [{ name: ['x'] }, 'name'],
      [{ name: { a: 1 } }, 'name'],
      [{ name: 'x', config: { temperature: '1' } }, 'config.temperature'],
      [{ name: 'x', config: { max_tokens: '5' } }, 'config.max_tokens'],
      [{ name: 'x', config: { max_tokens: true } }, 'config.max_tokens'],
      [{ name: 'x', config: { tools: 'a' } }, 'config.tools'],
      [{ name: 'x', config: [] }, 'config'],
      [{ name: 'x', metadata: 'a' }, 'metadata'],
    ] as const) {
      const answer = await post(agents, JSON.stringify(body))
      assert.deepEqual(
        [answer.status, fault(answer.body).field, fault(answer.body).code],
        [400, field, 'invalid_format'],
        JSON.stringify(body),
      )
    }
    assert.equal((await post(agents, `{"name":"${name()}","config":{"max_tokens":5.0}}`)).body.config.max_tokens, 5)
  })

  it('members that are null on creation are treated as absent (decision D17)', async () => {
    const { status, body } = await post(
      agents,
      JSON.stringify({ name: name(), description: null, config: null, metadata: { a: null, b: 1 } }),
    )
    assert.equal(status, 201)
    assert.equal(body.description, '')
    assert.deepEqual(body.config.tools, [])
    assert.equal('a' in body.metadata, false)
    const answer = await post(agents, JSON.stringify({ name: null }))
    assert.deepEqual([fault(answer.body).field, fault(answer.body).code], ['name', 'required'])
  })

  it('members that are null in the objects of a list are treated as absent, except JSON of the caller (decision D17)', async () => {
    const { body: agent } = await post(agents, JSON.stringify({ name: name() }))
    const delegates = [{ agent_id: agent.id, name: 'helper', version: null, description: null }]
    const { status, body } = await post(agents, JSON.stringify({ name: name(), config: { delegates } }))
    assert.deepEqual([status, body.config?.delegates], [201, [{ agent_id: agent.id, name: 'helper' }]])
    const call = { id: 'c', name: 'look_up', arguments: { city: null, at: [null] } }
    const input = [
      {
        role: 'assistant',
        content: 'Looking.',
        tool_calls: [call, { ...call, id: 'd', arguments: null }],
        call_id: null,
      },
      { role: 'user', content: [{ type: 'text', text: 'And?' }], tool_calls: null },
    ]
    const tools = [{ name: 'look_up', description: 'Looks up.', kind: null, safety: null, parameters: null }]
    const task = await post(`${agents}/${agent.id}/tasks`, JSON.stringify({ input, tools }))
    assert.equal(task.status, 201, JSON.stringify(task.body))
    assert.deepEqual(task.body.input, [
      { role: 'assistant', content: 'Looking.', tool_calls: input[0]!.tool_calls },
      { role: 'user', content: input[1]!.content },
    ])
    const wrong = await post(`${agents}/${agent.id}/tasks`, JSON.stringify({ input: [null] }))
    assert.deepEqual([fault(wrong.body).field, fault(wrong.body).code], ['input[0]', 'required'])
  })
})
