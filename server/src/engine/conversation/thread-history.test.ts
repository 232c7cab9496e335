import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { makeTestDatabase } from '../../../test/harness.ts'
import { openDatabase, type Database, type Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { noUsage } from '../journal/task-rows.ts'
import { historyMax, threadHistory } from './thread-history.ts'

describe('what a thread remembers', () => {
  let test: Awaited<ReturnType<typeof makeTestDatabase>>
  let database: Database
  let sql: Sql

  before(async () => {
    test = await makeTestDatabase()
    database = openDatabase({ connection: test.connection })
    sql = database.sql
  })
  after(async () => {
    await database.close()
    await test.drop()
  })

  interface PastStep {
    type?: string
    status?: string
    name?: string
    input?: unknown
    output?: unknown
  }
  type Past = { input?: unknown; steps?: PastStep[]; status?: string; retried_from?: string }

  /** Finished tasks of a new thread, and an open one behind them. */
  const makeThread = async (past: Past[]): Promise<{ id: string; thread_id: string; ids: string[] }> => {
    const thread_id = newId('thread')
    const ids: string[] = []
    for (const [i, { input = `input ${i}`, steps = [], status = 'completed', retried_from }] of past.entries()) {
      const id = newId('task')
      ids.push(id)
      await sql`
        insert into task (id, project_id, agent_id, agent_version, thread_id, thread_position, status, input, max_attempts, usage, created_by,
          finished_at, retried_from)
        values (${id}, 1, 'agent_1', 0, ${thread_id}, ${i + 1}, ${status}, ${JSON.stringify(input)}, 5, ${JSON.stringify(noUsage)}, 'user_1',
          now(), ${retried_from ? ids[Number(retried_from)]! : null})`
      for (const [index, step] of steps.entries()) {
        const {
          type = 'model_call',
          status: stepStatus = 'completed',
          name = 'm',
          input: asked = null,
          output = null,
        } = step
        await sql`
          insert into task_step (task_id, index, id, agent_id, type, status, attempt, name, input, output)
          values (${id}, ${index}, ${newId('step')}, 'agent_1', ${type}, ${stepStatus}, 1, ${name}, ${JSON.stringify(asked)}, ${JSON.stringify(output)})`
      }
    }
    const id = newId('task')
    await sql`
      insert into task (id, project_id, agent_id, agent_version, thread_id, thread_position, status, input, max_attempts, usage, created_by)
      values (${id}, 1, 'agent_1', 0, ${thread_id}, ${past.length + 1}, 'running', '"now"', 5, ${JSON.stringify(noUsage)}, 'user_1')`
    return { id, thread_id, ids }
  }
  const said = (text: string, tool_calls: object[] = []) => ({
    output: { message_id: newId('msg'), text, tool_calls, finish_reason: 'stop' },
  })
  const call = (id: string) => ({ id, name: 'weather', arguments: { city: 'Bern' } })

  it('the history is empty for a task without a thread and for the first task of a thread', async () => {
    assert.deepEqual(await threadHistory(sql, { id: newId('task'), thread_id: null }), [])
    assert.deepEqual(await threadHistory(sql, await makeThread([])), [])
  })

  it('the history of a thread has tool calls with their results, and no calls without a result', async () => {
    const result = { type: 'tool_call', name: 'weather', input: { tool_call_id: 'a' }, output: { content: 'Rain.' } }
    const thread = await makeThread([
      { input: 'Weather?', steps: [said('Let me see.', [call('a')]), result, said('It rains.')] },
      { input: 'And now?', status: 'canceled', steps: [said('Once more.', [call('b')])] },
      { input: 'Hello?', status: 'failed', steps: [said('', [call('c')])] },
    ])
    assert.deepEqual(await threadHistory(sql, thread), [
      { role: 'user', content: 'Weather?' },
      { role: 'assistant', content: 'Let me see.', tool_calls: [call('a')] },
      { role: 'tool', content: 'Rain.', tool_call_id: 'a', tool_name: 'weather' },
      { role: 'assistant', content: 'It rains.' },
      { role: 'user', content: 'And now?' },
      { role: 'assistant', content: 'Once more.' },
      { role: 'user', content: 'Hello?' },
    ])
  })

  it('the history of a thread has messages to a task where the task read them', async () => {
    const thread = await makeThread([{ input: 'Count.', steps: [said('One.'), said('Two, backwards.')] }])
    await sql`insert into task_message (task_id, position, id, content, before_step, created_by) values (${thread.ids[0]!}, 0, ${newId('msg')}, 'Backwards!', 1, 'user_1')`
    assert.deepEqual(
      (await threadHistory(sql, thread)).map(({ content }) => content),
      ['Count.', 'One.', 'Backwards!', 'Two, backwards.'],
    )
  })

  it('the history of a thread has a retry in place of the task that it repeats', async () => {
    const thread = await makeThread([
      { input: 'Try.', status: 'failed', steps: [said('Half an')] },
      { input: 'Try.', steps: [said('A whole answer.')], retried_from: '0' },
    ])
    assert.deepEqual(
      (await threadHistory(sql, thread)).map(({ content }) => content),
      ['Try.', 'A whole answer.'],
    )
  })

  it('the history of a thread is bounded in messages and bytes, and keeps whole tasks, the newest first', async () => {
    const many = await makeThread(
      Array.from({ length: 7 }, (_, i) => ({
        input: Array.from({ length: 199 }, (_unused, j) => ({ role: 'user', content: `${i} ${j}` })),
        steps: [said(`answer ${i}`)],
      })),
    )
    const messages = await threadHistory(sql, many)
    assert.equal(messages.length, historyMax.messages)
    assert.equal(messages[0]!.content, '2 0')
    assert.equal(messages.at(-1)!.content, 'answer 6')

    const large = await makeThread(Array.from({ length: 5 }, (_, i) => ({ input: `${i}`.repeat(400_000) })))
    assert.deepEqual(
      (await threadHistory(sql, large)).map(({ content }) => content[0]),
      ['3', '4'],
    )
  })
})
