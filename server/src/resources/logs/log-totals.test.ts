import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeRng, testSeed, type Rng } from '../../../test/rng.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { writeAgentLog, type LogLevel } from '../../events/agent-log.ts'
import { newId } from '../../platform/ids.ts'
import { dropOldLogs, sweepLogSums } from '../../maintenance/retention.ts'
import { listLogs } from './logs.queries.ts'

const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error']

describe('totals of logs', () => {
  let service: TestService
  let rng: Rng
  const seed = testSeed()
  /** Days before today of which there are entries; later ones are dropped by the retention of two days. */
  const days = 5
  before(async () => {
    service = await startTestService({ CADRE_DEFAULT_MODEL: 'builtin/echo', CADRE_LOG_RETENTION_DAYS: '2' })
    rng = makeRng(seed)
    await service.sql.script(`do $$ declare at date; begin
      for at in select generate_series((now() at time zone 'UTC')::date - ${days}, (now() at time zone 'UTC')::date - 2, '1 day')::date loop
        execute format('create table if not exists agent_log_%s partition of agent_log for values from (%L) to (%L)', to_char(at, 'YYYYMMDD'),
          at::timestamp at time zone 'UTC', (at + 1)::timestamp at time zone 'UTC');
      end loop; end $$`)
  })
  after(() => service.stop())

  /** Entries between two moments, in seconds before now. */
  const put = (agent_id: string, count: number, from: number, to: number) => service.sql`
    insert into agent_log (id, agent_id, timestamp, level, message)
    select id, ${agent_id}, now() - make_interval(secs => ago), level, 'one of many'
    from jsonb_to_recordset(${JSON.stringify(
      Array.from({ length: count }, () => ({
        id: newId('log'),
        level: rng.pick(levels),
        ago: to + rng.next() * (from - to),
      })),
    )}::jsonb) as e(id text, level text, ago float8)`
  const begin = () => service.sql.script('delete from log_rollup; delete from log_rollup_state')
  const roll = async (steps = Infinity): Promise<void> => {
    for (let n = 0; n < steps; n++) {
      const [row] = await service.sql<{ more: boolean }>`select roll_up_logs() as more`
      if (!row!.more) return
    }
  }
  const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString()
  const periods = (count: number) =>
    Array.from({ length: count }, () => {
      const [a, b] = [rng.between(0, days * 86_400), rng.between(0, days * 86_400)]
      const start_time = rng.happens(0.2) ? undefined : ago(Math.max(a, b) + 1)
      return { start_time, end_time: rng.happens(0.2) ? undefined : ago(Math.min(a, b)) }
    })

  /** The kept total against a plain count, of the same moment. */
  async function compare(agent_id: string, period: ReturnType<typeof periods>[number]): Promise<void> {
    const { start_time = '-infinity', end_time = 'infinity' } = period
    for (const level of [null, rng.pick(levels)]) {
      const [row] = await service.sql<{ kept: number; counted: number }>`
        select count_log(${agent_id}, ${level}, ${start_time}::timestamptz, ${end_time}::timestamptz) as kept, (
          select count(*) from agent_log where agent_id = ${agent_id} and (${level}::text is null or level = ${level})
            and timestamp >= ${start_time}::timestamptz and timestamp < ${end_time}::timestamptz) as counted`
      assert.equal(row!.kept, row!.counted, JSON.stringify({ period, level }))
    }
  }

  it('totals of logs equal a plain count, for any period and level, at any state of aggregation', async (t) => {
    t.diagnostic(`CADRE_TEST_SEED=${seed}`)
    const [agent, other] = [newId('agent'), newId('agent')]
    await put(agent, 3000, (days - 1) * 86_400, 0)
    await put(other, 300, (days - 1) * 86_400, 0)
    await begin()
    for (const steps of [0, 1, 20, 40, Infinity]) {
      await roll(steps)
      for (const period of periods(15)) await compare(agent, period)
      await compare(other, periods(1)[0]!)
    }
    const page = await listLogs(service.sql, { agent_id: agent, limit: 3, offset: 2999 })
    assert.deepEqual([page.total, page.logs.length], [3000, 1])
    assert.deepEqual(await listLogs(service.sql, { agent_id: agent, limit: 3, offset: 3000 }), {
      total: 3000,
      logs: [],
    })
    const [sums] = await service.sql<{ days: number }>`
      select count(*) as days from log_rollup where agent_id = ${agent} and seconds = 86400`
    assert.ok(sums!.days >= days - 2, JSON.stringify(sums))

    // What has outlived its retention is counted no more, from the moment on in which it goes.
    const context = service.service.context
    let working = true
    const looks = (async () => {
      for (let n = 0; working || n < 3; n++) await compare(agent, { start_time: undefined, end_time: undefined })
    })()
    await dropOldLogs(service.sql, context)
    working = false
    await looks
    for (const period of periods(10)) await compare(agent, period)
    const { total } = await listLogs(service.sql, { agent_id: agent, limit: 1, offset: 0 })
    assert.ok(total > 0 && total < 3000, String(total))
    assert.ok((await sweepLogSums(service.sql)) > 0)
    for (const period of periods(10)) await compare(agent, period)
    assert.equal((await listLogs(service.sql, { agent_id: agent, limit: 1, offset: 0 })).total, total)
  })

  it('totals of logs are exact at every moment while entries are written, rolled back and aggregated concurrently', async () => {
    const agent = newId('agent')
    const all = { start_time: undefined, end_time: undefined }
    await put(agent, 500, 7200, 600)
    await begin()
    let writing = 4
    const write = async (): Promise<void> => {
      for (let n = 0; n < 40; n++) {
        const undone = new Error('undone')
        await service.sql
          .begin(async (tx) => {
            await writeAgentLog(tx, [{ agent_id: agent, level: rng.pick(levels), message: 'written' }])
            if (n % 5 === 0) throw undone
          })
          .catch((error: unknown) => assert.equal(error, undone))
      }
    }
    const look = async (): Promise<void> => {
      while (writing > 0) {
        await service.sql`select roll_up_logs()`
        await compare(agent, all)
      }
    }
    await Promise.all([look(), ...Array.from({ length: 4 }, () => write().finally(() => writing--))])
    await compare(agent, all)
    assert.equal((await listLogs(service.sql, { agent_id: agent, limit: 1, offset: 0 })).total, 500 + 4 * 32)
  })

  it('totals of logs wait for a transaction that may still write an entry of a past quarter of an hour', async () => {
    const agent = newId('agent')
    await put(agent, 10, 7200, 3600)
    await begin()
    const client = await service.service.context.database.pool.connect()
    try {
      await client.query('begin')
      const { rows } = await client.query('select bucket_floor(900, now()) as at')
      await roll()
      const [state] = await service.sql<{ fine: boolean }>`
        select rolled_until <= ${rows[0].at}::timestamptz as fine from log_rollup_state`
      assert.equal(state!.fine, true)
    } finally {
      await client.query('rollback')
      client.release()
    }
  })
})
