import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isIdempotent } from '../../contract/src/core/operation.ts'
import { operations } from '../../contract/src/operations.ts'
import { Cadre } from './client.ts'
import { CadreError } from './errors.ts'
import type { Spec } from './operation.ts'
import * as modules from './generated/resources.ts'

const { Resources: _, resourcesOfProject: _ofProject, ...groups } = modules
const resources = Object.values(groups)
const specs = resources.flatMap((methods) => Object.entries<Spec>(methods))
const byId = new Map(specs.map(([name, spec]) => [spec.id as string, { name, spec }]))

test('every operation of the contract has a method, and every method has an operation', () => {
  assert.equal(byId.size, specs.length, 'an operation has two methods')
  assert.deepEqual([...byId.keys()].toSorted(), operations.map(({ id }) => id).toSorted())
})

for (const operation of operations) {
  test(`the method of ${operation.id} matches the contract`, () => {
    const { spec } = byId.get(operation.id) ?? assert.fail('there is none')
    const { query, body, responses } = operation
    assert.equal(spec.method, operation.method)
    assert.equal(spec.path, operation.path)
    assert.equal(spec.input, body ? 'body' : query && Object.keys(query.properties).length > 0 ? 'query' : undefined)
    assert.equal(spec.isOnce ?? false, isIdempotent(operation))
    assert.equal(spec.isForm ?? false, operation.error_format === 'oauth' && operation.method === 'POST')

    const answer: { properties?: Record<string, { items?: unknown }> } | undefined = responses[0]?.schema
    const isList = answer?.properties?.pagination !== undefined
    assert.equal(spec.kind === 'list', isList)
    if (isList) assert.ok(answer.properties?.[spec.member ?? '']?.items, 'its entries are an array')
    assert.equal(spec.kind === 'url', responses[0]?.status === 303)
    assert.equal(spec.kind === 'raw', answer === undefined && responses[0]?.status === 200)
  })
}

test('every method can be reached from a client', async () => {
  const asked: string[] = []
  const client = new Cadre({
    apiKey: 'k',
    baseURL: 'http://cadre.example/base',
    maxRetries: 0,
    fetch: async (address: unknown, init) => {
      asked.push(`${init?.method} ${address as string}`)
      return Response.json({ pagination: {} })
    },
  })
  const parts = client as unknown as Record<string, Record<string, (...given: unknown[]) => any> | undefined>
  for (const methods of resources) {
    for (const [name, spec] of Object.entries<Spec>(methods)) {
      const ids = (spec.path.match(/\{\w+\}/g) ?? []).map((_, index) => `id${index}`)
      let index = 0
      const address = `http://cadre.example/base${spec.path.replaceAll(/\{\w+\}/g, () => `id${index++}`)}`
      const answers: string[] = []
      // Several resources have methods of this name, some with more ids in their paths; one of them must match.
      for (const part of Object.values(parts).filter((each) => each?.[name] && bound(each, methods))) {
        try {
          const answer = part![name]!(...ids)
          if (spec.kind === 'url') answers.push(`${spec.method} ${answer}`)
          else {
            await (answer.page ? answer.page() : answer)
            answers.push(asked.at(-1)!)
          }
        } catch (error) {
          if (!(error instanceof CadreError)) throw error
        }
      }
      assert.ok(answers.includes(`${spec.method} ${address}`), `${spec.id} is not on the client`)
    }
  }

  function bound(part: object, methods: object): boolean {
    return Object.keys(methods).every((name) => name in part)
  }
})
