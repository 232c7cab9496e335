import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'
import { sizeOf } from '../../../test/long-run.ts'
import { noUsage } from '../journal/task-rows.ts'
import { createAgent } from '../../../test/fixtures.ts'

/** Large enough that a statement over all of it would be felt. */
const tasks = sizeOf({ short: 10_000, long: 100_000 })
const queued = tasks / 10
/** What a request may take meanwhile: this, or so many times what the slowest one took before, where the machine is busy. */
const latencyMax_ms = 1500
const slowerMax = 5
const requestsBefore = 10

describe(`the deletion of an agent with ${tasks} tasks`, () => {
  let test: TestService
  let base: string

  before(async () => {
    test = await startTestService()
    const project = await test.send('POST', '/api/v1/projects', { body: { name: 'crowded' } })
    base = `/api/v1/projects/${project.body.id}`
  })
  after(() => test.stop())

  const makeAgent = async (name: string): Promise<string> => {
    const body = await createAgent(test.send, base, { name, config: { model: 'builtin/echo' } })
    return body.id
  }

  /** Tasks with an event and a step each; the last ones are queued, and no job of theirs has been sent. */
  const fill = async (agent_id: string): Promise<void> => {
    for (let from = 1; from <= tasks; from += 10_000) {
      await test.sql`
        with made as (
          insert into task (id, project_id, agent_id, agent_version, status, input, max_attempts, usage, created_by, last_sequence, finished_at)
          select substr(id_floor('task', now()), 1, 15) || lpad(i::text, 16, '0'), a.project_id, a.id, 0,
            case when i > ${tasks - queued} then 'queued' else 'completed' end, '"x"', 5, ${JSON.stringify(noUsage)}, 'user_1', 1,
            case when i <= ${tasks - queued} then now() end
          from generate_series(${from}::int, ${from + 9999}::int) i, agent a where a.id = ${agent_id}
          returning id
        ), told as (
          insert into task_event (task_id, sequence, type, data) select id, 1, 'task.created', '{}' from made
        )
        insert into task_step (task_id, index, id, agent_id, type, status, attempt, name)
        select id, 0, 'step' || substr(id, 5), ${agent_id}, 'model_call', 'completed', 1, 'm' from made`
    }
    // Tests run without autovacuum, and so many tasks do not come in a moment.
    for (const table of ['task', 'task_event', 'task_step']) await test.sql.script(`analyze ${table}`)
  }

  it(`the deletion of an agent with ${tasks} tasks delays no other tasks and requests, and leaves no rows`, async (context) => {
    const [crowded, other] = [await makeAgent('crowded'), await makeAgent('other')]
    await test.send('POST', `${base}/agents/${crowded}/pause`)
    await fill(crowded)
    const timed = async <T>(work: Promise<T>): Promise<{ ms: number; result: T }> => {
      const began = performance.now()
      const result = await work
      return { ms: performance.now() - began, result }
    }
    const requests = async (): Promise<number[]> => {
      const task = await timed(test.send('POST', `${base}/agents/${other}/tasks?wait=30`, { body: { input: 'Hello' } }))
      assert.equal(task.result.body.status, 'completed')
      const list = await timed(test.send('GET', `${base}/tasks?limit=20`))
      const listed: { agent_id: string }[] = list.result.body.tasks
      assert.ok(isRemoved ? listed.every(({ agent_id }) => agent_id === other) : listed.length > 0)
      return [task.ms, list.ms]
    }
    let isRemoved = false
    const before: number[] = []
    for (let i = 0; i < requestsBefore; i++) before.push(...(await requests()))
    const removal = await timed(test.send('DELETE', `${base}/agents/${crowded}`))
    assert.equal(removal.result.status, 200)
    isRemoved = true
    assert.ok(removal.ms < Math.max(4000, slowerMax * Math.max(...before)), `the deletion took ${removal.ms} ms`)

    const left = async (): Promise<number> => {
      const [row] = await test.sql<{ n: number }>`select count(*) as n from task where agent_id = ${crowded}`
      return row!.n
    }
    assert.ok((await left()) > 0, 'the purge is in the background')
    const latencies: number[] = []
    while ((await left()) > 0) latencies.push(...(await requests()))
    const slowest_ms = Math.max(...latencies)
    const bound_ms = Math.max(latencyMax_ms, slowerMax * Math.max(...before))
    assert.ok(slowest_ms < bound_ms, `a request took ${slowest_ms} ms, and ${Math.max(...before)} ms before`)
    context.diagnostic(
      `deleted in ${Math.round(removal.ms)} ms, the slowest of ${latencies.length} requests took ${Math.round(slowest_ms)} ms`,
    )
    await eventually(async () => (await test.sql`select from removed_agent where purged_at is null`).length === 0)
    const [rest] = await test.sql`
      select (select count(*) from task_step where agent_id = ${crowded}) as steps,
        (select count(*) from task_event e where not exists (select from task t where t.id = e.task_id)) as events,
        (select count(*) from agent_log where agent_id = ${crowded}) as logs`
    assert.deepEqual(rest, { steps: 0, events: 0, logs: 0 })
  })
})
