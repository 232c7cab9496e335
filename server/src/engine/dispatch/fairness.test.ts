import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { openEngine, witnessModel, witnessTable } from '../../../test/processes/engine-process.ts'
import { eventually, makeTestDatabase } from '../../../test/harness.ts'
import { sizeOf } from '../../../test/long-run.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { NewTask } from '../commands/new-task.ts'

const backlog = sizeOf({ short: 1000, long: 10_000 })
/** Jobs of a project in the queue; a service has room for 2,000. */
const waitingMax = 200
const call_ms = 100

describe('fairness behind a backlog', () => {
  let database: Awaited<ReturnType<typeof makeTestDatabase>>
  let api: Awaited<ReturnType<typeof openEngine>>
  let sql: Sql
  let greedy: NewTask['agent']

  before(async () => {
    database = await makeTestDatabase()
    const model = (all: Sql) => witnessModel(all, { calls: 1, call_ms })
    api = await openEngine({ connection: database.connection, slots: 0, data_dir: 'api', model })
    sql = api.sql
    await sql.script(witnessTable)
    greedy = await insertTestAgent(sql)
    let next = 0
    const give = async (): Promise<void> => {
      while (next < backlog) {
        const tasks = Array.from({ length: 250 }, () => newTestTask(greedy, `backlog ${next++}`))
        await sql.begin(async (tx) => {
          for (const task of tasks) await api.engine.enqueue(tx, task)
        })
      }
    }
    await Promise.all([give(), give(), give(), give()])
  })
  after(async () => {
    await api.close()
    await database.drop()
  })

  const calls = async (name: string): Promise<number> => {
    const [row] = await sql<{ n: number }>`select count(*) as n from witness where input like ${`${name}%`}`
    return row!.n
  }

  for (const slots of [1, 2, 8]) {
    it(`fairness behind a backlog with ${slots} slots the only task of a project waits no longer than one task behind ${backlog} of another`, async () => {
      const before = await calls('backlog')
      const model = (all: Sql) => witnessModel(all, { calls: 1, call_ms })
      const worker = await openEngine({ connection: database.connection, slots, data_dir: `w${slots}`, model })
      await eventually(async () => (await calls('backlog')) >= before + slots)
      const single = newTestTask(await insertTestAgent(sql), `single ${slots}`)
      await sql.begin((tx) => api.engine.enqueue(tx, single))
      const created = await calls('backlog')
      await eventually(async () => (await calls(`single ${slots}`)) === 1)
      const passed = (await calls('backlog')) - created
      // Those that begin in the time of one task, and those whose fetch was under way.
      assert.ok(passed <= 2 * slots, `${passed} tasks of the backlog began before it`)
      await worker.close()
    })
  }
})

describe('a project with more tasks than its share of the queue', () => {
  let database: Awaited<ReturnType<typeof makeTestDatabase>>
  let api: Awaited<ReturnType<typeof openEngine>>
  let sql: Sql
  const model = (all: Sql) => witnessModel(all, { calls: 1, call_ms: 0 })

  before(async () => {
    database = await makeTestDatabase()
    api = await openEngine({ connection: database.connection, slots: 0, data_dir: 'api', model, waitingMax })
    sql = api.sql
    await sql.script(witnessTable)
  })
  after(async () => {
    await api.close()
    await database.drop()
  })

  const give = async (agent: NewTask['agent'], input: string, more: Partial<NewTask> = {}) => {
    const task = newTestTask(agent, input, more)
    await sql.begin((tx) => api.engine.enqueue(tx, task))
    const [row] = await sql<{ id: string; backlog: boolean; sent: boolean }>`
      select id, backlog, job_id is not null as sent from task where id = ${task.id}`
    return row!
  }

  it("a project's tasks beyond its share of the queue are sent by priority as room appears, and none is lost", async (t) => {
    const agent = await insertTestAgent(sql)
    await sql.begin(async (tx) => {
      for (let i = 0; i < waitingMax; i++) await api.engine.enqueue(tx, newTestTask(agent, `first ${i}`))
    })
    await eventually(async () => (await give(agent, 'noticed')).backlog)
    const later: Awaited<ReturnType<typeof give>>[] = []
    // No more at a time than there are connections: on a busy machine one that waits for a connection gives up.
    for (const group of [0, 15, 30, 45])
      later.push(...(await Promise.all(Array.from({ length: 15 }, (_, i) => give(agent, `later ${group + i}`)))))
    assert.ok(later.every(({ backlog, sent }) => backlog && !sent))
    const urgent = await give(agent, 'urgent', { priority: 9 })
    assert.deepEqual([urgent.backlog, urgent.sent], [true, false])
    const other = await give(await insertTestAgent(sql), 'another project')
    assert.deepEqual([other.backlog, other.sent], [false, true])

    const deleted = later[0]!.id
    await sql.begin((tx) => api.engine.cancel(tx, deleted, { reason: null, mode: 'graceful', user_id: 'user_1' }))
    const slots = 32
    const worker = await openEngine({
      connection: database.connection,
      slots,
      data_dir: 'worker',
      model,
      waitingMax,
    })
    t.after(() => worker.close())
    await eventually(async () => (await sql`select from task where finished_at is null limit 1`).length === 0, 60_000)
    const seen = await sql<{ input: string }>`select input from witness order by id`
    assert.equal(new Set(seen.map(({ input }) => input)).has('later 0'), false)
    const [counted] = await sql<{ n: number }>`select count(*) as n from task where status = 'completed'`
    assert.equal(seen.length, counted!.n, 'each ran once')
    // It is sent first; those fetched together with it are claimed in any order. How long each takes to call its model is no matter.
    const [earlier] = await sql<{ n: number; of: number }>`
      select count(*) filter (where started_at < (select started_at from task where id = ${urgent.id})) as n, count(*) as of
      from task where agent_id = ${agent.id} and input::text like '%later %'`
    assert.equal(earlier!.of, later.length)
    assert.ok(earlier!.n < slots, `${earlier!.n} of ${later.length} were claimed before the urgent task`)
  })

  it("starting a paused agent sends its tasks within the project's share of the queue", async () => {
    const agent = await insertTestAgent(sql)
    await sql`update agent set status = 'paused' where id = ${agent.id}`
    const paused = { ...agent, status: 'paused' }
    await sql.begin(async (tx) => {
      for (let i = 0; i < waitingMax + 100; i++) await api.engine.enqueue(tx, newTestTask(paused, `parked ${i}`))
    })
    await sql.begin(async (tx) => {
      await tx`update agent set status = 'running' where id = ${agent.id}`
      await api.engine.dispatchDeferred(tx, agent.id)
    })
    await eventually(async () => {
      const [row] = await sql<{ sent: number; backlog: number }>`
        select count(job_id) as sent, count(*) filter (where backlog) as backlog from task where agent_id = ${agent.id}`
      return row!.sent === waitingMax && row!.backlog === 100
    })
  })

  it('the backlog of a paused agent waits for its start and delays no other agent', async () => {
    const agent = await insertTestAgent(sql)
    const ids = await Promise.all(Array.from({ length: 5 }, async (_, i) => (await give(agent, `held ${i}`)).id))
    await sql`update agent set status = 'paused' where id = ${agent.id}`
    await sql`update task set backlog = true, job_id = null where id = any(${ids})`
    await eventually(async () => (await sql`select from task where id = any(${ids}) and backlog`).length === 0)
    const other = { ...(await insertTestAgent(sql)), project_id: agent.project_id }
    await eventually(async () => (await give(other, 'not held')).sent)
    await sql.begin(async (tx) => {
      await tx`update agent set status = 'running' where id = ${agent.id}`
      await api.engine.dispatchDeferred(tx, agent.id)
    })
    assert.equal((await sql`select from task where id = any(${ids}) and job_id is null`).length, 0)
  })
})
