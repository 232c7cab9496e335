import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { openEngine, witnessModel, witnessTable } from '../../../test/processes/engine-process.ts'
import { eventually, makeTestDatabase } from '../../../test/harness.ts'
import { sizeOf } from '../../../test/long-run.ts'
import { openDatabase, type Database, type Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import type { NewTask } from '../commands/new-task.ts'
import { makeTaskRetention } from './task-retention.ts'

const days = 365
const oldTasks = sizeOf({ short: 2000, long: 20_000 })

describe('tasks that have outlived their retention', () => {
  let test: Awaited<ReturnType<typeof makeTestDatabase>>
  let database: Database
  let sql: Sql
  let agent: NewTask['agent']

  before(async () => {
    test = await makeTestDatabase()
    database = openDatabase({ connection: test.connection })
    sql = database.sql
    agent = await insertTestAgent(sql)
  })
  after(async () => {
    await database.close()
    await test.drop()
  })

  /** Inserts a task with a row of everything that belongs to one; open where it has not ended. */
  const insertTask = async (more: {
    ended_days_ago?: number
    thread_id?: string
    position?: number
  }): Promise<string> => {
    const { ended_days_ago = null, thread_id = null, position = null } = more
    const id = newId('task')
    await sql`
      insert into task (id, project_id, agent_id, agent_version, thread_id, thread_position, status, input, priority, max_attempts, budget,
        usage, created_by, last_sequence, finished_at)
      values (${id}, ${agent.project_id}, ${agent.id}, 0, ${thread_id}, ${position}, ${ended_days_ago === null ? 'queued' : 'completed'},
        '"x"', 5, 5, '{}', '{}', 'user_x', 1, now() - make_interval(days => ${ended_days_ago}))`
    await sql`insert into task_event (task_id, sequence, type, data) values (${id}, 1, 'task.created', '{}')`
    await sql`
      insert into task_step (task_id, index, id, agent_id, type, status, attempt, name)
      values (${id}, 0, ${newId('step')}, ${agent.id}, 'model_call', 'completed', 1, 'test/witness')`
    await sql`
      insert into task_message (task_id, position, id, content, created_by) values (${id}, 1, ${newId('msg')}, 'x', 'user_x')`
    await sql`
      insert into approval (id, project_id, agent_id, task_id, step_id, step_index, kind, tool, call_hash)
      values (${newId('appr')}, ${agent.project_id}, ${agent.id}, ${id}, 'step_x', 0, 'tool_call', 'x', 'x')`
    return id
  }
  const insertThread = async (used_days_ago: number): Promise<string> => {
    // Its identifier says when it was made, too.
    const [row] = await sql<{ id: string }>`
      insert into thread (id, project_id, agent_id, created_by, updated_at)
      select overlay(${newId('thread')} placing left(id_floor('thread', moment), 17) from 1 for 17), ${agent.project_id}, ${agent.id},
        'user_x', moment from (select now() - make_interval(days => ${used_days_ago}) as moment) m
      returning id`
    return row!.id
  }
  const sweep = async (kept_days = days): Promise<void> => {
    const retention = makeTaskRetention()
    while (await retention(sql, kept_days)) continue
  }
  const isThere = async (id: string): Promise<boolean> =>
    (await sql`select 1 from task where id = ${id} union all select 1 from thread where id = ${id}`).length > 0

  it('tasks beyond their retention are deleted with all their rows, and newer or open tasks stay', async () => {
    const old = await insertTask({ ended_days_ago: 366 })
    const young = await insertTask({ ended_days_ago: 364 })
    const open = await insertTask({})
    await sweep()
    assert.deepEqual(await Promise.all([old, young, open].map(isThere)), [false, true, true])
    for (const table of ['task_event', 'task_step', 'task_message', 'approval']) {
      const { rows } = await sql.query(`select task_id from ${table} order by task_id`)
      assert.deepEqual(
        rows.map(({ task_id }) => task_id),
        [young, open],
        table,
      )
    }
  })

  it('with a retention of 0 no task is deleted', async () => {
    const old = await insertTask({ ended_days_ago: 4000 })
    await sweep(0)
    assert.ok(await isThere(old))
    await sweep()
    assert.ok(!(await isThere(old)))
  })

  it('a task beyond its retention stays while its thread has a task that is open or ended later', async () => {
    for (const later of [{ ended_days_ago: 10 }, {}]) {
      const thread_id = await insertThread(400)
      const kept = [
        await insertTask({ ended_days_ago: 400, thread_id, position: 1 }),
        await insertTask({ ...later, thread_id, position: 2 }),
        // Canceled in the queue, before the one in front of it had ended.
        await insertTask({ ended_days_ago: 399, thread_id, position: 3 }),
      ]
      await sweep()
      assert.deepEqual(await Promise.all([...kept, thread_id].map(isThere)), [true, true, true, true])
    }
  })

  it('an empty thread is deleted unless it was used later or a schedule writes into it', async () => {
    const threads = [await insertThread(400), await insertThread(400), await insertThread(10)]
    const [unused, empty] = [await insertThread(400), await insertThread(364)]
    await sql`
      insert into schedule (id, project_id, agent_id, thread_id, name, cron, time_zone, input, priority, overlap, catch_up, next_run_at,
        created_by)
      values (${newId('sched')}, ${agent.project_id}, ${agent.id}, ${threads[1]}, 'x', '@daily', 'UTC', '"x"', 5, 'skip', 'none', now(), 'user_x')`
    const tasks: string[] = []
    for (const thread_id of threads) tasks.push(await insertTask({ ended_days_ago: 400, thread_id, position: 1 }))
    await sweep()
    assert.deepEqual(await Promise.all(tasks.map(isThere)), [false, false, false])
    assert.deepEqual(await Promise.all([...threads, unused, empty].map(isThere)), [false, true, true, false, true])
  })

  it('the sweep of old tasks starts again after a pause', async () => {
    let now = 0
    const retention = makeTaskRetention(() => now)
    while (await retention(sql, days)) continue
    const old = await insertTask({ ended_days_ago: 366 })
    assert.equal(await retention(sql, days), false)
    assert.ok(await isThere(old))
    now += 6 * 3_600_000
    while (await retention(sql, days)) continue
    assert.ok(!(await isThere(old)))
  })

  it(`two processes remove ${oldTasks} old tasks in batches while tasks of another agent run`, async (t) => {
    const other = openDatabase({ connection: test.connection })
    t.after(() => other.close())
    await sql.script(witnessTable)
    const model = (all: Sql) => witnessModel(all, { calls: 2, call_ms: 0 })
    const live = await openEngine({ connection: test.connection, slots: 4, data_dir: 'live', model })
    t.after(() => live.close())
    await insertOldTasks(sql, agent)
    const count = async (): Promise<number> => {
      const [row] = await sql<{ n: number }>`select count(*) as n from task where input = '"old"'`
      return row!.n
    }
    assert.equal(await count(), oldTasks)

    const lasting: string[] = []
    const counts: number[] = []
    /** A new task runs to its end, whatever is being removed meanwhile. */
    const work = async (): Promise<void> => {
      const task = newTestTask(agent, `live ${lasting.length}`)
      lasting.push(task.id)
      await sql.begin((tx) => live.engine.enqueue(tx, task))
      await eventually(
        async () => (await sql`select 1 from task where id = ${task.id} and status = 'completed'`).length > 0,
      )
      counts.push(await count())
    }
    /** After each batch it waits for a task, which would wait for it if batches were one transaction. */
    const sweepAndWork = async (with_sql: Sql): Promise<void> => {
      const retention = makeTaskRetention()
      while (await retention(with_sql, days)) await work()
    }
    await Promise.all([sweepAndWork(sql), sweepAndWork(other.sql)])
    // What one process had locked the other passed over.
    await sweep()

    assert.equal(await count(), 0)
    const [left] = await sql<{ n: number }>`
      select count(*) as n from task_event e where not exists (select from task t where t.id = e.task_id)`
    assert.equal(left!.n, 0)
    assert.deepEqual(
      await Promise.all(lasting.map(isThere)),
      lasting.map(() => true),
    )
    assert.ok(
      counts.some((n) => n > 0 && n < oldTasks),
      `tasks ended where so many old ones were left: ${counts.join(', ')}`,
    )
  })
})

/** Tasks that ended long ago, each with ten events and four steps of a kilobyte. */
async function insertOldTasks(sql: Sql, agent: NewTask['agent']): Promise<void> {
  for (let from = 0; from < oldTasks; from += 2000) {
    await sql`
      with made as (
        insert into task (id, project_id, agent_id, agent_version, status, input, priority, max_attempts, budget, usage, created_by,
          last_sequence, finished_at)
        select left(id_floor('task', now()), 15) || lpad(n::text, 16, '0'), ${agent.project_id}, ${agent.id}, 0, 'completed', '"old"', 5, 5,
          '{}', '{}', 'user_x', 10, now() - make_interval(days => 366, secs => n)
        from generate_series(${from + 1}::int, ${from + 2000}::int) n
        returning id
      ), told as (
        insert into task_event (task_id, sequence, type, data)
        select id, s, 'message.completed', jsonb_build_object('content', repeat(md5(id || s), 32)) from made, generate_series(1, 10) s
      )
      insert into task_step (task_id, index, id, agent_id, type, status, attempt, name, output)
      select id, s, id || s, ${agent.id}, 'model_call', 'completed', 1, 'x', jsonb_build_object('text', repeat(md5(id || s), 32))
      from made, generate_series(0, 3) s`
  }
}
