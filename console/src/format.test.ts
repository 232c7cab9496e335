import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  ago,
  clockTime,
  dueTime,
  exactTime,
  formatCost,
  formatCount,
  formatDuration,
  formatShare,
  formatShort,
  formatSize,
  logTime,
  plural,
  writeAs,
  zoneName,
} from './format.ts'

// test: own process, because it sets the time zone
const at = '2026-03-29T00:59:59.250Z'
// The tests run in a zone that is not UTC, and that changes its offset an hour after this time.
process.env['TZ'] = 'Europe/Berlin'

describe('times of the console', () => {
  it('times of the console are in the zone that the user chose', () => {
    assert.equal(exactTime(at, 'UTC'), '29 Mar 2026, 00:59:59')
    assert.equal(exactTime(at, 'local'), '29 Mar 2026, 01:59:59')
    assert.equal(clockTime(at, 'UTC'), '00:59:59.250')
    assert.equal(clockTime(at, 'local'), '01:59:59.250')
    assert.equal(logTime(at, 'UTC'), '29 Mar, 00:59:59.250')
    assert.equal(logTime(at, 'local'), '29 Mar, 01:59:59.250')
  })

  it('times of the console follow a change of the offset of their zone', () => {
    assert.equal(clockTime('2026-03-29T01:00:00.000Z', 'local'), '03:00:00.000')
  })

  it('times of the console are to the millisecond where that is asked for', () => {
    assert.equal(exactTime(at, 'UTC', { precise: true }), '29 Mar 2026, 00:59:59.250')
  })

  it('times of the console are written in the form that the user chose', () => {
    const texts = (['month', 'iso', 'day'] as const).map((form) => {
      writeAs(form)
      return [exactTime(at, 'UTC'), formatCount(1234567), formatDuration(3210)].join(' · ').replaceAll(/\s/g, ' ')
    })
    assert.deepEqual(texts, [
      'Mar 29, 2026, 12:59:59 AM · 1,234,567 · 3.21 s',
      '2026-03-29 00:59:59 · 1 234 567 · 3,21 s',
      '29 Mar 2026, 00:59:59 · 1,234,567 · 3.21 s',
    ])
  })

  it('times of the console without a year, and those of schedules, have the form that the user chose', () => {
    const texts = (['month', 'iso', 'day'] as const).map((form) => {
      writeAs(form)
      const { day, time } = dueTime(at, 'Asia/Tokyo')
      return `${logTime(at, 'UTC')} · ${day}, ${time}`.replaceAll(/\s/g, ' ')
    })
    assert.deepEqual(texts, [
      'Mar 29, 12:59:59.250 AM · Sun, Mar 29, 09:59 AM',
      '03-29 00:59:59.250 · Sun 03-29, 09:59',
      '29 Mar, 00:59:59.250 · Sun 29 Mar, 09:59',
    ])
  })

  it('times of the console name their zone', () => {
    assert.equal(zoneName('UTC'), 'UTC')
    assert.equal(zoneName('local'), 'Europe/Berlin')
  })

  it('times of the console that are near have one unit, past and future', () => {
    const now = Date.parse(at)
    assert.equal(ago(now - 3000, now), 'just now')
    assert.equal(ago(now - 90_000, now), '1 min. ago')
    assert.equal(ago(now + 2 * 3_600_000, now), 'in 2 hr.')
    assert.equal(ago(now - 26 * 3_600_000, now), 'yesterday')
    // Rounded up, it is one of the next unit.
    assert.equal(ago(now - 59_400, now), '59 sec. ago')
    assert.equal(ago(now - 59_600, now), '1 min. ago')
    assert.equal(ago(now + 59.6 * 60_000, now), 'in 1 hr.')
    assert.equal(ago(now - 23.6 * 3_600_000, now), 'yesterday')
  })
})

describe('figures of the console', () => {
  it('figures of the console are grouped by thousands', () => {
    assert.equal(formatCount(1234567), '1,234,567')
  })

  it('figures of the console are short where there is little room', () => {
    assert.deepEqual([0, 0.0123, 4.25, 1234, 12_345, 4_500_000].map(formatShort), [
      '0',
      '0.012',
      '4.3',
      '1,234',
      '12.3K',
      '4.5M',
    ])
    assert.deepEqual([0, 0.004, 0.5, 0.996].map(formatShare), ['0%', '0.4%', '50%', '100%'])
    assert.deepEqual([0, 999, 1500, 2_500_000, 3e12].map(formatSize), ['0 B', '999 B', '1.5 kB', '2.5 MB', '3 TB'])
  })

  it('spans of time in the console have the two units that matter', () => {
    assert.deepEqual(
      [0, 840, 3210, 42_400, 250_000, 11_100_000, 187_200_000].map((ms) => formatDuration(ms)),
      ['0 ms', '840 ms', '3.21 s', '42.4 s', '4 min 10 s', '3 h 5 min', '2 d 4 h'],
    )
    assert.deepEqual(
      [999.6, 9996, 59_960, 119_600, 3_599_600].map((ms) => formatDuration(ms)),
      ['1.00 s', '10.0 s', '1 min', '2 min', '1 h'],
    )
  })

  it('an unknown cost is not shown as zero in the console', () => {
    assert.deepEqual(
      [null, 0, 0.00123, 0.25, 12].map((usd) => formatCost(usd)),
      ['unknown', '$0', '$0.0012', '$0.25', '$12.00'],
    )
  })
})

describe('numbers with what they count', () => {
  it('only one of a thing is named in the singular', () => {
    assert.equal(plural(0, 'task'), '0 tasks')
    assert.equal(plural(1, 'task'), '1 task')
    assert.equal(plural(1204, 'summary', 'summaries'), '1,204 summaries')
  })
})
