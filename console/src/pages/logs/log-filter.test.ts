import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asFieldTime, ofFieldTime } from './log-filter.ts'

const moment = '2026-07-01T12:30:15.000Z'

test('a field of a period shows and reads a moment in the chosen zone', () => {
  for (const [zone, shown] of [
    ['UTC', '2026-07-01T12:30:15'],
    ['Asia/Kolkata', '2026-07-01T18:00:15'],
    ['America/St_Johns', '2026-07-01T10:00:15'],
  ] as const) {
    assert.equal(asFieldTime(moment, zone), shown)
    assert.equal(ofFieldTime(shown, zone), moment)
  }
})

test('a field of a period reads in the zone of the browser what it shows in it', () => {
  assert.equal(ofFieldTime(asFieldTime(moment, 'local'), 'local'), moment)
})

test('a field of a period reads what it shows on both sides of a change of the clock', () => {
  for (const at of ['2026-03-29T00:59:00.000Z', '2026-03-29T01:01:00.000Z', '2026-10-25T02:30:00.000Z'])
    assert.equal(ofFieldTime(asFieldTime(at, 'Europe/Berlin'), 'Europe/Berlin'), at)
})

test('an invalid timestamp leaves a field of a period empty, and an empty field is no timestamp', () => {
  for (const word of [undefined, '', 'yesterday', 5]) assert.equal(asFieldTime(word, 'UTC'), '')
  for (const zone of ['UTC', 'local']) assert.equal(ofFieldTime('', zone), undefined)
})
