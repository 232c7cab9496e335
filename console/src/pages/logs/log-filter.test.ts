import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asFieldTime, ofFieldTime } from './log-filter.ts'

const moment = '2026-07-01T12:30:15.000Z'

test('a field of a period shows and reads a moment in UTC', () => {
  assert.equal(asFieldTime(moment, true), '2026-07-01T12:30:15')
  assert.equal(ofFieldTime('2026-07-01T12:30:15', true), moment)
})

test('a field of a period reads in local time what it shows in local time', () => {
  assert.equal(ofFieldTime(asFieldTime(moment, false), false), moment)
})

test('an invalid timestamp leaves a field of a period empty, and an empty field is no timestamp', () => {
  for (const word of [undefined, '', 'yesterday', 5]) assert.equal(asFieldTime(word, true), '')
  for (const isUtc of [true, false]) assert.equal(ofFieldTime('', isUtc), undefined)
})
