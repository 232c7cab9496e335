import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeRng, testSeed, type Rng } from '../../../test/rng.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { newId } from '../../platform/ids.ts'
import { listTasks } from './tasks.queries.ts'

const ended = ['completed', 'completed', 'failed', 'canceled', 'expired'] as const
const open = ['queued', 'running', 'waiting'] as const
const days = 4

describe('totals of lists of tasks', () => {
  let service: TestService
  let rng: Rng
  let project_id: number
  const seed = testSeed()
  before(async () => {
    service = await startTestService({ CADRE_DEFAULT_MODEL: 'builtin/echo' })
    rng = makeRng(seed)
    project_id = (await service.send('POST', '/api/v1/projects', { body: { name: 'totals' } })).body.id
  })
  after(() => service.stop())

  /** Tasks of the last days; identifiers of some are from a clock that was hours wrong. */
  async function put(agent_id: string, count: number, states: readonly string[]): Promise<void> {
    const rows = Array.from({ length: count }, (_, n) => {
      const created = rng.next() * days * 86_400
      return {
        created,
        finished: rng.happens(0.2) ? rng.next() * created : created * 0.999,
        skew: rng.happens(0.1) ? rng.between(-40_000, 40_000) : 0,
        rest: `${String(n).padStart(6, '0')}${newId('task').slice(-10)}`,
        status: rng.pick(states),
      }
    })
    await service.sql`
      insert into task (id, project_id, agent_id, agent_version, status, input, max_attempts, usage, created_by, created_at, started_at, finished_at)
      select left(id_floor('task', now() - make_interval(secs => created + skew)), 15) || rest, ${project_id}, ${agent_id}, 1, status, '{}', 1, '{}', 'user_x',
        now() - make_interval(secs => created), now() - make_interval(secs => created),
        case when not status = any(${[...open]}) then now() - make_interval(secs => finished) end
      from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as t(created float8, finished float8, skew float8, rest text, status text)`
  }
  const begin = () =>
    service.sql.script(
      `delete from task; delete from task_total; update task_total_state set rolled_until = '-infinity'`,
    )
  const roll = async (steps = Infinity): Promise<void> => {
    for (let n = 0; n < steps; n++) {
      const [row] = await service.sql<{ more: boolean }>`select roll_up_task_totals() as more`
      if (!row!.more) return
    }
  }
  const ago = (seconds: number): string => new Date(Date.now() - seconds * 1000).toISOString()
  const somePeriod = () => {
    const [a, b] = [rng.between(0, days * 86_400), rng.between(0, days * 86_400)]
    return {
      since: rng.happens(0.3) ? '-infinity' : ago(Math.max(a, b) + 1),
      until: rng.happens(0.3) ? 'infinity' : ago(Math.min(a, b)),
    }
  }

  /** The kept total against a plain count of the same moment, and whether the identifiers are within what it tells. */
  async function compare(agent_id: string, { since, until }: ReturnType<typeof somePeriod>): Promise<void> {
    for (const status of [null, rng.pick([...ended, ...open])]) {
      const [row] = await service.sql<{ kept: number; counted: number; outside: number }>`
        with kept as (select * from count_tasks(${project_id}, ${agent_id}, ${status}, ${since}::timestamptz, ${until}::timestamptz))
        select kept.total as kept, count(t.id) as counted, count(t.id) filter (where
          (isfinite(${since}::timestamptz) or isfinite(${until}::timestamptz)) and not coalesce(t.id between kept.first_id and kept.last_id, false)) as outside
        from kept left join task t on project_id = ${project_id} and (${agent_id} = '' or agent_id = ${agent_id}) and (${status}::text is null or status = ${status})
          and created_at >= ${since}::timestamptz and created_at < ${until}::timestamptz
          and not exists (select from removed_agent r where r.agent_id = t.agent_id)
        group by kept.total`
      const text = JSON.stringify({ agent_id, status, since, until, ...row })
      assert.equal(row!.kept, row!.counted, text)
      assert.equal(row!.outside, 0, text)
    }
  }

  it('totals of lists of tasks equal a plain count, for any period and state, at any state of aggregation', async (t) => {
    t.diagnostic(`CADRE_TEST_SEED=${seed}`)
    const [agent, other, deleted] = [newId('agent'), newId('agent'), newId('agent')]
    await begin()
    await put(agent, 1500, [...ended, ...ended, ...open])
    await put(other, 200, ended)
    await put(deleted, 100, ended)
    for (const steps of [0, 1, 100, 200, Infinity]) {
      await roll(steps)
      for (let n = 0; n < 12; n++) await compare(rng.pick([agent, '']), somePeriod())
      await compare(other, somePeriod())
    }
    await service.sql`insert into removed_agent (agent_id) values (${deleted})`
    for (let n = 0; n < 10; n++) await compare('', somePeriod())
    await compare('', { since: '-infinity', until: 'infinity' })

    // Pages of a period have all of its tasks, in their order.
    const period = { created_after: ago(3 * 86_400), created_before: ago(86_400) }
    for (const sort of ['created_at', '-created_at'] as const) {
      const filter = { project_id, agent_id: agent, sort, ...period, limit: 1000 }
      const [{ tasks, total }, rest] = [
        await listTasks(service.sql, { ...filter, offset: 0 }),
        await listTasks(service.sql, { ...filter, offset: 10 }),
      ]
      const ids = tasks.map(({ id }) => id)
      assert.ok(total > 100)
      assert.equal(ids.length, total)
      assert.deepEqual(ids, sort === 'created_at' ? ids.toSorted() : ids.toSorted().toReversed())
      assert.deepEqual(
        rest.tasks.map(({ id }) => id),
        ids.slice(10),
      )
      assert.ok(
        tasks.every(({ created_at }) => created_at >= period.created_after && created_at < period.created_before),
      )
    }
  })

  it('totals of lists of tasks are exact at every moment while tasks are deleted, rolled back and aggregated concurrently', async () => {
    const [agent, other] = [newId('agent'), newId('agent')]
    await begin()
    await put(agent, 1500, ended)
    await put(other, 500, ended)
    let removing = 4
    let looks = 0
    const remove = async (): Promise<void> => {
      for (let n = 0; n < 25 || looks < 4; n++) {
        const undone = new Error('undone')
        await service.sql
          .begin(async (tx) => {
            await tx`delete from task where id in (
              select id from task where project_id = ${project_id} order by md5(id || ${String(rng.next())}) limit 15 for update skip locked)`
            if (n % 4 === 0) throw undone
          })
          .catch((error: unknown) => assert.equal(error, undone))
      }
    }
    const look = async (): Promise<void> => {
      for (; removing > 0; looks++) {
        await service.sql`select roll_up_task_totals()`
        for (const one of [agent, other, '']) await compare(one, { since: '-infinity', until: 'infinity' })
        await compare('', somePeriod())
      }
    }
    await Promise.all([look(), ...Array.from({ length: 4 }, () => remove().finally(() => removing--))])
    await roll()
    for (let n = 0; n < 10; n++) await compare(rng.pick([agent, other, '']), somePeriod())
    await service.sql`delete from task where project_id = ${project_id}`
    assert.deepEqual(await service.sql`select * from task_total`, [], 'of nothing nothing is left')
  })
})
