import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { AgentAction } from '#contract/resources/agent-lifecycle.ts'
import { makeRng, testSeed } from '../../../test/rng.ts'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'
import { buildLateIndexes } from '../../maintenance/late-indexes.ts'
import { foldAgentCounts } from './agents.queries.ts'

const actions: readonly AgentAction[] = ['start', 'pause', 'stop', 'restart']

let service: TestService
before(async () => (service = await startTestService({ CADRE_DEFAULT_MODEL: 'builtin/echo' })))
after(() => service.stop())

async function newProject(name: string): Promise<{ id: number; agents: string }> {
  const { body } = await service.send('POST', '/api/v1/projects', { body: { name } })
  return { id: body.id, agents: `/api/v1/projects/${body.id}/agents` }
}

describe('totals of lists of agents', () => {
  /** States whose kept number is not that of a plain count of the same moment. */
  const wrong = (project_id: number) => service.sql`
    select * from (select status, count(*)::bigint as counted from agent where project_id = ${project_id} group by status) a
    full join (select status, sum(agents)::bigint as kept from agent_count where project_id = ${project_id} group by status) c using (status)
    where coalesce(counted, 0) <> coalesce(kept, 0)`

  it('totals of lists of agents equal a plain count at every moment, while agents are created, moved and deleted concurrently', async (t) => {
    const seed = testSeed()
    t.diagnostic(`CADRE_TEST_SEED=${seed}`)
    const { id, agents } = await newProject('counted')
    let working = 8
    const work = async (who: number): Promise<void> => {
      const rng = makeRng(seed + who)
      const mine: string[] = []
      for (let n = 0; n < 25; n++) {
        if (mine.length === 0 || rng.happens(0.4)) {
          // Some names are taken: such a creation is undone, with what it counted.
          const { status, body } = await service.send('POST', agents, { body: { name: `a${rng.between(1, 150)}` } })
          if (status === 201) mine.push(body.id)
          else assert.equal(status, 409)
        } else if (rng.happens(0.3)) {
          const deleted = mine.splice(rng.between(0, mine.length - 1), 1)[0]
          assert.equal((await service.send('DELETE', `${agents}/${deleted}`)).status, 200)
        } else {
          const { status } = await service.send('POST', `${agents}/${rng.pick(mine)}/${rng.pick(actions)}`)
          assert.ok(status === 200 || status === 409, String(status))
        }
      }
    }
    let looks = 0
    const look = async (): Promise<void> => {
      for (; working > 0; looks++) {
        assert.deepEqual(await wrong(id), [])
        await foldAgentCounts(service.sql)
      }
    }
    await Promise.all([look(), ...Array.from({ length: working }, (_, who) => work(who).finally(() => working--))])
    assert.ok(looks > 3, `looked ${looks} times`)
    assert.deepEqual(await wrong(id), [])

    await foldAgentCounts(service.sql)
    const { body } = await service.send('GET', `${agents}?limit=1`)
    const [{ n } = { n: 0 }] = await service.sql<{
      n: number
    }>`select count(*) as n from agent where project_id = ${id}`
    assert.ok(n > 0)
    assert.equal(body.pagination.total, n)
  })

  it('totals of lists of agents are also returned with a page after the last agent, and are 0 without agents', async () => {
    const { agents } = await newProject('pages')
    for (const name of ['a', 'b', 'c']) await service.send('POST', agents, { body: { name } })
    const page = async (query: string) => (await service.send('GET', `${agents}?${query}`)).body
    assert.deepEqual((await page('offset=7')).pagination, { total: 3, limit: 20, offset: 7, has_more: false })
    assert.deepEqual(await page('status=error'), {
      agents: [],
      pagination: { total: 0, limit: 20, offset: 0, has_more: false },
    })
    const names = async (query: string) => (await page(query)).agents.map(({ name }: { name: string }) => name)
    assert.deepEqual(await names('sort=name&limit=2&offset=1'), ['b', 'c'])
    assert.deepEqual(await names('sort=-name&limit=2'), ['c', 'b'])
    assert.deepEqual(await names('sort=created_at'), ['a', 'b', 'c'])
  })
})

describe('an index of a table that is large already', () => {
  it('an index of a large table is built while others write, also after a crash', async () => {
    const { sql, context } = { sql: service.sql, context: service.service.context }
    const { id, agents } = await newProject('indexed')
    await service.send('POST', agents, { body: { name: 'first' } })
    await sql.script(`
      insert into index_to_build values ('late_index', 'create index concurrently if not exists late_index on agent (project_id, version)')`)
    const isValid = async () =>
      (
        await sql<{
          valid: boolean
        }>`select indisvalid as valid from pg_index where indexrelid = to_regclass('late_index')`
      )[0]?.valid
    let building: Promise<boolean> | undefined
    await sql.begin(async (tx) => {
      await tx`update agent set description = 'changed' where project_id = ${id}`
      // It has to wait for this transaction; one that is ended meanwhile leaves half an index, as a crash does.
      const client = await context.database.pool.connect()
      await client.query('set statement_timeout = 500')
      await assert.rejects(
        client.query('create index concurrently late_index on agent (project_id, version)'),
        /timeout/,
      )
      client.release(true)
      assert.equal(await isValid(), false)
      building = buildLateIndexes(sql, context)
      await eventually(
        async () =>
          (
            await sql`select from pg_stat_activity where query like 'drop index concurrently%' and wait_event_type = 'Lock'`
          ).length > 0,
      )
      assert.equal((await service.send('POST', agents, { body: { name: 'second' } })).status, 201)
    })
    assert.equal(await building, true)
    assert.equal(await isValid(), true)
    assert.deepEqual(await sql`select name from index_to_build`, [])
    await sql.script('drop index late_index')
  })
})
