import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { AgentMetrics } from '#contract/resources/metrics.ts'
import { eventually, type Reply, startTestService, type TestService } from '../../../test/harness.ts'
import { check } from '../../http/validation.ts'
import { createProject } from '../../../test/fixtures.ts'

describe("an agent's metrics", () => {
  let service: TestService
  let project: string
  before(async () => {
    service = await startTestService()
    project = (await createProject(service.send, 'metrics')).path
  })
  after(() => service.stop())

  const createAgent = async (name: string): Promise<string> =>
    (await service.send('POST', `${project}/agents`, { body: { name, config: { model: 'builtin/echo' } } })).body.id
  const get = (agent: string, query = ''): Promise<Reply> =>
    service.send('GET', `${project}/agents/${agent}/metrics${query}`)

  /** A finished task, as if it had been run at that time. */
  const finished = async (agent: string, status: string, started_at: string, seconds: number): Promise<void> => {
    const { body: task } = await service.send('POST', `${project}/agents/${agent}/tasks?wait=10`, {
      body: { input: 'x' },
    })
    await service.sql`
      update task set status = ${status}, created_at = ${started_at}, started_at = ${started_at},
        finished_at = ${started_at}::timestamptz + make_interval(secs => ${seconds}) where id = ${task.id}`
  }

  const unused = { cpu_usage: 0, memory_usage: 0, tokens: 0, requests: 0, network_in: 0, network_out: 0 }

  it("an agent's metrics are zero, not null, for an agent that did nothing", async () => {
    const agent = await createAgent('idle')
    const { status, body } = await get(agent)
    assert.equal(status, 200)
    assert.deepEqual(check(AgentMetrics, body.metrics), [])
    assert.equal(body.period.interval, '1h')
    assert.equal(Date.parse(body.period.end_time) - Date.parse(body.period.start_time), 86_400_000)
    assert.ok(body.metrics.time_series.length === 24 || body.metrics.time_series.length === 25)
    const { timestamp: _first, ...zeros } = body.metrics.time_series[0]
    assert.deepEqual(zeros, { ...unused, tasks_completed: 0, tasks_failed: 0, avg_response_time: 0 })
    assert.deepEqual(body.metrics.tasks, { total: 0, completed: 0, failed: 0, in_progress: 0, success_rate: 0 })
    assert.deepEqual(Object.values(body.metrics.performance), [0, 0, 0, 0, 0])
    assert.deepEqual(Object.values(body.metrics.resource_usage), [0, 0, 0, 0, 0])
  })

  it("an agent's metrics count and measure tasks by the rules of the guide", async () => {
    const agent = await createAgent('counted')
    const day = new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 10)
    await finished(agent, 'completed', `${day}T10:00:00.000Z`, 1)
    await finished(agent, 'completed', `${day}T10:20:00.000Z`, 3)
    await finished(agent, 'failed', `${day}T11:30:00.000Z`, 8)
    await finished(agent, 'expired', `${day}T11:40:00.000Z`, 8)
    await finished(agent, 'canceled', `${day}T11:50:00.000Z`, 100)
    await finished(agent, 'completed', `${day}T12:00:00.000Z`, 1)
    const { body } = await get(agent, `?start_time=${day}T10:00:00Z&end_time=${day}T12:00:00Z&interval=1h`)
    assert.deepEqual(body.metrics.tasks, { total: 5, completed: 2, failed: 2, in_progress: 0, success_rate: 0.5 })
    const { avg_response_time, p95_response_time, p99_response_time } = body.metrics.performance
    assert.deepEqual([avg_response_time, p95_response_time, p99_response_time], [5, 8, 8])
    assert.deepEqual(body.metrics.time_series, [
      { ...unused, timestamp: `${day}T10:00:00.000Z`, tasks_completed: 2, tasks_failed: 0, avg_response_time: 2 },
      { ...unused, timestamp: `${day}T11:00:00.000Z`, tasks_completed: 0, tasks_failed: 2, avg_response_time: 8 },
    ])
    assert.deepEqual(body.period, {
      start_time: `${day}T10:00:00.000Z`,
      end_time: `${day}T12:00:00.000Z`,
      interval: '1h',
    })
    const before = (await get(agent, `?start_time=${day}T11:00:00Z&end_time=${day}T11:30:05Z`)).body.metrics.tasks
    assert.deepEqual([before.in_progress, before.total], [1, 1], 'the one that ran at the end of the period')
  })

  it("an agent's metrics contain the measured tokens, calls and resources", async () => {
    const agent = await createAgent('used')
    await service.sql`
      insert into agent_usage (agent_id, minute, model_calls, input_tokens, output_tokens, network_in, network_out, cpu_seconds,
        cpu_seconds_available, memory_byte_seconds, memory_byte_seconds_available, stored_bytes)
      select ${agent}, date_trunc('hour', now(), 'UTC') - make_interval(hours => h), 6, 100, 20, 1000, 500, 1, 4, 10, 100, 1073741824 / 8
      from generate_series(1, 2) h`
    const end = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000)
    const { body } = await get(
      agent,
      `?start_time=${new Date(end.getTime() - 7_200_000).toISOString()}&end_time=${end.toISOString()}`,
    )
    const { performance, resource_usage, time_series } = body.metrics
    assert.deepEqual([performance.tokens_per_minute, performance.requests_per_minute], [2, 0.1])
    assert.deepEqual(resource_usage, {
      cpu_usage: 0.25,
      memory_usage: 0.1,
      disk_usage: 0.25,
      network_in: 2000,
      network_out: 1000,
    })
    const used = { cpu_usage: 0.25, memory_usage: 0.1, tokens: 120, requests: 6, network_in: 1000, network_out: 500 }
    const ended = { tasks_completed: 0, tasks_failed: 0, avg_response_time: 0 }
    for (const { timestamp: _, ...point } of time_series) assert.deepEqual(point, { ...used, ...ended })
    assert.equal(time_series.length, 2)
  })

  it("an agent's metrics include a task that is running", async () => {
    const agent = await createAgent('busy')
    await service.send('POST', `${project}/agents/${agent}/tasks`, { body: { input: 'some words to say' } })
    const { metrics } = await eventually(async () => {
      const { body } = await get(agent, '?interval=1m')
      return body.metrics.tasks.completed === 1 && body.metrics.resource_usage.memory_usage > 0 && body
    })
    assert.deepEqual(check(AgentMetrics, metrics), [])
    assert.ok(metrics.performance.tokens_per_minute > 0)
    assert.ok(metrics.resource_usage.memory_usage < 1 && metrics.resource_usage.disk_usage > 0)
  })

  it("an agent's metrics refuse more than 1500 points, and a period that ends before it begins", async () => {
    const agent = await createAgent('bounds')
    const faults = async (query: string) =>
      (await get(agent, query)).body.error.details.map(({ field, code }: any) => [field, code])
    assert.deepEqual(await faults('?start_time=2026-01-01&end_time=2026-01-03&interval=1m'), [
      ['interval', 'out_of_range'],
    ])
    assert.equal(
      (await get(agent, '?start_time=2026-01-01T00:00:00Z&end_time=2026-01-02T01:00:00Z&interval=1m')).body.metrics
        .time_series.length,
      1500,
    )
    assert.deepEqual(await faults('?start_time=2026-01-02&end_time=2026-01-02'), [['end_time', 'out_of_range']])
    assert.deepEqual(await faults('?end_time=0001-01-01'), [['end_time', 'out_of_range']])
    assert.deepEqual(await faults('?interval=2h'), [['interval', 'invalid_choice']])
  })
})
