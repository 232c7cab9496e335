import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { attemptsMax, retryAfter_ms, waitAfter } from './delivery-schedule.ts'

const hour_ms = 3_600_000
/** As decision D97 says it. */
const promised_ms = [0, 5000, 300_000, 1_800_000, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * hour_ms)]

describe('the schedule of attempts (decision D97)', () => {
  it('the schedule of attempts has ten attempts in 3¼ days, each within a fifth of its time', () => {
    assert.equal(attemptsMax, 10)
    for (const [failed, wait_ms] of promised_ms.entries()) {
      assert.equal(waitAfter(failed, { rng: 0 }), Math.round(wait_ms * 0.8))
      assert.equal(waitAfter(failed, { rng: 0.5 }), wait_ms)
      assert.equal(waitAfter(failed, { rng: 1 }), Math.round(wait_ms * 1.2))
    }
    assert.equal(waitAfter(10, { rng: 0.5 }), undefined)
    const days = promised_ms.reduce((sum, wait_ms) => sum + wait_ms, 0) / (24 * hour_ms)
    assert.ok(days > 3 && days < 3.25, String(days))
  })

  it('the schedule of attempts spreads evenly over what it may', () => {
    const waits = Array.from({ length: 101 }, (_, i) => waitAfter(1, { rng: i / 100 })!)
    assert.deepEqual(
      [...waits].sort((a, b) => a - b),
      waits,
    )
    assert.equal(new Set(waits).size, 101)
  })

  it('the schedule of attempts waits as long as the receiver asks, at most 24 hours, and never less than its schedule', () => {
    assert.equal(waitAfter(1, { retry_after_ms: 120_000, rng: 0.5 }), 120_000)
    assert.equal(waitAfter(1, { retry_after_ms: 1000, rng: 0.5 }), 5000)
    assert.equal(waitAfter(1, { retry_after_ms: 1e12, rng: 0.5 }), 24 * hour_ms)
    assert.equal(waitAfter(9, { retry_after_ms: 1e12, rng: 1 }), 28.8 * hour_ms)
    assert.equal(waitAfter(10, { retry_after_ms: 1000, rng: 0.5 }), undefined)
  })

  it('the schedule of attempts understands seconds and dates, and nothing else', () => {
    const now = new Date('2026-11-20T09:30:00.000Z')
    const cases: [string | undefined, number | undefined][] = [
      ['0', 0],
      ['120', 120_000],
      [' 7 ', 7000],
      ['Fri, 20 Nov 2026 09:31:30 GMT', 90_000],
      ['Friday, 20-Nov-26 09:31:30 GMT', 90_000],
      ['Fri, 20 Nov 2026 09:00:00 GMT', 0],
      [undefined, undefined],
      ['', undefined],
      ['-5', undefined],
      ['1.5', undefined],
      ['1e3', undefined],
      ['soon', undefined],
      ['2026-11-20T09:31:30Z', undefined],
      ['9'.repeat(30), undefined],
    ]
    for (const [header, expected] of cases) assert.equal(retryAfter_ms(header, now), expected, header)
  })
})
