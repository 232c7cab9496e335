import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { pino } from 'pino'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { makeTestDatabase } from '../../../test/harness.ts'
import { openDatabase, type Database } from '../../platform/postgres/database.ts'
import { makeCreation, type Create } from './create-tasks.ts'
import type { NewTask } from './new-task.ts'
import { openQueue, type Queue } from '../queue/queue.ts'

describe('creation of tasks', () => {
  let test: Awaited<ReturnType<typeof makeTestDatabase>>
  let database: Database
  let queue: Queue
  let create: Create
  let agent: NewTask['agent']
  let notified = 0
  before(async () => {
    test = await makeTestDatabase()
    database = openDatabase({ connection: test.connection })
    queue = openQueue({ database, log: pino({ level: 'silent' }) })
    await queue.ready
    create = makeCreation({
      sql: database.sql,
      indexed: database.indexed,
      queue,
      isFull: () => false,
      claim: async () => new Set(),
      claimUnstored: async () => new Set(),
      onSent: () => (notified += 1),
    }).create
    agent = await insertTestAgent(database.sql, { budget: { max_tokens: 500, max_steps: 9 } })
  })
  after(async () => {
    await queue.close()
    await database.close()
    await test.drop()
  })

  const stored = (ids: string[]) => database.sql<{ tasks: number; jobs: number; events: number; transactions: number }>`
    select count(*) as tasks, count(j.id) as jobs, count(e.sequence) as events, count(distinct e.xid) as transactions
    from task t left join pgboss.job j on j.id = t.job_id left join task_event e on e.task_id = t.id
    where t.id = any(${ids})`

  it('tasks that are created at the same time share a transaction, and each caller gets its row', async () => {
    notified = 0
    const tasks = Array.from({ length: 20 }, (_, i) =>
      newTestTask(agent, `task ${i}`, { priority: i % 10, budget: { max_tokens: 491 + i }, queue_ttl_seconds: 60 }),
    )
    const rows = await Promise.all(tasks.map(create))
    assert.deepEqual(
      rows.map(({ id, input, priority, budget, status, last_sequence }) => ({
        ...{ id, input, priority, budget, status, last_sequence },
      })),
      tasks.map(({ id, input, priority, budget }) => ({
        ...{ id, input, priority, status: 'queued', last_sequence: 1 },
        budget: { max_steps: 9, max_tokens: Math.min(500, budget!.max_tokens!) },
      })),
    )
    assert.deepEqual(await stored(tasks.map(({ id }) => id)), [{ tasks: 20, jobs: 20, events: 20, transactions: 1 }])
    assert.equal(notified, 1)
  })

  it('a task that cannot be stored fails alone, and the others of its batch are created', async () => {
    const tasks = ['before', 'a text that PostgreSQL refuses: \0', 'behind'].map((input) => newTestTask(agent, input))
    const results = await Promise.allSettled(tasks.map(create))
    assert.deepEqual(
      results.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
    const [now] = await stored(tasks.map(({ id }) => id))
    assert.deepEqual([now!.tasks, now!.jobs, now!.events], [2, 2, 2])
  })

  it('no task is stored for an agent that was deleted meanwhile', async () => {
    const deleted = await insertTestAgent(database.sql)
    await database.sql`delete from agent where id = ${deleted.id}`
    const tasks = [newTestTask(agent, 'stays'), newTestTask(deleted, 'goes')]
    const results = await Promise.allSettled(tasks.map(create))
    assert.deepEqual(
      results.map((result) => (result.status === 'rejected' ? result.reason.kind : 'created')),
      ['created', 'agent_not_found'],
    )
    const [now] = await stored(tasks.map(({ id }) => id))
    assert.deepEqual([now!.tasks, now!.jobs, now!.events], [1, 1, 1])
  })

  it('the creation of a task checks its concurrency limits', async () => {
    const tasks = [1, 2].map((i) => newTestTask(agent, `keyed ${i}`, { concurrency_key: 'one at a time' }))
    await Promise.all(tasks.map(create))
    const [now] = await stored(tasks.map(({ id }) => id))
    assert.deepEqual([now!.tasks, now!.jobs], [2, 1])
  })

  it('a job that no task names is discarded once no transaction can still name it', async () => {
    const { sql } = database
    const [running, moved, recent] = await Promise.all(
      ['a', 'b', 'c'].map((input) => create(newTestTask(agent, input))),
    )
    const jobs = await sql<{ id: string; task_id: string }>`
      update pgboss.job set state = 'active', started_on = now() - make_interval(secs => case when data->>'task_id' = ${recent!.id} then 10 else 90 end)
      where data->>'task_id' = any(${[running!.id, moved!.id, recent!.id]}) returning id, data->>'task_id' as task_id`
    // The task of one goes on with another job, that of the last is gone.
    await sql`update task set job_id = null where id = ${moved!.id}`
    await sql`delete from task where id = ${recent!.id}`
    assert.equal(await queue.discardLost(sql), 1)
    const left = await sql<{
      id: string
    }>`select id from pgboss.job where id = any(${jobs.map(({ id }) => id)}::uuid[])`
    const kept = jobs.filter(({ task_id }) => task_id !== moved!.id).map(({ id }) => id)
    assert.deepEqual(left.map(({ id }) => id).toSorted(), kept.toSorted())
  })
})
