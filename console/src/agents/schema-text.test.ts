import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSchema } from './schema-text.ts'

test('a schema is read where it is one of an object, nothing is no schema, and all else says what is wrong', () => {
  assert.deepEqual(readSchema(' \n'), { schema: undefined })
  assert.deepEqual(readSchema('{"type": "object"}'), { schema: { type: 'object' } })
  const faultOf = (text: string) => {
    const read = readSchema(text)
    return 'fault' in read ? read.fault : undefined
  }
  assert.match(faultOf('{"type": ')!, /valid JSON/)
  for (const text of ['[]', 'null', '"object"', '7', 'true']) assert.match(faultOf(text)!, /JSON object/)
  for (const text of ['{}', '{"type":"string"}', '{"type":["object"]}']) assert.match(faultOf(text)!, /"type"/)
  assert.match(faultOf(JSON.stringify({ type: 'object', title: 'x'.repeat(65_536) }))!, /64 KiB/)
})
