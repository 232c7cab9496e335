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
import { expireTasks } from '../maintenance/sweeps.ts'
import { cancelTask } from './cancel.ts'
import { insertTask, type NewTask } from '../commands/new-task.ts'
import { openQueue, type Queue } from '../queue/queue.ts'
import { beginModelCall } from '../run/model-call.ts'
import type { Run } from '../run/run.ts'

const log = pino({ level: 'silent' })
const onDeferred = (): void => {}

it('failures of the disk and of the connection are transient errors', () => {
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

  /** The last events of a task whose worker died during a model call, and which ends then. */
  const endAfterDeath = async (next: (id: string) => Promise<unknown>): Promise<string[]> => {
    const id = await create()
    // The job of a task that was canceled in the queue is dropped when it is fetched.
    const [run] = await claim('worker_a', 2)
    const journal = new Journal({ store: taskStore({ sql, indexed: sql, queue }), hub, onDeferred })
    await journal.write(run!.claim, () => ({ steps: [beginModelCall(run!)] }))
    await next(id)
    const [row] = await sql<{ task: string; step: string }>`
      select t.status as task, s.status as step from task t join task_step s on s.task_id = t.id where t.id = ${id}`
    assert.equal(row!.step, 'failed')
    return [...(await events(id)).map(({ type }) => type).slice(-3), row!.task]
  }
  const die = () => requeueTasks(sql, queue, 'worker_a', { crashed: true, except: [] })
  const cancel = (id: string) =>
    sql.begin((tx) => cancelTask(tx, queue, id, { reason: null, mode: 'graceful', user_id: 'user_1' }))

  it('a task whose worker died during a model call discards the message of that call when it ends', async () => {
    const canceled = ['message.discarded', 'step.failed', 'task.canceled', 'canceled']
    const byNextWorker = await endAfterDeath(async (id) => {
      await cancel(id)
      await die()
      await claim('worker_b')
    })
    assert.deepEqual(byNextWorker, canceled)
    const beforeNextWorker = await endAfterDeath(async (id) => {
      await die()
      await cancel(id)
    })
    assert.deepEqual(beforeNextWorker, canceled)
    const expired = ['message.discarded', 'step.failed', 'task.expired', 'expired']
    const late = (id: string) => sql`update task set expires_at = now() - interval '1 second' where id = ${id}`
    const expiredAtClaim = await endAfterDeath(async (id) => {
      await die()
      await late(id)
      await claim('worker_b')
    })
    assert.deepEqual(expiredAtClaim, expired)
    const expiredWhilePaused = await endAfterDeath(async (id) => {
      await die()
      await sql`update agent set status = 'paused' where id = ${agent.id}`
      await claim('worker_b')
      await sql`update agent set status = 'running' where id = ${agent.id}`
      await late(id)
      await expireTasks(sql, queue)
    })
    assert.deepEqual(expiredWhilePaused, expired)
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

  it('the journal makes a write once if the response of its commit was lost', async () => {
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

  it('concurrent writes get dense sequences of events', async () => {
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

  it('one invalid write does not fail the others of its batch', async () => {
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

  it('a write for a task of a deleted agent is rejected', async () => {
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

  /** A store that counts how writes were made, by the lock of their tasks or foreseen, and a journal with it. */
  const counted = () => {
    const made = { locked: 0, foreseen: 0 }
    const store = taskStore({ sql, indexed: database.indexed, queue, tokens_per_hour: 1000 })
    const journal = new Journal({
      store: {
        begin: (work) => ((made.locked += 1), store.begin(work)),
        writeForeseen: async (changes) => {
          const written = await store.writeForeseen!(changes)
          if (written) made.foreseen += 1
          return written
        },
      },
      hub,
      onDeferred,
    })
    return { journal, made }
  }

  it('a write of a task that has not changed since the last one needs no lock before it', async () => {
    const { journal, made } = counted()
    const id = await create()
    const [run] = await claim('worker_a')
    assert.equal(await journal.write(run!.claim, note('first')), true)
    assert.deepEqual(made, { locked: 1, foreseen: 0 })
    for (const text of ['second', 'third']) assert.equal(await journal.write(run!.claim, note(text)), true)
    const [before] = await sql<{ at: string }>`select clock_timestamp() as at`
    let event_at = ''
    const told: Decide = (task) => ((event_at = task.event_at), end(task))
    assert.equal(await journal.write(run!.claim, told), false)
    assert.deepEqual(made, { locked: 1, foreseen: 3 })
    // Times are kept in whole milliseconds.
    assert.ok(Date.parse(event_at) >= Date.parse(before!.at) - 2, `${event_at} after ${before!.at}`)

    const rows = await sql<{ sequence: number; created_at: string }>`
      select sequence, created_at from task_event where task_id = ${id} order by sequence`
    assert.deepEqual(
      rows.map(({ sequence }) => sequence),
      [1, 2, 3, 4, 5, 6],
    )
    const moments = rows.map(({ created_at }) => created_at)
    assert.deepEqual(moments, moments.toSorted())
    const [row] = await sql`
      select status, writes, job_id, worker_id, finished_at, now() - finished_at < interval '1 minute' and finished_at <= now() as is_past
      from task where id = ${id}`
    assert.deepEqual(row, {
      ...{ status: 'completed', writes: 4, job_id: null, worker_id: null, finished_at: event_at, is_past: true },
    })
    const [jobs] = await sql`select count(*) as n from pgboss.job where data ->> 'task_id' = ${id}`
    assert.deepEqual(jobs, { n: 0 })
  })

  const changes: Record<string, { change: (run: Run) => Promise<unknown>; sees: Decide }> = {
    'a message': {
      change: ({ claim: { task_id } }) => sql`update task set unseen = unseen + 1 where id = ${task_id}`,
      sees: ({ unseen }) => (assert.equal(unseen, 1), {}),
    },
    'a cancellation': {
      change: ({ claim: { task_id } }) => sql`
        update task set cancel = '{"reason":null,"mode":"graceful","user_id":"user_1"}', cancel_requested_at = now() where id = ${task_id}`,
      sees: ({ cancel }) => (assert.equal(cancel?.mode, 'graceful'), {}),
    },
    'a pause of its agent': {
      change: ({ agent_id }) => sql`update agent set status = 'paused' where id = ${agent_id}`,
      sees: (task) => (assert.equal(task.agent?.status, 'paused'), {}),
    },
    'a budget of its agent': {
      change: ({ agent_id, project_id, spender: { org_id } }) => sql`
        insert into budget (id, org_id, project_id, scope, subject, agent_id, max_tokens, period, window_start, created_by)
        values ('budget_1', ${org_id}, ${project_id}, 'agent', ${agent_id}, ${agent_id}, 5, 'total', now(), 'user_1')`,
      sees: ({ has_budget }) => (assert.equal(has_budget, true), {}),
    },
    'a subscription to events of tasks': {
      change: ({ spender: { org_id } }) => sql`
        insert into webhook (id, org_id, url, events, secret, created_by)
        values ('webhook_1', ${org_id}, 'https://example.com', '{task.completed}', '', 'user_1')`,
      sees: ({ subscriptions }) => (assert.deepEqual(subscriptions, ['task.completed']), {}),
    },
    'the registration of a receiver of its events alone': {
      change: ({ claim: { task_id }, spender: { org_id } }) => sql`
        insert into webhook (id, org_id, url, events, secret, created_by, push_task_id)
        values ('webhook_1', ${org_id}, 'https://example.com', '{}', '', 'user_1', ${task_id})`,
      sees: ({ subscriptions }) => (assert.deepEqual(subscriptions, ['task.*']), {}),
    },
    'a change of the model providers of its organization': {
      change: ({ spender: { org_id } }) => sql`
        update organization set model_providers_version = model_providers_version + 1 where id = ${org_id}`,
      sees: ({ providers_version }) => (assert.equal(providers_version, 1), {}),
    },
    'the last tokens of its credential': {
      change: ({ agent_id }) => sql`
        insert into token_usage (subject, hour, tokens)
        select token_subject, date_trunc('hour', now(), 'UTC'), 1000 from agent where id = ${agent_id}
        on conflict (subject, hour) do update set tokens = excluded.tokens`,
      sees: ({ tokens_used }) => (assert.equal(tokens_used, 1000), {}),
    },
  }
  for (const [what, { change, sees }] of Object.entries(changes))
    it(`a write that follows ${what} is decided by the task as it is then`, async () => {
      const { journal, made } = counted()
      const lone = await insertTestAgent(sql)
      await create({ agent: lone })
      const [run] = await claim('worker_a')
      await journal.write(run!.claim, note('first'))
      await change(run!)
      let seen: unknown
      const decide: Decide = (task) => {
        seen = task
        return { events: [{ type: 'usage.updated', data: {} }] }
      }
      assert.equal(await journal.write(run!.claim, decide), true)
      sees(seen as Parameters<Decide>[0])
      assert.deepEqual(made, { locked: 2, foreseen: 0 })
      await sql`delete from budget where subject = ${lone.id}`
      await sql`delete from token_usage`
      await sql`delete from webhook`
      await journal.write(run!.claim, end)
    })

  it('a write of a worker that has lost its task is rejected without effect', async () => {
    const { journal } = counted()
    const id = await create()
    const [first] = await claim('worker_c')
    await journal.write(first!.claim, note('first'))
    await requeueTasks(sql, queue, 'worker_c', { crashed: true, except: [] })
    const before = await events(id)
    await assert.rejects(journal.write(first!.claim, end), LeaseLost)
    assert.deepEqual(await events(id), before)
    const [second] = await claim('worker_b')
    assert.equal(await journal.write(second!.claim, end), false)
  })

  it('a write that was decided long ago or by a fast clock is decided again', async () => {
    const id = await create()
    const [run] = await claim('worker_a')
    const store = taskStore({ sql, indexed: database.indexed, queue })
    const journal = new Journal({ store, hub, onDeferred })
    await journal.write(run!.claim, note('first'))
    const known = run!.claim.known!
    for (const away_seconds of [-11, 5]) {
      const event_at = new Date(Date.now() + away_seconds * 1000).toISOString()
      const change = { ...note('late')(known.task), task: { ...known.task, event_at } }
      assert.equal(await store.writeForeseen!([{ change, known }]), undefined)
    }
    assert.deepEqual(
      (await events(id)).map(({ type }) => type),
      ['task.created', 'task.started', 'usage.updated'],
    )
    await journal.write(run!.claim, end)
  })

  it('a foreseen write is made once if its response was lost', async () => {
    const id = await create()
    const [run] = await claim('worker_a')
    const store = taskStore({ sql, indexed: database.indexed, queue })
    let losses = 1
    const journal = new Journal({
      store: {
        begin: (work) => store.begin(work),
        writeForeseen: async (changes) => {
          const written = await store.writeForeseen!(changes)
          if (losses-- > 0) throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' })
          return written
        },
      },
      hub,
      onDeferred,
    })
    await journal.write(run!.claim, note('first'))
    assert.equal(await journal.write(run!.claim, note('second')), true)
    assert.equal(await journal.write(run!.claim, end), false)
    const [row] = await sql`select writes, last_sequence from task where id = ${id}`
    assert.deepEqual(row, { writes: 3, last_sequence: 5 })
  })
})
