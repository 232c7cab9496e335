import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { pino } from 'pino'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { makeTestDatabase } from '../../../test/harness.ts'
import { newId } from '../../platform/ids.ts'
import { openDatabase, type Database, type Fragment, type Sql } from '../../platform/postgres/database.ts'
import {
  isDead,
  lease_seconds,
  listDeadWorkers,
  presenceLock,
  reapWorker,
  registerWorker,
  type SeenWorker,
} from './leases.ts'
import { insertTask, type NewTask } from '../commands/new-task.ts'
import { openQueue, type Queue } from '../queue/queue.ts'

describe('the check for dead workers', () => {
  let test: Awaited<ReturnType<typeof makeTestDatabase>>
  let database: Database
  let queue: Queue
  let agent: NewTask['agent']

  before(async () => {
    test = await makeTestDatabase()
    database = openDatabase({ connection: test.connection })
    queue = openQueue({ database, log: pino({ level: 'silent' }) })
    agent = await insertTestAgent(database.sql)
  })
  after(async () => {
    await queue.close()
    await database.close()
    await test.drop()
  })

  // Well off the bounds of 3 s and 10 s: the statement looks some milliseconds after the rows were made.
  const cases = [0, 2, 4, 9, 11, 1000, undefined].flatMap((unseen_seconds) =>
    [true, false].flatMap((holds_lock) =>
      [true, false].map((is_predecessor): SeenWorker => ({ unseen_seconds, holds_lock, is_predecessor })),
    ),
  )

  /** It holds a task by its row, and has none itself. */
  const giveTaskAndForget = async (tx: Sql, worker_id: string): Promise<void> => {
    const task = newTestTask(agent, 'hello')
    await insertTask(tx, queue, task)
    await tx`update task set status = 'running', worker_id = ${worker_id} where id = ${task.id}`
    await tx`delete from worker where id = ${worker_id}`
  }

  it('of processes that find the same worker dead, one reports it', async () => {
    const { sql } = database
    const id = newId('worker')
    await registerWorker(sql, { id, instance: id, slots: 1 })
    const reports = await Promise.all([1, 2, 3].map(() => reapWorker(sql, queue, id)))
    assert.deepEqual(
      reports.filter((tasks) => tasks !== undefined),
      [0],
    )
  })

  it('the SQL statement and the rule agree on which workers are dead', async () => {
    const { sql } = database
    const me = { id: newId('worker'), instance: 'mine', slots: 1 }
    const seen = cases.map((one) => ({ ...one, id: newId('worker') }))
    const found = await sql.begin(async (tx) => {
      await registerWorker(tx, me)
      for (const { id, is_predecessor, holds_lock, unseen_seconds } of seen) {
        await registerWorker(tx, { id, instance: is_predecessor ? 'mine' : id, slots: 1 })
        if (unseen_seconds === undefined) await giveTaskAndForget(tx, id)
        else await tx`update worker set seen_at = now() - make_interval(secs => ${unseen_seconds}) where id = ${id}`
        if (holds_lock) await tx.run(presenceLock(id) as Fragment)
      }
      const starting = await listDeadWorkers(tx, me, { starting: true })
      const later = await listDeadWorkers(tx, me, { starting: false })
      return { starting: new Set(starting), later: new Set(later) }
    })
    for (const { id, ...one } of seen) {
      assert.equal(found.starting.has(id), isDead(one), JSON.stringify(one))
      assert.equal(found.later.has(id), isDead({ ...one, is_predecessor: false }), JSON.stringify(one))
    }
    assert.ok(!found.starting.has(me.id))
  })

  it('a worker with a recent heartbeat and its presence lock is not dead', () => {
    assert.ok(!isDead({ unseen_seconds: lease_seconds, holds_lock: true, is_predecessor: true }))
    assert.ok(isDead({ unseen_seconds: lease_seconds + 0.001, holds_lock: true, is_predecessor: false }))
  })
})
