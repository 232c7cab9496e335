import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { printJson } from './print-json.ts'

test('what is printed is read back as it was', () => {
  // Through JSON once: it has no negative zero.
  const values = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown)
  fc.assert(fc.property(values, (value) => assert.deepEqual(JSON.parse(printJson(value)), value)))
})

test('what fits in 120 columns stands on one line, and no object that does not', () => {
  assert.equal(printJson({ a: [1, 2], b: {} }), '{ "a": [1, 2], "b": {} }\n')
  const long = { names: Array.from({ length: 40 }, (_, i) => `name-${i}`) }
  const lines = printJson(long).trimEnd().split('\n')
  assert.equal(lines.length, 44)
  assert.ok(lines.every((line) => line.length <= 120))
})
