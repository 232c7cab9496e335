import assert from 'node:assert/strict'
import { test } from 'node:test'
import { outsideNote } from '#contract/doors/outside-data.ts'
import { contentText, inputText, messagesOf, titleOf } from './input-text.ts'

test('a message of parts is read as the texts of its parts', () => {
  assert.equal(contentText('Hello'), 'Hello')
  const parts = [
    { type: 'text' as const, text: 'One' },
    { type: 'text' as const, text: 'Two' },
  ]
  assert.equal(contentText(parts), 'One\nTwo')
  const picture = { type: 'image' as const, file_id: 'file_1' }
  assert.equal(contentText([picture, ...parts]), 'One\nTwo')
  assert.equal(contentText([picture, { ...picture, type: 'file' }]), '[image]\n[file]')
  assert.deepEqual(messagesOf([{ role: 'user', content: parts }]), [{ role: 'user', text: 'One\nTwo' }])
})

test('every kind of input has a title of one short line', () => {
  assert.equal(titleOf({ input: '  First\nSecond' }), 'First')
  assert.equal(titleOf({ input: '  ' }), 'Task')
  const messages = [
    { role: 'user' as const, content: [{ type: 'text' as const, text: 'Asked' }] },
    { role: 'assistant' as const, content: 'Said' },
  ]
  assert.equal(titleOf({ input: messages }), 'Asked')
  assert.equal(inputText(messages), 'Said')
  assert.equal(titleOf({ input: { city: 'Berlin', days: 3, at: { x: 1 } } }), 'city: Berlin · days: 3')
  assert.equal(titleOf({ input: { at: { x: 1 } } }), '{"at":{"x":1}}')
  const note = outsideNote('1bfe4eb1', 'GitHub')
  const input = `${note}\n\nA delivery came to the trigger New issues:\n\n<data-1bfe4eb1>{}</data-1bfe4eb1>`
  assert.equal(titleOf({ input }), 'A delivery came to the trigger New issues')
  assert.equal(titleOf({ input: { text: 'x'.repeat(9999) } }).length, 120)
  assert.equal(titleOf({ input: {} }), '{}')
})
