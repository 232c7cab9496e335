import assert from 'node:assert/strict'
import { it } from 'node:test'
import { restartWait } from './restart-wait.ts'

/** The waits after so many ends, each after the process was ready for so long. */
function waits(count: number, ready_ms: number | undefined): number[] {
  const all: number[] = []
  for (let i = 0; i < count; i++) all.push(restartWait(all.at(-1), ready_ms))
  return all
}

it('a process that never becomes ready is started again ever later, up to half a minute', () => {
  assert.deepEqual(waits(8, undefined), [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
})

it('a process that is killed soon after it is ready, again and again, is back within two seconds', () => {
  assert.deepEqual(waits(5, 300), [500, 1000, 2000, 2000, 2000])
})

it('a process that was ready for a minute is started again as if it had never ended', () => {
  assert.equal(restartWait(30_000, 60_001), 500)
})
