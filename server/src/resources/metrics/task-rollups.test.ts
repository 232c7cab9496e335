import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeRng, testSeed, type Rng } from '../../../test/rng.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { newId } from '../../platform/ids.ts'
import { findTaskNumbers, listSeries, type Period } from './metrics.queries.ts'

/** A task of the past, in seconds before now. */
interface Past {
  status: 'completed' | 'failed' | 'expired' | 'canceled'
  created: number
  /** Undefined where it never began. */
  started: number | undefined
  finished: number
}

describe('metrics of tasks that are summed up', () => {
  let service: TestService
  let project_id: number
  let rng: Rng
  const seed = testSeed()
  before(async () => {
    service = await startTestService({ CADRE_DEFAULT_MODEL: 'builtin/echo' })
    project_id = (await service.send('POST', '/api/v1/projects', { body: { name: 'rollups' } })).body.id
    rng = makeRng(seed)
  })
  after(() => service.stop())

  const newAgent = async (name: string): Promise<string> =>
    (await service.send('POST', `/api/v1/projects/${project_id}/agents`, { body: { name } })).body.id

  /** Tasks of the last three days, most of them short, some that took hours, in every order. */
  const pasts = (count: number): Past[] =>
    Array.from({ length: count }, () => {
      const finished = rng.happens(0.3) ? rng.between(0, 7200) : rng.between(0, 3 * 86_400)
      const took = rng.happens(0.05) ? rng.between(1, 30_000) : rng.next() ** 4 * 60
      const waited = rng.happens(0.1) ? rng.between(1, 20_000) : rng.next()
      const status = rng.pick(['completed', 'completed', 'completed', 'failed', 'expired', 'canceled'] as const)
      const began = status === 'completed' || status === 'failed' || rng.happens(0.5)
      return { status, finished, started: began ? finished + took : undefined, created: finished + took + waited }
    })
  const put = async (agent_id: string, tasks: readonly Past[]): Promise<void> => {
    const rows = tasks.map((task) => ({ ...task, id: newId('task') }))
    await service.sql`
      insert into task (id, project_id, agent_id, agent_version, status, input, max_attempts, usage, created_by, created_at, started_at, finished_at)
      select id, ${project_id}, ${agent_id}, 1, status, '{}', 1, '{}', 'user_x', now() - make_interval(secs => created),
        now() - make_interval(secs => started), now() - make_interval(secs => finished)
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as t(id text, status text, created float8, started float8, finished float8)`
  }
  const begin = () => service.sql.script('delete from task_rollup; delete from task_rollup_state')
  /** Sums up some hours, or all there is. */
  const roll = async (steps = Infinity): Promise<void> => {
    for (let n = 0; n < steps; n++) {
      const [row] = await service.sql<{ more: boolean }>`select roll_up_tasks() as more`
      if (!row!.more) return
    }
  }

  /** The same numbers from the tasks alone. */
  const plainly = async (agent_id: string, { start_time, end_time }: Period) => {
    const [row] = await service.sql<Record<string, number>>`
      with ended as (
        select status, case when status <> 'canceled' then extract(epoch from finished_at - started_at)::float8 end as seconds
        from task where agent_id = ${agent_id} and finished_at >= ${start_time}::timestamptz and finished_at < ${end_time}::timestamptz
      )
      select count(*) as ended, count(*) filter (where status = 'completed') as completed,
        count(*) filter (where status in ('failed', 'expired')) as failed, coalesce(avg(seconds), 0) as average,
        coalesce((array_agg(seconds order by seconds) filter (where seconds is not null))[1 + floor(0.95 * (count(seconds) - 1))::int], 0) as p95,
        coalesce((array_agg(seconds order by seconds) filter (where seconds is not null))[1 + ceil(0.95 * (count(seconds) - 1))::int], 0) as p95_next,
        (select count(*) from task where agent_id = ${agent_id} and created_at < ${end_time}::timestamptz
          and (finished_at is null or finished_at >= ${end_time}::timestamptz)) as in_progress
      from ended`
    return row!
  }
  const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString()
  const periods = (count: number): Period[] =>
    Array.from({ length: count }, () => {
      const [a, b] = [rng.between(0, 4 * 86_400), rng.between(0, 4 * 86_400)]
      const bucket_seconds = rng.pick([60, 300, 900, 3600, 86_400])
      return { start_time: ago(Math.max(a, b) + 0.5), end_time: ago(Math.min(a, b)), bucket_seconds }
    })

  async function compare(agent_id: string, period: Period): Promise<void> {
    const [numbers, plain, series] = [
      await findTaskNumbers(service.sql, agent_id, period),
      await plainly(agent_id, period),
      await listSeries(service.sql, agent_id, period),
    ]
    const text = `${JSON.stringify(period)} ${JSON.stringify({ numbers, plain })}`
    assert.equal(numbers.completed, plain.completed, text)
    assert.equal(numbers.failed, plain.failed, text)
    assert.equal(numbers.in_progress, plain.in_progress, text)
    assert.equal(numbers.total, plain.ended! + plain.in_progress!, text)
    assert.ok(Math.abs(numbers.avg_response_time - plain.average!) < 1e-5, text)
    assert.ok(numbers.p95_response_time >= plain.p95! * 0.99 - 1e-6, text)
    assert.ok(numbers.p95_response_time <= plain.p95_next! * 1.01 + 1e-6, text)
    assert.equal(
      series.reduce((sum, { tasks_completed }) => sum + tasks_completed, 0),
      plain.completed,
      text,
    )
    const plainSeries = await service.sql<{ timestamp: string; n: number; bad: number; average: number | null }>`
      select date_bin(make_interval(secs => ${period.bucket_seconds}), finished_at, 'epoch') as timestamp,
        count(*) filter (where status = 'completed') as n, count(*) filter (where status in ('failed', 'expired')) as bad, avg(extract(epoch from finished_at - started_at)) filter (where status <> 'canceled') as average
      from task where agent_id = ${agent_id} and finished_at >= ${period.start_time}::timestamptz and finished_at < ${period.end_time}::timestamptz
      group by 1`
    const points = new Map(series.map((point) => [point.timestamp, point]))
    for (const { timestamp, n, bad, average } of plainSeries) {
      assert.equal(points.get(timestamp)?.tasks_completed, n, `${timestamp} ${text}`)
      assert.equal(points.get(timestamp)?.tasks_failed, bad, `${timestamp} ${text}`)
      assert.ok(Math.abs(points.get(timestamp)!.avg_response_time - (average ?? 0)) < 1e-5, `${timestamp} ${text}`)
    }
  }

  it('metrics of tasks equal a plain count, for any period and interval, at any state of aggregation', async (t) => {
    t.diagnostic(`CADRE_TEST_SEED=${seed}`)
    const [agent, other] = [await newAgent('any'), await newAgent('other')]
    await put(agent, pasts(1500))
    await put(other, pasts(200))
    await begin()
    for (const steps of [0, 1, 20, 30, Infinity]) {
      await roll(steps)
      for (const period of periods(12)) await compare(agent, period)
      await compare(other, periods(1)[0]!)
    }
    // What ends later is read with what is summed up already.
    await put(
      agent,
      pasts(30).map((past) => ({
        ...past,
        created: past.created - past.finished,
        started: past.started && past.started - past.finished,
        finished: 0,
      })),
    )
    for (const period of periods(6)) await compare(agent, { ...period, end_time: ago(-1) })
    const [levels] = await service.sql<{ days: number; hours: number }>`
      select count(*) filter (where seconds = 86400) as days, count(*) filter (where seconds = 3600) as hours from task_rollup where agent_id = ${agent}`
    assert.ok(levels!.days >= 2 && levels!.hours >= 48, JSON.stringify(levels))
  })

  it("metrics of tasks and an agent's statistics agree at any state of aggregation", async () => {
    const agent = await newAgent('stats')
    await put(agent, pasts(300))
    const read = async () => (await service.send('GET', `/api/v1/projects/${project_id}/agents/${agent}`)).body.stats
    await begin()
    const [before, plain] = [
      await read(),
      (
        await service.sql<{ total: number; average: number }>`
          select count(*) as total, avg(extract(epoch from finished_at - coalesce(started_at, created_at)))::float8 as average
          from task where agent_id = ${agent}`
      )[0]!,
    ]
    await roll()
    const after = await read()
    assert.equal(after.total_tasks, plain.total)
    assert.ok(Math.abs(after.avg_response_time - plain.average) < 1e-5)
    assert.ok(Math.abs(after.avg_response_time - before.avg_response_time) < 1e-5)
    assert.deepEqual({ ...after, avg_response_time: 0 }, { ...before, avg_response_time: 0 })
  })

  it('aggregation of metrics waits for a transaction that may still end a task in a past minute', async () => {
    const agent = await newAgent('late')
    await put(agent, [{ status: 'completed', created: 500, started: 500, finished: 400 }])
    await begin()
    const client = await service.service.context.database.pool.connect()
    try {
      await client.query('begin')
      // Its time is that of its beginning; nothing of that minute or later may be summed up before it is over.
      const { rows } = await client.query('select date_bin($1, now(), $2) as at', ['1 minute', 'epoch'])
      await roll()
      const [state] = await service.sql<{ fine: boolean }>`
        select rolled_until <= ${rows[0].at}::timestamptz as fine from task_rollup_state`
      assert.equal(state!.fine, true)
    } finally {
      await client.query('rollback')
      client.release()
    }
  })
})
