import assert from 'node:assert/strict'
import { test } from 'node:test'
import { skeletonOf } from './schema-skeleton.ts'

test('a skeleton has what is required and nothing else, with the default, the first choice or something empty', () => {
  const schema = {
    type: 'object',
    required: ['city', 'days', 'unit', 'kind', 'tags', 'is_exact', 'place', 'note', 'unknown', 'either'],
    properties: {
      city: { type: 'string' },
      days: { type: 'integer', minimum: 1 },
      unit: { enum: ['celsius', 'fahrenheit'] },
      kind: { const: 'weather' },
      tags: { type: 'array', items: { type: 'string' } },
      is_exact: { type: 'boolean', default: true },
      place: { $ref: '#/$defs/place' },
      note: { type: ['null', 'string'] },
      either: { anyOf: [{ type: 'number' }, { type: 'string' }] },
      optional: { type: 'string' },
    },
    $defs: { place: { allOf: [{ required: ['lat'], properties: { lat: { type: 'number' } } }] } },
  }
  assert.deepEqual(skeletonOf(schema), {
    city: '',
    days: 1,
    unit: 'celsius',
    kind: 'weather',
    tags: [],
    is_exact: true,
    place: { lat: 0 },
    note: '',
    unknown: null,
    either: 0,
  })
})

test('a schema that requires nothing, refers to itself or to nothing still has a skeleton', () => {
  assert.deepEqual(skeletonOf({ type: 'object' }), {})
  assert.deepEqual(skeletonOf({ $ref: '#' }), {})
  assert.deepEqual(skeletonOf({ type: 'object', required: ['a'], properties: { a: { $ref: '#/$defs/gone' } } }), {
    a: null,
  })
  const endless = { type: 'object', required: ['next'], properties: { next: { $ref: '#' } } }
  assert.ok(JSON.stringify(skeletonOf(endless)).length < 200)
})
