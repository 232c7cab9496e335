import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { openCrashWorld, type CrashWorld } from '../../../test/processes/crash-world.ts'
import { witnessTools, type EngineProcess } from '../../../test/processes/engine-process.ts'
import { eventually } from '../../../test/harness.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { scriptModel } from '../models/builtin/builtin-script.ts'
import type { NewTask } from '../commands/new-task.ts'

/** Tasks are created here. The worker that calls tools is a separate process, which is killed during a call. */
describe('a call of a tool that was cut by a crash', () => {
  let world: CrashWorld
  let sql: Sql
  let agent: NewTask['agent']

  before(async () => {
    world = await openCrashWorld(() => scriptModel, witnessTools)
    sql = world.sql
    agent = await insertTestAgent(sql, { tools: ['safe', 'keyed', 'unsafe', 'wait', 'request_input'] })
  })
  afterEach(() => world.killWorkers())
  after(() => world.close())

  const startWorker = (): Promise<EngineProcess> => world.startWorker({ scripted: true })
  const give = async (...steps: object[]): Promise<string> => {
    const [id] = await world.create(newTestTask(agent, JSON.stringify(steps)))
    return id!
  }
  const read = async (id: string) => {
    const [task] = await sql<{
      status: string
      output: { content: string } | null
      wait: { reason: string; approval_ids: string[] } | null
      attempt: number
    }>`select status, output, wait, attempt from task where id = ${id}`
    return task!
  }
  const until = (id: string, status: string) => eventually(async () => (await read(id)).status === status)
  const callsOf = async (id: string) => {
    const rows = await sql<{ n: number }>`select count(*) as n from witness where input like ${`${id}:%`}`
    return rows[0]!.n
  }
  const eventsOf = async (id: string) => {
    const rows = await sql<{ sequence: number; type: string }>`
      select sequence, type from task_event where task_id = ${id} order by sequence`
    assert.deepEqual(
      rows.map(({ sequence }) => sequence),
      rows.map((_, i) => i + 1),
    )
    return rows.map(({ type }) => type)
  }
  const calls = (name: string) => ({ tool_calls: [{ name, arguments: { hang: true } }] })
  /** The task once its call hangs in a worker that is killed then, and another one has come. */
  const cut = async (name: string): Promise<string> => {
    const worker = await startWorker()
    const id = await give(calls(name), { text: 'The tool said: {{tool_result}}' })
    await eventually(async () => (await callsOf(id)) === 1)
    await worker.kill()
    await startWorker()
    return id
  }

  for (const safety of ['safe', 'keyed']) {
    it(`a call of a tool that was cut by a crash is made again with the same key where it is ${safety}`, async () => {
      const id = await cut(safety)
      await until(id, 'completed')
      assert.equal(await callsOf(id), 2)
      assert.equal((await read(id)).output?.content, `The tool said: call 2 of ${safety}`)
      const [step] = await sql`select attempt, status from task_step where task_id = ${id} and type = 'tool_call'`
      assert.deepEqual(step, { attempt: 2, status: 'completed' })
      await world.workers.at(-1)!.kill()
    })
  }

  const answers = [
    ['made again when a person says so', { decision: 'approve' }, 2, 'call 2 of unsafe'],
    ['done with the result that a person gives', { decision: 'approve', result: 'It was done.' }, 1, 'It was done.'],
    ['failed when a person says so', { decision: 'reject', reason: 'It never arrived.' }, 1, 'It never arrived.'],
  ] as const
  for (const [what, resolution, made, said] of answers) {
    it(`a call of a tool that was cut by a crash asks a person where it is unsafe, and is ${what}`, async () => {
      const id = await cut('unsafe')
      await until(id, 'waiting')
      const { wait } = await read(id)
      assert.equal(wait?.reason, 'unknown_outcome')
      assert.equal(await callsOf(id), 1, 'nothing was repeated')
      const [approval_id] = wait.approval_ids
      const resolve = () =>
        sql.begin((tx) =>
          world.engine.resolveApproval(tx, approval_id!, { reason: null, ...resolution, user_id: 'user_x' }),
        )
      const both = await Promise.allSettled([resolve(), resolve()])
      assert.deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected'], 'the first answer wins')
      await until(id, 'completed')
      assert.equal(await callsOf(id), made)
      assert.equal((await read(id)).output?.content, `The tool said: ${said}`)
      const events = await eventsOf(id)
      for (const type of ['approval.requested', 'task.waiting', 'approval.resolved', 'task.resumed', 'task.completed'])
        assert.ok(events.includes(type), type)
      await world.workers.at(-1)!.kill()
    })
  }

  it('a call of a tool that was cut by a crash is uncertain in the receipt where the task is canceled meanwhile', async () => {
    const id = await cut('unsafe')
    await until(id, 'waiting')
    await sql.begin((tx) => world.engine.cancel(tx, id, { reason: null, mode: 'graceful', user_id: 'user_x' }))
    const [event] = await sql<{ data: { effects: unknown[]; uncertain: { tool: string }[] } }>`
      select data from task_event where task_id = ${id} and type = 'task.canceled'`
    assert.deepEqual([event!.data.effects.length, event!.data.uncertain.map(({ tool }) => tool)], [0, ['unsafe']])
    const [approval] = await sql`select status from approval where task_id = ${id}`
    assert.deepEqual(approval, { status: 'expired' })
    await world.workers.at(-1)!.kill()
  })

  it('a call of a tool that was cut by a crash does not take the other calls of its answer with it: those that had ended are not made again', async () => {
    const worker = await startWorker()
    const id = await give(
      { tool_calls: [{ name: 'unsafe' }, { name: 'safe', arguments: { hang: true } }, { name: 'keyed' }] },
      { text: 'Done.' },
    )
    await eventually(async () => {
      const done =
        await sql`select 1 from task_step where task_id = ${id} and type = 'tool_call' and status = 'completed'`
      return done.length === 2
    })
    await worker.kill()
    await startWorker()
    await until(id, 'completed')
    const rows = await sql<{ attempt: number; name: string }>`
      select name, attempt from task_step where task_id = ${id} and type = 'tool_call' order by index`
    assert.deepEqual(rows, [
      { name: 'unsafe', attempt: 1 },
      { name: 'safe', attempt: 2 },
      { name: 'keyed', attempt: 1 },
    ])
    assert.equal(await callsOf(id), 4)
    await world.workers.at(-1)!.kill()
  })

  it('a call of a tool that was cut by a crash is no matter for a task that waits: for a moment or for a message, it holds no worker', async () => {
    const worker = await startWorker()
    const timer = await give({ tool_calls: [{ name: 'wait', arguments: { seconds: 3 } }] }, { text: 'I waited.' })
    const asks = await give(
      { tool_calls: [{ name: 'request_input', arguments: { question: 'Which one?' } }] },
      { text: 'You said {{tool_result}}' },
    )
    await Promise.all([until(timer, 'waiting'), until(asks, 'waiting')])
    await worker.kill()
    assert.deepEqual([(await read(timer)).wait?.reason, (await read(asks)).wait?.reason], ['timer', 'input'])
    await startWorker()
    const sent = await sql.begin((tx) =>
      world.engine.sendMessage(tx, asks, { content: 'the blue one', user_id: 'user_x' }),
    )
    assert.equal(sent.outcome, 'sent')
    await Promise.all([until(timer, 'completed'), until(asks, 'completed')])
    assert.equal((await read(asks)).output?.content, 'You said the blue one')
    await world.workers.at(-1)!.kill()
  })
})
