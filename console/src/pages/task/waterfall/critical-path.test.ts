import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Step } from '../../../task-parts/types.ts'
import { criticalPath } from './critical-path.ts'

const at = (ms: number): string => new Date(ms).toISOString()
const step = (index: number, from: number, to: number | null): Step =>
  ({ index, started_at: at(from), finished_at: to === null ? null : at(to) }) as Step

test('the critical path leads from the last end back over what had to end before', () => {
  // A model call, three calls of tools side by side, of which the second is the longest, and a model call.
  const steps = [step(0, 0, 100), step(1, 100, 150), step(2, 100, 400), step(3, 101, 200), step(4, 401, 500)]
  assert.deepEqual(
    [...criticalPath(steps, 1000)].toSorted((a, b) => a - b),
    [0, 2, 4],
  )
})

test('the critical path of steps one after the other is all of them, and an open step ends now', () => {
  assert.deepEqual(
    [...criticalPath([step(0, 0, 10), step(1, 10, 20), step(2, 20, null)], 90)].toSorted((a, b) => a - b),
    [0, 1, 2],
  )
  assert.deepEqual([...criticalPath([], 0)], [])
})
