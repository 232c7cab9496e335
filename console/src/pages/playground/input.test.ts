import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blankInput, readInput, textOf } from './input.ts'

test('a list of messages is read as one, all else is a text, and a broken list is an error', () => {
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

test('where the agent has an input schema an object is read, and nothing else', () => {
  const schema = { type: 'object', required: ['city'], properties: { city: { type: 'string' } } }
  assert.deepEqual(readInput(' {"city": "Berlin"} ', schema), { input: { city: 'Berlin' } })
  for (const text of ['', 'Hello', '[{"role":"user","content":"Hello"}]', '"text"', 'null', '{"city": '])
    assert.ok('fault' in readInput(text, schema), text)
  assert.deepEqual(readInput(blankInput(schema), schema), { input: { city: '' } })
})

test('an object that was kept as a test case is read again as it was', () => {
  const input = { city: 'Berlin', days: [1, 2] }
  assert.deepEqual(readInput(textOf(input), { type: 'object' }), { input })
})
