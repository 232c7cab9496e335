import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson } from '../../../test/actors.ts'
import { eventually, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
let project_id: string
let agents: string
before(async () => {
  test = await shareTestService()
  agents = await newProject('agents')
  project_id = agents.split('/')[4]!
})
after(() => test.stop())

let names = 0
const newName = (): string => `agent-${++names}`
const create = (body: object, path = agents) => test.send('POST', path, { body })

async function newProject(name: string): Promise<string> {
  const { status, body } = await test.send('POST', '/api/v1/projects', { body: { name } })
  assert.equal(status, 201)
  return `/api/v1/projects/proj_${body.id}/agents`
}

async function make(body: object = {}, path = agents): Promise<any> {
  const reply = await create({ name: newName(), ...body }, path)
  assert.equal(reply.status, 201, JSON.stringify(reply.body))
  return reply.body
}

describe('creating an agent (spec 4.4, decisions D38, D39)', () => {
  it('creating an agent needs only a name, and returns defaults and the state creating, without stats', async () => {
    const name = newName()
    const { status, body } = await create({ name })
    assert.equal(status, 201)
    assert.match(body.id, /^agent_[0-7][0-9a-hjkmnp-tv-z]{25}$/)
    assert.match(body.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.deepEqual(body, {
      id: body.id,
      name,
      description: '',
      project_id,
      status: 'creating',
      config: { model: 'builtin/echo', tools: [] },
      metadata: { created_by: test.owner.user_id, version: '1.0.0' },
      created_at: body.created_at,
      updated_at: body.created_at,
      last_activity: null,
    })
  })

  it('creating an agent stores every given member, also unknown ones of config (decision D14)', async () => {
    const config = {
      model: 'openai/gpt-x',
      temperature: 0,
      max_tokens: 1,
      tools: ['b', 'a', 'b'],
      system_prompt: '',
      environment_variables: { A: '', _b: 'x\ny' },
      top_p: 0.5,
      nested: { deep: [1, { a: null }] },
    }
    const metadata = { team: 'support', tags: ['a'], count: 3, flag: false, nested: { x: { y: 1 } } }
    const made = await make({ description: ' as given ', config, metadata })
    assert.deepEqual(made.config, config)
    assert.equal(made.description, ' as given ')
    assert.deepEqual(made.metadata, { ...metadata, created_by: test.owner.user_id, version: '1.0.0' })
    const { body } = await test.send('GET', `${agents}/${made.id}`)
    assert.deepEqual(body.config, config)
    assert.deepEqual(body.metadata, made.metadata)
  })

  it('creating an agent sets created_by and version itself (decision D38)', async () => {
    const made = await make({ metadata: { created_by: 'user_x', version: '9.9.9', other: 1 } })
    assert.deepEqual(made.metadata, { other: 1, created_by: test.owner.user_id, version: '1.0.0' })
  })

  it('creating an agent encrypts environment variables; no version and no list has them in clear (decision S4)', async () => {
    const made = await make({ config: { environment_variables: { TOKEN: 'canary-4711' } } })
    await test.send('PUT', `${agents}/${made.id}`, {
      body: { config: { environment_variables: { OTHER: 'canary-4712' } } },
    })
    const rows = await test.sql<{ row: string; secret: string }>`
      select a::text as row, encode(environment, 'escape') as secret from agent a where id = ${made.id}
      union all select v::text, encode(environment, 'escape') from agent_version v where agent_id = ${made.id}
      union all select l::text, '' from agent_log l where agent_id = ${made.id}
      union all select e::text, '' from event e where agent_id = ${made.id}`
    assert.ok(rows.length >= 4)
    for (const { row, secret } of rows) assert.equal(`${row} ${secret}`.includes('canary'), false)
    const { body } = await test.send('GET', `${agents}/${made.id}`)
    assert.deepEqual(body.config.environment_variables, { TOKEN: 'canary-4711', OTHER: 'canary-4712' })
    // Bound to their agent: moved to another row they are no good.
    const other = await make({ config: { environment_variables: { A: 'x' } } })
    await test.sql`update agent set environment = (select environment from agent where id = ${made.id}) where id = ${other.id}`
    const moved = await test.send('GET', `${agents}/${other.id}`)
    assert.deepEqual([moved.status, moved.body.config], [200, { model: 'builtin/echo', tools: [] }])
  })
})

describe('the bounds of an agent (decision D50)', () => {
  const config = (members: object) => ({ config: members })
  const many = (count: number, value: (i: number) => unknown) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, value(i)]))
  const configOf = (bytes: number) => {
    const members = { model: 'm', tools: [], blob: '' }
    return { ...members, blob: 'x'.repeat(bytes - JSON.stringify(members).length) }
  }
  const taken: [string, object][] = [
    ['a name of 100 code points', { name: '😀'.repeat(100) }],
    ['a name with everything but control characters', { name: ' a\u00a0"<b>/\\ü\u2028\u200d👩‍💻 ' }],
    ['a description of 2,000', { description: '😀'.repeat(2000) }],
    ['a model of 128', config({ model: 'm'.repeat(128) })],
    ['an unknown model (decision D40)', config({ model: 'no/such model' })],
    ['a system prompt of 100,000', config({ system_prompt: 'x'.repeat(100_000) })],
    ['no tools', config({ tools: [] })],
    ['128 tools of 128', config({ tools: Array.from({ length: 128 }, (_, i) => `${i}`.padEnd(128, 'x')) })],
    ['unknown tools, with every allowed character', config({ tools: ['a', 'A9_.:/-', '0'] })],
    ['temperature 0', config({ temperature: 0 })],
    ['temperature 2', config({ temperature: 2 })],
    ['temperature 1e-300', config({ temperature: 1e-300 })],
    ['max_tokens 1', config({ max_tokens: 1 })],
    ['max_tokens 2,147,483,647', config({ max_tokens: 2_147_483_647 })],
    ['100 environment variables', config({ environment_variables: many(100, () => 'x') })],
    ['an environment variable of 32,768', config({ environment_variables: { A: 'x'.repeat(32_768) } })],
    ['environment names of 128', config({ environment_variables: { ['_'.repeat(128)]: '', a1: '', Z: '' } })],
    ['config of 256 KiB', config(configOf(262_144))],
    ['64 members of metadata', { metadata: many(64, (i) => i) }],
    ['a metadata key of 64', { metadata: { ['😀'.repeat(64)]: 1 } }],
    ['metadata of 16 KiB', { metadata: { a: 'x'.repeat(16_384 - 8) } }],
  ]
  for (const [what, body] of taken) {
    it(`the bounds of an agent allow ${what}`, async () => {
      const { status, body: made } = await create({ name: newName(), ...body })
      assert.equal(status, 201, JSON.stringify(made).slice(0, 500))
      const { body: read } = await test.send('GET', `${agents}/${made.id}`)
      for (const [key, value] of Object.entries(body)) {
        if (typeof value === 'string') assert.equal(read[key], value)
        else for (const [member, sent] of Object.entries(value as object)) assert.deepEqual(read[key][member], sent)
      }
    })
  }

  const refused: [string, object, string, string][] = [
    ['an empty name', { name: '' }, 'name', 'required'],
    ['a name of white space', { name: ' \u00a0\u3000' }, 'name', 'invalid_format'],
    ['a name of 101', { name: '😀'.repeat(101) }, 'name', 'too_long'],
    ['a name with a line break', { name: 'a\nb' }, 'name', 'invalid_format'],
    ['a name with a tab', { name: 'a\tb' }, 'name', 'invalid_format'],
    ['a name with an escape', { name: 'a\u001b[31m' }, 'name', 'invalid_format'],
    ['a name with DEL', { name: 'a\u007f' }, 'name', 'invalid_format'],
    ['a name with a C1 control', { name: 'a\u0085' }, 'name', 'invalid_format'],
    ['a description of 2,001', { description: 'x'.repeat(2001) }, 'description', 'too_long'],
    ['an empty model', config({ model: '' }), 'config.model', 'required'],
    ['a model of 129', config({ model: 'm'.repeat(129) }), 'config.model', 'too_long'],
    ['a model that is no text', config({ model: 5 }), 'config.model', 'invalid_format'],
    ['a system prompt of 100,001', config({ system_prompt: 'x'.repeat(100_001) }), 'config.system_prompt', 'too_long'],
    ['129 tools', config({ tools: Array.from({ length: 129 }, () => 'a') }), 'config.tools', 'too_long'],
    ['a tool of 129', config({ tools: ['x'.repeat(129)] }), 'config.tools[0]', 'too_long'],
    ['an empty tool', config({ tools: ['a', ''] }), 'config.tools[1]', 'required'],
    ['a tool that begins with a dash', config({ tools: ['-a'] }), 'config.tools[0]', 'invalid_format'],
    ['a tool with a space', config({ tools: ['a b'] }), 'config.tools[0]', 'invalid_format'],
    ['a tool with an umlaut', config({ tools: ['ä'] }), 'config.tools[0]', 'invalid_format'],
    ['a tool with a line break', config({ tools: ['a\n'] }), 'config.tools[0]', 'invalid_format'],
    ['a tool that is null', config({ tools: [null] }), 'config.tools[0]', 'required'],
    ['temperature −0.001', config({ temperature: -0.001 }), 'config.temperature', 'out_of_range'],
    ['temperature 2.001', config({ temperature: 2.001 }), 'config.temperature', 'out_of_range'],
    ['max_tokens 0', config({ max_tokens: 0 }), 'config.max_tokens', 'out_of_range'],
    ['max_tokens −1', config({ max_tokens: -1 }), 'config.max_tokens', 'out_of_range'],
    ['max_tokens 2,147,483,648', config({ max_tokens: 2_147_483_648 }), 'config.max_tokens', 'out_of_range'],
    ['max_tokens 1.5', config({ max_tokens: 1.5 }), 'config.max_tokens', 'invalid_format'],
    [
      '101 environment variables',
      config({ environment_variables: many(101, () => 'x') }),
      'config.environment_variables',
      'too_long',
    ],
    [
      'an environment variable of 32,769',
      config({ environment_variables: { A: 'x'.repeat(32_769) } }),
      'config.environment_variables.A',
      'too_long',
    ],
    [
      'an environment variable that is a number',
      config({ environment_variables: { A: 1 } }),
      'config.environment_variables.A',
      'invalid_format',
    ],
    [
      'an environment name of 129',
      config({ environment_variables: { ['x'.repeat(129)]: '' } }),
      'config.environment_variables',
      'invalid_format',
    ],
    [
      'an empty environment name',
      config({ environment_variables: { '': 'x' } }),
      'config.environment_variables',
      'invalid_format',
    ],
    [
      'an environment name with a dash',
      config({ environment_variables: { 'A-B': 'x' } }),
      'config.environment_variables',
      'invalid_format',
    ],
    [
      'an environment name with an equals sign',
      config({ environment_variables: { 'A=B': 'x' } }),
      'config.environment_variables',
      'invalid_format',
    ],
    ['config of a byte more than 256 KiB', config(configOf(262_145)), 'config', 'too_long'],
    ['65 members of metadata', { metadata: many(65, (i) => i) }, 'metadata', 'too_long'],
    ['a metadata key of 65', { metadata: { ['k'.repeat(65)]: 1 } }, 'metadata', 'too_long'],
    ['metadata of a byte more than 16 KiB', { metadata: { a: 'x'.repeat(16_384 - 7) } }, 'metadata', 'too_long'],
  ]
  for (const [what, body, field, code] of refused) {
    it(`the bounds of an agent forbid ${what}, on creation and on update`, async () => {
      const target = await make()
      for (const reply of [
        await create({ name: newName(), ...body }),
        await test.send('PUT', `${agents}/${target.id}`, { body }),
      ]) {
        assert.deepEqual(
          [reply.status, reply.body.error.code],
          [400, 'validation_error'],
          JSON.stringify(reply.body).slice(0, 300),
        )
        assert.deepEqual(
          reply.body.error.details.map((issue: any) => `${issue.field} ${issue.code}`),
          [`${field} ${code}`],
        )
      }
    })
  }

  it('the issue of a member name says that it is about the name, and which names are allowed', async () => {
    const body = { metadata: { ['k'.repeat(65)]: 1 }, config: { environment_variables: { '9A': 'x' } } }
    const { details } = (await create({ name: newName(), ...body })).body.error
    assert.deepEqual(
      details.map(({ message, provided }: any) => [message, provided]),
      [
        [
          'has a member name that does not have the right format: Letters, digits and _, at most 128; no digit at the start',
          '9A',
        ],
        ['has a member name that must have at most 64 characters', 'k'.repeat(65)],
      ],
    )
  })

  it('the bounds of an agent apply to the result of an update, not only to the sent members', async () => {
    const made = await make({ config: { environment_variables: many(60, () => 'x') }, metadata: many(40, (i) => i) })
    const update = (body: object) => test.send('PUT', `${agents}/${made.id}`, { body })
    const more = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`m${i}`, 'x']))
    const variables = await update({ config: { environment_variables: more } })
    assert.deepEqual([variables.status, variables.body.error.details[0].field], [400, 'config.environment_variables'])
    const metadata = await update({ metadata: more })
    assert.deepEqual([metadata.status, metadata.body.error.details[0].field], [400, 'metadata'])
    const blob = 'x'.repeat(140_000)
    assert.equal((await update({ config: { a: blob } })).status, 200)
    const whole = await update({ config: { b: blob } })
    assert.deepEqual([whole.status, whole.body.error.details[0].field], [400, 'config'])
    assert.equal((await update({ config: { a: null, b: blob } })).status, 200)
  })
})

describe('names of agents (decision D44)', () => {
  it('names of agents are kept in normal form, and compared in it', async () => {
    const composed = 'Caf\u00e9'
    const made = await make({ name: 'Cafe\u0301' })
    assert.equal(made.name, composed)
    for (const name of [composed, 'Cafe\u0301']) {
      const { status, body } = await create({ name })
      assert.deepEqual(
        [status, body.error.code, body.error.details],
        [409, 'agent_conflict', { resource_type: 'agent', conflicting_field: 'name', conflicting_value: composed }],
      )
    }
  })

  it('names of agents are unique within their project; case and white space count', async () => {
    const name = newName()
    await make({ name })
    assert.equal((await create({ name })).status, 409)
    for (const other of [name.toUpperCase(), ` ${name}`, `${name} `])
      assert.equal((await create({ name: other })).status, 201)
    assert.equal((await create({ name }, await newProject('other-agents'))).status, 201)
  })

  it('names of agents may be changed to a free one, and to themselves', async () => {
    const [one, two] = [await make(), await make()]
    const rename = (id: string, name: string) => test.send('PUT', `${agents}/${id}`, { body: { name } })
    const taken = await rename(two.id, one.name)
    assert.deepEqual([taken.status, taken.body.error.code], [409, 'agent_conflict'])
    assert.equal((await test.send('GET', `${agents}/${two.id}`)).body.metadata.version, '1.0.0')
    assert.equal((await rename(two.id, two.name)).status, 200)
    const free = newName()
    assert.equal((await rename(one.id, free)).body.name, free)
    assert.equal((await rename(two.id, one.name)).status, 200)
  })

  it('of twenty agents created concurrently with one name exactly one gets it', async () => {
    const name = newName()
    const replies = await Promise.all(Array.from({ length: 20 }, () => create({ name })))
    assert.deepEqual(
      replies.map(({ status }) => status).sort((a, b) => a - b),
      [201, ...Array.from({ length: 19 }, () => 409)],
    )
    const others = await Promise.all([make(), make(), make()])
    const target = newName()
    const renamed = await Promise.all(
      others.map(({ id }) => test.send('PUT', `${agents}/${id}`, { body: { name: target } })),
    )
    assert.deepEqual(
      renamed.map(({ status }) => status).sort((a, b) => a - b),
      [200, 409, 409],
    )
  })

  it('names of agents are free as soon as their agent is deleted', async () => {
    const made = await make()
    assert.equal((await test.send('DELETE', `${agents}/${made.id}`)).status, 200)
    const again = await make({ name: made.name })
    assert.notEqual(again.id, made.id)
  })
})

describe('listing agents (decisions D41, D43, D51)', () => {
  let list: string
  const listed = ['delta', 'Alpha', 'épsilon', 'alpha', 'Ωmega', '😀', '10', '9']
  before(async () => {
    list = await newProject('listed')
    for (const name of listed)
      await make(
        { name, config: { system_prompt: 'canary', environment_variables: { A: 'canary' }, temperature: 1 } },
        list,
      )
    await eventually(
      async () => (await test.send('GET', `${list}?status=running`)).body.pagination.total === listed.length,
    )
  })
  const get = async (query: string) => (await test.send('GET', `${list}?${query}`)).body
  const found = async (query: string) => (await get(query)).agents.map(({ name }: any) => name)

  it('listing agents leaves out the prompt, environment variables and stats', async () => {
    const { agents, pagination } = await get('')
    assert.equal(JSON.stringify(agents).includes('canary'), false)
    for (const agent of agents) {
      assert.deepEqual(Object.keys(agent).sort(), [
        'config',
        'created_at',
        'description',
        'id',
        'last_activity',
        'metadata',
        'name',
        'project_id',
        'status',
        'updated_at',
      ])
      assert.deepEqual(Object.keys(agent.config).sort(), ['model', 'temperature', 'tools'])
    }
    assert.deepEqual(pagination, { total: 8, limit: 20, offset: 0, has_more: false })
  })

  it('listing agents returns the newest first, or sorts as requested, names by code point', async () => {
    const byCodePoint = listed.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    assert.deepEqual(await found(''), listed.toReversed())
    assert.deepEqual(await found('sort=-created_at'), listed.toReversed())
    assert.deepEqual(await found('sort=created_at'), listed)
    assert.deepEqual(await found('sort=name'), byCodePoint)
    assert.deepEqual(await found('sort=-name'), byCodePoint.toReversed())
  })

  it('listing agents in pages returns each agent once', async () => {
    const steps = []
    for (let offset = 0; offset < 9; offset += 3) steps.push(await get(`sort=created_at&limit=3&offset=${offset}`))
    assert.deepEqual(
      steps.flatMap(({ agents }) => agents.map(({ name }: any) => name)),
      listed,
    )
    assert.deepEqual(
      steps.map(({ pagination }) => pagination),
      [
        { total: 8, limit: 3, offset: 0, has_more: true },
        { total: 8, limit: 3, offset: 3, has_more: true },
        { total: 8, limit: 3, offset: 6, has_more: false },
      ],
    )
    assert.deepEqual(await get('offset=8'), {
      agents: [],
      pagination: { total: 8, limit: 20, offset: 8, has_more: false },
    })
    assert.deepEqual((await get('offset=2147483647')).agents, [])
  })

  it('listing agents breaks ties by identifier', async () => {
    await test.sql`update agent set created_at = '2020-01-01' where project_id = ${Number(list.split('_')[1]!.split('/')[0])}`
    assert.deepEqual(await found('sort=created_at'), listed)
    assert.deepEqual(await found('sort=-created_at'), listed.toReversed())
  })

  it('listing agents filters by state', async () => {
    const {
      agents: [first],
    } = await get('sort=name')
    await test.send('POST', `${list}/${first.id}/stop`)
    assert.deepEqual(await found('status=stopped'), [first.name])
    assert.equal((await get('status=running')).pagination.total, 7)
    for (const status of ['creating', 'paused', 'error', 'updating'])
      assert.deepEqual(await found(`status=${status}`), [])
    await test.send('POST', `${list}/${first.id}/start`)
  })
})

describe('reading an agent (decisions D41, D42)', () => {
  it('reading an agent returns the prompt and environment variables if set, and statistics', async () => {
    const bare = await make()
    const { status, body } = await test.send('GET', `${agents}/${bare.id}`)
    assert.equal(status, 200)
    assert.deepEqual(body.config, { model: 'builtin/echo', tools: [] })
    assert.deepEqual(body.stats, {
      total_tasks: 0,
      completed_tasks: 0,
      failed_tasks: 0,
      success_rate: 0,
      avg_response_time: 0,
    })
    assert.equal(body.last_activity, null)
    const full = await make({ config: { system_prompt: 'x', environment_variables: { A: 'b' } } })
    const { body: read } = await test.send('GET', `${agents}/${full.id}`)
    assert.deepEqual(read.config, full.config)
  })

  it('an agent is 404 outside its project and for other organizations', async () => {
    const made = await make()
    const elsewhere = await newProject('elsewhere')
    const { key } = await makeKey(test, await makePerson(test), ['admin'])
    const actions: [string, string, object?][] = [
      ['GET', ''],
      ['PUT', '', { name: 'stolen' }],
      ['DELETE', ''],
      ['POST', '/start'],
      ['POST', '/pause'],
      ['POST', '/stop'],
      ['POST', '/restart'],
    ]
    for (const [method, suffix, body] of actions) {
      const options = body ? { body } : {}
      const wrong = await test.send(method, `${elsewhere}/${made.id}${suffix}`, options)
      assert.deepEqual(
        [wrong.status, wrong.body.error.code, wrong.body.error.details.resource_id],
        [404, 'agent_not_found', made.id],
      )
      const stranger = await test.send(method, `${agents}/${made.id}${suffix}`, { ...options, key })
      assert.deepEqual(
        [stranger.status, stranger.body.error.code, stranger.body.error.details],
        [404, 'resource_not_found', { resource_type: 'project', resource_id: project_id }],
      )
    }
    assert.equal((await test.send('GET', `${agents}/${made.id}`)).body.name, made.name)
  })
})
