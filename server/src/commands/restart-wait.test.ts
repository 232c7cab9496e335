import assert from 'node:assert/strict'
import { it } from 'node:test'
import { restartWait } from './restart-wait.ts'

/** The delays of repeated restarts, each after the process was ready for the same time. */
function waits(count: number, ready_ms: number | undefined): number[] {
  const all: number[] = []
  for (let i = 0; i < count; i++) all.push(restartWait(all.at(-1), ready_ms))
  return all
}

it('a process that never becomes ready is restarted with growing delays, up to 30 s', () => {
  assert.deepEqual(waits(8, undefined), [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
})

it('a process that is killed repeatedly soon after it is ready is restarted within two seconds', () => {
  assert.deepEqual(waits(5, 300), [500, 1000, 2000, 2000, 2000])
})

it('a process that was ready for a minute is restarted with the first delay', () => {
  assert.equal(restartWait(30_000, 60_001), 500)
})
