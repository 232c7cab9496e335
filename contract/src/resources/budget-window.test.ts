import assert from 'node:assert/strict'
import { it } from 'node:test'
import fc from 'fast-check'
import { budgetPeriods, windowEnd, windowStart } from './budget-window.ts'

it('windows are hours, days and months of UTC, and the window of total has no end', () => {
  const at = '2024-02-29T23:59:59.999Z'
  assert.deepEqual(
    budgetPeriods.map((period) => [windowStart(period, at), windowEnd(period, at)]),
    [
      ['2024-02-29T23:00:00.000Z', '2024-03-01T00:00:00.000Z'],
      ['2024-02-29T00:00:00.000Z', '2024-03-01T00:00:00.000Z'],
      ['2024-02-01T00:00:00.000Z', '2024-03-01T00:00:00.000Z'],
      ['1970-01-01T00:00:00.000Z', null],
    ],
  )
})

it('every time is in exactly one window, and the next window starts where it ends', () => {
  const date = fc.date({
    min: new Date('2000-01-01T00:00:00Z'),
    max: new Date('2100-01-01T00:00:00Z'),
    noInvalidDate: true,
  })
  fc.assert(
    fc.property(date, fc.constantFrom(...budgetPeriods), (when, period) => {
      const at = when.toISOString()
      const [start, end] = [windowStart(period, at), windowEnd(period, at)]
      assert.ok(start <= at && (end === null || at < end))
      if (end !== null) assert.equal(windowStart(period, end), end)
    }),
  )
})
