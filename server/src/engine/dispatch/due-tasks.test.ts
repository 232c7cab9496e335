import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { openEngine, witnessModel, witnessTable } from '../../../test/processes/engine-process.ts'
import { eventually, makeTestDatabase } from '../../../test/harness.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import type { NewTask } from '../commands/new-task.ts'

const far = () => new Date(Date.now() + 3_600_000).toISOString()

describe('delayed tasks', () => {
  let database: Awaited<ReturnType<typeof makeTestDatabase>>
  let here: Awaited<ReturnType<typeof openEngine>>
  let sql: Sql

  before(async () => {
    database = await makeTestDatabase()
    const model = (all: Sql) => witnessModel(all, { calls: 1, call_ms: 0 })
    here = await openEngine({ connection: database.connection, slots: 16, data_dir: 'here', model })
    sql = here.sql
    await sql.script(witnessTable)
  })
  after(async () => {
    await here.close()
    await database.drop()
  })

  const give = async (agent: NewTask['agent'], more: Partial<NewTask>): Promise<string> => {
    const task = newTestTask(agent, 'later', more)
    await sql.begin((tx) => here.engine.enqueue(tx, task))
    return task.id
  }
  const ended = (id: string) =>
    eventually(
      async () => (await sql`select from task where id = ${id} and finished_at is not null`).length === 1,
      15_000,
    )

  it('a due task runs even if a thousand tasks of a paused agent are due before it', async () => {
    const [paused, working] = [await insertTestAgent(sql), await insertTestAgent(sql)]
    await sql`update agent set status = 'paused' where id = ${paused.id}`
    await sql.begin(async (tx) => {
      const first = newTestTask({ ...paused, status: 'paused' }, 'masks', { run_after: far() })
      await here.engine.enqueue(tx, first)
      // The others are like it. Created one by one they would take a minute of a processor.
      await tx`
        insert into task select (jsonb_populate_record(t, jsonb_build_object('id', left(t.id, 25) || lpad(i::text, 6, '0')))).*
        from task t, generate_series(1, 1199) i where t.id = ${first.id}`
    })
    const id = await give(working, { run_after: far() })
    await sql`update task set due_at = now() - interval '1 hour', run_after = now() - interval '1 hour' where agent_id = ${paused.id}`
    await sql`update task set due_at = now(), run_after = now() where id = ${id}`
    await ended(id)
    // And those that are due go on with their agent: a few of them.
    await sql`
      delete from task where id in (select id from task where agent_id = ${paused.id} and finished_at is null offset 20)`
    await sql.begin(async (tx) => {
      await tx`update agent set status = 'running' where id = ${paused.id}`
      await here.engine.dispatchDeferred(tx, paused.id)
    })
    await eventually(async () => {
      const deferred =
        await sql`select from task where agent_id = ${paused.id} and job_id is null and finished_at is null limit 1`
      return deferred.length === 0
    })
  })

  it('a delayed task for an agent that is being deleted is rejected and leaves no row', async () => {
    const agent = await insertTestAgent(sql)
    const deleting = Promise.withResolvers<void>()
    const blocked = Promise.withResolvers<void>()
    const deletion = sql.begin(async (tx) => {
      await tx`select from agent where id = ${agent.id} for update`
      blocked.resolve()
      await deleting.promise
      await here.engine.cancelTasks(tx, agent.id)
      await tx`delete from agent where id = ${agent.id}`
    })
    await blocked.promise
    // Watched from the begin, so that it is not unhandled for the moment until the deletion has ended.
    const refused = assert.rejects(give(agent, { run_after: far() }), { kind: 'agent_not_found' })
    await eventually(async () => {
      const waits =
        await sql`select from pg_stat_activity where wait_event_type = 'Lock' and query like '%for share%' and state = 'active'`
      return waits.length > 0
    })
    deleting.resolve()
    await deletion
    await refused
    assert.equal((await sql`select from task where agent_id = ${agent.id}`).length, 0)
  })

  it('a delayed task is purged with its deleted agent', async () => {
    const agent = await insertTestAgent(sql)
    const id = await give(agent, { run_after: far() })
    await sql.begin(async (tx) => {
      await here.engine.cancelTasks(tx, agent.id)
      await tx`delete from agent where id = ${agent.id}`
    })
    await eventually(async () => (await sql`select from task where id = ${id}`).length === 0)
  })
})
