import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeRng, testSeed, type Rng } from '../../../test/rng.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'
import type { LogLevel } from '../../events/agent-log.ts'
import { newId } from '../../platform/ids.ts'
import { listProjectLogs, type ProjectLogFilter, type ProjectLogRow } from './project-logs.queries.ts'

const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']
const days = 4

describe('the logs of a project', () => {
  let service: TestService
  let rng: Rng
  const seed = testSeed()
  const projects: number[] = []
  /** Of both projects; the last is the other project's. */
  const agents: string[] = []
  before(async () => {
    service = await startTestService({ CADRE_DEFAULT_MODEL: 'builtin/echo' })
    rng = makeRng(seed)
    for (const name of ['here', 'there'])
      projects.push((await service.send('POST', '/api/v1/projects', { body: { name } })).body.id)
    await service.sql.script(`do $$ declare at date; begin
      for at in select generate_series((now() at time zone 'UTC')::date - ${days + 1}, (now() at time zone 'UTC')::date, '1 day')::date loop
        execute format('create table if not exists agent_log_%s partition of agent_log for values from (%L) to (%L)', to_char(at, 'YYYYMMDD'),
          at::timestamp at time zone 'UTC', (at + 1)::timestamp at time zone 'UTC');
      end loop; end $$`)
    // Agents without tasks: log entries of the service would be in the way.
    for (const [n, project] of [0, 0, 0, 1].entries()) {
      const id = newId('agent')
      agents.push(id)
      await service.sql`
        insert into agent (id, project_id, name, status, config, metadata, created_by, token_subject)
        values (${id}, ${projects[project]!}, ${`agent ${n}`}, 'stopped', '{"model": "builtin/echo", "tools": []}', '{}', 'user_x', 'user_x')`
      await put(id, n === 2 ? 20 : 800)
    }
  })
  after(() => service.stop())

  /** Entries of the last days, some of them at the same moment, and more of them at some hours than at others. */
  const put = (agent_id: string, count: number) => service.sql`
    insert into agent_log (id, agent_id, timestamp, level, message)
    select id, ${agent_id}, now() - make_interval(secs => ago), level, message
    from jsonb_to_recordset(${JSON.stringify(
      Array.from({ length: count }, (_, n) => ({
        id: newId('log'),
        level: rng.pick(levels),
        message: n % 10 === 0 ? 'An ODD one' : 'one of many',
        ago: rng.happens(0.3)
          ? rng.between(1, 20) * 3600
          : rng.happens(0.3)
            ? 7000 + rng.next()
            : rng.next() * days * 86_400,
      })),
    )}::jsonb) as e(id text, level text, message text, ago float8)`
  const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString()
  const someFilter = (): ProjectLogFilter => {
    const [a, b] = [rng.between(0, days * 86_400), rng.between(0, days * 86_400)]
    return {
      project_id: projects[0]!,
      level: rng.happens(0.5) ? rng.pick(levels) : undefined,
      search: rng.happens(0.2) ? 'odd' : undefined,
      start_time: rng.happens(0.5) ? undefined : ago(Math.max(a, b) + 1),
      end_time: rng.happens(0.5) ? undefined : ago(Math.min(a, b)),
      limit: rng.pick([1, 7, 100, 1000]),
      offset: rng.happens(0.4) ? 0 : rng.between(0, 1700),
    }
  }

  it('the logs of a project equal a plain query, for any filter and page, at any state of aggregation', async (t) => {
    t.diagnostic(`CADRE_TEST_SEED=${seed}`)
    for (const steps of [0, 1, 30, 60, 1000]) {
      for (let n = 0; n < steps; n++) {
        const [row] = await service.sql<{ more: boolean }>`select roll_up_logs() as more`
        if (!row!.more) break
      }
      for (let n = 0; n < 25; n++) {
        const filter = someFilter()
        const plain = await service.sql<ProjectLogRow>`
          select id, agent_id, timestamp, (extract(epoch from timestamp) * 1000000)::bigint as moment, level, message from agent_log
          where agent_id = any(${agents.slice(0, 3)}) and (${filter.level ?? null}::text is null or level = ${filter.level ?? null})
            and timestamp >= ${filter.start_time ?? '-infinity'}::timestamptz and timestamp < ${filter.end_time ?? 'infinity'}::timestamptz
            and (${filter.search ?? null}::text is null or message ilike '%' || ${filter.search ?? null} || '%')
          order by timestamp desc, id desc`
        const last = rng.happens(0.5) ? rng.between(0, plain.length) : -1
        const from = plain[last]
        const asked: ProjectLogFilter = from ? { ...filter, offset: 0, after: [from.moment, from.id] } : filter
        const { logs, total } = await listProjectLogs(service.sql, asked)
        const said = JSON.stringify({ steps, asked })
        assert.equal(total, plain.length, said)
        assert.deepEqual(
          logs.map(({ context, ...entry }) => entry),
          plain.slice(from ? last + 1 : filter.offset).slice(0, filter.limit),
          said,
        )
      }
    }
  })

  it('the logs of a project are returned with their agents, also filtered by task, and without other projects', async () => {
    const path = (project: number, query = '') => `/api/v1/projects/${project}/logs${query}`
    const { status, body } = await service.send('GET', path(projects[1]!, '?limit=5&offset=795'))
    assert.equal(status, 200)
    assert.deepEqual(body.pagination, { total: 800, limit: 5, offset: 795, has_more: false, next_cursor: null })
    assert.deepEqual([...new Set(body.logs.map(({ agent_id }: any) => agent_id))], [agents[3]])

    const { body: agent } = await service.send('POST', `/api/v1/projects/${projects[1]}/agents`, {
      body: { name: 'worker', config: { model: 'builtin/echo' } },
    })
    const { body: task } = await service.send(
      'POST',
      `/api/v1/projects/${projects[1]}/agents/${agent.id}/tasks?wait=60`,
      { body: { input: 'x' } },
    )
    assert.equal(task.status, 'completed')
    const { body: ofTask } = await service.send('GET', path(projects[1]!, `?task_id=${task.id}`))
    assert.ok(ofTask.pagination.total > 0)
    assert.deepEqual(new Set(ofTask.logs.map(({ agent_id }: any) => agent_id)), new Set([agent.id]))
    const { body: elsewhere } = await service.send('GET', path(projects[0]!, `?task_id=${task.id}`))
    assert.equal(elsewhere.pagination.total, 0)
    const { body: backwards } = await service.send(
      'GET',
      path(projects[0]!, `?start_time=${ago(1)}&end_time=${ago(2)}`),
    )
    assert.equal(backwards.error.code, 'validation_error')
  })
})
