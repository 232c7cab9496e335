import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openAtFirst, pointerTo, sizeOf } from './data-tree-shape.ts'

test('a small value stands open whole, and a large one at its root alone', () => {
  assert.deepEqual([...openAtFirst({ a: { b: [1, 2] }, c: {}, 'd/e': { f: 1 } })], ['', '/a', '/d~1e', '/a/b'])
  const large = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`m${at}`, { at }]))
  assert.deepEqual([...openAtFirst(large)], [''])
  assert.deepEqual([...openAtFirst('text')], [])
})

test('a very deep value opens only as far as there is room', () => {
  let deep: unknown = 1
  for (let level = 0; level < 50_000; level++) deep = [deep]
  assert.equal(openAtFirst(deep).size, 60)
})

test('sizes are shown in words, and places as JSON Pointers', () => {
  assert.deepEqual(
    [sizeOf([]), sizeOf([1]), sizeOf({ a: 1 }), sizeOf({})],
    ['0 items', '1 item', '1 member', '0 members'],
  )
  assert.equal(sizeOf(Array.from({ length: 1234 })), '1,234 items')
  assert.equal(pointerTo('/a', 'b/c~d'), '/a/b~1c~0d')
})
