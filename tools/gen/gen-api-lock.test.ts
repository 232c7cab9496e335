import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OpenApiDocument } from '#contract/openapi/openapi-types.ts'
import { documented } from '#contract/openapi/documented.ts'
import { apiLock, shapeOf } from './gen-api-lock.ts'

const components = {
  schemas: {
    Name: { type: 'string', maxLength: 9, description: 'A name.' },
    Tree: { type: 'object', properties: { child: { $ref: '#/components/schemas/Tree' } } },
  },
}
const document: OpenApiDocument = {
  openapi: '3.0.3',
  info: {},
  servers: [],
  tags: [],
  security: [],
  paths: {},
  components,
}
const shape = (value: unknown): unknown => shapeOf(value, document, [])

test('the lock of the API has one line for every operation, with its status codes', () => {
  const lines = apiLock()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  assert.equal(lines.length, documented.length)
  for (const { method, path, id, responses } of documented) {
    const fields = lines.map((line) => line.split(' ')).find(([verb, at]) => at === path && verb === method)
    assert.ok(fields, `${method} ${path}`)
    assert.equal(fields[2], id)
    assert.match(fields[3] ?? '', /^[0-9a-f]{16}$/)
    const statuses = fields[4]?.split(',') ?? []
    for (const { status } of responses) assert.ok(statuses.includes(String(status)), `${id} ${status}`)
  }
})

test('a changed description or example leaves the shape of a schema as it is', () => {
  const before = { type: 'integer', minimum: 1, description: 'A count.', example: 3 }
  assert.deepEqual(shape(before), shape({ ...before, description: 'How many.', example: 4 }))
})

test('a changed bound, also behind a reference, changes the shape of a schema', () => {
  assert.notDeepEqual(shape({ type: 'integer', minimum: 1 }), shape({ type: 'integer', minimum: 2 }))
  assert.deepEqual(shape({ $ref: '#/components/schemas/Name' }), { maxLength: 9, type: 'string' })
})

test('a field that is called description is part of the shape of a schema', () => {
  const properties = { description: { type: 'string' }, example: { type: 'integer' } }
  assert.deepEqual(shape({ properties }), { properties })
})

test('the shape of a schema that contains itself ends at the name of that schema', () => {
  const $ref = '#/components/schemas/Tree'
  assert.deepEqual(shape({ $ref }), { properties: { child: { $ref } }, type: 'object' })
})

test('a reference to a component that the document does not have is an error', () => {
  assert.throws(() => shape({ $ref: '#/components/schemas/Missing' }), /has no #\/components\/schemas\/Missing/)
})
