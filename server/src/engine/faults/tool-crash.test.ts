import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { openCrashWorld, type CrashWorld } from '../../../test/processes/crash-world.ts'
import { witnessTools } from '../../../test/processes/engine-process.ts'
import { eventually } from '../../../test/harness.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { scriptModel } from '../models/builtin/builtin-script.ts'

/**
 * Creates tasks. A worker in a separate process is killed while each task is in the middle of a call, and another
 * worker continues them.
 */
describe('a call of a tool that was cut by a crash', () => {
  let world: CrashWorld
  let sql: Sql
  /** The ids of the tasks that the first worker had when it was killed. */
  const cut: Record<keyof typeof plans, string> = {} as never

  const hanging = (name: string): object[] => [
    { tool_calls: [{ name, arguments: { hang: true } }] },
    { text: 'The tool said: {{tool_result}}' },
  ]
  const plans = {
    safe: hanging('safe'),
    keyed: hanging('keyed'),
    approved: hanging('unsafe'),
    answered: hanging('unsafe'),
    rejected: hanging('unsafe'),
    canceled: hanging('unsafe'),
    several: [
      { tool_calls: [{ name: 'unsafe' }, { name: 'safe', arguments: { hang: true } }, { name: 'keyed' }] },
      { text: 'Done.' },
    ],
    timer: [{ tool_calls: [{ name: 'wait', arguments: { seconds: 5 } }] }, { text: 'I waited.' }],
    asks: [
      { tool_calls: [{ name: 'request_input', arguments: { question: 'Which one?' } }] },
      { text: 'You said {{tool_result}}' },
    ],
  }

  const hangingAlone = ['safe', 'keyed', 'approved', 'answered', 'rejected', 'canceled'] as const

  before(async () => {
    world = await openCrashWorld(() => scriptModel, witnessTools)
    sql = world.sql
    const agent = await insertTestAgent(sql, { tools: ['safe', 'keyed', 'unsafe', 'wait', 'request_input'] })
    // More slots than one project may fill.
    const slots = 16
    const worker = await world.startWorker({ scripted: true, slots })
    const give = async (...names: (keyof typeof plans)[]): Promise<void> => {
      const ids = await world.create(...names.map((name) => newTestTask(agent, JSON.stringify(plans[name]))))
      for (const [at, name] of names.entries()) cut[name] = ids[at]!
    }
    await give(...hangingAlone, 'several')
    await Promise.all([
      ...hangingAlone.map((name) => eventually(async () => (await callsOf(cut[name])) === 1)),
      eventually(async () => (await callsOf(cut.several)) === 3 && (await endedCallsOf(cut.several)) === 2),
    ])
    // Last, because one of them goes on after some seconds.
    await give('timer', 'asks')
    const { timer, asks } = cut
    await Promise.all([until(timer, 'waiting'), until(asks, 'waiting')])
    await worker.kill()
    assert.deepEqual([(await read(timer)).wait?.reason, (await read(asks)).wait?.reason], ['timer', 'input'])
    await world.startWorker({ scripted: true, slots })
  })
  after(() => world.close())

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
  const endedCallsOf = async (id: string) => {
    const rows =
      await sql`select 1 from task_step where task_id = ${id} and type = 'tool_call' and status = 'completed'`
    return rows.length
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

  for (const safety of ['safe', 'keyed'] as const) {
    it(`a tool call that a crash interrupted is repeated with the same key if it is ${safety}`, async () => {
      const id = cut[safety]
      await until(id, 'completed')
      assert.equal(await callsOf(id), 2)
      assert.equal((await read(id)).output?.content, `The tool said: call 2 of ${safety}`)
      const [step] = await sql`select attempt, status from task_step where task_id = ${id} and type = 'tool_call'`
      assert.deepEqual(step, { attempt: 2, status: 'completed' })
    })
  }

  const answers = [
    ['made again when a person says so', 'approved', { decision: 'approve' }, 2, 'call 2 of unsafe'],
    [
      'done with the result that a person gives',
      'answered',
      { decision: 'approve', result: 'It was done.' },
      1,
      'It was done.',
    ],
    [
      'failed when a person says so',
      'rejected',
      { decision: 'reject', reason: 'It never arrived.' },
      1,
      'It never arrived.',
    ],
  ] as const
  for (const [what, name, resolution, made, said] of answers) {
    it(`a tool call that a crash interrupted asks a person if it is unsafe, and is ${what}`, async () => {
      const id = cut[name]
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
    })
  }

  it('a tool call that was interrupted by a crash is uncertain in the receipt of a cancellation', async () => {
    const id = cut.canceled
    await until(id, 'waiting')
    await sql.begin((tx) => world.engine.cancel(tx, id, { reason: null, mode: 'graceful', user_id: 'user_x' }))
    const [event] = await sql<{ data: { effects: unknown[]; uncertain: { tool: string }[] } }>`
      select data from task_event where task_id = ${id} and type = 'task.canceled'`
    assert.deepEqual([event!.data.effects.length, event!.data.uncertain.map(({ tool }) => tool)], [0, ['unsafe']])
    const [approval] = await sql`select status from approval where task_id = ${id}`
    assert.deepEqual(approval, { status: 'expired' })
  })

  it('after a crash only the interrupted tool call of an answer is repeated', async () => {
    const id = cut.several
    await until(id, 'completed')
    const rows = await sql<{ attempt: number; name: string }>`
      select name, attempt from task_step where task_id = ${id} and type = 'tool_call' order by index`
    assert.deepEqual(rows, [
      { name: 'unsafe', attempt: 1 },
      { name: 'safe', attempt: 2 },
      { name: 'keyed', attempt: 1 },
    ])
    assert.equal(await callsOf(id), 4)
  })

  it('tasks that wait for a time or a message are not affected by a killed worker', async () => {
    const { timer, asks } = cut
    const sent = await sql.begin((tx) =>
      world.engine.sendMessage(tx, asks, { content: 'the blue one', user_id: 'user_x' }),
    )
    assert.equal(sent.outcome, 'sent')
    await Promise.all([until(timer, 'completed'), until(asks, 'completed')])
    assert.equal((await read(asks)).output?.content, 'You said the blue one')
  })
})
