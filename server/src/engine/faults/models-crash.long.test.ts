import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, it } from 'node:test'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { openCrashWorld, type CrashWorld } from '../../../test/processes/crash-world.ts'
import { type EngineProcess } from '../../../test/processes/engine-process.ts'
import {
  type FakeBehaviour,
  type FakeModelServer,
  startFakeModelServer,
} from '../../../test/fake-models/fake-model-server.ts'
import { eventually } from '../../../test/harness.ts'
import type { Sql } from '../../platform/postgres/database.ts'

const never = new Promise<void>(() => {})
const thought = (n: number): Extract<FakeBehaviour, { do: 'answer' }> => ({
  do: 'answer',
  reasoning: [{ text: `Thought ${n}`, summary: [`Thought ${n}`], encrypted: `kept-${n}+/=`, signature: `kept-${n}==` }],
  tool_calls: [{ name: 'safe', arguments: '{"note": "x" }' }],
})
/** A call that is never answered: its worker is killed meanwhile. */
const hang: FakeBehaviour = { do: 'hold', pieces: 0, until: never, text: '' }

// About 10 s: workers that are killed with -9 in the middle of what only their provider can read.
describe('a worker that is killed', () => {
  let server: FakeModelServer
  let world: CrashWorld
  let sql: Sql
  const processes: EngineProcess[] = []
  before(async () => {
    server = await startFakeModelServer()
    world = await openCrashWorld()
    sql = world.sql
  })
  after(async () => {
    await world.close()
    await server.close()
  })
  beforeEach(() => {
    server.requests.length = 0
    server.refused.length = 0
  })
  afterEach(async () => {
    await Promise.all(processes.splice(0).map((one) => one.stop()))
    assert.deepEqual(server.refused, [], 'a provider refused a request')
  })

  const startWorker = async () => {
    const at = { api_key: 'sk-fake', base_url: server.base_url }
    const worker = await world.startWorker({
      slots: 4,
      call_ms: 0,
      models: { openai: { ...at, protocol: 'responses' }, anthropic: at, default_model: 'x' },
    })
    processes.push(worker)
    return worker
  }
  const give = async (config: object): Promise<string> => {
    const agent = await insertTestAgent(sql, { tools: ['safe'], ...config })
    const [id] = await world.create(newTestTask(agent, 'Go on.'))
    return id!
  }
  /** Kills the worker once the server has got so many requests in all, and starts another. */
  const killAt = async (worker: EngineProcess, requests: number): Promise<void> => {
    await server.waitForRequests(requests)
    await worker.kill()
    processes.splice(processes.indexOf(worker), 1)
    await startWorker()
  }
  const ended = (id: string) =>
    eventually(async () => {
      const [task] = await sql<{ status: string; error: { code: string } | null; output: any }>`
        select status, error, output from task where id = ${id} and finished_at is not null`
      return task
    }, 30_000)
  const steps = (id: string) =>
    sql<{ index: number; type: string; status: string; attempt: number }>`
      select index, type, status, attempt from task_step where task_id = ${id} order by index`

  for (const model of ['openai/gpt-5.6-sol', 'anthropic/claude-opus-4-8']) {
    it(`after a worker is killed between two rounds, the next process sends back the reasoning of ${model} byte by byte`, async () => {
      server.next(thought(1), thought(2), hang, thought(3), { do: 'answer', text: 'Done.' })
      const id = await give({ model, effort: 'high' })
      await killAt(await startWorker(), 3)
      const { status, error, output } = await ended(id)
      assert.deepEqual([status, error, output.content], ['completed', null, 'Done.'])
      const last = JSON.stringify(server.requests.at(-1)?.body)
      for (const n of [1, 2, 3]) assert.ok(last.includes(`kept-${n}`), last)
      const [row] = await sql<{ text: string }>`
        select string_agg(to_jsonb(s)::text, '') || (select string_agg(to_jsonb(e)::text, '') from task_event e where e.task_id = ${id}) as text
        from task_step s where task_id = ${id}`
      assert.ok(!row!.text.includes('kept-'), 'what only the provider may read is stored in the clear')
    })
  }

  it('a compaction that was interrupted by a kill is made once by the next process', async () => {
    const usage = { input_tokens: 900, output_tokens: 10 }
    const round = (n: number): FakeBehaviour => ({ ...thought(n), usage })
    const summary: FakeBehaviour = { do: 'answer', text: 'SUMMARY', usage }
    server.next(round(1), round(2), hang, summary, { do: 'answer', text: 'Done.' })
    const id = await give({ model: 'openai/gpt-5.6-sol', context: { compact_at_tokens: 800, keep_last_steps: 1 } })
    await killAt(await startWorker(), 3)
    assert.equal((await ended(id)).status, 'completed')
    const compactions = (await steps(id)).filter(({ type }) => type === 'compaction')
    assert.deepEqual(
      compactions.map(({ status, attempt }) => [status, attempt]),
      [['completed', 2]],
    )
    const [events] = await sql<{ count: number }>`
      select count(*) from task_event where task_id = ${id} and type = 'context.compacted'`
    assert.equal(events!.count, 1)
  })

  it('a task whose worker is killed between two repairs ends the same, without a repeated step', async () => {
    const output_schema = { type: 'object', required: ['total'] }
    server.next({ do: 'answer', text: 'no' }, hang, { do: 'answer', text: '{}' }, { do: 'answer', text: '[]' })
    const id = await give({ model: 'openai/gpt-5.6-sol', tools: [], output_schema })
    await killAt(await startWorker(), 2)
    const { status, error } = await ended(id)
    assert.deepEqual([status, error?.code], ['failed', 'output_invalid'])
    assert.deepEqual(
      (await steps(id)).map(({ index, type, status: of, attempt }) => [index, type, of, attempt]),
      [
        [0, 'model_call', 'completed', 1],
        [1, 'model_call', 'completed', 2],
        [2, 'model_call', 'completed', 1],
      ],
    )
    const bodies = server.requests.map(({ body }) => JSON.stringify(body).split('Your answer is not valid').length - 1)
    assert.deepEqual(bodies, [0, 1, 1, 2])
  })
})
