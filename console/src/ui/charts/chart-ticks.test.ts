import assert from 'node:assert/strict'
import { test } from 'node:test'
import { durationTicks, ticksUpTo, timeLabels } from './chart-ticks.ts'

test('marks of an axis are round, begin at zero and hold the largest value', () => {
  assert.deepEqual(ticksUpTo(0), [0, 1])
  assert.deepEqual(ticksUpTo(4), [0, 1, 2, 3, 4])
  assert.deepEqual(ticksUpTo(37), [0, 10, 20, 30, 40])
  assert.deepEqual(ticksUpTo(0.009), [0, 0.0025, 0.005, 0.0075, 0.01])
  for (let most = 0.001; most < 1e9; most *= 3.7) {
    const ticks = ticksUpTo(most)
    assert.ok(ticks.at(-1)! >= most * (1 - 1e-9) && ticks.length <= 6, `${most}: ${ticks.join()}`)
  }
})

test('marks of an axis of durations are round in one unit, and their labels fit beside it', () => {
  const labels = (most_s: number): string[] => durationTicks(most_s).map(({ label }) => label)
  assert.deepEqual(labels(0.7), ['0 ms', '200 ms', '400 ms', '600 ms', '800 ms'])
  assert.deepEqual(labels(37), ['0', '10 s', '20 s', '30 s', '40 s'])
  assert.deepEqual(labels(3_900), ['0', '20 min', '40 min', '60 min', '80 min'])
  assert.deepEqual(labels(100_000), ['0', '12 h', '24 h', '36 h'])
  for (let most_s = 0.01; most_s < 1e8; most_s *= 2.3) {
    const ticks = durationTicks(most_s)
    assert.ok(ticks.at(-1)!.at >= most_s * (1 - 1e-9) && ticks.length <= 6, `${most_s}: ${labels(most_s).join()}`)
    assert.ok(
      ticks.every(({ label }) => label.length <= 8),
      labels(most_s).join(),
    )
  }
})

const noon = Date.parse('2026-11-24T12:00:00Z') / 1000
const hours = (count: number): number[] => Array.from({ length: count }, (_, n) => noon + n * 3600)
const at = (times: readonly number[], labels: { at: number[] }): string[] =>
  labels.at.map((index) => new Date(times[index]! * 1000).toISOString().slice(5, 16))

test('labels below a chart stand at round times: midnights of a week, every few hours of a day', () => {
  const week = hours(7 * 24)
  const days = timeLabels(week, { step: 3600, slot_px: 3, offset: () => 0 })
  assert.equal(days.unit, 'day')
  assert.deepEqual(at(week, days).slice(0, 2), ['11-25T00:00', '11-26T00:00'])
  assert.equal(days.at.length, 7)
  const day = hours(24)
  const some = timeLabels(day, { step: 3600, slot_px: 20, offset: () => 0 })
  assert.equal(some.unit, 'hour')
  assert.deepEqual(at(day, some).slice(0, 3), ['11-24T12:00', '11-24T15:00', '11-24T18:00'])
})

test('labels below a chart stand at the midnights of the zone, also where that is half an hour off', () => {
  const halves = Array.from({ length: 7 * 48 }, (_, n) => noon + n * 1800)
  const labels = timeLabels(halves, { step: 1800, slot_px: 2, offset: () => 5.5 * 3600 })
  assert.deepEqual(at(halves, labels).slice(0, 2), ['11-24T18:30', '11-25T18:30'])
})

test('labels below a chart never overlap', () => {
  for (const step of [60, 3600, 86_400])
    for (const slot_px of [0.5, 2, 7, 30, 200]) {
      const times = Array.from({ length: 400 }, (_, n) => noon + n * step)
      const { at, unit } = timeLabels(times, { step, slot_px, offset: () => 0 })
      const least = unit === 'minute' ? 104 : 60
      for (const [nth, index] of at.slice(1).entries())
        assert.ok((index - at[nth]!) * slot_px >= least, `${step} s, ${slot_px} px`)
    }
})
