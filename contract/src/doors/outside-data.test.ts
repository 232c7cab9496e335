import assert from 'node:assert/strict'
import { test } from 'node:test'
import { outsideMarks, outsideNote, withoutOutsideNote } from './outside-data.ts'

test('a text with untrusted data loses its note and marks, and any other text stays unchanged', () => {
  const [begin, end] = outsideMarks('1bfe4eb1')
  const filled = `Sort this: ${begin}The kettle leaks${end}\n\n${begin}{"a": 1}${end}`
  const text = `${outsideNote('1bfe4eb1', 'GitHub')}\n\n${filled}`
  assert.equal(withoutOutsideNote(text), 'Sort this: The kettle leaks\n\n{"a": 1}')
  for (const other of ['', 'What stands between us', filled, `Before\n\n${text}`])
    assert.equal(withoutOutsideNote(other), other)
})
