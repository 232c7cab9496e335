import assert from 'node:assert/strict'
import { test } from 'node:test'
import { condensed, piecesOf } from './trend.ts'

test('a small line of many values has the means of neighbours, and a gap only where none of them is known', () => {
  assert.deepEqual(condensed([1, null, 3], 3), [1, null, 3])
  assert.deepEqual(condensed([1, 3, null, 4, null, null, 7], 4), [2, 4, null, 7])
  assert.equal(
    condensed(
      Array.from({ length: 168 }, () => 1),
      48,
    ).length,
    42,
  )
})

test('a small line is broken where nothing is known, and a value between gaps stands alone', () => {
  assert.deepEqual(piecesOf([null, 1, 2, null, 3, null]), [
    { from: 1, values: [1, 2] },
    { from: 4, values: [3] },
  ])
  assert.deepEqual(piecesOf([null, null]), [])
})
