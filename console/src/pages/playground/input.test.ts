import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readInput } from './input.ts'

test('a list of messages is read as one, all else is a text, and a broken list is told', () => {
  const messages = [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'Hello.' },
  ]
  assert.deepEqual(readInput(` ${JSON.stringify(messages)} `), { input: messages })
  for (const text of ['Hello', '{"role":"user"}', '[{"price":1}]', '[{not json at all', '[]', ' [1] '])
    assert.deepEqual(readInput(text), { input: text })
  assert.ok('fault' in readInput('[{"role": "user", "content": "Hello"'))
  assert.ok('fault' in readInput(' \n '))
})
