import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { schemaError } from '../arguments.ts'

const allowed = 'array, boolean, integer, null, number, object, string'
const of = (a: unknown): unknown => schemaError({ type: 'object', properties: { a } })

describe('what is wrong with a JSON Schema is said in one sentence, with the place', () => {
  const faults: [schema: unknown, said: string][] = [
    [{ type: 'strng' }, `properties.a.type: "strng" is not a type; allowed: ${allowed}; did you mean "string"?`],
    [
      { type: ['string', 'nul'] },
      `properties.a.type.1: "nul" is not a type; allowed: ${allowed}; did you mean "null"?`,
    ],
    [{ type: null }, `properties.a.type: null is not a type; allowed: ${allowed}`],
    [{ type: 'file' }, `properties.a.type: "file" is not a type; allowed: ${allowed}`],
    [{ type: [] }, 'properties.a.type: must have an entry'],
    [{ type: ['string', 'string'] }, 'properties.a.type: must not have an entry twice'],
    [{ not: { type: 5 } }, `properties.a.not.type: 5 is not a type; allowed: ${allowed}`],
    ['string', 'properties.a: must be a schema: an object, true or false; given: "string"'],
    [{ type: 'string', required: true }, 'properties.a.required: must be a list; given: true'],
    [{ required: ['x', 'x'] }, 'properties.a.required: must not have an entry twice'],
    [{ anyOf: [] }, 'properties.a.anyOf: must have an entry'],
    [{ minLength: '3' }, 'properties.a.minLength: must be an integer; given: "3"'],
    [{ minLength: -1 }, 'properties.a.minLength: must be at least 0; given: -1'],
    [{ multipleOf: 0 }, 'properties.a.multipleOf: must be more than 0; given: 0'],
    [{ uniqueItems: 'yes' }, 'properties.a.uniqueItems: must be true or false; given: "yes"'],
    [{ $ref: '#/$defs/x' }, 'there is nothing at its $ref "#/$defs/x"'],
    [{ pattern: '(' }, 'Invalid regular expression: /(/: Unterminated group'],
  ]
  for (const [schema, said] of faults)
    it(`${JSON.stringify(schema)} is refused with its place and what is allowed there`, () =>
      assert.equal(of(schema), `are not a JSON Schema that can be used: ${said}`))

  it('a schema of draft-07 is checked by draft-07', () => {
    const $schema = 'http://json-schema.org/draft-07/schema#'
    const items = [{ type: 'strng' }]
    const fault = schemaError({ $schema, type: 'object', properties: { a: { items } } })
    assert.match(fault ?? '', /properties\.a\.items\.0\.type: "strng" is not a type; allowed: /)
  })
})
