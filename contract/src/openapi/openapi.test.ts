import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'node:test'
import Type from 'typebox'
import { isObject } from '../core/merge-patch.ts'
import { openApiDocument } from './openapi.ts'
import { SchemaWriter } from './openapi-schemas.ts'
import { problemsOf, type Operation } from '../core/operation.ts'
import { operations, tagDescriptions } from '../operations.ts'
import { problems } from '../core/problems.ts'
import { Choice, Named, Nullable } from '../core/schemas.ts'

const document = openApiDocument(operations, { version: '1.2.3', server_url: 'http://127.0.0.1:8080' })
const described = Object.values(document.paths).flatMap((path) => Object.values(path))

test('every operation of the contract is in the document', async () => {
  const folder = join(import.meta.dirname, '..')
  // Operations of foreign protocols are documented by other specifications.
  const names = (await readdir(folder, { recursive: true })).filter(
    (name) => /(^|[/])[^./]+[.]ts$/.test(name) && !name.startsWith('doors/'),
  )
  const modules: object[] = await Promise.all(names.map((name) => import(join(folder, name))))
  const lists = modules.flatMap((module) => Object.entries(module)).filter(([name]) => name.endsWith('Operations'))
  const written = lists.flatMap(([, list]: [string, Operation[]]) => list.map(({ id }) => id))
  assert.ok(written.length >= 20)
  assert.deepEqual(
    written.filter((id) => !described.some(({ operationId }) => operationId === id)),
    [],
  )
})

test('no two operations share an id, or a method and a path', () => {
  assert.equal(new Set(operations.map(({ id }) => id)).size, operations.length)
  assert.equal(described.length, operations.length)
})

test('every problem of an operation is declared with its status and an example', () => {
  for (const operation of operations) {
    const answers = answersOf(operation)
    for (const kind of problemsOf(operation)) {
      const { status } = problems[kind]
      const examples = answers[status]?.examples ?? {}
      const [format] =
        operation.error_format === 'control' || operation.error_format === 'page'
          ? (['control'] as const)
          : (['agents'] as const)
      const codes = Object.values(examples).map(({ value }) => value.error.code ?? value.error)
      assert.ok(
        operation.error_format === 'oauth' || codes.includes(problems[kind][format]),
        `${operation.id}: ${kind}`,
      )
    }
  }
})

test('every tag has a description', () => {
  assert.deepEqual(
    document.tags.filter(({ name }) => !(name in tagDescriptions)),
    [],
  )
})

test('the same contract gives the same document', () => {
  const again = openApiDocument(operations, { version: '1.2.3', server_url: 'http://127.0.0.1:8080' })
  assert.equal(JSON.stringify(again), JSON.stringify(document))
})

test('the document uses only keywords of OpenAPI 3.0', () => {
  const foreign = ['const', 'patternProperties', 'propertyNames', '$defs', 'prefixItems', 'if', 'x-name']
  for (const { schema, path } of schemasIn(document)) {
    for (const keyword of foreign) assert.ok(!(keyword in schema), `${path}: ${keyword}`)
    assert.ok(schema.type === undefined || typeof schema.type === 'string', `${path}: a list of types`)
    assert.notEqual(schema.type, 'null', path)
  }
})

test('a schema that allows null becomes nullable, also if it is a choice or has a name', () => {
  const writer = new SchemaWriter()
  assert.deepEqual(writer.write(Nullable(Type.String())), { type: 'string', nullable: true })
  assert.deepEqual(writer.write(Type.Union([Type.String(), Type.Null()])), { type: 'string', nullable: true })
  assert.deepEqual(writer.write(Nullable(Choice(['a']))), { type: 'string', enum: ['a', null], nullable: true })
  assert.deepEqual(writer.write(Nullable(Named('Thing', Type.Object({})))), {
    $ref: '#/components/schemas/NullableThing',
  })
  assert.equal(writer.components.NullableThing?.nullable, true)
})

test('an operation that returns JSON, or a stream on request, declares the JSON and mentions the stream', () => {
  const json = { status: 200, description: 'The task.', schema: Type.Object({ id: Type.String() }) }
  const stream = { status: 200, description: 'Its events.', media_type: 'text/event-stream' }
  const getStatus = operations.find(({ id }) => id === 'getStatus')
  assert.ok(getStatus)
  const two: Operation = { ...getStatus, responses: [json, stream] }
  const { paths } = openApiDocument([two], { version: '1.2.3', server_url: 'http://127.0.0.1:8080' })
  const responses = paths[two.path]?.get?.responses as Record<string, { description: string; content: object }>
  assert.equal(responses[200]?.description, 'The task. Or: Its events.')
  assert.deepEqual(Object.keys(responses[200]?.content ?? {}), ['application/json'])
})

test('two different schemas with one name are refused', () => {
  const writer = new SchemaWriter()
  writer.write(Named('Thing', Type.Object({ a: Type.String() })))
  assert.throws(() => writer.write(Named('Thing', Type.Object({ b: Type.String() }))), /named Thing/)
})

type Answers = Record<string, { examples: Record<string, { value: any }> }>

/** Examples of an operation's responses by status, with references resolved. */
function answersOf(operation: Operation): Answers {
  const responses = document.paths[operation.path]?.[operation.method.toLowerCase()]?.responses as object
  const shared = document.components.responses as Record<string, any>
  return Object.fromEntries(
    Object.entries(responses).map(([status, response]) => {
      const found = response.$ref ? shared[response.$ref.split('/').at(-1)] : response
      return [status, { examples: found.content?.['application/json']?.examples ?? {} }]
    }),
  )
}

/** Every schema of the document with its path. Examples and names of members are not schemas. */
function* schemasIn(
  value: unknown,
  path = '#',
  isSchema = false,
): Generator<{ schema: Record<string, unknown>; path: string }> {
  if (Array.isArray(value)) for (const [i, item] of value.entries()) yield* schemasIn(item, `${path}/${i}`, isSchema)
  if (!isObject(value)) return
  if (isSchema) yield { schema: value, path }
  for (const [key, member] of Object.entries(value)) {
    if (key === 'example' || key === 'examples' || key === 'enum' || key.startsWith('x-')) continue
    if (key === 'properties' || path === '#/components/schemas') {
      for (const [name, schema] of Object.entries(
        isObject(member) && key === 'properties' ? member : { [key]: member },
      )) {
        yield* schemasIn(schema, `${path}/${name}`, true)
      }
    } else yield* schemasIn(member, `${path}/${key}`, isSchema || key === 'schema')
  }
}
