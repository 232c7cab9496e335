import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { insertTestAgent } from '../../../test/fixtures.ts'
import { makeTestDatabase } from '../../../test/harness.ts'
import { jsonb, openDatabase, type Database, type Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { copyJournal } from './copy-journal.ts'
import { noUsage } from '../journal/task-rows.ts'
import type { Step } from '../task.ts'

type Made = Pick<Step, 'type' | 'status'> & Partial<Pick<Step, 'name' | 'input' | 'output' | 'attempt' | 'failures'>>

const said = (...calls: string[]): Made => ({
  type: 'model_call',
  status: 'completed',
  output: { text: 'x', tool_calls: calls.map((id) => ({ id, name: 'pay', arguments: {} })) },
})
const of = (
  type: 'tool_call' | 'approval' | 'wait',
  status: Step['status'],
  call: string,
  more: object = {},
): Made => ({
  type,
  status,
  input: { tool_call_id: call, arguments: {}, ...more },
  output: status === 'started' ? null : { content: `result of ${call}` },
})

describe('the journal of a retry', () => {
  let test: Awaited<ReturnType<typeof makeTestDatabase>>
  let database: Database
  let sql: Sql
  let agent: Awaited<ReturnType<typeof insertTestAgent>>
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

  const makeTask = async (status: string): Promise<string> => {
    const id = newId('task')
    await sql`
      insert into task (id, project_id, agent_id, agent_version, status, input, max_attempts, usage, created_by, last_sequence)
      values (${id}, ${agent.project_id}, ${agent.id}, 0, ${status}, '"x"', 5, ${jsonb(noUsage)}, 'user_x', 1)`
    await sql`insert into task_event (task_id, sequence, type, data) values (${id}, 1, 'task.created', '{"status": "queued"}')`
    return id
  }
  /** A failed task with these steps, tried again from one of them; gives what the new one begins with. */
  const retry = async (steps: readonly Made[], from_step: number, messages: (number | null)[] = []) => {
    const [old, fresh] = [await makeTask('failed'), await makeTask('queued')]
    for (const [index, step] of steps.entries()) {
      await sql`
        insert into task_step (task_id, index, id, agent_id, type, status, attempt, failures, name, input, output, model, usage, started_at, finished_at)
        values (${old}, ${index}, ${newId('step')}, ${agent.id}, ${step.type}, ${step.status}, ${step.attempt ?? 2}, 4, 'pay',
          ${jsonb(step.input ?? {})}, ${jsonb(step.output ?? null)}, 'openai/x', '{"input_tokens": 5}', '2026-01-01T00:00:00Z', '2026-01-01T00:00:01Z')`
    }
    for (const [position, before_step] of messages.entries()) {
      await sql`
        insert into task_message (task_id, position, id, content, before_step, created_by)
        values (${old}, ${position + 1}, ${newId('msg')}, ${`message ${position}`}, ${before_step}, 'user_x')`
    }
    await sql.begin((tx) => copyJournal(tx, old, fresh, from_step))
    const kept = await sql<Step & { started_at: string; finished_at: string }>`
      select * from task_step where task_id = ${fresh} order by index`
    const read = await sql<{ content: string; before_step: number }>`
      select content, before_step from task_message where task_id = ${fresh} order by position`
    return { old, fresh, kept, read }
  }
  const shape = (steps: readonly Step[]) => steps.map(({ index, type, status }) => [index, type, status])

  it('the journal of a retry has the steps before the retried one, without their cost', async () => {
    const steps = [said('a'), of('tool_call', 'completed', 'a'), said('b'), of('tool_call', 'failed', 'b'), said()]
    const { old, fresh, kept } = await retry(steps, 4)
    assert.deepEqual(shape(kept), [
      [0, 'model_call', 'completed'],
      [1, 'tool_call', 'completed'],
      [2, 'model_call', 'completed'],
      [3, 'tool_call', 'failed'],
    ])
    assert.deepEqual(kept[1]!.output, { content: 'result of a' })
    assert.deepEqual(
      [kept[0]!.usage, kept[0]!.failures, kept[0]!.model, kept[0]!.finished_at],
      [null, 0, 'openai/x', '2026-01-01T00:00:01.000Z'],
    )
    const before = await sql<{ id: string }>`select id from task_step where task_id = ${old}`
    assert.ok(kept.every(({ id }) => id.startsWith('step_') && !before.some((step) => step.id === id)))
    const [task] = await sql`select usage from task where id = ${fresh}`
    assert.deepEqual(task, { usage: noUsage })
    const [event] = await sql`select data from task_event where task_id = ${fresh}`
    assert.deepEqual(event!['data'], { status: 'queued', retried_from: old, from_step: 4 })
  })

  it('the journal of a retry from the first step is empty', async () => {
    assert.deepEqual((await retry([said()], 0)).kept, [])
  })

  it('the journal of a retry has the completed one of two parallel calls, and the other call is made', async () => {
    const { kept } = await retry([said('a', 'b'), of('tool_call', 'completed', 'a'), of('tool_call', 'failed', 'b')], 2)
    assert.deepEqual(shape(kept), [
      [0, 'model_call', 'completed'],
      [1, 'tool_call', 'completed'],
    ])
  })

  it('the journal of a retry leaves out steps without result and effect, and has no gaps', async () => {
    const steps = [
      said('a', 'b', 'c'),
      of('wait', 'started', 'a'),
      of('approval', 'started', 'b'),
      of('tool_call', 'completed', 'c'),
      { type: 'model_call', status: 'failed' } as const,
    ]
    assert.deepEqual(shape((await retry(steps, 5)).kept), [
      [0, 'model_call', 'completed'],
      [1, 'tool_call', 'completed'],
    ])
  })

  it('a retry requests approval again for a call that is repeated, and not for one that was made or rejected', async () => {
    const steps = [
      said('same'),
      of('approval', 'completed', 'same'),
      of('tool_call', 'completed', 'same'),
      said('same', 'refused'),
      of('approval', 'failed', 'refused'),
      of('approval', 'completed', 'same'),
      of('tool_call', 'completed', 'same'),
    ]
    assert.deepEqual(shape((await retry(steps, 6)).kept), [
      [0, 'model_call', 'completed'],
      [1, 'approval', 'completed'],
      [2, 'tool_call', 'completed'],
      [3, 'model_call', 'completed'],
      [4, 'approval', 'failed'],
    ])
    assert.equal((await retry(steps, 7)).kept.length, 7)
  })

  it('a retry asks a person about calls of unknown outcome, except for safe ones', async () => {
    const cut = { safety: 'keyed', approval_id: 'appr_x', repeat: 2 }
    const steps = [
      said('a', 'b', 'c'),
      of('tool_call', 'started', 'a', { safety: 'safe' }),
      of('tool_call', 'started', 'b', cut),
      of('tool_call', 'unknown', 'c', cut),
    ]
    const { kept } = await retry(steps, 4)
    assert.deepEqual(
      kept.slice(1).map(({ status, input }) => [status, input]),
      [
        ['started', { tool_call_id: 'a', arguments: {}, safety: 'safe' }],
        ['started', { tool_call_id: 'b', arguments: {}, safety: 'unsafe' }],
        ['started', { tool_call_id: 'c', arguments: {}, safety: 'unsafe' }],
      ],
    )
  })

  it('the journal of a retry has the messages that were read before the retried step, at their places', async () => {
    const steps = [
      said('a'),
      of('wait', 'started', 'a'),
      of('tool_call', 'completed', 'a'),
      said('b'),
      of('tool_call', 'completed', 'b'),
      said(),
    ]
    const { read } = await retry(steps, 5, [0, 3, 5, 6, null])
    assert.deepEqual(read, [
      { content: 'message 0', before_step: 0 },
      { content: 'message 1', before_step: 2 },
      { content: 'message 2', before_step: 4 },
    ])
  })
})
