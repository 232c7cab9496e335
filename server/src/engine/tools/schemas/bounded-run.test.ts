import assert from 'node:assert/strict'
import { it } from 'node:test'
import { runBounded, TookTooLong } from './bounded-run.ts'

/** Waits without the processor, as work does whose machine is busy with others. */
const stand = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

it('work that only waited for the CPU is started again and completes', () => {
  let tries = 0
  const value = runBounded(() => {
    if (++tries === 1) stand(500)
    return tries
  }, 50)
  assert.equal(value, 2)
})

it('work that uses too much CPU time is interrupted', () => {
  let tries = 0
  const began = performance.now()
  const spin = (): void => {
    for (tries++; ;) continue
  }
  assert.throws(() => runBounded(spin, 50), TookTooLong)
  // A try in which others had the processor does not count.
  assert.ok(tries >= 1 && performance.now() - began < 5000)
})

it('endless work is interrupted, even if it uses no CPU time', () => {
  assert.throws(() => runBounded(() => stand(60_000), 20), TookTooLong)
})

it('errors of the work are thrown', () => {
  assert.throws(() => runBounded(() => JSON.parse('{'), 50), SyntaxError)
})
