import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { startTestService, type Reply, type TestService } from '../../../../test/harness.ts'
import { longSizeOf } from '../../../../test/long-run.ts'
import { schemaError } from '../arguments.ts'
import { judgeSchemas } from './schema-judge.ts'
import { knownSchema } from './verdicts.ts'
import { createProject } from '../../../../test/fixtures.ts'

/** How many schemas come at once. */
const atOnce = longSizeOf({ usual: 12, full: 50 })

/** What each of them would take of the thread of the requests, if that judged it: at least so long. */
const schema_ms = 200
/** What a probe takes of it at most: this thread asks and answers. */
const probe_ms = 5
/** Time between two probes: without it they would take a processor. */
const probeInterval_ms = 20

let count = 0
/** Takes 250 ms to try; its check would take for ever. */
const hostile = (): Record<string, unknown> => ({
  type: 'object',
  properties: { [`a${++count}`]: { type: 'string', pattern: '^(a+)+$' } },
})
/** Takes the longer to compile the more alternatives it has: 1600 take longer than any schema may. */
const alternatives = (length: number): Record<string, unknown> => ({
  type: 'object',
  title: `alternatives ${++count}`,
  oneOf: Array.from({ length }, (_, i) => ({ required: [`p${i}`] })),
})

describe('hostile schemas at once', () => {
  let test: TestService
  before(async () => {
    test = await startTestService()
  })
  after(() => test.stop())

  /** Sends requests, and gives the processor time of the thread that serves them, in milliseconds. */
  const measured = async (send: () => Promise<Reply[]>): Promise<{ replies: Reply[]; used_ms: number }> => {
    const before = process.threadCpuUsage()
    const replies = await send()
    const { user, system } = process.threadCpuUsage(before)
    return { replies, used_ms: (user + system) / 1000 }
  }

  it('many hostile schemas at once leave the thread of the requests free, and each is refused or taken', async () => {
    const project = await createProject(test.send, 'hostile')
    const path = `/api/v1/projects/proj_${project.id}/tools`
    const bodies = Array.from({ length: atOnce }, (_, i) => ({
      name: `tool-${i}`,
      description: 'A.',
      kind: 'client',
      ...(i % 5 === 0 ? { parameters: alternatives(1600) } : { result_schema: hostile() }),
    }))
    const send = () => Promise.all(bodies.map((body) => test.send('POST', path, { body })))
    const judging = measured(send)
    // Others are answered meanwhile.
    let isDone = false
    void judging.finally(() => (isDone = true))
    let answered = 0
    for (; !isDone; answered++) {
      assert.equal((await fetch(`${test.url}/livez`)).status, 200)
      await delay(probeInterval_ms)
    }
    const { replies, used_ms } = await judging
    for (const { status, body } of replies) assert.deepEqual([status, body.error?.code], [400, 'validation_error'])
    // The same requests once more, all of which are known, tell what handling them takes on this machine.
    const known = await measured(send)
    const own_ms = used_ms - known.used_ms - answered * probe_ms
    assert.ok(own_ms < (bodies.length * schema_ms) / 4, `${own_ms} ms, beside ${answered} answers`)
  })

  it('many hostile schemas at once of one project do not hold up that of another for longer than one takes, and too many are refused', async () => {
    const party = { org_id: 'org_1', project_id: 1 }
    let judged = 0
    // One more than may wait.
    const greedy = Array.from({ length: 65 }, () => judgeSchemas([alternatives(70)], party).then(() => (judged += 1)))
    const last = alternatives(70)
    await judgeSchemas([last], party)
    assert.match(schemaError(last) ?? '', /too many others wait/)
    assert.equal(knownSchema(last), undefined, 'asked again, it is judged')
    const before = judged
    await judgeSchemas([{ type: 'object', properties: { b: { pattern: '^b$' } } }], { org_id: 'org_2', project_id: 2 })
    const ahead = judged - before
    await Promise.all(greedy)
    // Counted instead of timed: the one in work, and one that ends while the answer is on its way.
    assert.ok(ahead <= 2, `${ahead} of ${greedy.length} came first`)
  })
})
