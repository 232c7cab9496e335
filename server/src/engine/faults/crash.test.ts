import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import { pino } from 'pino'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { openCrashWorld, type CrashWorld } from '../../../test/processes/crash-world.ts'
import { openEngine, witnessModel } from '../../../test/processes/engine-process.ts'
import { eventually } from '../../../test/harness.ts'
import { sizeOf } from '../../../test/long-run.ts'
import { openDatabase, type Sql } from '../../platform/postgres/database.ts'
import { reapWorker } from '../maintenance/leases.ts'
import type { NewTask } from '../commands/new-task.ts'
import { openQueue } from '../queue/queue.ts'

/** Tasks are created here. Workers are separate processes, which are killed. */
describe('workers that die', () => {
  let world: CrashWorld
  let sql: Sql
  let agent: NewTask['agent']

  before(async () => {
    world = await openCrashWorld()
    sql = world.sql
    agent = await insertTestAgent(sql)
  })
  afterEach(() => world.killWorkers())
  after(() => world.close())

  const create = (count: number, name: string): Promise<string[]> =>
    world.create(...Array.from({ length: count }, (_, i) => newTestTask(agent, `${name} ${i}`)))
  const calls = (name: string) => sql<{ input: string; turn: number; pid: number }>`
    select input, turn, pid from witness where input like ${`${name} %`} order by id`

  it('a task continues from its last completed step after its worker was killed, and ends once', async () => {
    const first = await world.startWorker({ calls: 6, call_ms: 100 })
    const [id] = await create(1, 'survivor')
    await eventually(async () => (await calls('survivor')).length === 3)
    await first.kill()
    const second = await world.startWorker({ calls: 6, call_ms: 5 })
    await world.finished([id!])

    const seen = await calls('survivor')
    const byFirst = seen.filter(({ pid }) => pid === first.child.pid).map(({ turn }) => turn)
    const bySecond = seen.filter(({ pid }) => pid === second.child.pid).map(({ turn }) => turn)
    assert.deepEqual(byFirst, [1, 2, 3])
    assert.deepEqual(bySecond, [3, 4, 5, 6], 'only the call that was cut is repeated')

    const [task] = await sql`select status, attempt, crashes, output, last_sequence from task where id = ${id!}`
    assert.deepEqual(task, {
      status: 'completed',
      attempt: 2,
      crashes: 0,
      output: { content: 'turn 6 of survivor 0', data: null },
      last_sequence: task!['last_sequence'],
    })
    const events = await sql<{
      type: string
      sequence: number
    }>`select type, sequence from task_event where task_id = ${id!} order by sequence`
    assert.deepEqual(
      events.map(({ sequence }) => sequence),
      Array.from({ length: events.length }, (_, i) => i + 1),
    )
    const count = (type: string): number => events.filter((event) => event.type === type).length
    assert.deepEqual(
      [count('task.completed'), count('task.retrying'), count('message.discarded'), count('message.completed')],
      [1, 1, 1, 6],
    )
    await second.stop()
  })

  it('a worker that was wrongly taken for dead continues with a task that it claims again', async () => {
    let opened = 0
    const worker = await openEngine({
      connection: world.connection,
      slots: 4,
      data_dir: 'lively',
      // The call that is given up would end while the other one is under way.
      model: (all) => witnessModel(all, { calls: 1, call_ms: opened++ === 0 ? 1000 : 3000 }),
    })
    const pool = openDatabase({ connection: world.connection })
    const queue = openQueue({ database: pool, log: pino({ level: 'silent' }) })
    const [id] = await create(1, 'lively')
    await eventually(async () => (await calls('lively')).length === 1)
    const [row] = await sql<{ worker_id: string }>`select worker_id from task where id = ${id!}`
    await reapWorker(sql, queue, row!.worker_id)
    await world.finished([id!])
    const [task] = await sql`select status, attempt from task where id = ${id!}`
    assert.deepEqual(task, { status: 'completed', attempt: 2 })
    assert.equal((await calls('lively')).length, 2, 'only the call that was given up is repeated')
    await queue.close()
    await pool.close()
    await worker.close()
  })

  it('a task fails after too many workers died while running it', async () => {
    const task = newTestTask(agent, 'poison 0', { max_attempts: 2 })
    await world.create(task)
    for (let death = 1; death <= 2; death++) {
      const worker = await world.startWorker({ call_ms: 60_000 })
      await eventually(async () => (await calls('poison')).length === death)
      await worker.kill()
    }
    const last = await world.startWorker({})
    await world.finished([task.id])
    const [row] = await sql<{
      status: string
      error: { code: string }
    }>`select status, error from task where id = ${task.id}`
    assert.deepEqual([row!.status, row!.error.code], ['failed', 'attempts_exhausted'])
    assert.equal((await calls('poison')).length, 2)
    await last.stop()
  })

  it('two workers never run the same task, even with one data folder', async () => {
    const workers = await Promise.all([1, 2].map(() => world.startWorker({ calls: 2, call_ms: 1, slots: 16 })))
    const count = sizeOf({ short: 40, long: 300 })
    const ids = await create(count, 'shared')
    await world.finished(ids, 30_000)
    const seen = await calls('shared')
    assert.equal(new Set(seen.map(({ input, turn }) => `${input}/${turn}`)).size, 2 * count)
    assert.equal(seen.length, 2 * count, 'each call was made once')
    assert.equal(new Set(seen.map(({ pid }) => pid)).size, 2, 'both had a part in it')
    const [row] =
      await sql`select count(*) as n, max(attempt) as attempts, max(writes) as writes from task where id = any(${ids}) and status = 'completed'`
    assert.deepEqual(row, { n: count, attempts: 1, writes: 3 })
    await Promise.all(workers.map((worker) => worker.stop()))
  })

  it('a stopping worker requeues its tasks, and their steps stay in order', async () => {
    const first = await world.startWorker({ calls: 20, call_ms: 50 })
    const ids = await create(3, 'handed')
    await eventually(async () => (await calls('handed')).length >= 6)
    await first.stop()
    const [held] = await sql`select count(*) as n from task where id = any(${ids}) and worker_id is not null`
    assert.deepEqual(held, { n: 0 })
    const second = await world.startWorker({ calls: 20, call_ms: 1 })
    await world.finished(ids)
    const seen = await calls('handed')
    assert.equal(seen.length, 60, 'no call is repeated: each had ended before the stop')
    const [row] = await sql`select max(crashes) as crashes, min(attempt) as attempt from task where id = any(${ids})`
    assert.deepEqual(row, { crashes: 0, attempt: 2 })
    await second.stop()
  })
})
