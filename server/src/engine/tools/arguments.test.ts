import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { checkArguments, schemaError } from './arguments.ts'

const check = (properties: Record<string, unknown>, args: unknown, more: object = {}) =>
  checkArguments({ name: 'weather', parameters: { type: 'object', properties, ...more } }, args)
const draft07 = { $schema: 'http://json-schema.org/draft-07/schema#' }

describe('arguments of a call', () => {
  it('valid arguments are accepted in either draft of JSON Schema', () => {
    const city = { city: { type: 'string', minLength: 1 }, at: { type: 'string', format: 'date' } }
    for (const draft of [{}, draft07]) assert.equal(check(city, { city: 'Ulm', at: '2026-11-20' }, draft), undefined)
  })

  it('the error of invalid arguments is one sentence without the arguments', () => {
    const days = { days: { type: 'integer', minimum: 1 }, unit: { enum: ['C', 'F'] }, at: { format: 'date' } }
    for (const [args, values] of [
      [{}, "they must have required property 'days'"],
      [{ days: 'canary' }, 'days must be integer'],
      [{ days: 0 }, 'days must be >= 1'],
      [{ days: 1, unit: 'canary' }, 'unit must be one of ["C","F"]'],
      [{ days: 1, at: 'canary' }, 'at must match format "date"'],
      [{ days: 1, extra: 2 }, 'they must not have the member extra'],
    ] as const) {
      const complaint = check(days, args, { required: ['days'], additionalProperties: false })
      assert.equal(complaint, `The arguments of weather are not valid: ${values}.`)
    }
  })

  it('arguments of a call must be an object of bounded size', () => {
    for (const args of [null, undefined, 'x', 5, [], true]) assert.match(check({}, args)!, /must be a JSON object/)
    assert.match(check({}, { a: 'x'.repeat(1_000_000) })!, /at most 1000000 characters/)
    assert.equal(check({}, { a: 'x'.repeat(900_000) }), undefined)
  })

  it('arguments cannot reach a prototype', () => {
    const parameters = { type: 'object', properties: { a: { type: 'string' } }, required: ['toString'] }
    assert.match(checkArguments({ name: 'x', parameters }, {})!, /toString/)
    assert.equal(check({}, JSON.parse('{"__proto__": {"polluted": true}}')), undefined)
    assert.equal('polluted' in {}, false)
  })

  it('arguments of a call are checked against a schema that contains itself', () => {
    const tree = { value: { type: 'integer' }, child: { $ref: '#' } }
    for (const draft of [{}, draft07]) {
      assert.equal(check(tree, { value: 1, child: { value: 2 } }, draft), undefined)
      assert.match(check(tree, { value: 1, child: { value: 'x' } }, draft)!, /child\.value must be integer/)
    }
  })

  for (const [what, properties, args, more] of [
    ['an exponential pattern', { a: { pattern: '^(a+)+$' } }, { a: `${'a'.repeat(40)}!` }, {}],
    ['an exponential pattern of names', {}, { [`${'a'.repeat(40)}!`]: 1 }, { patternProperties: { '^(a|a)*$': {} } }],
    [
      'a comparison of each with each',
      { a: { uniqueItems: true } },
      { a: Array.from({ length: 30_000 }, (_, i) => ({ i })) },
      {},
    ],
    ['references that double', { a: { $ref: '#/$defs/d39' } }, { a: 1 }, { $defs: doubling(40) }],
  ] as const) {
    it(`arguments of a call end in time with ${what}`, () => {
      const began = performance.now()
      assert.match(check(properties, args, more)!, /could not be checked in time/)
      assert.ok(performance.now() - began < 5000)
    })
  }

  it('a check against an endlessly recursive schema ends', () => {
    const loop = { $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }
    assert.match(
      check({ a: { $ref: '#/$defs/a' } }, { a: 1 }, loop)!,
      /cannot be checked: its parameters are too complex/,
    )
  })
})

describe('a schema', () => {
  it('a schema with common keywords is accepted', () => {
    for (const schema of [
      {},
      { properties: { a: { type: ['string', 'null'], format: 'uuid', pattern: '^[\\w\\-]+$' } } },
      {
        properties: { a: { anyOf: [{ const: 1 }, { $ref: '#/$defs/x' }] } },
        $defs: { x: { type: 'array', items: {} } },
      },
      {
        ...draft07,
        definitions: { x: {} },
        properties: { a: { $ref: '#/definitions/x' }, b: { format: 'unheard-of' } },
      },
      { $id: 'https://example.com/s', $schema: 'https://json-schema.org/draft/2020-12/schema', 'x-of-ours': 5 },
    ])
      assert.equal(schemaError({ type: 'object', ...schema }), undefined, JSON.stringify(schema))
  })

  it('two schemas with the same $id are independent', () => {
    for (const type of ['string', 'number', 'string']) {
      const schema = { type: 'object', $id: 'https://example.com/one', properties: { a: { type } } }
      const complaint = checkArguments({ name: 'x', parameters: schema }, { a: 'text' })
      assert.equal(complaint === undefined, type === 'string')
    }
  })

  for (const [what, schema] of [
    ['nothing', undefined],
    ['a list', []],
    ['no object', { type: 'string' }],
    ['no type', { properties: {} }],
    ['an unknown type', { type: 'object', properties: { a: { type: 'strange' } } }],
    ['another document', { type: 'object', properties: { a: { $ref: 'https://example.com/schema.json' } } }],
    ['a file', { type: 'object', properties: { a: { $ref: 'file:///etc/passwd' } } }],
    ['a definition that is missing', { type: 'object', properties: { a: { $ref: '#/$defs/none' } } }],
    ['a pattern that is none', { type: 'object', properties: { a: { pattern: '(' } } }],
    ['a long pattern', { type: 'object', properties: { a: { pattern: 'a'.repeat(513) } } }],
    ['deep nesting', deep(40)],
    ['many parts', { type: 'object', enum: Array.from({ length: 6000 }, () => ({})) }],
    ['many bytes', { type: 'object', description: 'x'.repeat(70_000) }],
  ] as const) {
    it(`a schema with ${what} is refused`, () => assert.match(schemaError(schema) ?? '', /^(must|are) /))
  }

  it('a schema that compiles too slowly does not affect others', () => {
    const slow = { type: 'object', oneOf: Array.from({ length: 1600 }, (_, i) => ({ required: [`p${i}`] })) }
    assert.equal(schemaError(slow), 'are too complex')
    for (const $schema of [undefined, draft07.$schema])
      assert.equal(schemaError({ ...($schema && { $schema }), type: 'object', title: 'after a slow one' }), undefined)
  })

  it('compiled schemas are removed from memory', () => {
    const before = process.memoryUsage().heapUsed
    for (let i = 0; i < 2000; i++) schemaError({ type: 'object', title: `t${i}` })
    assert.ok(process.memoryUsage().heapUsed - before < 200e6)
  })
})

function doubling(count: number): Record<string, unknown> {
  const ref = (i: number) => ({ $ref: `#/$defs/d${i}` })
  return Object.fromEntries(
    Array.from({ length: count }, (_, i) => [
      `d${i}`,
      i === 0 ? { type: 'number' } : { allOf: [ref(i - 1), ref(i - 1)] },
    ]),
  )
}

function deep(levels: number): Record<string, unknown> {
  return { type: 'object', ...(levels === 0 ? {} : { properties: { a: deep(levels - 1) } }) }
}
