// test: quiet machine
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startTestService, type TestService } from '../../../../test/harness.ts'
import { schemaError } from '../arguments.ts'
import { judgeSchemas } from './schema-judge.ts'
import { knownSchema } from './verdicts.ts'
import { createProject } from '../../../../test/fixtures.ts'

let count = 0
/** Takes 250 ms to try; its check would take for ever. */
const hostile = (): Record<string, unknown> => ({
  type: 'object',
  properties: { [`a${++count}`]: { type: 'string', pattern: '^(a+)+$' } },
})
/** Takes longer to compile than any may. */
const large = (): Record<string, unknown> => ({
  type: 'object',
  title: `large ${++count}`,
  oneOf: Array.from({ length: 1600 }, (_, i) => ({ required: [`p${i}`] })),
})

describe('fifty hostile schemas at once', () => {
  let test: TestService
  before(async () => {
    test = await startTestService()
  })
  after(() => test.stop())

  const probe = async (): Promise<number> => {
    const began = performance.now()
    assert.equal((await fetch(`${test.url}/livez`)).status, 200)
    return performance.now() - began
  }
  const slowest = async (until: Promise<unknown>): Promise<number> => {
    let isDone = false
    void until.finally(() => (isDone = true))
    let most = 0
    while (!isDone) most = Math.max(most, await probe())
    return most
  }

  it('fifty hostile schemas at once keep /livez within 100 ms, and each is refused or taken', async () => {
    const project = await createProject(test.send, 'hostile')
    const path = `/api/v1/projects/proj_${project.id}/tools`
    const bodies = Array.from({ length: 50 }, (_, i) => ({
      name: `tool-${i}`,
      description: 'A.',
      kind: 'client',
      ...(i % 5 === 0 ? { parameters: large() } : { result_schema: hostile() }),
    }))
    const send = () => Promise.all(bodies.map((body) => test.send('POST', path, { body })))
    const first = send()
    const most = await slowest(first)
    for (const { status, body } of await first) assert.deepEqual([status, body.error?.code], [400, 'validation_error'])
    // The same requests once more, all of which are known, tell what handling them takes on this machine.
    const usual = await slowest(send())
    assert.ok(most <= Math.max(100, 3 * usual), `${most} ms, and ${usual} ms where all schemas were known`)
  })

  it('fifty hostile schemas at once of one project do not hold up that of another for longer than one takes, and too many are refused', async () => {
    const party = { org_id: 'org_1', project_id: 1 }
    const greedy = Array.from({ length: 65 }, () => judgeSchemas([hostile()], party))
    const began = performance.now()
    const last = hostile()
    await judgeSchemas([last], party)
    assert.match(schemaError(last) ?? '', /too many others wait/)
    assert.equal(knownSchema(last), undefined, 'asked again, it is judged')
    await judgeSchemas([{ type: 'object', properties: { b: { pattern: '^b$' } } }], { org_id: 'org_2', project_id: 2 })
    const waited = performance.now() - began
    await Promise.all(greedy)
    const all = performance.now() - began
    assert.ok(waited < all / 4, `${waited} of ${all} ms`)
  })
})
