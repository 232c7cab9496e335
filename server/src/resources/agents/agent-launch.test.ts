import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson } from '../../../test/actors.ts'
import { eventually, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
let project_id: number
let agents: string
before(async () => {
  test = await shareTestService()
  project_id = (await test.send('POST', '/api/v1/projects', { body: { name: 'launches' } })).body.id
  agents = `/api/v1/projects/proj_${project_id}/agents`
})
after(() => test.stop())

const send = (body: object, key?: string) => test.send('POST', '/api/v1/agents', { body, ...(key ? { key } : {}) })
const launch = (name: unknown) => send({ name, project_id })
const find = async (name: string) =>
  (await test.send('GET', `${agents}?limit=100`)).body.agents.filter((agent: any) => agent.name === name)
const launches = async (id: string) =>
  (
    await test.sql<{ trigger: string }>`
  select data->>'trigger' as trigger from event where agent_id = ${id} and type = 'agent.launched' order by id`
  ).map(({ trigger }) => trigger)

describe('launching an agent (decision D47)', () => {
  it('launching an agent that does not exist creates it with defaults and runs it', async () => {
    const { status, headers, body } = await launch('new')
    assert.deepEqual([status, body], [201, { message: `Agent 'new' launched in project ${project_id}` }])
    assert.equal(headers.get('etag'), null)
    const [agent] = await find('new')
    await eventually(async () => (await test.send('GET', `${agents}/${agent.id}`)).body.status === 'running')
    const { body: read } = await test.send('GET', `${agents}/${agent.id}`)
    assert.deepEqual(
      [read.config, read.description, read.metadata],
      [{ model: 'builtin/echo', tools: [] }, '', { created_by: test.owner.user_id, version: '1.0.0' }],
    )
    assert.deepEqual(await launches(agent.id), ['launch'])
  })

  for (const [state, told] of [
    ['paused', ['launch']],
    ['stopped', ['launch']],
    ['error', ['launch']],
    ['running', []],
  ] as const) {
    it(`launching an agent that is ${state} runs it and returns 200`, async () => {
      const name = `known-${state}`
      const { body: made } = await test.send('POST', agents, { body: { name } })
      await eventually(async () => (await test.send('GET', `${agents}/${made.id}`)).body.status === 'running')
      await test.sql`update agent set status = ${state} where id = ${made.id}`
      await test.sql`delete from event where agent_id = ${made.id}`
      const { status, body } = await launch(name)
      assert.deepEqual([status, body.message], [200, `Agent '${name}' launched in project ${project_id}`])
      assert.equal((await test.send('GET', `${agents}/${made.id}`)).body.status, 'running')
      assert.deepEqual(await launches(made.id), told)
    })
  }

  it('launching an agent that is being created or updated succeeds', async () => {
    const { body: made } = await test.send('POST', agents, { body: { name: 'in-between' } })
    assert.equal((await launch('in-between')).status, 200)
    await test.send('PUT', `${agents}/${made.id}`, { body: { description: 'x' } })
    assert.equal((await launch('in-between')).status, 200)
    await eventually(async () => (await test.send('GET', `${agents}/${made.id}`)).body.status === 'running')
    assert.deepEqual(await launches(made.id), ['create'])
  })

  it('twenty concurrent launches create one agent', async () => {
    const replies = await Promise.all(Array.from({ length: 20 }, () => launch('crowd')))
    assert.deepEqual(
      replies.map(({ status }) => status).sort((a, b) => a - b),
      [...Array.from({ length: 19 }, () => 200), 201],
    )
    const found = await find('crowd')
    assert.equal(found.length, 1)
    await eventually(async () => (await launches(found[0].id)).length === 1)
  })

  it('launching an agent normalizes the name and limits its length like creation', async () => {
    assert.equal((await launch('Cafe\u0301')).status, 201)
    const again = await launch('Caf\u00e9')
    assert.deepEqual([again.status, again.body.message], [200, `Agent 'Caf\u00e9' launched in project ${project_id}`])
    for (const name of ['', ' ', 'x'.repeat(101), 'a\nb', null, 5, undefined]) {
      const { status, body } = await launch(name)
      assert.deepEqual([status, body.error.code, body.error.details.field], [400, 'INVALID_REQUEST', 'name'])
    }
  })

  it('launching an agent requires the number of a project of the organization', async () => {
    for (const project of [
      `proj_${project_id}`,
      String(project_id),
      0,
      -1,
      1.5,
      null,
      undefined,
      true,
      [project_id],
      2 ** 53,
    ]) {
      const { status, body } = await send({ name: 'nowhere', project_id: project })
      assert.deepEqual(
        [status, body.error.code, body.error.details.field],
        [400, 'INVALID_REQUEST', 'project_id'],
        String(project),
      )
    }
    const { key } = await makeKey(test, await makePerson(test), ['admin'])
    for (const [project, by] of [
      [999_999, undefined],
      [Number.MAX_SAFE_INTEGER, undefined],
      [project_id, key],
    ] as const) {
      const { status, body } = await send({ name: 'nowhere', project_id: project }, by)
      assert.deepEqual(
        [status, body.error.code, body.error.details],
        [404, 'RESOURCE_NOT_FOUND', { resource_type: 'project', resource_id: project }],
      )
    }
    assert.deepEqual(await find('nowhere'), [])
  })
})
