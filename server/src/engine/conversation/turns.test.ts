import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, it, mock } from 'node:test'
import { pino } from 'pino'
import { insertTestAgent, newTestTask } from '../../../test/fixtures.ts'
import { witnessTable } from '../../../test/processes/engine-process.ts'
import { eventually, makeTestDatabase } from '../../../test/harness.ts'
import { jsonb, openDatabase, type Database, type Sql } from '../../platform/postgres/database.ts'
import { newId } from '../../platform/ids.ts'
import { makeSecrets } from '../../platform/crypto/secrets.ts'
import type { Engine } from '../engine.ts'
import { scriptModel } from '../models/builtin/builtin-script.ts'
import { ModelError, type Model } from '../models/model.ts'
import { Run } from '../run/run.ts'
import { startEngine } from '../start.ts'
import { noUsage } from '../journal/task-rows.ts'
import { checkCalls } from '../run/tool-plan.ts'
import { engineAnswered } from '../tools/builtin/engine-answered.ts'
import { noTools, type Tool, type ToolSource } from '../tools/tool.ts'
import type { LockedTask, TaskWork, Step } from '../task.ts'

const refused = new ModelError('provider_refused_request', 'No.', { retryable: false })

describe('the turns of a task', () => {
  let test: Awaited<ReturnType<typeof makeTestDatabase>>
  let database: Database
  let engine: Engine
  let sql: Sql
  /** Asked before a model named `canceled` fails. */
  let whileItFails = async (): Promise<void> => {}
  before(async () => {
    test = await makeTestDatabase()
    database = openDatabase({ connection: test.connection })
    sql = database.sql
    await sql.script(witnessTable)
    engine = await startEngine({
      database,
      log: pino({ level: 'silent' }),
      models: { resolve },
      tools: toolsFor(sql),
      secrets: makeSecrets('a secret key for tests, 32 characters'),
      config: { worker_slots: 8, tokens_per_hour: 1e12 },
    })
    await engine.ready
  })
  after(async () => {
    await engine.stop()
    await database.close()
    await test.drop()
  })

  const model: Model = {
    provider: 'test',
    async call(request) {
      if (request.model.startsWith('refuses')) throw refused
      if (request.model !== 'busy') return scriptModel.call(request)
      await whileItFails()
      throw new ModelError('provider_rate_limited', 'Later.', { retryable: true, retry_after: 60 })
    },
  }
  const resolve = (name: string) => {
    if (name === 'unknown/x') throw new ModelError('model_not_found', 'There is no such model.', { retryable: false })
    return { model, name }
  }
  const give = async (config: object, ...steps: object[]) => {
    const tools = ['unsafe', 'safe', 'wait', 'request_input']
    const agent = await insertTestAgent(sql, { model: 'script', tools, max_steps: 200, ...config })
    const task = newTestTask(agent, JSON.stringify(steps))
    await sql.begin((tx) => engine.enqueue(tx, task))
    return { id: task.id, agent }
  }
  const read = async (id: string) => {
    const [task] = await sql<{
      status: string
      output: { content: string } | null
      error: { code: string } | null
      wait: { reason: string; approval_ids: string[] } | null
    }>`select status, output, error, wait from task where id = ${id}`
    return task!
  }
  const reaches = (id: string, status: string) =>
    eventually(async () => {
      const task = await read(id)
      return task.status === status && task
    })
  const eventsOf = async (id: string, type: string) =>
    sql<{ data: any }>`select data from task_event where task_id = ${id} and type = ${type} order by sequence`
  const callsOf = async (id: string) => (await sql`select 1 from witness where input like ${`${id}:%`}`).length
  const pending = (id: string) =>
    eventually(async () => {
      const [row] = await sql<{ id: string }>`select id from approval where task_id = ${id} and status = 'pending'`
      return row?.id
    })
  const approve = (approval_id: string, more: { result?: string } = {}) =>
    sql.begin((tx) =>
      engine.resolveApproval(tx, approval_id, { decision: 'approve', reason: null, user_id: 'user_x', ...more }),
    )
  const cancel = (id: string) =>
    sql.begin((tx) => engine.cancel(tx, id, { reason: null, mode: 'graceful', user_id: 'user_x' }))
  const calls = (count: number, name: string, args: object = { hang: true }) =>
    Array.from({ length: count }, () => ({ name, arguments: args }))

  it('a task fails when all its fallback models have failed, even if a model is named twice', async () => {
    const { id } = await give({ model: 'refuses', fallback_models: ['refuses', 'refuses too', 'refuses'] }, {})
    const { error } = await reaches(id, 'failed')
    assert.equal(error?.code, 'provider_refused_request')
    assert.deepEqual(
      (await eventsOf(id, 'model.fallback')).map(({ data }) => data.to),
      ['refuses too'],
    )
  })

  it('a reservation is released when the fallback model is unknown', async () => {
    const agent = await insertTestAgent(sql, { model: 'refuses', fallback_models: ['unknown/x'] })
    await sql`
      insert into budget (id, org_id, project_id, scope, subject, max_tokens, period, window_start, created_by)
      select ${newId('budget')}, org_id, id, 'project', ${`proj_${agent.project_id}`}, 1000000, 'total', now(), 'user_x'
      from project where id = ${agent.project_id}`
    const task = newTestTask(agent, 'x')
    await sql.begin((tx) => engine.enqueue(tx, task))
    assert.equal((await reaches(task.id, 'failed')).error?.code, 'model_not_found')
    const [budget] = await sql`select held_tokens, spent_tokens from budget where project_id = ${agent.project_id}`
    assert.deepEqual(budget, { held_tokens: 0, spent_tokens: 0 })
  })

  it('wait and request_input make the task wait after their approval too', async () => {
    const tool_policies = { wait: 'ask', request_input: 'ask' }
    const { id } = await give(
      { tool_policies },
      { tool_calls: [{ name: 'wait', arguments: { seconds: 0.01 } }] },
      { tool_calls: [{ name: 'request_input', arguments: { question: 'Which?' } }] },
      { text: 'You said {{tool_result}}' },
    )
    await approve(await pending(id))
    await approve(await pending(id))
    await eventually(async () => (await read(id)).wait?.reason === 'input')
    await sql.begin((tx) => engine.sendMessage(tx, id, { content: 'blue', user_id: 'user_x' }))
    assert.equal((await reaches(id, 'completed')).output?.content, 'You said blue')
    const steps =
      await sql`select type, status from task_step where task_id = ${id} and name <> 'script' order by index`
    assert.deepEqual(
      steps,
      ['approval', 'wait', 'approval', 'wait'].map((type) => ({ type, status: 'completed' })),
    )
  })

  it('every tool call is made once, even if the model repeats call ids', async () => {
    const { id } = await give(
      {},
      { tool_calls: [{ id: 'x', name: 'unsafe' }] },
      {
        tool_calls: [
          { id: 'call_2_1', name: 'unsafe' },
          { id: 'x', name: 'unsafe' },
        ],
      },
      { text: 'Done.' },
    )
    await reaches(id, 'completed')
    assert.equal(await callsOf(id), 3)
    const ids = await sql<{ id: string }>`
      select distinct input->>'tool_call_id' as id from task_step where task_id = ${id} and type = 'tool_call'`
    assert.equal(ids.length, 3)
  })

  it('the receipt of a cancellation names no call that was never made', async () => {
    const { id } = await give({}, { tool_calls: calls(20, 'unsafe') }, { text: 'Done.' })
    await eventually(async () => (await callsOf(id)) === 16)
    await cancel(id)
    await reaches(id, 'canceled')
    const [event] = await eventsOf(id, 'task.canceled')
    assert.deepEqual([event!.data.uncertain.length, event!.data.effects.length], [16, 0])
    assert.equal(await callsOf(id), 16)
  })

  it('a call that was never made is made when its task continues, without asking a person', async () => {
    const { id, agent } = await give(
      {},
      { tool_calls: [...calls(16, 'safe'), ...calls(2, 'unsafe', {})] },
      { text: 'Done.' },
    )
    await eventually(async () => (await callsOf(id)) === 16)
    // A restart: the calls in flight go on for a while, and no further one begins.
    await sql.begin((tx) => engine.deferTasks(tx, agent.id, 'agent_stopped'))
    await sql`update witness set turn = 1 where input like ${`${id}:%`}`
    await reaches(id, 'completed')
    assert.equal(await callsOf(id), 18)
    assert.equal((await eventsOf(id, 'approval.requested')).length, 0)
    const attempts = await sql<{ attempt: number }>`
      select attempt from task_step where task_id = ${id} and name = 'unsafe' order by index`
    assert.deepEqual(
      attempts.map(({ attempt }) => attempt),
      [2, 2],
    )
  })

  it('the events of a task are in the order of time, even if a change waited for a later one', async () => {
    const { id } = await give({}, { tool_calls: [{ name: 'wait', arguments: { seconds: 600 } }] })
    await reaches(id, 'waiting')
    await sql.begin(async (late) => {
      await late`select now()`
      await sql.begin((tx) => engine.sendMessage(tx, id, { content: 'Hurry.', user_id: 'user_x' }))
      await engine.cancel(late, id, { reason: null, mode: 'graceful', user_id: 'user_x' })
    })
    // Times of events are those of the transactions, to the millisecond.
    const events = await sql<{ type: string; went_back: boolean; is_end: boolean }>`
      select type, coalesce(e.created_at < lag(e.created_at) over (order by sequence), false) as went_back,
        date_trunc('milliseconds', finished_at) = e.created_at as is_end
      from task_event e join task t on t.id = task_id where task_id = ${id} order by sequence`
    assert.deepEqual(
      events.filter(({ went_back }) => went_back),
      [],
    )
    assert.deepEqual(events.at(-1), { type: 'task.canceled', went_back: false, is_end: true })
  })

  it('the receipt of a cancellation has the outcome of a call that a person stated just before', async () => {
    const agent = await insertTestAgent(sql, { model: 'script', tools: ['unsafe', 'safe'] })
    const task = newTestTask(agent, '[{"text": "Done."}]')
    const tool_calls = [
      { id: 'a', name: 'unsafe', arguments: {} },
      { id: 'b', name: 'safe', arguments: { hang: true } },
    ]
    await sql.begin(async (tx) => {
      await engine.enqueue(tx, task)
      await tx`update task set retried_from = 'task_x' where id = ${task.id}`
      await tx`
        insert into task_step (task_id, index, id, agent_id, type, status, attempt, name, input, output)
        values (${task.id}, 0, ${newId('step')}, ${agent.id}, 'model_call', 'completed', 1, 'script', ${jsonb({ message_id: 'msg_x' })},
            ${jsonb({ message_id: 'msg_x', text: '', tool_calls, finish_reason: 'tool_calls' })}),
          (${task.id}, 1, ${newId('step')}, ${agent.id}, 'tool_call', 'started', 1, 'unsafe',
            ${jsonb({ tool_call_id: 'a', arguments: {}, safety: 'unsafe' })}, null)`
    })
    await eventually(async () => (await callsOf(task.id)) === 1)
    await approve(await pending(task.id), { result: 'It arrived.' })
    await cancel(task.id)
    await reaches(task.id, 'canceled')
    const [event] = await eventsOf(task.id, 'task.canceled')
    assert.deepEqual(
      [event!.data.effects.map(({ tool }: { tool: string }) => tool), event!.data.uncertain, event!.data.forced],
      [['unsafe'], [], undefined],
    )
  })

  it('a task is canceled while its provider asks for a pause', async () => {
    const agent = await insertTestAgent(sql, { model: 'busy' })
    const task = newTestTask(agent, 'x')
    whileItFails = async () => {
      const request = { reason: null, mode: 'graceful', user_id: 'user_x' }
      await sql`update task set cancel = ${jsonb(request)}, cancel_requested_at = now() where id = ${task.id}`
    }
    await sql.begin((tx) => engine.enqueue(tx, task))
    await reaches(task.id, 'canceled')
    assert.equal((await eventsOf(task.id, 'task.waiting')).length, 0)
  })

  it('a task is canceled when an approval with on_timeout cancel expires during a call', async () => {
    const config = { tool_policies: { unsafe: 'ask' }, approval_on_timeout: 'cancel' }
    const { id } = await give(config, { tool_calls: [{ name: 'unsafe' }, ...calls(1, 'safe')] }, { text: 'Done.' })
    await eventually(async () => (await callsOf(id)) === 1)
    await sql`update approval set expires_at = now() where task_id = ${id}`
    await reaches(id, 'canceled')
    const [event] = await eventsOf(id, 'task.canceled')
    assert.equal(event!.data.forced, undefined)
    assert.equal((await eventsOf(id, 'cancel.requested')).length, 1)
  })

  it('a task continues at once when all its approvals have expired', async () => {
    const { id } = await give(
      { tool_policies: { unsafe: 'ask' } },
      { tool_calls: calls(8, 'unsafe') },
      { text: 'There was no answer.' },
    )
    await reaches(id, 'waiting')
    await sql`update approval set expires_at = now() where task_id = ${id}`
    await reaches(id, 'completed')
    const [took] = await sql<{ seconds: number; count: number }>`
      select extract(epoch from max(created_at) - min(created_at))::float8 as seconds, count(*) as count
      from task_event where task_id = ${id} and type = 'approval.expired'`
    assert.equal(took?.count, 8)
    assert.ok(took.seconds < 5, `${took.seconds} s: one a second would take 7`)
    assert.equal(await callsOf(id), 0)
  })

  it('no approval is requested for a call that would exceed the limit of steps', async () => {
    const config = { tool_policies: { unsafe: 'ask' } }
    const script = [{ tool_calls: [{ name: 'unsafe' }] }, { text: 'Done.' }]
    const tooFew = await give({ ...config, max_steps: 2 }, ...script)
    assert.equal((await reaches(tooFew.id, 'failed')).error?.code, 'max_steps_reached')
    assert.equal((await eventsOf(tooFew.id, 'approval.requested')).length, 0)
    const enough = await give({ ...config, max_steps: 4 }, ...script)
    await approve(await pending(enough.id))
    await reaches(enough.id, 'completed')
    assert.deepEqual([await callsOf(tooFew.id), await callsOf(enough.id)], [0, 1])
  })

  it('deleting an agent removes the approvals and messages of its tasks', async () => {
    const { id, agent } = await give({ tool_policies: { unsafe: 'ask' } }, { tool_calls: [{ name: 'unsafe' }] })
    await pending(id)
    await sql.begin((tx) => engine.sendMessage(tx, id, { content: 'Hurry.', user_id: 'user_x' }))
    await sql.begin(async (tx) => {
      await engine.cancelTasks(tx, agent.id)
      await tx`delete from agent where id = ${agent.id}`
    })
    await eventually(
      async () =>
        (await sql`select 1 from removed_agent where agent_id = ${agent.id} and purged_at is null`).length === 0,
    )
    const left = await sql`
      select id from approval where agent_id = ${agent.id} union all select id from task_message where task_id = ${id}`
    assert.deepEqual(left, [])
  })
})

it('a stopping process gives tool calls no extra time because their agent was stopped before', () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const run = new Run({
    claim: { task_id: 'task_x', worker_id: 'worker_x', attempt: 1, writes: 0 },
    task: { agent_id: 'agent_x', agent: null, agent_version: 1, project_id: 1, usage: noUsage } as LockedTask,
    work: { config: { model: 'x' } } as TaskWork,
    steps: [],
    messages: [],
    expires_at: null,
    environment: {},
  })
  const { model, tools } = run.nextSignals()
  run.interrupt('agent')
  run.interrupt('shutdown')
  assert.deepEqual([model.aborted, tools.aborted], [true, false])
  mock.timers.tick(15_001)
  assert.equal(tools.aborted, true)
  run.end()
  mock.timers.reset()
})

/** Tools that write down their calls; those that hang go on when their witness says so, or they are aborted. */
function toolsFor(sql: Sql): ToolSource {
  const tool = (safety: 'safe' | 'unsafe'): Tool => ({
    name: safety,
    description: safety,
    parameters: { type: 'object' },
    safety,
    async call({ hang }, { idempotency_key, signal }) {
      await sql`insert into witness (input, turn, pid) values (${idempotency_key}, 0, ${process.pid})`
      if (hang !== true) return { content: 'made' }
      const released = eventually(
        async () =>
          signal.aborted || (await sql`select 1 from witness where input = ${idempotency_key} and turn = 1`)[0],
        30_000,
      )
      await Promise.race([released, once(signal, 'abort')])
      signal.throwIfAborted()
      return { content: 'made' }
    },
  })
  const tools = new Map([tool('safe'), tool('unsafe'), ...engineAnswered].map((one) => [one.name, one]))
  return { open: async () => ({ tools, missing: [], unreadable: [], secrets: [], close: async () => {} }) }
}

it('slow checks of arguments let other work run in between', async () => {
  const parameters = { type: 'object', properties: { text: { type: 'string', pattern: '^(a+)+$' } } }
  const tool: Tool = { name: 'slow', description: '', parameters, safety: 'safe', call: async () => ({ content: '' }) }
  const tool_calls = Array.from({ length: 5 }, (_, i) => ({
    id: `call_${i}`,
    name: 'slow',
    arguments: { text: `${'a'.repeat(40)}!` },
  }))
  const answer = { type: 'model_call', status: 'completed', output: { text: '', tool_calls } } as Step
  let turns = 0
  const count = setInterval(() => (turns += 1), 1)
  const complaints = await checkCalls({
    steps: [answer],
    toolset: { ...noTools, tools: new Map([['slow', tool]]) },
    party: { org_id: 'org_1', project_id: 1 },
  } as unknown as Run)
  clearInterval(count)
  assert.equal(complaints.size, 5)
  assert.ok(turns >= 4, `${turns} turns of the event loop`)
})
