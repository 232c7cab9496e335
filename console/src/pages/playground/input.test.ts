import assert from 'node:assert/strict'
import { test } from 'node:test'
import { blankInput, readInput, readWithFiles, saidOf, textOf } from './input.ts'

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

test('the input of an agent with an input schema is read as an object, and anything else is refused', () => {
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

test('attached files go with a text or alone, and never get lost beside a list of messages', () => {
  const attached = (count: number) => ({
    files: Array.from({ length: count }) as never,
    input: (text: string) => [{ role: 'user' as const, content: [{ type: 'text' as const, text: `files, ${text}` }] }],
  })
  const files = attached(1)
  assert.deepEqual(readWithFiles('See', undefined, files), { input: files.input('See') })
  assert.deepEqual(readWithFiles(' ', undefined, files), { input: files.input('') })
  assert.ok('fault' in readWithFiles('[{"role": "user", "content": "Hello"}]', undefined, files))
  assert.deepEqual(readWithFiles('See', undefined, attached(0)), { input: 'See' })
  assert.ok('fault' in readWithFiles(' ', undefined, attached(0)))
  assert.deepEqual(readWithFiles('{"city": "Berlin"}', { type: 'object' }, files), { input: { city: 'Berlin' } })
})

test('a message with files is said as threads say it, and other inputs as they are', () => {
  const content = [
    { type: 'image' as const, file_id: 'file_1' },
    { type: 'text' as const, text: 'See' },
  ]
  assert.equal(saidOf([{ role: 'user', content }]), '[image file_1]\n\nSee')
  const two = [
    { role: 'user' as const, content: 'a' },
    { role: 'assistant' as const, content: 'b' },
  ]
  assert.equal(saidOf(two), textOf(two))
  assert.equal(saidOf('Hello'), 'Hello')
})
