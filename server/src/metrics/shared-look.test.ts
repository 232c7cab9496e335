import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { sharedLook } from './shared-look.ts'

describe('a shared query', () => {
  it('a shared query runs once for concurrent and recent callers, and again later', async () => {
    let looks = 0
    const look = sharedLook(async () => {
      await delay(20)
      return (looks += 1)
    }, 500)
    assert.deepEqual(await Promise.all([look(), look(), look()]), [1, 1, 1])
    assert.equal(await look(), 1)
    await delay(600)
    assert.equal(await look(), 2)
  })

  it('the error of a shared query is not cached', async () => {
    let looks = 0
    const look = sharedLook(async () => {
      looks += 1
      if (looks === 1) throw new Error('unreachable')
      return looks
    }, 60_000)
    const both = await Promise.allSettled([look(), look()])
    assert.deepEqual(
      both.map(({ status }) => status),
      ['rejected', 'rejected'],
    )
    assert.equal(await look(), 2)
    assert.equal(await look(), 2)
  })
})
