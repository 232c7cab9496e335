import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, type Reply, type TestService } from '../../test/harness.ts'
import { shareTestService } from '../../test/shared-service.ts'

let test: TestService
let project_id: number
let agents: string
before(async () => {
  test = await shareTestService()
  project_id = (await test.send('POST', '/api/v1/projects', { body: { name: 'errors' } })).body.id
  agents = `/api/v1/projects/${project_id}/agents`
})
after(() => test.stop())

const absentAgent = 'agent_00000000000000000000000000'
const webhook = { url: 'https://hooks.example.com/', events: ['agent.failed'], secret: 'a webhook secret' }

/** Makes every insert of a webhook fail with this SQLSTATE while `work` runs. */
async function whileFailingWith(state: string, work: () => Promise<void>): Promise<void> {
  await test.sql.script(`
    create function fail() returns trigger language plpgsql as $$
      begin raise exception 'select secret_text from hidden_table' using errcode = '${state}'; end $$;
    create trigger fail before insert on webhook for each row execute function fail();`)
  try {
    await work()
  } finally {
    await test.sql.script('drop trigger fail on webhook; drop function fail')
  }
}

describe('an error', () => {
  it('an error has exactly the members of its error format (decision D21)', async () => {
    const answers: [Reply, string[]][] = [
      [await test.send('GET', '/api/v1/auth/user', { key: null }), ['code', 'message', 'request_id', 'timestamp']],
      [await test.send('GET', '/api/v1/hello', { key: null }), ['code', 'message', 'request_id', 'timestamp']],
      [await test.send('POST', agents, { body: {} }), ['code', 'details', 'message', 'request_id', 'timestamp']],
      [
        await test.send('POST', '/api/v1/projects', { body: {} }),
        ['code', 'details', 'message', 'request_id', 'timestamp'],
      ],
      [await test.send('GET', `${agents}/${absentAgent}`), ['code', 'details', 'message', 'request_id', 'timestamp']],
    ]
    for (const [{ headers, body }, members] of answers) {
      assert.deepEqual(Object.keys(body), ['error'])
      assert.deepEqual(Object.keys(body.error).sort(), members)
      assert.equal(body.error.request_id, headers.get('x-request-id'))
      assert.match(body.error.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.ok(Math.abs(Date.parse(body.error.timestamp) - Date.now()) < 60_000)
      assert.match(body.error.message, /^[A-Z].*\.$/)
    }
  })

  it('a 404 names the kind and the id of the resource as sent (decision D24)', async () => {
    const missing: [string, string, string, object][] = [
      [
        'GET',
        `/api/v1/projects/proj_999999/agents`,
        'resource_not_found',
        { resource_type: 'project', resource_id: 'proj_999999' },
      ],
      [
        'GET',
        `/api/v1/projects/999999/agents/${absentAgent}`,
        'resource_not_found',
        { resource_type: 'project', resource_id: '999999' },
      ],
      [
        'POST',
        `/api/v1/projects/nope/agents/${absentAgent}/start`,
        'resource_not_found',
        { resource_type: 'project', resource_id: 'nope' },
      ],
      ['GET', `${agents}/${absentAgent}`, 'agent_not_found', { resource_type: 'agent', resource_id: absentAgent }],
      ['DELETE', `${agents}/nope`, 'agent_not_found', { resource_type: 'agent', resource_id: 'nope' }],
      ['GET', '/api/v1/auth/api-keys/nope', 'resource_not_found', { resource_type: 'api_key', resource_id: 'nope' }],
      [
        'DELETE',
        '/api/v1/auth/api-keys/key_00000000000000000000000000',
        'resource_not_found',
        { resource_type: 'api_key', resource_id: 'key_00000000000000000000000000' },
      ],
      ['GET', '/api/v1/projects/999999', 'RESOURCE_NOT_FOUND', { resource_type: 'project', resource_id: '999999' }],
    ]
    for (const [method, path, code, details] of missing) {
      const { status, body } = await test.send(method, path)
      assert.deepEqual([status, body.error.code, body.error.details], [404, code, details], path)
    }
    const launched = await test.send('POST', '/api/v1/agents', { body: { name: 'x', project_id: 999_999 } })
    assert.deepEqual(
      [launched.status, launched.body.error.code, launched.body.error.details],
      [404, 'RESOURCE_NOT_FOUND', { resource_type: 'project', resource_id: 999_999 }],
    )
  })

  it('an error repeats at most a hundred characters of an identifier', async () => {
    const { status, body } = await test.send('GET', `${agents}/${'a'.repeat(5000)}`)
    assert.equal(status, 404)
    assert.equal(body.error.details.resource_id.length, 100)
  })
})

describe('identifiers of every wrong shape (decisions D7, D30)', () => {
  const id = '01jcm3x5v8f9a2b4c6d8e0g2h4'
  const wrong = [
    'x',
    '0',
    '-1',
    '%20',
    '%00',
    'null',
    'undefined',
    '[object%20Object]',
    '%E0%A4%A0',
    `agent_${id.toUpperCase()}`,
    `AGENT_${id}`,
    `agent_${id}0`,
    `agent_${id.slice(1)}`,
    `agent-${id}`,
    `agent_${id.slice(0, -1)}i`,
    `agent_${id.slice(0, -1)}l`,
    `agent_${id.slice(0, -1)}o`,
    `agent_${id.slice(0, -1)}u`,
    `agent_8${id.slice(1)}`,
    `key_${id}`,
    `user_${id}`,
    `task_${id}`,
    `agent_${id}%0a`,
    `%20agent_${id}`,
    `agent_${id}%00`,
    "agent_'%20or%201=1--",
    '..',
    '*',
    '%25',
    '1e1',
    '９',
    'constructor',
    '__proto__',
    'toString',
    `agent_${'０'.repeat(26)}`,
  ]
  it('an identifier of a wrong shape names no agent, for any operation', async () => {
    for (const each of wrong) {
      // Clients resolve a dot segment, so it does not reach the server.
      if (each === '..') continue
      for (const [method, path] of [
        ['GET', ''],
        ['PUT', ''],
        ['DELETE', ''],
        ['POST', '/start'],
        ['GET', '/logs'],
        ['GET', '/metrics'],
      ] as const) {
        const { status, body } = await test.send(
          method,
          `${agents}/${each}${path}`,
          method === 'PUT' ? { body: { name: 'x' } } : {},
        )
        assert.deepEqual([status, body.error.code], [404, 'agent_not_found'], `${method} ${each}${path}`)
      }
    }
  })

  it('an identifier of a wrong shape names no API key', async () => {
    for (const each of wrong) {
      if (each === '..' || each === `key_${id}`) continue
      for (const method of ['GET', 'PUT', 'DELETE']) {
        const { status, body } = await test.send(
          method,
          `/api/v1/auth/api-keys/${each}`,
          method === 'PUT' ? { body: { name: 'x' } } : {},
        )
        assert.deepEqual([status, body.error.code], [404, 'resource_not_found'], `${method} ${each}`)
      }
    }
  })

  it('a project is named only by its number, with or without its prefix', async () => {
    for (const each of [project_id, `proj_${project_id}`]) {
      assert.equal((await test.send('GET', `/api/v1/projects/${each}`)).status, 200)
      assert.equal((await test.send('GET', `/api/v1/projects/${each}/agents`)).status, 200)
    }
    const n = String(project_id)
    const none = [
      `0${n}`,
      `proj_0${n}`,
      `+${n}`,
      `-${n}`,
      `${n}.0`,
      `${n}e0`,
      `0x${n}`,
      `%20${n}`,
      `${n}%20`,
      `${n}%0a`,
      `PROJ_${n}`,
      `Proj_${n}`,
      `proj-${n}`,
      `proj${n}`,
      `project_${n}`,
      `proj_proj_${n}`,
      'proj_',
      '0',
      'proj_0',
      '-1',
      '9007199254740991',
      '9007199254740992',
      '9223372036854775807',
      '9223372036854775808',
      '99999999999999999999',
      '1'.repeat(300),
      `${n},${n}`,
      `${n};`,
      '१',
      'NaN',
      ...wrong,
    ]
    for (const each of none) {
      if (each === '..') continue
      const b = await test.send('GET', `/api/v1/projects/${each}`)
      assert.deepEqual([b.status, b.body.error.code], [404, 'RESOURCE_NOT_FOUND'], each)
      const a = await test.send('GET', `/api/v1/projects/${each}/agents`)
      assert.deepEqual([a.status, a.body.error.code], [404, 'resource_not_found'], each)
    }
  })
})

describe('invalid fields', () => {
  it('the agents format lists all invalid fields by dotted path, in the order of the contract (decision D26)', async () => {
    const body = {
      metadata: [],
      config: {
        tools: ['ok', '', 'bad tool'],
        temperature: 2.5,
        max_tokens: 0,
        environment_variables: { A: 5, '1B': 'x' },
        model: '',
      },
      name: '',
      description: 'x'.repeat(2001),
    }
    const { status, body: answer } = await test.send('POST', agents, { body })
    assert.deepEqual([status, answer.error.code], [400, 'validation_error'])
    const received = answer.error.details.map(({ field, code, min, max }: any) => ({
      field,
      code,
      ...(min === undefined ? {} : { min }),
      ...(max === undefined ? {} : { max }),
    }))
    assert.deepEqual(received, [
      { field: 'name', code: 'required' },
      { field: 'description', code: 'too_long', max: 2000 },
      { field: 'config.model', code: 'required' },
      { field: 'config.temperature', code: 'out_of_range', min: 0, max: 2 },
      { field: 'config.max_tokens', code: 'out_of_range', min: 1, max: 2_147_483_647 },
      { field: 'config.tools[1]', code: 'required' },
      { field: 'config.tools[2]', code: 'invalid_format' },
      { field: 'config.environment_variables', code: 'invalid_format' },
      { field: 'config.environment_variables.A', code: 'invalid_format' },
      { field: 'metadata', code: 'invalid_format' },
    ])
    for (const { message } of answer.error.details) assert.ok(typeof message === 'string' && message.length > 0)
  })

  it('an issue repeats the value that was sent, cut at a hundred characters', async () => {
    const { body } = await test.send('POST', agents, {
      body: { name: '\u0007'.repeat(90), description: 'x'.repeat(3000), config: { temperature: 9 } },
    })
    const [name, description, temperature] = body.error.details
    assert.equal(name.provided, '\u0007'.repeat(90))
    assert.equal(description.provided, 'x'.repeat(100))
    assert.equal(temperature.provided, 9)
  })

  it('an issue never repeats a secret or the value of an environment variable', async () => {
    const canary = 'canary-4711'
    const agent = (environment_variables: unknown) =>
      test.send('POST', agents, { body: { name: 'x', config: { environment_variables } } })
    const hook = (secret: unknown) => test.send('POST', '/api/v1/webhooks', { body: { ...webhook, secret } })
    const long = canary.repeat(3000)
    const answers = [
      await agent({ A: long }),
      await agent({ A: [canary] }),
      await agent(canary),
      await agent([canary]),
      await agent({ '1': canary }),
      await agent({ A: `${canary}\u0000` }),
      await hook(long),
      await hook([canary]),
      await hook({ a: canary }),
      await hook(`${canary}\ud800`),
      await hook(''),
    ]
    for (const { status, body } of answers) {
      assert.equal(status, 400)
      assert.equal(JSON.stringify(body).includes('canary'), false, JSON.stringify(body))
    }
  })

  it('the control format returns the first invalid field, as field and issue (decision D27)', async () => {
    const answers: [object, string][] = [
      [{ url: 5, events: 'x', secret: '' }, 'url'],
      [{ ...webhook, events: ['agent.failed', 'nope'] }, 'events'],
      [{ ...webhook, events: [] }, 'events'],
      [{ ...webhook, secret: undefined }, 'secret'],
      [{ ...webhook, filters: [] }, 'filters'],
      [{ ...webhook, filters: { severity: 'high' } }, 'filters.severity'],
    ]
    for (const [body, field] of answers) {
      const answer = await test.send('POST', '/api/v1/webhooks', { body })
      assert.deepEqual([answer.status, answer.body.error.code], [400, 'INVALID_REQUEST'])
      assert.deepEqual(Object.keys(answer.body.error.details).sort(), ['field', 'issue'])
      assert.equal(answer.body.error.details.field, field)
    }
  })
})

describe('an internal error', () => {
  for (const state of ['08006', '53100', '53300', '57P01', '57P03', '57014', '55P03', '40P01', '40001']) {
    it(`the SQLSTATE ${state} is answered with 503 and Retry-After (decision D13)`, () =>
      whileFailingWith(state, async () => {
        const { status, headers, body } = await test.send('POST', '/api/v1/webhooks', { body: webhook })
        assert.deepEqual([status, body.error.code], [503, 'SERVICE_UNAVAILABLE'])
        assert.equal(headers.get('retry-after'), '1')
        assert.equal(body.error.retry_after, 1)
        assert.equal(/hidden|select|secret/.test(JSON.stringify(body)), false)
      }))
  }

  it('an internal error is 500 without internal details, and an event of the organization (decisions D21, D94)', () =>
    whileFailingWith('22012', async () => {
      const { status, headers, body } = await test.send('POST', '/api/v1/webhooks', { body: webhook })
      assert.deepEqual([status, body.error.code, 'details' in body.error], [500, 'INTERNAL_ERROR', false])
      assert.equal(/hidden|select|secret/.test(JSON.stringify(body)), false)
      const request_id = headers.get('x-request-id')
      const event = await eventually(async () => {
        const [row] = await test.sql<{
          org_id: string
          data: any
        }>`select org_id, data from event where type = 'error.occurred' and data->>'request_id' = ${request_id}`
        return row
      })
      assert.equal(event.org_id, test.owner.org_id)
      assert.deepEqual(Object.keys(event.data).sort(), ['error', 'request_id', 'user_id'])
      assert.deepEqual(event.data.error, {
        code: 'internal_error',
        message: body.error.message,
        severity: 'critical',
        affected_resources: [],
      })
      assert.equal(event.data.user_id, test.owner.user_id)
    }))

  it('an internal error is rolled back, and the next request succeeds', async () => {
    const [row] = await test.sql<{ count: number }>`select count(*) from webhook where org_id = ${test.owner.org_id}`
    assert.equal(row!.count, 0)
    assert.equal((await test.send('POST', '/api/v1/webhooks', { body: webhook })).status, 201)
  })
})
