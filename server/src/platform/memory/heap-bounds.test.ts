import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, it } from 'node:test'

/** Allocates like a busy service, with turns of the event loop, and prints the size of the young generation in MB. */
const program = `
  import { getHeapSpaceStatistics } from 'node:v8'
  import { setTimeout as delay } from 'node:timers/promises'
  import { boundHeap } from './server/src/platform/memory/heap-bounds.ts'
  boundHeap()
  let live = []
  for (let turn = 0; turn < 60; turn++) {
    for (let n = 0; n < 20000; n++) live.push({ turn, three: [n, n, n], text: 'x' + n })
    if (live.length > 200000) live = live.slice(100000)
    await delay(10)
  }
  console.log(getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size / 1024 / 1024)`

function youngMegabytes(...options: string[]): number {
  const args = [...options, '--input-type=module', '--eval', program]
  return Number(execFileSync(process.execPath, args, { encoding: 'utf8' }))
}

/** Costs about 2 s: three processes. */
describe('the heap of the service', () => {
  it('the young generation of the service has at most 64 MB under load', () => {
    assert.ok(youngMegabytes() <= 64)
  })

  it('the heap of the service is bounded by the options of V8 that an operator sets', () => {
    assert.equal(youngMegabytes('--max-semi-space-size=1'), 2)
  })
})
