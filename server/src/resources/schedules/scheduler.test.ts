import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { insertTestAgent } from '../../../test/fixtures.ts'
import { eventually, makeTestDatabase } from '../../../test/harness.ts'
import { sizeOf } from '../../../test/long-run.ts'
import { startSchedulerProcess } from '../../../test/processes/scheduler-process.ts'
import type { NewTask } from '../../engine/commands/new-task.ts'
import { openDatabase, type Database } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { advanceSchedule, lockDueSchedule } from './schedules.queries.ts'

let made: Awaited<ReturnType<typeof makeTestDatabase>>
let database: Database
let agent: NewTask['agent']
before(async () => {
  made = await makeTestDatabase()
  database = openDatabase({ connection: made.connection })
  agent = await insertTestAgent(database.sql)
  // Its tasks queue, so that nothing but the schedules moves.
  await database.sql`update agent set status = 'paused' where id = ${agent.id}`
})
after(async () => {
  await database.close()
  await made.drop()
})

/** Schedules that are due now, and then on the next leap day. */
async function makeSchedules(count = 50): Promise<string[]> {
  const ids = Array.from({ length: count }, () => newId('sched'))
  await database.sql`
    insert into schedule (id, project_id, agent_id, name, cron, time_zone, input, priority, overlap, catch_up, next_run_at, created_by)
    select id, ${agent.project_id}, ${agent.id}, 'test', '0 0 29 2 *', 'UTC', '"x"', 5, 'queue', 'once', now() - interval '1 second', ${newId('user')}
    from unnest(${ids}::text[]) as id`
  return ids
}
/** Schedules that no process can act for while another one is killed. */
const held = 20

const tasksOf = (ids: string[]) =>
  database.sql<{ schedule_id: string }>`select schedule_id from task where schedule_id = any(${ids})`
const isDone = async (ids: string[]): Promise<boolean> => {
  const due = await database.sql`select 1 from schedule where id = any(${ids}) and next_run_at <= now() limit 1`
  return due.length === 0
}
const exactlyOnce = async (ids: string[]) => {
  const tasks = await tasksOf(ids)
  assert.deepEqual(tasks.map(({ schedule_id }) => schedule_id).sort(), ids)
  const rows = await database.sql<{ tasks_created: number; skipped: number }>`
    select tasks_created, skipped from schedule where id = any(${ids})`
  assert.ok(rows.every(({ tasks_created, skipped }) => tasks_created === 1 && skipped === 0))
}

describe('due schedules on one database', () => {
  it('due schedules create one task each with two processes on one database', async () => {
    const processes = await Promise.all([1, 2].map(() => startSchedulerProcess(made.connection)))
    try {
      for (let round = 0; round < sizeOf({ short: 1, long: 3 }); round++) {
        const ids = await makeSchedules()
        await eventually(() => isDone(ids))
        await exactlyOnce(ids)
      }
    } finally {
      await Promise.all(processes.map((one) => one.kill()))
    }
  })

  it('due schedules create one task each, whenever the acting process is killed', async () => {
    const killed = await startSchedulerProcess(made.connection)
    const ids = await makeSchedules(sizeOf({ short: 150, long: 300 }))
    await database.sql.begin(async (tx) => {
      // Some are held, so that it is not done before it is killed, however long this process stands still.
      await tx`select from schedule where id = any(${ids.slice(0, held)}) for update`
      await eventually(async () => (await tasksOf(ids)).length >= 5)
      await killed.kill()
    })
    const left = ids.length - (await tasksOf(ids)).length
    assert.ok(left >= held, `${left} are left`)
    const other = await startSchedulerProcess(made.connection)
    try {
      await eventually(() => isDone(ids))
      await exactlyOnce(ids)
    } finally {
      await other.kill()
    }
  })

  it('a second process skips due schedules that are locked, and does not see them as due once they have moved', async () => {
    const [id] = (await makeSchedules()) as [string]
    await database.sql.begin(async (first) => {
      assert.ok(await lockDueSchedule(first, id))
      assert.equal(await database.sql.begin((second) => lockDueSchedule(second, id)), undefined)
      await advanceSchedule(first, id, '2028-02-29T00:00:00.000Z')
    })
    assert.equal(await database.sql.begin((tx) => lockDueSchedule(tx, id)), undefined)
  })
})
