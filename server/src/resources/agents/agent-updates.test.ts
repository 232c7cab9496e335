import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
let agents: string
before(async () => {
  test = await shareTestService()
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'updates' } })
  agents = `/api/v1/projects/proj_${body.id}/agents`
})
after(() => test.stop())

let names = 0
async function make(body: object = {}): Promise<any> {
  const { body: made } = await test.send('POST', agents, { body: { name: `agent-${++names}`, ...body } })
  return made
}
const update = (id: string, body: unknown) => test.send('PUT', `${agents}/${id}`, { body })
const get = async (id: string) => (await test.send('GET', `${agents}/${id}`)).body
const settled = (id: string, status: string) => eventually(async () => (await get(id)).status === status)

const full = {
  description: 'before',
  config: {
    model: 'openai/a',
    temperature: 1,
    max_tokens: 5,
    tools: ['a', 'b'],
    system_prompt: 'prompt',
    environment_variables: { A: '1', B: '2' },
    custom: { x: 1, y: [1, 2] },
  },
  metadata: { team: 'a', nested: { x: 1, y: 2 }, list: [1, 2] },
}

describe('an update (decisions D17, D37)', () => {
  const cases: [string, object, (agent: any) => void][] = [
    ['a name alone leaves the rest', { name: 'renamed' }, (agent) => void (agent.name = 'renamed')],
    ['an empty description empties it', { description: '' }, (agent) => void (agent.description = '')],
    ['a description of null empties it', { description: null }, (agent) => void (agent.description = '')],
    [
      'part of config leaves the rest of it',
      { config: { temperature: 0.5 } },
      (agent) => void (agent.config.temperature = 0.5),
    ],
    [
      'a config member of null is removed',
      { config: { temperature: null, max_tokens: null, system_prompt: null } },
      (agent) => {
        for (const member of ['temperature', 'max_tokens', 'system_prompt']) delete agent.config[member]
      },
    ],
    [
      'a model of null becomes the default one',
      { config: { model: null } },
      (agent) => void (agent.config.model = 'builtin/echo'),
    ],
    ['tools are replaced whole', { config: { tools: ['c'] } }, (agent) => void (agent.config.tools = ['c'])],
    ['tools of null are removed', { config: { tools: null } }, (agent) => void delete agent.config.tools],
    [
      'environment variables merge by name',
      { config: { environment_variables: { B: null, C: '3' } } },
      (agent) => void (agent.config.environment_variables = { A: '1', C: '3' }),
    ],
    [
      'environment variables of null are all removed',
      { config: { environment_variables: null } },
      (agent) => void delete agent.config.environment_variables,
    ],
    [
      'every environment variable removed leaves none',
      { config: { environment_variables: { A: null, B: null } } },
      (agent) => void delete agent.config.environment_variables,
    ],
    [
      'unknown members of config merge too',
      { config: { custom: { x: null, y: [3], z: { w: 1 } } } },
      (agent) => void (agent.config.custom = { y: [3], z: { w: 1 } }),
    ],
    [
      'metadata merges',
      { metadata: { team: null, nested: { y: 3 }, list: [], more: true } },
      (agent) => {
        delete agent.metadata.team
        Object.assign(agent.metadata, { nested: { x: 1, y: 3 }, list: [], more: true })
      },
    ],
    [
      'an object takes the place of a plain value, and the other way round',
      { metadata: { team: { a: 1 }, nested: 5 } },
      (agent) => void Object.assign(agent.metadata, { team: { a: 1 }, nested: 5 }),
    ],
    ['an empty config changes nothing else', { config: {} }, () => {}],
    ['an empty metadata changes nothing else', { metadata: {} }, () => {}],
    [
      'what belongs to the service stays (decision D38)',
      { metadata: { created_by: 'user_x', version: null } },
      () => {},
    ],
    [
      'read-only members are ignored (decision D14)',
      { name: 'ignoring', status: 'error', id: 'x', project_id: 'proj_1', stats: 1 },
      (agent) => void (agent.name = 'ignoring'),
    ],
  ]
  for (const [what, body, apply] of cases) {
    it(`in an update of an agent ${what}`, async () => {
      const before = await make(full)
      const { status, body: after } = await update(before.id, body)
      assert.equal(status, 200, JSON.stringify(after))
      const expected = structuredClone(before)
      apply(expected)
      Object.assign(expected, { status: 'updating', updated_at: after.updated_at })
      expected.metadata.version = '1.0.1'
      assert.deepEqual(after, expected)
      assert.ok(after.updated_at > before.updated_at)
      const { stats, ...read } = await get(before.id)
      assert.ok(stats)
      assert.deepEqual({ ...read, status: 'updating' }, expected)
    })
  }

  it('an update without members is refused', async () => {
    const { id } = await make()
    for (const body of [{}, { status: 'running' }]) {
      const { status, body: answer } = await update(id, body)
      assert.deepEqual(
        [status, answer.error.code, answer.error.details[0].field, answer.error.details[0].code],
        [400, 'validation_error', 'body', 'required'],
      )
    }
  })

  it('an update cannot remove the name, config or metadata', async () => {
    const { id } = await make()
    for (const member of ['name', 'config', 'metadata']) {
      const { status, body } = await update(id, { [member]: null })
      assert.deepEqual([status, body.error.details[0].field, body.error.details[0].code], [400, member, 'required'])
    }
  })

  it('an update raises the version by one each time, and keeps every version with its content', async () => {
    const { id } = await make({ description: 'v0', config: { environment_variables: { A: '0' } } })
    for (let i = 1; i <= 12; i++)
      assert.equal((await update(id, { description: `v${i}` })).body.metadata.version, `1.0.${i}`)
    const versions = await test.sql<{
      version: number
      description: string
    }>`select version, description from agent_version where agent_id = ${id} order by version`
    assert.deepEqual(
      versions,
      Array.from({ length: 13 }, (_, version) => ({ version, description: `v${version}` })),
    )
  })

  it('an update advances updated_at strictly, also for updates in quick succession', async () => {
    const { id, updated_at } = await make()
    const times: string[] = [updated_at]
    for (let i = 0; i < 10; i++) times.push((await update(id, { description: String(i) })).body.updated_at)
    assert.deepEqual(times, [...new Set(times)].sort())
  })

  it('twenty concurrent updates of different members are all kept', async () => {
    const { id } = await make()
    const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => update(id, { metadata: { [`m${i}`]: i } })))
    assert.deepEqual(
      replies.map(({ status }) => status),
      Array.from({ length: 20 }, () => 200),
    )
    const { metadata } = await get(id)
    assert.deepEqual(metadata, {
      ...Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`m${i}`, i])),
      created_by: test.owner.user_id,
      version: '1.0.20',
    })
  })
})

describe('what an update leads back to (decision D35)', () => {
  for (const [state, to] of [
    ['running', 'running'],
    ['paused', 'paused'],
    ['stopped', 'stopped'],
    ['error', 'stopped'],
  ] as const) {
    it(`an update of an agent that is ${state} leads back to ${to}, without an event (decision D93)`, async () => {
      const { id } = await make()
      await settled(id, 'running')
      await test.sql`update agent set status = ${state} where id = ${id}`
      await test.sql`delete from event where agent_id = ${id}`
      await test.sql`delete from agent_log where agent_id = ${id}`
      assert.equal((await update(id, { description: 'x' })).body.status, 'updating')
      await settled(id, to)
      assert.deepEqual(await test.sql`select type from event where agent_id = ${id}`, [])
      const moves = await test.sql<{
        from: string
        to: string
      }>`select context->>'from' as from, context->>'to' as to from agent_log where agent_id = ${id} order by timestamp, id`
      assert.deepEqual(moves, [
        { from: state, to: 'updating' },
        { from: 'updating', to },
      ])
    })
  }

  it('creating: running, launched once', async () => {
    const { id } = await make()
    assert.equal((await update(id, { description: 'x' })).body.status, 'updating')
    await settled(id, 'running')
    assert.deepEqual(await test.sql`select type, data->>'trigger' as trigger from event where agent_id = ${id}`, [
      { type: 'agent.launched', trigger: 'create' },
    ])
  })

  it('updating: what was remembered first', async () => {
    const { id } = await make()
    await settled(id, 'running')
    await test.send('POST', `${agents}/${id}/pause`)
    await Promise.all(Array.from({ length: 5 }, (_, i) => update(id, { description: String(i) })))
    await settled(id, 'paused')
  })
})
