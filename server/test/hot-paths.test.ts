import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import pg from 'pg'
import { startFakeModelServer, type FakeModelServer } from './fake-models/fake-model-server.ts'
import { eventually, startTestService, type TestService } from './harness.ts'
import { createProject } from './fixtures.ts'

/** Statements that one request makes, and how many of them end a transaction that waits for the disk. */
interface Cost {
  statements: number
  commits: number
}

/** One measured request, with the beginnings of its statements to tell what they were. */
interface Measured extends Cost {
  made: string[]
}

/**
 * Maximum cost of the hot paths in statements and commits. A change that needs more must say so here, and one that
 * needs less lowers the number. The beginning and the end of a transaction count as statements.
 */
const allowed: Record<string, Cost> = {
  'GET agent': { statements: 2, commits: 0 },
  'list of 20 agents': { statements: 2, commits: 0 },
  'create agent': { statements: 2, commits: 1 },
  'task with one model call, waited for': { statements: 6, commits: 2 },
  'task with a tool round, waited for': { statements: 8, commits: 4 },
  'chat completion': { statements: 7, commits: 2 },
  'claim of remote work': { statements: 11, commits: 1 },
  'task with one model call by a key of the organization, waited for': { statements: 6, commits: 2 },
}

/** Other work of the service may fall into a round, the more the busier the machine; the least of so many is the request's. */
const roundsMax = 60

/** Statements of loops that serve all requests of a period together: webhooks, waiting tasks, heartbeats. */
const ofLoops = [
  /\bwebhook_lane\b/,
  /\bmatched_at is null\b/,
  /\bfreed_gate\b/,
  /\bfrom worker where\b/,
  /\bstatus = 'running' and/,
]

const inTransaction = new WeakSet<pg.Client>()

/** Whether a single statement is a transaction that waits for the disk. */
function writesDurably(client: pg.Client, text: string): boolean {
  const { options = '' } = (client as unknown as { connectionParameters: { options?: string } }).connectionParameters
  return /\b(insert into|update|delete from)\s+\w/.test(text) && !options.includes('synchronous_commit=off')
}

/** Costs about 4 s: a service with a model over HTTP. */
describe('hot paths', () => {
  let test: TestService
  let model: FakeModelServer
  let agents: string
  let claim: () => Promise<{ status: number }>
  const id: Record<string, string> = {}
  const made: { text: string; commits: boolean }[] = []
  const original = pg.Client.prototype.query

  before(async () => {
    model = await startFakeModelServer()
    test = await startTestService({ CADRE_PROVIDER_FAKE_BASE_URL: model.base_url, CADRE_EGRESS_ALLOW: 'loopback' })
    const project = await createProject(test.send, 'hot-paths')
    agents = `${project.path}/agents`
    const script = JSON.stringify([{ tool_calls: [{ name: 'current_time', arguments: {} }] }, { text: 'Done.' }])
    for (const [name, config] of Object.entries({
      answers: { model: 'fake/model' },
      owned: { model: 'own/model' },
      calls: { model: 'builtin/script', tools: ['current_time'], system_prompt: script },
      remote: { model: 'fake/model', runtime: { kind: 'remote', queue: 'remote' } },
    })) {
      const { body } = await test.send('POST', agents, { body: { name, config } })
      id[name] = body.id
      await eventually(async () => (await test.send('GET', `${agents}/${body.id}`)).body.status === 'running')
    }
    // Each round claims one.
    const tasks = Array.from({ length: roundsMax + 1 }, () => ({ input: 'Hello' }))
    assert.equal((await test.send('POST', `${agents}/${id['remote']}/tasks/batch`, { body: { tasks } })).status, 200)
    claim = () => test.send('POST', `${project.path}/work/claim`, { body: { queues: ['remote'] } })
    pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
      const [first] = args
      const text = typeof first === 'string' ? first : (first as { text: string }).text
      if (text.startsWith('begin')) inTransaction.add(this)
      made.push({ text, commits: text === 'commit' || (!inTransaction.has(this) && writesDurably(this, text)) })
      if (text === 'commit' || text === 'rollback') inTransaction.delete(this)
      return Reflect.apply(original, this, args)
    } as typeof original
  })
  after(async () => {
    pg.Client.prototype.query = original
    await test.stop()
    await model.close()
  })

  /** The cheapest round, or the first one within the limit. */
  async function costOf(work: () => Promise<unknown>, limit: Cost): Promise<Measured> {
    let least: Measured | undefined
    for (let round = 0; round < roundsMax; round++) {
      made.length = 0
      await work()
      const ofRequest = made.filter(({ text }) => !ofLoops.some((pattern) => pattern.test(text)))
      const cost: Measured = {
        statements: ofRequest.length,
        commits: ofRequest.filter(({ commits }) => commits).length,
        made: ofRequest.map(({ text, commits }) => `${commits ? '* ' : ''}${text.trim().slice(0, 60)}`),
      }
      if (least === undefined || cost.statements < least.statements) least = cost
      if (cost.statements <= limit.statements && cost.commits <= limit.commits) return cost
    }
    return least!
  }

  const paths: Record<string, () => Promise<unknown>> = {
    'GET agent': () => test.send('GET', `${agents}/${id['answers']}`),
    'list of 20 agents': () => test.send('GET', `${agents}?limit=20`),
    'create agent': () => test.send('POST', agents, { body: { name: 'new', config: { model: 'fake/model' } } }),
    'task with one model call, waited for': () =>
      test.send('POST', `${agents}/${id['answers']}/tasks?wait=30`, { body: { input: 'Hello' } }),
    'task with a tool round, waited for': () =>
      test.send('POST', `${agents}/${id['calls']}/tasks?wait=30`, { body: { input: 'Hello' } }),
    'chat completion': () => {
      // People ask different things; an equal request is looked for once more.
      const content = `Hello ${randomUUID()}`
      return test.send('POST', '/v1/chat/completions', {
        body: { model: id['answers'], messages: [{ role: 'user', content }] },
      })
    },
    'claim of remote work': async () => assert.equal((await claim()).status, 200),
    'task with one model call by a key of the organization, waited for': async () => {
      const { body } = await test.send('POST', `${agents}/${id['owned']}/tasks?wait=30`, { body: { input: 'Hello' } })
      assert.equal(body.status, 'completed', JSON.stringify(body.error))
    },
  }

  for (const [name, work] of Object.entries(paths))
    it(`${name} uses no more statements and commits than recorded`, async () => {
      if (name.includes('by a key of the organization'))
        await test.send('POST', '/api/v1/model-providers', {
          body: { name: 'own', base_url: model.base_url, api_key: 'sk-x' },
        })
      await work()
      const limit = allowed[name]!
      const cost = await costOf(work, limit)
      assert.ok(
        cost.statements <= limit.statements && cost.commits <= limit.commits,
        JSON.stringify({ cost, limit }, undefined, 1),
      )
    })

  // The last one: all tasks after it have a webhook.
  it('a task with subscribed webhooks is created and ended by one statement each, without a lock before', async () => {
    const webhook = { url: `${model.base_url}/hook`, events: ['task.*'], secret: 'a secret of the test' }
    assert.equal((await test.send('POST', '/api/v1/webhooks', { body: webhook })).status, 201)
    const writes = async (): Promise<string[]> => {
      made.length = 0
      const { body } = await test.send('POST', `${agents}/${id['answers']}/tasks?wait=30`, { body: { input: 'Hello' } })
      const events = await test.sql<{ type: string }>`
        select type from event where data->'task'->>'id' = ${body.id} and data ? 'sequence' order by id`
      assert.deepEqual([events[0]?.type, events.at(-1)?.type], ['task.created', 'task.completed'])
      const of = { created: /^with\s+asked as/, ended: /^with\s+found as/, locked: /\bt\.max_attempts, t\.unseen\b/ }
      return Object.entries(of).flatMap(([name, pattern]) =>
        made.flatMap(({ text }) => (pattern.test(text.trim()) ? [name] : [])),
      )
    }
    let last: string[] = []
    for (let round = 0; round < roundsMax && last.join() !== 'created,ended'; round++) last = await writes()
    assert.deepEqual(last, ['created', 'ended'])
  })
})
