import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TaskStreamEvent } from '#sdk/task-stream.ts'
import { after, nothingYet } from './transcript.ts'

const reportOf = (...events: [type: string, data: object][]) =>
  events.reduce((known, [type, data]) => after(known, { type, data } as unknown as TaskStreamEvent), nothingYet)

test('text of the transcript grows, is replaced by a newer version, and is removed where its call is repeated', () => {
  const { items } = reportOf(
    ['message.delta', { message_id: 'a', text: 'Hel' }],
    ['message.delta', { message_id: 'a', text: 'lo' }],
    ['message.delta', { message_id: 'b', text: 'lost' }],
    ['message.discarded', { message_id: 'b' }],
    ['message.snapshot', { message_id: 'a', text: 'Hello, y' }],
    ['message.delta', { message_id: 'a', text: 'ou' }],
  )
  assert.deepEqual(items, [{ kind: 'message', id: 'a', text: 'Hello, you', isDone: false }])
})

test('a call of the model that only asks for tools leaves no empty message', () => {
  const known = reportOf(
    ['task.started', { attempt: 1 }],
    ['message.completed', { message_id: 'a', content: '' }],
    ['tool.called', { step_id: 's', index: 1, tool: 'wait' }],
    ['tool.failed', { step_id: 's', index: 1, tool: 'wait', error: { code: 'x', message: 'no' } }],
    [
      'task.failed',
      {
        error: { code: 'x', message: 'no' },
        usage: { input_tokens: 1, output_tokens: 2, tool_calls: 1, cost_usd: null },
      },
    ],
  )
  assert.deepEqual(known.items, [{ kind: 'tool', id: 's', index: 1, name: 'wait', state: 'failed', error: 'no' }])
  assert.deepEqual([known.status, known.usage?.output_tokens, known.error?.code], ['failed', 2, 'x'])
})

test('the data of an answer comes with the end of its task, or with a task that has ended before', () => {
  assert.equal(reportOf(['task.completed', { output: { content: 'Hello', data: null } }]).data, undefined)
  assert.deepEqual(reportOf(['task.completed', { output: { content: '{"a":1}', data: { a: 1 } } }]).data, { a: 1 })
  assert.deepEqual(
    reportOf(['task.snapshot', { task: { status: 'completed', output: { content: '{"a":1}', data: { a: 1 } } } }]).data,
    { a: 1 },
  )
})

test('each compaction is shown once, in its place', () => {
  const compacted = ['context.compacted', { step_id: 's' }] as [string, object]
  const { items } = reportOf(['message.completed', { message_id: 'a', content: 'Hello' }], compacted, compacted)
  assert.deepEqual(
    items.map(({ kind }) => kind),
    ['message', 'compaction'],
  )
})

test('a file that a task has made is shown in its place, once', () => {
  const artifact = { file_id: 'file_1', name: 'a.png', media_type: 'image/png', bytes: 70, sha256: 'x', step_id: 's' }
  const { items } = reportOf(
    ['tool.called', { step_id: 's', index: 1, tool: 'save_file' }],
    ['artifact.created', artifact],
    ['artifact.created', artifact],
  )
  assert.deepEqual(items[1], { kind: 'artifact', id: 'file_1', name: 'a.png', media_type: 'image/png', bytes: 70 })
  assert.equal(items.length, 2)
})
