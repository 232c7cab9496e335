import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { pino } from 'pino'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { makeTestDatabase } from '../../../test/harness.ts'
import { openBus } from '../../events/streams/streams-bus.ts'
import { openHub } from '../../events/streams/streams-hub.ts'
import { isTransient, openDatabase, type Database, type Sql } from '../../platform/postgres/database.ts'
import { claimTasks } from '../run/claim.ts'
import { Journal, LeaseLost, taskStore, type Decide } from './journal.ts'
import { requeueTasks } from '../maintenance/leases.ts'
import { insertTask, type NewTask } from '../commands/new-task.ts'
import { openQueue, type Queue } from '../queue/queue.ts'
import type { Run } from '../run/run.ts'

const log = pino({ level: 'silent' })
const onDeferred = (): void => {}

it('failures of the disk and of the connection pass, and are no mistake of the task', () => {
  const failure = (code: string) => Object.assign(new Error('failed'), { code })
  for (const code of ['58030', '53100', '57P01', '08006', 'ECONNRESET', '40001'])
    assert.ok(isTransient(failure(code)), code)
  for (const code of ['23505', '22P02', 'XX001', '42P01']) assert.ok(!isTransient(failure(code)), code)
})

describe('the journal', () => {
  let test: Awaited<ReturnType<typeof makeTestDatabase>>
  let database: Database
  let sql: Sql
  let queue: Queue
  let bus: ReturnType<typeof openBus>
  let hub: ReturnType<typeof openHub>
  let agent: NewTask['agent']

  before(async () => {
    test = await makeTestDatabase()
    database = openDatabase({ connection: test.connection })
    sql = database.sql
    queue = openQueue({ database, log })
    bus = openBus({ database, log })
    hub = openHub({ sql, bus, log })
    await queue.ready
    agent = await insertTestAgent(sql)
  })
  after(async () => {
    hub.close()
    await bus.close()
    await queue.close()
    await database.close()
    await test.drop()
  })

  const create = async (more: Partial<NewTask> = {}): Promise<string> => {
    const task = newTestTask(agent, 'hello', more)
    await sql.begin((tx) => insertTask(tx, queue, task))
    return task.id
  }
  const claim = async (worker_id: string, count = 1): Promise<Run[]> => {
    const { runs } = await claimTasks({ sql, queue, worker_id, count, perProject: 100, environmentOf: () => ({}) })
    for (const run of runs) run.end()
    return runs
  }
  const note =
    (text: string): Decide =>
    () => ({ events: [{ type: 'usage.updated', data: { text } }] })
  const end: Decide = () => ({
    status: 'completed',
    wait: null,
    job: { kind: 'end' },
    events: [{ type: 'task.completed', data: {} }],
  })
  const events = (id: string) =>
    sql<{
      sequence: number
      type: string
    }>`select sequence, type from task_event where task_id = ${id} order by sequence`

  it('the journal refuses every write of a worker whose task was given to another', async () => {
    const id = await create()
    const journal = new Journal({ store: taskStore({ sql, indexed: sql, queue }), hub, onDeferred })
    const [first] = await claim('worker_a')
    assert.equal(await journal.write(first!.claim, note('a')), true)

    await requeueTasks(sql, queue, 'worker_a', { crashed: true, except: [] })
    await assert.rejects(journal.write(first!.claim, note('late')), LeaseLost)
    const [second] = await claim('worker_b')
    assert.equal(second!.claim.attempt, 2)
    await assert.rejects(journal.write(first!.claim, end), LeaseLost)
    assert.equal(await journal.write(second!.claim, end), false)
    await assert.rejects(journal.write(second!.claim, note('after the end')), LeaseLost)
    const types = (await events(id)).map(({ type }) => type)
    assert.deepEqual(types, ['task.created', 'task.started', 'usage.updated', 'task.retrying', 'task.completed'])
  })

  it('the journal refuses the claim of a job that was fetched again meanwhile', async () => {
    await create()
    const [slow] = await claim('worker_a')
    await requeueTasks(sql, queue, 'worker_a', { crashed: false, except: [] })
    const [fast] = await claim('worker_b')
    assert.ok(slow!.claim.attempt < fast!.claim.attempt)
    const [row] = await sql`select worker_id, crashes from task where id = ${fast!.claim.task_id}`
    assert.deepEqual(row, { worker_id: 'worker_b', crashes: 0 })
    await new Journal({ store: taskStore({ sql, indexed: sql, queue }), hub, onDeferred }).write(fast!.claim, end)
  })

  it('the journal makes a write once whose commit got lost on the way back', async () => {
    const id = await create()
    const [run] = await claim('worker_a')
    let losses = 2
    // Commits, and then loses the answer: what a connection that dies at that moment looks like.
    const lossy: Sql = Object.assign((...all: Parameters<Sql>) => sql(...all), sql, {
      begin: async <T>(work: (tx: Sql) => Promise<T>): Promise<T> => {
        const result = await sql.begin(work)
        if (losses-- > 0) throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' })
        return result
      },
    })
    const journal = new Journal({ store: taskStore({ sql: lossy, indexed: lossy, queue }), hub, onDeferred })
    assert.equal(await journal.write(run!.claim, note('once')), true)
    losses = 1
    assert.equal(await journal.write(run!.claim, end), false)
    assert.deepEqual(
      (await events(id)).map(({ type }) => type),
      ['task.created', 'task.started', 'usage.updated', 'task.completed'],
    )
    const [row] = await sql`select status, writes, last_sequence from task where id = ${id}`
    assert.deepEqual(row, { status: 'completed', writes: 2, last_sequence: 4 })
  })

  it('the journal gives dense sequences when many write at once', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => create()))
    const runs = await claim('worker_a', 32)
    while (runs.length < 20) runs.push(...(await claim('worker_a', 32)))
    const journal = new Journal({ store: taskStore({ sql, indexed: sql, queue }), hub, onDeferred })
    await Promise.all(
      runs.map(async (run) => {
        for (let i = 0; i < 10; i++) await journal.write(run.claim, note(String(i)))
        await journal.write(run.claim, end)
      }),
    )
    for (const id of ids) {
      const rows = await events(id)
      assert.deepEqual(
        rows.map(({ sequence }) => sequence),
        Array.from({ length: 13 }, (_, i) => i + 1),
      )
      const [task] = await sql`select last_sequence from task where id = ${id}`
      assert.deepEqual(task, { last_sequence: 13 })
    }
    const [jobs] = await sql`select count(*) as n from pgboss.job`
    assert.deepEqual(jobs, { n: 0 })
  })

  it('the journal does not let one impossible write take the others of its group with it', async () => {
    await Promise.all([create(), create()])
    const runs = await claim('worker_a', 2)
    const journal = new Journal({ store: taskStore({ sql, indexed: sql, queue }), hub, onDeferred })
    const impossible: Decide = () => ({ events: [{ type: 'usage.updated', data: { text: '\0' } }] })
    const [bad, good] = await Promise.allSettled([
      journal.write(runs[0]!.claim, impossible),
      journal.write(runs[1]!.claim, note('fine')),
    ])
    assert.deepEqual([bad.status, good.status], ['rejected', 'fulfilled'])
    await Promise.all(runs.map((run) => journal.write(run.claim, end)))
  })

  it('a task whose agent was removed has no owner', async () => {
    const lone = await insertTestAgent(sql)
    const id = await create({ agent: lone })
    const [run] = await claim('worker_a')
    await sql`delete from agent where id = ${lone.id}`
    await assert.rejects(
      new Journal({ store: taskStore({ sql, indexed: sql, queue }), hub, onDeferred }).write(run!.claim, end),
      LeaseLost,
    )
    const [row] = await sql`select status from task where id = ${id}`
    assert.deepEqual(row, { status: 'running' })
  })
})
