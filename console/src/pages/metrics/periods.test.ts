import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asCsv } from '../usage/csv.ts'
import { change, intervalRefusal, intervals, periodsOf, ranges, type IntervalName, type RangeName } from './periods.ts'

test('both periods of every offered range and interval have the same whole number of points', () => {
  const now_ms = Date.parse('2026-11-23T02:31:17.123Z')
  for (const range of Object.keys(ranges) as RangeName[]) {
    for (const interval of Object.keys(intervals) as IntervalName[]) {
      if (intervalRefusal(range, interval)) continue
      const { current, previous } = periodsOf(range, interval, now_ms)
      const step = intervals[interval] * 1000
      for (const period of [current, previous]) {
        const [start, end] = [Date.parse(period.start_time), Date.parse(period.end_time)]
        assert.deepEqual(
          [start % step, end % step, end - start],
          [0, 0, ranges[range].seconds * 1000],
          `${range} ${interval}`,
        )
        assert.ok((end - start) / step <= 1500)
      }
      assert.equal(previous.end_time, current.start_time)
      assert.ok(Date.parse(current.end_time) >= now_ms)
    }
    assert.equal(intervalRefusal(range, ranges[range].interval), undefined)
  }
  assert.match(intervalRefusal('30d', '1m') ?? '', /1500/)
  assert.match(intervalRefusal('1h', '1d') ?? '', /longer/)
})

test('a change from nothing is no number', () => {
  assert.deepEqual([change(5, 4), change(0, 4), change(3, 0)], [0.25, -1, undefined])
})

test('cells that a spreadsheet would run are text, and separators stay in their cells', () => {
  assert.equal(
    asCsv(
      ['a', 'b'],
      [
        ['=1+1', 2],
        ['x,"y"\n', null],
      ],
    ),
    `a,b\r\n'=1+1,2\r\n"x,""y""\n",\r\n`,
  )
})
