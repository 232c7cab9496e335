import assert from 'node:assert/strict'
import { test } from 'node:test'
import { monthOf } from './forecast.ts'

const at = (day: number): number => Date.UTC(2026, 10, day) / 1000

test('a month comes to what was spent and the rate of the last seven days for the rest', () => {
  const days = Array.from({ length: 20 }, (_, n) => ({ at: at(n + 1), cost_usd: n < 10 ? 1 : 2 }))
  const { times, spent, forecast } = monthOf(days, at(20) * 1000 + 43_200_000)
  assert.equal(times.length, 30)
  assert.deepEqual([spent[0], spent[9], spent[19], spent[20]], [1, 10, 30, null])
  assert.deepEqual([forecast[18], forecast[19]], [null, 30])
  // Half of today and ten days at two dollars.
  assert.equal(forecast.at(-1), 30 + 1 + 20)
})

test('a month in which nothing was spent comes to nothing, and a first day goes on as it began', () => {
  assert.equal(monthOf([], at(3) * 1000).forecast.at(-1), 0)
  assert.equal(monthOf([{ at: at(1), cost_usd: 3 }], at(1) * 1000).forecast.at(-1), 3 + 3 + 29 * 3)
})
