import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { newId } from '../../platform/ids.ts'

describe('statistics of several agents', () => {
  let service: TestService
  let project_id: number
  let agents: string
  const ids: string[] = []
  before(async () => {
    service = await startTestService({ CADRE_DEFAULT_MODEL: 'builtin/echo' })
    project_id = (await service.send('POST', '/api/v1/projects', { body: { name: 'statistics' } })).body.id
    agents = `/api/v1/projects/${project_id}/agents`
    for (const name of ['busy', 'lame', 'idle'])
      ids.push((await service.send('POST', agents, { body: { name } })).body.id)
    await Promise.all([put(ids[0]!, 400, 0.2), put(ids[1]!, 60, 0.7)])
  })
  after(() => service.stop())

  /** Tasks that ended in the last nine days, of which some failed. */
  async function put(agent_id: string, count: number, failing: number): Promise<void> {
    const rows = Array.from({ length: count }, (_, n) => ({
      id: newId('task'),
      status: n % 17 === 0 ? 'canceled' : n % 10 < failing * 10 ? 'failed' : 'completed',
      ended: (n * n * 9 * 86_400) / count ** 2,
      took: ((n * 7919) % 1000) / 37,
    }))
    await service.sql`
      insert into task (id, project_id, agent_id, agent_version, status, input, max_attempts, usage, created_by, created_at, started_at, finished_at)
      select id, ${project_id}, ${agent_id}, 1, status, '{}', 1, '{}', 'user_x', now() - make_interval(secs => ended + took),
        now() - make_interval(secs => ended + took), now() - make_interval(secs => ended)
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as t(id text, status text, ended float8, took float8)`
  }
  const read = async (query: Record<string, string>) =>
    service.send('GET', `${agents}/statistics?${new URLSearchParams(query)}`)
  const ago = (hours: number): string => new Date(Date.now() - hours * 3_600_000).toISOString()

  it('statistics of several agents equal the metrics of each agent, aggregated or not', async () => {
    for (const isRolled of [false, true]) {
      if (isRolled)
        for (let more = true; more;)
          [{ more } = { more: false }] = await service.sql<{ more: boolean }>`select roll_up_tasks() as more`
      for (const [from, to] of [
        [24, 0],
        [100.3, 20.7],
        [0.9, 0.1],
        [168, 0.01],
      ] as const) {
        const period = { start_time: ago(from), end_time: ago(to) }
        const { status, body } = await read({ ...period, agent_ids: ids.join(',') })
        assert.equal(status, 200)
        assert.deepEqual(body.period, period)
        assert.deepEqual(
          body.statistics.map(({ agent_id }: { agent_id: string }) => agent_id).toSorted(),
          ids.toSorted(),
        )
        for (const one of body.statistics) {
          const { metrics } = (
            await service.send('GET', `${agents}/${one.agent_id}/metrics?${new URLSearchParams(period)}`)
          ).body
          const { completed, failed, success_rate } = metrics.tasks
          const { avg_response_time, p95_response_time } = metrics.performance
          assert.deepEqual([one.completed, one.failed, one.success_rate], [completed, failed, success_rate])
          assert.ok(Math.abs(one.avg_response_time - avg_response_time) < 1e-6)
          assert.ok(Math.abs(one.p95_response_time - p95_response_time) < 1e-6)
          const series = one.time_series as { timestamp: string; completed: number; failed: number }[]
          assert.deepEqual(
            series.map(({ timestamp, completed }) => ({ timestamp, completed })),
            (metrics.time_series as { timestamp: string; tasks_completed: number }[]).map((point) => ({
              timestamp: point.timestamp,
              completed: point.tasks_completed,
            })),
          )
          assert.equal(
            series.reduce((sum, { failed }) => sum + failed, 0),
            failed,
          )
        }
      }
    }
  })

  it('statistics of several agents cover the newest agents by default, and omit agents of other projects', async () => {
    const other = (await service.send('POST', '/api/v1/projects', { body: { name: 'elsewhere' } })).body.id
    const foreign = (await service.send('POST', `/api/v1/projects/${other}/agents`, { body: { name: 'a' } })).body.id
    const { body } = await read({})
    assert.deepEqual(
      body.statistics.map(({ agent_id }: { agent_id: string }) => agent_id),
      ids.toReversed(),
    )
    assert.deepEqual((await read({ agent_ids: `${foreign},agent_x` })).body.statistics, [])
    assert.equal((await read({ agent_ids: Array.from({ length: 101 }, () => 'agent_x').join(',') })).status, 400)
    assert.equal((await read({ start_time: ago(170) })).status, 400)
  })
})
