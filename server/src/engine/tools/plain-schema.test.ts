import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isPlainSchema } from './plain-schema.ts'

describe('a plain schema', () => {
  it('a plain schema only has keywords that check each part of a value once', () => {
    const city = { type: 'string', maxLength: 64, description: 'A city.', enum: ['Berlin', 'Bonn'] }
    const cities = { type: 'array', items: city, maxItems: 5 }
    assert.ok(isPlainSchema({ type: 'object', properties: { city, cities }, required: ['city'] }))
    assert.ok(isPlainSchema({ type: 'object', properties: {}, additionalProperties: false }))
  })

  it('a schema with a slow keyword at any depth is not plain', () => {
    const texts = {
      ...{
        pattern: '^(a+)+$',
        format: 'email',
        uniqueItems: true,
        $ref: '#',
        patternProperties: {},
        propertyNames: {},
      },
      ...{ anyOf: [{}], oneOf: [{}], allOf: [{}], not: {}, if: {}, contains: {}, dependentSchemas: {}, const: {} },
      ...{ enum: [{ a: 1 }], additionalProperties: { type: 'string' }, items: [{}], multipleOf: 0.1, unknown: 1 },
    }
    for (const [word, value] of Object.entries(texts)) {
      assert.ok(!isPlainSchema({ [word]: value }), word)
      assert.ok(!isPlainSchema({ properties: { list: { items: { [word]: value } } } }), `${word} inside`)
    }
    assert.ok(!isPlainSchema(true))
  })
})
