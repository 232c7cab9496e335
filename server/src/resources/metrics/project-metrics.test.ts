import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { newId } from '../../platform/ids.ts'

let service: TestService
let project_id: number
let url: string
const agents: string[] = []

before(async () => {
  service = await startTestService({ CADRE_DEFAULT_MODEL: 'builtin/echo' })
  project_id = (await service.send('POST', '/api/v1/projects', { body: { name: 'measured' } })).body.id
  url = `/api/v1/projects/${project_id}/metrics`
  for (const name of ['busy', 'lame'])
    agents.push((await service.send('POST', `/api/v1/projects/${project_id}/agents`, { body: { name } })).body.id)
  await Promise.all([put(agents[0]!, 300, 0.1), put(agents[1]!, 90, 0.6)])
  await service.sql`
    insert into usage_hour (org_id, project_id, agent_id, credential_id, model, tool, hour, calls, input_tokens, output_tokens, cost_usd, unpriced_calls)
    select ${service.owner.org_id}, ${project_id}, ${agents[0]!}, 'key_1', 'openai/gpt-4o', '', date_trunc('hour', now() - make_interval(hours => n), 'UTC'), 2, 100, 20, 0.5, 1
    from generate_series(1, 30) n`
})
after(() => service.stop())

/** Tasks that ended in the last three days, of which some failed. */
async function put(agent_id: string, count: number, failing: number): Promise<void> {
  const rows = Array.from({ length: count }, (_, n) => ({
    id: newId('task'),
    status: n % 17 === 0 ? 'canceled' : n % 10 < failing * 10 ? (n % 3 === 0 ? 'expired' : 'failed') : 'completed',
    ended: (n * n * 3 * 86_400) / count ** 2 + 1,
    took: ((n * 7919) % 1000) / 37,
  }))
  await service.sql`
    insert into task (id, project_id, agent_id, agent_version, status, input, max_attempts, usage, created_by, created_at, started_at, finished_at, error)
    select id, ${project_id}, ${agent_id}, 1, status, '{}', 1, '{}', 'user_x', now() - make_interval(secs => ended + took),
      now() - make_interval(secs => ended + took), now() - make_interval(secs => ended),
      case status when 'failed' then '{"code": "model_not_found", "message": "There is no such model."}'::jsonb end
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as t(id text, status text, ended float8, took float8)`
}

const read = async (query: Record<string, string>) => {
  const { status, body } = await service.send('GET', `${url}?${new URLSearchParams(query)}`)
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
const ago = (hours: number): string => new Date(Date.now() - hours * 3_600_000).toISOString()
const sum = (rows: any[], name: string): number => rows.reduce((total, row) => total + row[name], 0)

it('metrics of a project for one agent equal those of the agent, aggregated or not, and without an agent cover all', async () => {
  for (const isRolled of [false, true]) {
    if (isRolled)
      for (let more = true; more;)
        [{ more } = { more: false }] = await service.sql<{ more: boolean }>`select roll_up_tasks() as more`
    for (const interval of ['5m', '1h', '1d']) {
      const asked = { start_time: ago(interval === '5m' ? 20 : 60), interval }
      const { metrics, period } = await read(asked)
      const ofAgents = await Promise.all(agents.map((agent_id) => read({ ...asked, agent_id })))
      for (const name of ['completed', 'failed', 'canceled']) {
        assert.equal(sum(metrics.time_series, name), metrics.tasks[name], `${interval} ${name}`)
        assert.equal(
          sum(
            ofAgents.map((one) => one.metrics.tasks),
            name,
          ),
          metrics.tasks[name],
        )
      }
      const agent = (
        await service.send(
          'GET',
          `/api/v1/projects/${project_id}/agents/${agents[0]}/metrics?${new URLSearchParams({ ...period, interval })}`,
        )
      ).body.metrics
      const [busy] = ofAgents
      assert.equal(busy.metrics.tasks.completed, agent.tasks.completed)
      assert.equal(busy.metrics.tasks.failed, agent.tasks.failed)
      assert.ok(Math.abs(busy.metrics.performance.avg_response_time - agent.performance.avg_response_time) < 1e-6)
      const { p95_response_time, p99_response_time } = busy.metrics.performance
      assert.ok(Math.abs(p95_response_time / agent.performance.p95_response_time - 1) < 0.02, String(p95_response_time))
      assert.ok(Math.abs(p99_response_time / agent.performance.p99_response_time - 1) < 0.02, String(p99_response_time))
      assert.deepEqual(
        busy.metrics.time_series.map(({ timestamp, completed }: any) => [timestamp, completed]),
        agent.time_series.map(({ timestamp, tasks_completed }: any) => [timestamp, tasks_completed]),
      )
      for (const { p50_response_time, p95_response_time } of metrics.time_series)
        assert.ok(p50_response_time <= p95_response_time)
    }
  }
})

it('usage of a project counts in the hour in which it began, in the sum and over time', async () => {
  const { metrics } = await read({ start_time: ago(48) })
  assert.deepEqual(metrics.usage, { calls: 60, tokens: 3600, cost_usd: 15, unpriced_calls: 30 })
  assert.equal(sum(metrics.time_series, 'cost_usd'), 15)
  const other = await read({ start_time: ago(48), agent_id: agents[1]! })
  assert.equal(other.metrics.usage.calls, 0)
})

it('failures of a project are grouped by agent and error, the most frequent first', async () => {
  const { metrics } = await read({ start_time: ago(72) })
  const groups = metrics.failures as { agent_name: string; code: string; count: number; message: string }[]
  assert.equal(sum(groups, 'count'), metrics.tasks.failed)
  assert.deepEqual(groups.map(({ agent_name, code }) => `${agent_name} ${code}`).toSorted(), [
    'busy expired',
    'busy model_not_found',
    'lame expired',
    'lame model_not_found',
  ])
  assert.deepEqual(
    groups.map(({ count }) => count),
    groups.map(({ count }) => count).toSorted((a, b) => b - a),
  )
  assert.equal(groups.find(({ code }) => code === 'model_not_found')?.message, 'There is no such model.')
})

it('metrics of a project refuse an unknown agent, an empty period and too many points', async () => {
  for (const [query, status] of [
    [{ agent_id: 'agent_00000000000000000000000000' }, 404],
    [{ start_time: ago(1), end_time: ago(2) }, 400],
    [{ start_time: ago(24 * 30), interval: '1m' }, 400],
  ] as const)
    assert.equal((await service.send('GET', `${url}?${new URLSearchParams(query as any)}`)).status, status)
})
