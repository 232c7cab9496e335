import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ago, clockTime, exactTime, formatCost, formatCount, formatDuration, logTime, zoneName } from './format.ts'

// test: own process, because it sets the time zone
const at = '2026-03-29T00:59:59.250Z'
// The tests run in a zone that is not UTC, and that changes its offset an hour after this time.
process.env['TZ'] = 'Europe/Berlin'

describe('times of the console', () => {
  it('are in the zone that the user chose', () => {
    assert.equal(exactTime(at, 'UTC'), '29 Mar 2026, 00:59:59')
    assert.equal(exactTime(at, 'local'), '29 Mar 2026, 01:59:59')
    assert.equal(clockTime(at, 'UTC'), '00:59:59.250')
    assert.equal(clockTime(at, 'local'), '01:59:59.250')
    assert.equal(logTime(at, 'UTC'), '29/03, 00:59:59.250')
    assert.equal(logTime(at, 'local'), '29/03, 01:59:59.250')
  })

  it('follow a change of the offset of their zone', () => {
    assert.equal(clockTime('2026-03-29T01:00:00.000Z', 'local'), '03:00:00.000')
  })

  it('are to the millisecond where that is asked for', () => {
    assert.equal(exactTime(at, 'UTC', { precise: true }), '29 Mar 2026, 00:59:59.250')
  })

  it('name their zone', () => {
    assert.equal(zoneName('UTC'), 'UTC')
    assert.equal(zoneName('local'), 'Europe/Berlin')
  })

  it('that are near have one unit, past and future', () => {
    const now = Date.parse(at)
    assert.equal(ago(now - 3000, now), 'just now')
    assert.equal(ago(now - 90_000, now), '1 min. ago')
    assert.equal(ago(now + 2 * 3_600_000, now), 'in 2 hr.')
    assert.equal(ago(now - 26 * 3_600_000, now), 'yesterday')
  })
})

describe('figures of the console', () => {
  it('are grouped by thousands', () => {
    assert.equal(formatCount(1234567), '1,234,567')
  })

  it('of spans of time have the two units that matter', () => {
    assert.deepEqual(
      [0, 840, 3210, 42_400, 250_000, 11_100_000, 187_200_000].map((ms) => formatDuration(ms)),
      ['0 ms', '840 ms', '3.21 s', '42.4 s', '4 min 10 s', '3 h 5 min', '2 d 4 h'],
    )
  })

  it('of an unknown cost are not zero', () => {
    assert.deepEqual(
      [null, 0, 0.00123, 0.25, 12].map((usd) => formatCost(usd)),
      ['unknown', '$0', '$0.0012', '$0.250', '$12.00'],
    )
  })
})
