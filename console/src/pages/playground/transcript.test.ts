import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TaskStreamEvent } from '../../../../sdk/src/task-stream.ts'
import { after, nothingYet } from './transcript.ts'

const told = (...events: [type: string, data: object][]) =>
  events.reduce((known, [type, data]) => after(known, { type, data } as unknown as TaskStreamEvent), nothingYet)

test('text grows by what comes, is replaced by what is told anew, and taken back where its call is made again', () => {
  const { items } = told(
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
  const known = told(
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
