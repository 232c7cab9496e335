import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { checkArguments, dataError, schemaError } from '../arguments.ts'
import { schemaIssues } from '../data-schema.ts'
import { judgeBody, judgeSchemas, judgeValue } from './schema-judge.ts'
import { knownSchema, knownValue } from './verdicts.ts'

const party = { org_id: 'org_1', project_id: 1 }
let count = 0
/** Takes long to try, and its check longer than any may. */
const hostile = (): Record<string, unknown> => ({
  type: 'object',
  properties: { [`a${++count}`]: { type: 'string', pattern: '^(a+)+$' } },
})
const victim = (): object => ({ [`a${count}`]: `${'a'.repeat(40)}!` })

describe('schemas of others are judged in a separate thread', () => {
  it('the verdicts of the schema thread are reused without another check', async () => {
    const schema = hostile()
    await judgeBody({ tools: [{ function: { parameters: schema } }] }, party)
    assert.match(schemaIssues('parameters', schema)[0]?.message ?? '', /pattern that takes too long/)
    await judgeValue(schema, victim(), party)
    const before = process.threadCpuUsage()
    assert.match(checkArguments({ name: 't', parameters: schema }, victim()) ?? '', /could not be checked in time/)
    // Here it would have taken 100 ms of the processor.
    assert.ok(process.threadCpuUsage(before).user < 50_000)
  })

  it('the schema thread reports the same error for a value as this thread', async () => {
    const schema = { ...hostile(), required: ['b'], additionalProperties: false }
    for (const value of [{}, { b: 1 }, { [`a${count}`]: 5, b: 1 }]) {
      const here = dataError(schema, value)
      await judgeValue(schema, value, party)
      assert.ok(knownValue(schema, value))
      await judgeValue(schema, value, party)
      assert.deepEqual(dataError(schema, value), here)
    }
  })

  it('an unusable schema is rejected, and a plain one is not sent to the schema thread', async () => {
    const [broken, plain] = [{ type: 'object', properties: { a: { type: 'strng', pattern: 'a' } } }, { type: 'object' }]
    const before = schemaError(broken)
    assert.match(before ?? '', /are not a JSON Schema/)
    await judgeSchemas([broken, plain, { type: 'object', properties: { a: { pattern: '(' } } }, 'no schema'], party)
    assert.equal(schemaError(broken), before)
    assert.equal(knownSchema(plain), undefined)
    assert.equal(schemaError(plain), undefined)
  })
})
