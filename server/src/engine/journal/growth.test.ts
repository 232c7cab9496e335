import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startEngineUnderTest, type EngineUnderTest } from '../../../test/engine-under-test.ts'
import { conversationMax } from '../conversation/conversation.ts'
import { scriptModel } from '../models/builtin/builtin-script.ts'
import { listTaskEvents } from '../../events/streams/streams.ts'
import { newId } from '../../platform/ids.ts'

describe('what a task stores', () => {
  let engine: EngineUnderTest

  before(async () => {
    engine = await startEngineUnderTest({ resolve: (name) => ({ model: scriptModel, name }) })
  })
  after(() => engine.stop())

  /** A script of so many rounds of a text and a call of a tool, and an answer. */
  const rounds = (count: number): object[] => [
    ...Array.from({ length: count }, (_, i) => [
      { text: `Round ${i}: ${`${newId('msg')} `.repeat(20)}` },
      { tool_calls: [{ name: 'current_time', arguments: {} }] },
    ]).flat(),
    { text: 'Done.' },
  ]
  const stored = async (count: number): Promise<{ steps: number; events: number }> => {
    const script = JSON.stringify(rounds(count))
    const id = await engine.give({ system_prompt: script, max_steps: 1000 }, 'go')
    assert.equal((await engine.ended(id)).status, 'completed')
    const [row] = await engine.sql<{ steps: number; events: number; count: number }>`
      select (select sum(pg_column_size(s.*)) from task_step s where task_id = ${id}) as steps,
        (select sum(pg_column_size(e.*)) from task_event e where task_id = ${id}) as events,
        (select count(*) from task_step where task_id = ${id}) as count`
    assert.equal(row!.count, 2 * count + 1)
    return row!
  }

  it('the storage of a task grows linearly with its turns', async () => {
    const [half, whole] = [await stored(20), await stored(40)]
    for (const part of ['steps', 'events'] as const) {
      const factor = whole[part] / half[part]
      assert.ok(factor > 1.8 && factor < 2.2, `${part}: ${half[part]} bytes became ${whole[part]}`)
    }
  })

  it('events are read exactly as they were streamed, although every text is stored once', async () => {
    const text = `A text that occurs once: ${newId('msg')}`
    const script = JSON.stringify([
      { text },
      { tool_calls: [{ name: 'current_time', arguments: {} }] },
      { text: 'Done.' },
    ])
    const id = await engine.give({ system_prompt: script }, 'go')
    await engine.ended(id)
    const events = await listTaskEvents(engine.sql, id, { after: 0, limit: 500 })
    const said = events.filter(({ type }) => type === 'message.completed').map(({ data }) => data)
    assert.deepEqual(
      said.map(({ role, content, tool_calls }) => [role, content, (tool_calls as object[]).length]),
      [
        ['assistant', text, 1],
        ['assistant', 'Done.', 0],
      ],
    )
    assert.deepEqual(
      said.map((data) => Object.keys(data).toSorted()),
      said.map(() => ['content', 'message_id', 'role', 'step_id', 'tool_calls']),
    )
    const { output } = await engine.read(id)
    assert.deepEqual(events.at(-1)!.data['output'], output)
    assert.deepEqual(Object.keys(events.at(-1)!.data).toSorted(), ['output', 'usage'])
    const [stored] = await engine.sql<{ times: number }>`
      select (select count(*) from task_step s where task_id = ${id} and s::text like ${`%${text}%`})
        + (select count(*) from task_event e where task_id = ${id} and e::text like ${`%${text}%`}) as times`
    assert.equal(stored!.times, 1)
  })

  it('a conversation beyond its maximum length fails its task before the next model call', async () => {
    const input = [
      ...Array.from({ length: 8 }, () => ({ role: 'user' as const, content: 'x'.repeat(conversationMax / 8) })),
      { role: 'user' as const, content: 'x' },
    ]
    const id = await engine.give({ system_prompt: '[{"text": "hello"}]' }, input as never)
    const { status, error } = await engine.ended(id)
    assert.deepEqual([status, error?.code], ['failed', 'conversation_too_long'])
    assert.deepEqual(await engine.steps(id), [])
  })
})
