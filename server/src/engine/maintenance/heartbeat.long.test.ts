// test: own process
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, it, type TestContext } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { pino } from 'pino'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { openCrashWorld } from '../../../test/processes/crash-world.ts'
import { type EngineProcessOptions } from '../../../test/processes/engine-process.ts'
import { eventually, makeTestDatabase } from '../../../test/harness.ts'
import { newId } from '../../platform/ids.ts'
import { openDatabase, type Database, type Sql } from '../../platform/postgres/database.ts'
import { startHeartbeat } from './heartbeat.ts'
import { lease_seconds, registerWorker } from './leases.ts'

const log = pino({ level: 'silent' })

describe('the heartbeat of a worker', () => {
  let test: Awaited<ReturnType<typeof makeTestDatabase>>
  let database: Database
  let sql: Sql

  before(async () => {
    test = await makeTestDatabase()
    database = openDatabase({ connection: test.connection })
    sql = database.sql
  })
  after(async () => {
    await database.close()
    await test.drop()
  })

  const begin = async (hung_ms?: number) => {
    const worker_id = newId('worker')
    await registerWorker(sql, { id: worker_id, instance: worker_id, slots: 1 })
    const created = once(process, 'worker')
    const heartbeat = startHeartbeat({ settings: database.settings, worker_id, log, ...(hung_ms ? { hung_ms } : {}) })
    const [thread] = (await created) as [Worker]
    return { worker_id, heartbeat, thread }
  }
  /** Resolves when a beat has come after this moment. */
  const beaten = async (worker_id: string): Promise<void> => {
    const [{ now } = { now: '' }] = await sql<{ now: string }>`select clock_timestamp()::text as now`
    await eventually(async () => {
      const rows = await sql`select 1 from worker where id = ${worker_id} and seen_at > ${now}::timestamptz`
      return rows.length > 0
    })
  }
  const age_ms = async (worker_id: string): Promise<number> => {
    const [row] = await sql<{ age: number }>`
      select extract(epoch from clock_timestamp() - seen_at)::float8 * 1000 as age from worker where id = ${worker_id}`
    return row!.age
  }
  /** Does nothing else in this thread, as a busy event loop would not. */
  const block = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

  it('a worker with a busy event loop does not count as dead', async () => {
    const { worker_id, heartbeat } = await begin()
    await beaten(worker_id)
    block(3000)
    // A beat has come meanwhile.
    assert.ok((await age_ms(worker_id)) < 2500)
    await heartbeat.stop()
  })

  it('the heartbeat pauses while the event loop hangs, and resumes afterwards', async () => {
    const { worker_id, heartbeat } = await begin(1500)
    await beaten(worker_id)
    block(4000)
    // The last beat came within the bound and one interval.
    assert.ok((await age_ms(worker_id)) > 1000)
    await beaten(worker_id)
    await heartbeat.stop()
  })

  it('the heartbeat resumes after its connection was lost', async () => {
    const { worker_id, heartbeat } = await begin()
    await beaten(worker_id)
    const ended = await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'cadre heartbeat'`
    assert.ok(ended.length > 0)
    await beaten(worker_id)
    await heartbeat.stop()
  })

  it('the heartbeat resumes after its thread has ended', async () => {
    const { worker_id, heartbeat, thread } = await begin()
    await beaten(worker_id)
    await thread.terminate()
    await beaten(worker_id)
    await heartbeat.stop()
  })
})

/** Each test has separate workers and tasks, and waits for a lease to end: they do that at the same time. */
describe('a process that does not answer', { concurrency: true }, () => {
  const open = async (t: TestContext) => {
    const world = await openCrashWorld()
    t.after(() => world.close())
    const { sql } = world
    const agent = await insertTestAgent(sql)
    return {
      sql,
      start: (data_dir: string, more: Partial<EngineProcessOptions> = {}) =>
        world.startWorker({ slots: 4, data_dir, ...more }),
      async create(input: string): Promise<string> {
        const task = newTestTask(agent, input)
        await world.create(task)
        return task.id
      },
      finished: (id: string) => world.finished([id]),
      callers: async (input: string): Promise<(number | undefined)[]> =>
        (await sql<{ pid: number }>`select pid from witness where input = ${input} order by id`).map(({ pid }) => pid),
    }
  }

  it('a busy process keeps its tasks for longer than a lease', async (t) => {
    const { sql, start, create, finished, callers } = await open(t)
    const busy = await start('busy', { busy_ms: (lease_seconds + 2) * 1000 })
    const id = await create('busy')
    await eventually(async () => (await callers('busy')).length === 1)
    const other = await start('other')
    await finished(id)
    const [task] = await sql`select status, attempt, crashes from task where id = ${id}`
    assert.deepEqual(task, { status: 'completed', attempt: 1, crashes: 0 })
    assert.deepEqual(await callers('busy'), [busy.child.pid])
    await Promise.all([busy.stop(), other.stop()])
  })

  it('a frozen process loses its tasks, and its later writes are rejected', async (t) => {
    const { sql, start, create, finished, callers } = await open(t)
    const zombie = await start('zombie', { call_ms: 1000 })
    const id = await create('zombie')
    await eventually(async () => (await callers('zombie')).length === 1)
    zombie.child.kill('SIGSTOP')
    const other = await start('living')
    await finished(id)
    const read = async () => ({
      task: (await sql`select * from task where id = ${id}`)[0],
      steps: await sql`select * from task_step where task_id = ${id} order by index`,
      events: await sql<{
        type: string
        sequence: number
      }>`select * from task_event where task_id = ${id} order by sequence`,
    })
    const before = await read()
    assert.deepEqual([before.task!['status'], before.task!['attempt']], ['completed', 2])
    assert.deepEqual(await callers('zombie'), [zombie.child.pid, other.child.pid])
    await other.stop()

    zombie.child.kill('SIGCONT')
    // It is of use again, and what it had begun has ended by then.
    const next = await create('after the zombie')
    await finished(next)
    assert.deepEqual(await callers('after the zombie'), [zombie.child.pid])
    assert.deepEqual(await read(), before)
    await zombie.stop()
  })

  it('a killed process loses its tasks to another one before its lease ends', async (t) => {
    const { start, create, finished, callers } = await open(t)
    const killed = await start('killed', { call_ms: 60_000 })
    const id = await create('killed')
    await eventually(async () => (await callers('killed')).length === 1)
    const heir = await start('heir')
    await killed.kill()
    const killed_at = performance.now()
    await finished(id)
    const took_ms = performance.now() - killed_at
    assert.ok(took_ms < lease_seconds * 1000, `it took ${took_ms} ms`)
    await heir.stop()
  })
})
