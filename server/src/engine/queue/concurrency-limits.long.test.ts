import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { pino } from 'pino'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { openEngine, startEngineProcess, witnessTable, witnessTools } from '../../../test/processes/engine-process.ts'
import { eventually, makeTestDatabase } from '../../../test/harness.ts'
import { openDatabase, type Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { cancelTask } from '../journal/cancel.ts'
import { lockLimits } from './concurrency-limits.ts'
import type { Model, ModelMessage } from '../models/model.ts'
import type { NewTask } from '../commands/new-task.ts'
import { openQueue } from './queue.ts'

/** A model whose calls end when the test says so, and that notes who was in it at the same time. */
class HeldModel implements Model {
  readonly provider = 'test'
  /** Last messages of the calls, in the order in which they began. */
  readonly begun: string[] = []
  readonly conversations = new Map<string, ModelMessage[]>()
  readonly #inside = new Map<string, () => void>()
  #max = 0
  /** How many calls were in it at once since this was asked last. */
  max(): number {
    const max = this.#max
    this.#max = this.#inside.size
    return max
  }
  release(input: string): void {
    this.#inside.get(input)?.()
  }
  async call({ messages, signal }: Parameters<Model['call']>[0]) {
    const input = messages.findLast(({ role }) => role === 'user')!.content
    const waits = input.includes('patience') && messages.at(-1)!.role === 'user'
    this.begun.push(input)
    this.conversations.set(input, messages)
    const end = Promise.withResolvers<void>()
    this.#inside.set(input, end.resolve)
    this.#max = Math.max(this.#max, this.#inside.size)
    signal.addEventListener('abort', () => end.resolve())
    if (input.includes('quick')) setImmediate(end.resolve)
    await end.promise
    this.#inside.delete(input)
    signal.throwIfAborted()
    return {
      text: `answer to ${input}`,
      tool_calls: waits ? [{ id: 'call_1', name: 'wait', arguments: { seconds: 2.5 } }] : [],
      finish_reason: waits ? ('tool_calls' as const) : ('stop' as const),
      model: 'held',
      usage: { input_tokens: 1, output_tokens: 1, cached_tokens: 0 },
      network: { bytes_in: 1, bytes_out: 1 },
    }
  }
}

describe('concurrency limits', () => {
  const model = new HeldModel()
  let database: Awaited<ReturnType<typeof makeTestDatabase>>
  let here: Awaited<ReturnType<typeof openEngine>>
  let sql: Sql

  const openHere = async (slots: number): Promise<void> => {
    const { connection } = database
    here = await openEngine({ connection, slots, data_dir: 'here', model: () => model, tools: witnessTools })
    sql = here.sql
  }
  before(async () => {
    database = await makeTestDatabase()
    await openHere(16)
    await sql.script(witnessTable)
  })
  after(async () => {
    await here.close()
    await database.drop()
  })

  const give = async (agent: NewTask['agent'], input: string, more: Partial<NewTask> = {}): Promise<string> => {
    const task = newTestTask(agent, input, more)
    await sql.begin((tx) => here.engine.enqueue(tx, task))
    return task.id
  }
  /** Makes so many, a few at a time: on a busy machine more transactions than that wait in vain for a connection. */
  const makeAll = async (count: number, make: (i: number) => Promise<string>): Promise<string[]> => {
    const ids: string[] = []
    for (let from = 0; from < count; from += 5)
      ids.push(...(await Promise.all(Array.from({ length: Math.min(5, count - from) }, (_, i) => make(from + i)))))
    return ids
  }
  const begins = (input: string) => eventually(async () => model.begun.includes(input))
  const status = async (id: string): Promise<string> => {
    const [row] = await sql<{ status: string }>`select status from task where id = ${id}`
    return row!.status
  }
  const ends = (...ids: string[]) =>
    eventually(async () => (await sql`select from task where id = any(${ids}) and finished_at is null`).length === 0)
  const isHeldBack = async (id: string): Promise<boolean> =>
    (await sql`select from task where id = ${id} and status = 'queued' and job_id is null`).length === 1
  const makeThread = async (agent: NewTask['agent']): Promise<string> => {
    const id = newId('thread')
    await sql`insert into thread (id, project_id, agent_id, created_by) values (${id}, ${agent.project_id}, ${agent.id}, 'user_1')`
    return id
  }
  const isClean = () => eventually(async () => (await sql`select from freed_gate`).length === 0)

  for (const limit of [1, 2, 3]) {
    it(`an agent with a limit of ${limit} runs 30 tasks, and never more than that at once`, async () => {
      const agent = await insertTestAgent(sql, { max_concurrent_tasks: limit })
      model.max()
      const ids = await makeAll(30, (i) => give(agent, `quick ${limit} ${i}`))
      await ends(...ids)
      assert.equal(model.max(), limit)
      await isClean()
    })
  }

  it('a limit and a key hold over two workers', async () => {
    const { connection } = database
    const other = await openEngine({ connection, slots: 16, data_dir: 'other', model: () => model })
    const agent = await insertTestAgent(sql, { max_concurrent_tasks: 3 })
    const engines = [here.engine, other.engine]
    model.max()
    const ids = await makeAll(40, async (i) => {
      const task = newTestTask(agent, `quick shared ${i}`, i % 2 ? { concurrency_key: `pair ${i % 4}` } : {})
      await sql.begin((tx) => engines[i % 3 ? 0 : 1]!.enqueue(tx, task))
      return task.id
    })
    await ends(...ids)
    assert.ok(model.max() <= 3)
    const started = model.begun.filter((input) => input.startsWith('quick shared'))
    assert.deepEqual([started.length, new Set(started).size], [40, 40])
    await isClean()
    await other.close()
  })

  it('one task of a key runs at a time over all agents, in the order of priority', async () => {
    const one = await insertTestAgent(sql)
    const other = { ...(await insertTestAgent(sql)), project_id: one.project_id }
    await sql`update agent set project_id = ${one.project_id}, name = 'other' where id = ${other.id}`
    const key = { concurrency_key: 'invoice 4711' }
    const first = await give(one, 'key first', key)
    await begins('key first')
    const low = await give(one, 'key low', { ...key, priority: 1 })
    const middle = await give(other, 'key middle', key)
    const high = await give(other, 'key high', { ...key, priority: 9 })
    const free = await give(one, 'key none')
    await begins('key none')
    assert.deepEqual(await Promise.all([low, middle, high].map(isHeldBack)), [true, true, true])
    for (const [id, input, next] of [
      [first, 'key first', 'key high'],
      [high, 'key high', 'key middle'],
      [middle, 'key middle', 'key low'],
    ] as const) {
      model.release(input)
      await ends(id)
      await begins(next)
    }
    model.release('key low')
    model.release('key none')
    await ends(low, free)
    const order = model.begun.filter((input) => input.startsWith('key ') && input !== 'key none')
    assert.deepEqual(order, ['key first', 'key high', 'key middle', 'key low'])
  })

  it('a concurrency key of another project is independent', async () => {
    const [one, other] = [await insertTestAgent(sql), await insertTestAgent(sql)]
    const ids = [
      await give(one, 'shared a', { concurrency_key: 'k' }),
      await give(other, 'shared b', { concurrency_key: 'k' }),
    ]
    await begins('shared a')
    await begins('shared b')
    model.release('shared a')
    model.release('shared b')
    await ends(...ids)
  })

  it('tasks of a thread run in the order of their creation whatever their priority, and read what was said before', async () => {
    const agent = await insertTestAgent(sql)
    const thread_id = await makeThread(agent)
    const first = await give(agent, 'thread one', { thread_id })
    await begins('thread one')
    const second = await give(agent, 'thread two', { thread_id })
    const third = await give(agent, 'thread three', { thread_id, priority: 9 })
    assert.deepEqual(await Promise.all([second, third].map(isHeldBack)), [true, true])
    model.release('thread one')
    await begins('thread two')
    assert.equal(await isHeldBack(third), true)
    model.release('thread two')
    await begins('thread three')
    model.release('thread three')
    await ends(first, second, third)
    assert.deepEqual(
      model.conversations.get('thread three')?.map(({ role, content }) => `${role}: ${content}`),
      [
        'user: thread one',
        'assistant: answer to thread one',
        'user: thread two',
        'assistant: answer to thread two',
        'user: thread three',
      ],
    )
  })

  it('canceling a task that waits for a limit lets the tasks behind it run in order', async () => {
    const agent = await insertTestAgent(sql)
    const thread_id = await makeThread(agent)
    const ids: string[] = []
    for (const name of ['a', 'b', 'c']) ids.push(await give(agent, `skip ${name}`, { thread_id }))
    await begins('skip a')
    await sql.begin((tx) => here.engine.cancel(tx, ids[1]!, { reason: null, mode: 'graceful', user_id: 'user_1' }))
    assert.equal(await isHeldBack(ids[2]!), true)
    model.release('skip a')
    await begins('skip c')
    model.release('skip c')
    await ends(...ids)
    assert.equal(model.begun.includes('skip b'), false)
  })

  it('a task that waits for its thread expires in time', async () => {
    const agent = await insertTestAgent(sql)
    const thread_id = await makeThread(agent)
    const first = await give(agent, 'busy', { thread_id })
    const second = await give(agent, 'too late', { thread_id, queue_ttl_seconds: 1 })
    const third = await give(agent, 'quick after it', { thread_id })
    await ends(second)
    assert.equal(await status(second), 'expired')
    assert.equal(await isHeldBack(third), true)
    model.release('busy')
    await ends(first, third)
    assert.equal(model.begun.includes('too late'), false)
  })

  it("a waiting task keeps its key and its thread, and leaves its agent's slot to others", async () => {
    const agent = await insertTestAgent(sql, { max_concurrent_tasks: 1, tools: ['wait'] })
    const waits = await give(agent, 'patience', { concurrency_key: 'kept' })
    await begins('patience')
    const sameKey = await give(agent, 'quick of the same key', { concurrency_key: 'kept', priority: 9 })
    const other = await give(agent, 'takes the slot')
    assert.equal(await isHeldBack(other), true)
    model.release('patience')
    await begins('takes the slot')
    assert.equal(await status(waits), 'waiting')
    assert.equal(await isHeldBack(sameKey), true)
    // Its time comes while the slot is taken: it asks for one, and gets the next.
    await eventually(async () => (await sql`select from task where id = ${waits} and slot = 'wanted'`).length === 1)
    model.max()
    model.release('takes the slot')
    await eventually(async () => model.begun.filter((input) => input === 'patience').length === 2)
    model.release('patience')
    await ends(waits, other, sameKey)
    assert.equal(model.max(), 1)
    await isClean()
  })

  it('a new limit applies to tasks that were sent before, and a removed limit lets all run', async () => {
    const agent = await insertTestAgent(sql)
    // Sent for later, so that none is fetched before the limit stands.
    const run_after = new Date(Date.now() + 500).toISOString()
    const ids = await Promise.all(Array.from({ length: 6 }, (_, i) => give(agent, `sent before ${i}`, { run_after })))
    await sql`update agent set config = config || '{"max_concurrent_tasks": 2}' where id = ${agent.id}`
    const wanted = () => sql`select from task where id = any(${ids}) and slot = 'wanted'`
    const isInside = () => model.begun.filter((input) => input.startsWith('sent before'))
    await eventually(async () => (await wanted()).length === 4 && isInside().length === 2)
    await sql`update agent set config = config - 'max_concurrent_tasks' where id = ${agent.id}`
    await sql.begin((tx) => here.engine.dispatchDeferred(tx, agent.id))
    await eventually(async () => isInside().length === 6)
    for (const input of isInside()) model.release(input)
    await ends(...ids)
  })

  it('tasks behind a paused agent and a limit continue when the agent starts', async () => {
    const agent = await insertTestAgent(sql, { max_concurrent_tasks: 2 })
    await sql`update agent set status = 'paused' where id = ${agent.id}`
    const paused = { ...agent, status: 'paused' }
    const thread_id = await makeThread(agent)
    const ids = await Promise.all([
      ...Array.from({ length: 3 }, (_, i) => give(paused, `quick paused ${i}`, { thread_id })),
      ...Array.from({ length: 3 }, (_, i) => give(paused, `quick paused key ${i}`, { concurrency_key: 'p' })),
      ...Array.from({ length: 3 }, (_, i) => give(paused, `quick paused plain ${i}`)),
    ])
    assert.deepEqual(new Set(await Promise.all(ids.map(isHeldBack))), new Set([true]))
    model.max()
    await sql.begin(async (tx) => {
      await tx`update agent set status = 'running' where id = ${agent.id}`
      await here.engine.dispatchDeferred(tx, agent.id)
    })
    await ends(...ids)
    assert.ok(model.max() <= 2)
    await isClean()
  })

  it('tasks with limits wait for their run_after without blocking others', async () => {
    const agent = await insertTestAgent(sql, { max_concurrent_tasks: 1 })
    const far = await give(agent, 'far', {
      concurrency_key: 'soon',
      run_after: new Date(Date.now() + 60_000).toISOString(),
    })
    const now = await give(agent, 'quick now', { concurrency_key: 'soon' })
    await ends(now)
    assert.equal(await isHeldBack(far), true)
    await sql`update task set due_at = now(), run_after = now() where id = ${far}`
    await begins('far')
    model.release('far')
    await ends(far)
  })

  it('a limit that a dead process freed is dispatched by others within seconds', async () => {
    const agent = await insertTestAgent(sql)
    const holder = await give(agent, 'left behind', { concurrency_key: 'orphan' })
    await begins('left behind')
    await sql`update task set worker_id = null, status = 'waiting' where id = ${holder}`
    const next = await give(agent, 'quick next', { concurrency_key: 'orphan' })
    const pool = openDatabase({ connection: database.connection })
    const queue = openQueue({ database: pool, log: pino({ level: 'silent' }) })
    // Its end is committed, and no signal is sent.
    await pool.sql.begin((tx) => cancelTask(tx, queue, holder, { reason: null, mode: 'graceful', user_id: 'user_1' }))
    await ends(next)
    model.release('left behind')
    await isClean()
    await queue.close()
    await pool.close()
  })

  it('a kill between the end of a task and the dispatch of the next loses no task', async () => {
    const agent = await insertTestAgent(sql, { model: 'test/witness' })
    const pool = openDatabase({ connection: database.connection, connectionsMax: 2 })
    await here.close()
    const child = await startEngineProcess({
      connection: database.connection,
      slots: 4,
      data_dir: 'child',
      calls: 1,
      call_ms: 300,
    })
    await openHere(0)
    const first = await give(agent, 'last words', { concurrency_key: 'killed' })
    await eventually(async () => (await sql`select from witness where input = 'last words'`).length === 1)
    const next = await give(agent, 'quick heir', { concurrency_key: 'killed' })
    // The limit is locked here, so the child ends the task and waits with the dispatch.
    await pool.sql.begin(async (tx) => {
      await lockLimits(tx, [`key:${agent.project_id}:killed`])
      await ends(first)
      await child.kill()
    })
    assert.equal(await isHeldBack(next), true)
    await pool.close()
    await here.close()
    await openHere(16)
    await ends(next)
    await isClean()
  })
})
