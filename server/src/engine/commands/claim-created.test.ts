import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { newId } from '../../platform/ids.ts'
import { startFakeModelServer, type FakeModelServer } from '../../../test/fake-models/fake-model-server.ts'
import { eventually, startTestService, type TestService } from '../../../test/harness.ts'
import type { AgentStanding, NewTask } from './new-task.ts'
import { createProject } from '../../../test/fixtures.ts'

/** Costs about 4 s: a service with one slot. */
describe('a task that is created where a slot is free', () => {
  let test: TestService
  let model: FakeModelServer
  let agents: string
  let agent: NewTask['agent']

  before(async () => {
    model = await startFakeModelServer()
    test = await startTestService({ CADRE_WORKER_SLOTS: '1', CADRE_PROVIDER_FAKE_BASE_URL: model.base_url })
    const project = await createProject(test.send, 'claimed')
    agents = `${project.path}/agents`
    const id = await make('echo', { model: 'builtin/echo' })
    agent = { id, project_id: project.id, version: 0, status: 'running', settles_to: null }
  })
  after(async () => {
    await test.stop()
    await model.close()
  })

  async function make(name: string, config: object): Promise<string> {
    const { body } = await test.send('POST', agents, { body: { name, config } })
    await eventually(async () => (await test.send('GET', `${agents}/${body.id}`)).body.status === 'running')
    return body.id
  }

  /** How many transactions wrote the task's creation, its start and the intent of its first step. */
  async function transactionsOf(task_id: string): Promise<number> {
    const [row] = await test.sql<{ n: number }>`
      select count(distinct xid) as n from task_event
      where task_id = ${task_id} and type in ('task.created', 'task.started', 'step.started')`
    return row!.n
  }

  function newTask(): NewTask {
    return { id: newId('task'), agent, input: 'Hello', created_by: 'user_test', request_id: null }
  }

  /** A task of an agent with all that its claim depends on, as it is read before the task is stored. */
  async function readyTask(agent_id: string): Promise<NewTask> {
    const [standing] = await test.sql<AgentStanding & { project_id: number }>`
      select p.org_id, a.project_id, a.name, a.status, a.revision, a.version, a.config, a.environment, a.token_subject, 0 as tokens_used,
        false as is_fresh, false as has_budget, null::text[] as subscriptions, 0 as providers_version
      from agent a join project p on p.id = a.project_id where a.id = ${agent_id}`
    const { project_id, version, status, config } = standing!
    const limits = config as { max_concurrent_tasks?: unknown }
    return {
      ...newTask(),
      agent: { id: agent_id, project_id, version, status, settles_to: null, config: limits, standing: standing! },
    }
  }

  async function completed(task_id: string): Promise<void> {
    await eventually(async () => {
      const [row] = await test.sql<{ status: string }>`select status from task where id = ${task_id}`
      return row?.status === 'completed'
    })
  }

  it('with a free slot, the transaction that creates a task also claims it and writes its first intent', async () => {
    const { body: task } = await test.send('POST', `${agents}/${agent.id}/tasks?wait=30`, { body: { input: 'Hello' } })
    assert.deepEqual([task.status, task.output.content], ['completed', 'Hello'])
    assert.equal(await transactionsOf(task.id), 1)
    const jobs = await test.sql`select from pgboss.job`
    assert.equal(jobs.length, 0, 'its job is removed with its end')
  })

  it('a new task waits in the queue while all slots are taken, and runs when one is free', async () => {
    const script = JSON.stringify([{ delay_ms: 400 }, { text: 'Done.' }])
    const slow = await make('slow', { model: 'builtin/script', system_prompt: script })
    const { body: first } = await test.send('POST', `${agents}/${slow}/tasks`, { body: { input: 'Go.' } })
    const { body: second } = await test.send('POST', `${agents}/${agent.id}/tasks`, { body: { input: 'Later.' } })
    const [job] = await test.sql<{ state: string }>`select state from pgboss.job where data->>'task_id' = ${second.id}`
    assert.equal(job?.state, 'created')
    for (const { id } of [first, second])
      await eventually(
        async () => (await test.send('GET', agents.replace('/agents', `/tasks/${id}`))).body.status === 'completed',
      )
    assert.deepEqual([await transactionsOf(first.id), await transactionsOf(second.id)], [1, 2])
  })

  it('a claimed task whose creation is rolled back leaves no row and frees its slot', async () => {
    const { engine, sql } = test.service.context
    await eventually(async () => engine.runningTasks() === 0)
    const lost = newTask()
    const refused = sql.begin(async (tx) => {
      await engine.createAll(tx, [lost])
      throw new Error('refused')
    })
    await assert.rejects(refused, /refused/)
    assert.equal(engine.runningTasks(), 0)
    assert.deepEqual(await test.sql`select from task where id = ${lost.id}`, [])
    // The only slot is free again: a next one is claimed by its creation. While the queue is asked for jobs the slot is kept for those.
    await eventually(async () => {
      const next = newTask()
      await sql.begin((tx) => engine.createAll(tx, [next]))
      await completed(next.id)
      return (await transactionsOf(next.id)) === 1
    })
  })

  it('with a free slot, one statement stores a new task as running, and the response shows it as created', async () => {
    const { engine } = test.service.context
    await eventually(async () => engine.runningTasks() === 0)
    const task = await readyTask(agent.id)
    const row = await engine.create({ ...task, metadata: { from: 'test' }, timeout_seconds: 60 })
    assert.deepEqual(
      [row.status, row.last_sequence, row.started_at, row.metadata],
      ['queued', 1, null, { from: 'test' }],
    )
    await completed(task.id)
    const [kept] = await test.sql<{ attempt: number; lasts: number; types: string[] }>`
      select attempt, extract(epoch from expires_at - started_at)::int as lasts,
        (select array_agg(type order by sequence) from task_event where task_id = t.id) as types
      from task t where id = ${task.id}`
    assert.deepEqual(kept, {
      attempt: 1,
      lasts: 60,
      types: [
        'task.created',
        'task.started',
        'step.started',
        'step.completed',
        'message.completed',
        'usage.updated',
        'task.completed',
      ],
    })
  })

  it('a new task waits if its agent was paused after it was read', async () => {
    const { engine } = test.service.context
    const id = await make('paused', { model: 'builtin/echo' })
    const task = await readyTask(id)
    assert.equal((await test.send('POST', `${agents}/${id}/pause`)).status, 200)
    await engine.create(task)
    await eventually(async () => {
      const [row] = await test.sql<{
        status: string
        job_id: string | null
      }>`select status, job_id from task where id = ${task.id}`
      return row?.status === 'queued' && row.job_id === null
    })
    await test.send('POST', `${agents}/${id}/start`)
    await completed(task.id)
  })

  it('a new task spends a budget that was created after its agent was read', async () => {
    const { engine } = test.service.context
    const id = await make('limited', { model: 'builtin/echo' })
    const task = await readyTask(id)
    const budgets = agents.replace('/agents', '/budgets')
    const { status, body: budget } = await test.send('POST', budgets, {
      body: { scope: 'agent', subject: id, max_tokens: 100_000 },
    })
    assert.equal(status, 201, JSON.stringify(budget))
    await engine.create(task)
    await completed(task.id)
    const { body: after } = await test.send('GET', `${budgets}/${budget.id}`)
    assert.ok(after.spent.tokens > 0, JSON.stringify(after))
  })

  it('a claimed task calls its model once it is stored, and never if it is not stored', async () => {
    const { engine } = test.service.context
    const id = await make('asks', { model: 'fake/model' })
    const asked = async (): Promise<number> => {
      await eventually(async () => engine.runningTasks() === 0)
      return model.requests.length
    }
    const before = await asked()
    const task = await readyTask(id)
    let created: Promise<unknown> = Promise.resolve()
    await test.sql.begin(async (tx) => {
      await tx`lock table task in share mode`
      created = engine.create(task)
      await eventually(
        async () => (await tx`select from pg_locks where relation = 'task'::regclass and not granted`).length > 0,
      )
      assert.equal(model.requests.length, before)
    })
    await created
    await completed(task.id)
    assert.equal(await asked(), before + 1)

    const late = await readyTask(id)
    assert.equal((await test.send('POST', `${agents}/${id}/pause`)).status, 200)
    await engine.create(late)
    assert.equal(await asked(), before + 1)
    await test.send('POST', `${agents}/${id}/start`)
    await completed(late.id)
    assert.equal(await asked(), before + 2)
  })
})
