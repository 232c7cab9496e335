import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, ownerOf } from '../../../test/actors.ts'
import { eventually, type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'

let test: TestService
let agents: string
before(async () => {
  test = await shareTestService()
  const { body } = await test.send('POST', '/api/v1/projects', { body: { name: 'versions' } })
  agents = `/api/v1/projects/proj_${body.id}/agents`
})
after(() => test.stop())

let names = 0
const first = {
  description: 'first',
  config: { model: 'builtin/echo', system_prompt: 'One.', environment_variables: { TOKEN: 'first value' } },
  metadata: { team: 'a' },
}
const second = {
  description: 'second',
  config: { system_prompt: null, temperature: 1, environment_variables: { TOKEN: 'second value', MORE: 'x' } },
  metadata: { team: 'b' },
}
/** An agent with two versions, the second under another name. */
async function make(): Promise<any> {
  const { body } = await test.send('POST', agents, { body: { name: `agent-${++names}`, ...first } })
  await test.send('PUT', `${agents}/${body.id}`, { body: { name: `renamed-${names}`, ...second } })
  return body
}
const get = async (path: string) => (await test.send('GET', `${agents}/${path}`)).body
const rollback = (id: string, version: unknown, headers: Record<string, string> = {}) =>
  test.send('POST', `${agents}/${id}/rollback`, { body: { version }, headers })
const settled = (id: string, status = 'running') => eventually(async () => (await get(id)).status === status)

describe('versions of an agent', () => {
  it('versions of an agent are listed newest first, without prompts and environment variables', async () => {
    const { id, name } = await make()
    const { versions, pagination } = await get(`${id}/versions`)
    assert.deepEqual(pagination, { total: 2, limit: 20, offset: 0, has_more: false })
    for (const version of versions) assert.equal(version.created_by, test.owner.user_id)
    assert.deepEqual(
      versions.map(({ created_at, created_by, ...rest }: any) => rest),
      [
        {
          agent_id: id,
          version: 1,
          current: true,
          name: `renamed-${names}`,
          description: 'second',
          config: { model: 'builtin/echo', tools: [], temperature: 1 },
        },
        {
          agent_id: id,
          version: 0,
          current: false,
          name,
          description: 'first',
          config: { model: 'builtin/echo', tools: [] },
        },
      ],
    )
    const page = await get(`${id}/versions?limit=1&offset=1`)
    assert.deepEqual([page.versions[0].version, page.pagination.has_more], [0, false])
  })

  it('a version of an agent is returned with the complete content of that time', async () => {
    const made = await make()
    const version = await get(`${made.id}/versions/0`)
    assert.deepEqual([version.name, version.current], [made.name, false])
    assert.deepEqual(version.config, made.config)
    assert.equal((await get(`${made.id}/versions/1`)).config.environment_variables.TOKEN, 'second value')
  })

  it('a version that an agent never had is 404', async () => {
    const { id } = await make()
    for (const version of ['2', '-1', 'latest', '1.0', '99999999999'])
      assert.deepEqual([(await get(`${id}/versions/${version}`)).error.code, version], ['resource_not_found', version])
    const { status, body } = await rollback(id, 2)
    assert.deepEqual(
      [status, body.error.code, body.error.details],
      [404, 'resource_not_found', { resource_type: 'agent_version', resource_id: '2' }],
    )
    for (const version of [-1, 1.5, '0', null, undefined]) {
      const refused = await rollback(id, version)
      assert.deepEqual([refused.status, refused.body.error.details[0].field], [400, 'version'], String(version))
    }
  })
})

describe('a rollback', () => {
  it('a rollback makes a new version that equals the old one; metadata stays', async () => {
    const made = await make()
    const { status, body, headers } = await rollback(made.id, 0)
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual([body.status, body.name, body.description], ['updating', made.name, 'first'])
    assert.deepEqual(body.config, made.config)
    assert.deepEqual(body.metadata, { ...made.metadata, team: 'b', version: '1.0.2' })
    assert.equal(headers.get('etag'), '"3"')
    const { versions } = await get(`${made.id}/versions`)
    assert.deepEqual(
      versions.map(({ version, current, description }: any) => [version, current, description]),
      [
        [2, true, 'first'],
        [1, false, 'second'],
        [0, false, 'first'],
      ],
    )
    assert.deepEqual((await get(`${made.id}/versions/2`)).config, made.config)
    await settled(made.id)
    const { body: task } = await test.send('POST', `${agents}/${made.id}/tasks?wait=10`, { body: { input: 'hello' } })
    assert.deepEqual([task.status, task.agent_version], ['completed', 2])
  })

  it('a rollback keeps the current name if another agent has taken the old one', async () => {
    const made = await make()
    await test.send('POST', agents, { body: { name: made.name } })
    const { status, body } = await rollback(made.id, 0)
    assert.deepEqual([status, body.name, body.description], [200, `renamed-${names}`, 'first'])
    assert.equal((await get(`${made.id}/versions/2`)).name, `renamed-${names}`)
  })

  for (const state of ['paused', 'stopped'] as const) {
    it(`a rollback of an agent that is ${state} leads back to ${state}, and says so in its log`, async () => {
      const { id } = await make()
      await settled(id)
      await test.send('POST', `${agents}/${id}/${state === 'paused' ? 'pause' : 'stop'}`)
      assert.equal((await rollback(id, 0)).body.status, 'updating')
      await settled(id, state)
      const [entry] = await test.sql<{ context: any }>`
        select context from agent_log where agent_id = ${id} and context->>'trigger' = 'rollback'`
      assert.deepEqual([entry!.context.from, entry!.context.to], [state, 'updating'])
    })
  }

  it('a rollback checks If-Match and requires the scope', async () => {
    const { id } = await make()
    assert.equal((await rollback(id, 0, { 'if-match': '"1"' })).status, 412)
    assert.equal((await rollback(id, 0, { 'if-match': '"2"' })).status, 200)
    const { key } = await makeKey(test, ownerOf(test), ['agents:read'])
    const options = { key, body: { version: 0 } }
    assert.equal((await test.send('POST', `${agents}/${id}/rollback`, options)).status, 403)
    assert.equal((await test.send('GET', `${agents}/${id}/versions`, { key })).status, 200)
  })

  it('twenty concurrent rollbacks make twenty versions', async () => {
    const { id } = await make()
    const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => rollback(id, i % 2)))
    assert.deepEqual([...new Set(replies.map(({ status }) => status))], [200])
    assert.equal((await get(`${id}/versions`)).pagination.total, 22)
  })
})
