import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ticksUpTo } from './chart-ticks.ts'

test('marks of an axis are round, begin at zero and hold the largest value', () => {
  assert.deepEqual(ticksUpTo(0), [0, 1])
  assert.deepEqual(ticksUpTo(4), [0, 1, 2, 3, 4])
  assert.deepEqual(ticksUpTo(37), [0, 10, 20, 30, 40])
  assert.deepEqual(ticksUpTo(0.009), [0, 0.0025, 0.005, 0.0075, 0.01])
  for (let most = 0.001; most < 1e9; most *= 3.7) {
    const ticks = ticksUpTo(most)
    assert.ok(ticks.at(-1)! >= most * (1 - 1e-9) && ticks.length <= 6, `${most}: ${ticks.join()}`)
  }
})
