import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson } from '../../../test/actors.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { listProjectNumbers } from './project-statistics.queries.ts'

interface Statistics {
  project_id: number
  agents: number
  agents_running: number
  last_activity: string
}

describe('statistics of several projects', () => {
  let test: TestService
  let key: string
  before(async () => {
    test = await startTestService({ CADRE_DEFAULT_MODEL: 'builtin/echo' })
    ;({ key } = await makeKey(test, await makePerson(test), ['admin']))
  })
  after(() => test.stop())

  const post = async (path: string, body: unknown) => (await test.send('POST', path, { key, body })).body
  const read = async (query = ''): Promise<{ status: number; statistics: Statistics[] }> => {
    const { status, body } = await test.send('GET', `/api/v1/projects/statistics${query}`, { key })
    return { status, statistics: body.statistics }
  }

  it('statistics of several projects follow their agents and the latest activity, without other projects', async () => {
    const idle = (await post('/api/v1/projects', { name: 'idle' })).id
    const busy = (await post('/api/v1/projects', { name: 'busy' })).id
    const agents = `/api/v1/projects/${busy}/agents`
    const first = await post(agents, { name: 'first' })
    const second = await post(agents, { name: 'second' })
    const { statistics } = await read()
    assert.deepEqual(
      statistics.map(({ project_id, agents }) => [project_id, agents]),
      [
        [busy, 2],
        [idle, 0],
      ],
    )

    // An older task that goes on is activity too.
    const task = await post(`${agents}/${first.id}/tasks?wait=60`, { input: 'hello' })
    const after_ms = Date.parse(task.finished_at) + 5000
    await test.sql`update task set updated_at = ${new Date(after_ms).toISOString()} where id = ${task.id}`
    await test.send('DELETE', `${agents}/${second.id}`, { key })
    const [one, ...more] = (await read(`?project_ids=proj_${busy}`)).statistics
    assert.deepEqual(more, [])
    assert.equal(one?.agents, 1)
    assert.equal(Date.parse(one.last_activity), after_ms)

    const foreign = (await test.send('POST', '/api/v1/projects', { body: { name: 'elsewhere' } })).body.id
    assert.deepEqual(
      (await read(`?project_ids=${idle},${foreign},999999999,proj_${busy}`)).statistics.map((one) => one.project_id),
      [busy, idle],
    )
    for (const wrong of ['proj_0', '1,,2', Array.from({ length: 101 }, () => '1').join(',')])
      assert.equal((await read(`?project_ids=${wrong}`)).status, 400, wrong)
  })

  it('statistics of a project read the same few rows however large it is', async () => {
    const project = (await post('/api/v1/projects', { name: 'crowd' })).id
    await test.sql`
      insert into agent (id, project_id, name, status, config, metadata, created_by, token_subject, created_at)
      select 'agent_' || lpad(n::text, 26, '0'), ${project}, 'a' || n, 'running', '{}', '{}', 'user_x', 'user_x', now() - make_interval(secs => n)
      from generate_series(1, 4000) n`
    await test.sql`
      insert into task (id, project_id, agent_id, agent_version, status, input, max_attempts, usage, created_by)
      select 'task_' || lpad(n::text, 26, '0'), ${project}, 'agent_' || lpad(n::text, 26, '0'), 1, 'completed', '{}', 1, '{}', 'user_x'
      from generate_series(1, 4000) n`
    await test.sql`analyze agent, task, project, agent_count`
    const { org_id } = (await test.sql<{ org_id: string }>`select org_id from project where id = ${project}`)[0]!
    await test.sql.begin(async (tx) => {
      const [numbers] = await listProjectNumbers(tx, org_id, [project])
      assert.deepEqual([numbers?.agents, numbers?.agents_running], [4000, 4000])
      const [read] = await tx<{ rows: number }>`
        select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint as rows from pg_stat_xact_user_tables
        where relname in ('agent', 'task')`
      assert.ok(read && read.rows > 0 && read.rows < 100, `${read?.rows} rows were read`)
    })
  })
})
